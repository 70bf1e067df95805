"""docs/command-line.md is what `--help` prints. `python -m tests.guards.test_command_line_page` writes it anew."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"
REWRITE = "python -m tests.guards.test_command_line_page"
PLAIN = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "PYTHONIOENCODING": "utf-8"}


def test_the_page_is_what_help_prints() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), f"the command line changed; run: {REWRITE}"


def test_every_command_teaches_with_an_example() -> None:
    for command in commands():
        assert re.search(rf"Examples?:\n +labeldp {command} ", help_of(command)), command


def test_every_command_has_json() -> None:
    assert [command for command in commands() if "--json" not in help_of(command)] == []


def page() -> str:
    sections = [f"## labeldp {command}\n\n```text\n{help_of(command)}```\n" for command in commands()]
    return "\n".join(
        [
            "# The command line\n",
            "What `--help` prints, command by command. This page is generated; a test keeps it true.\n",
            f"```text\n{help_of()}```\n",
            *sections,
        ]
    )


def commands() -> list[str]:
    listed = help_of().split("Commands:\n")[1]
    return re.findall(r"^  (\w+)", listed, flags=re.MULTILINE)


@cache
def help_of(*command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "labeldp", *command, "--help"],
        capture_output=True,
        check=True,
        encoding="utf-8",
        env={**os.environ, **PLAIN},
    )
    return "\n".join(line.rstrip() for line in done.stdout.splitlines()) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
