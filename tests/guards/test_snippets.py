"""The Python in README.md and docs/ runs: ```python blocks are executed, ```pycon blocks are compared.

The blocks of one file share one namespace, in order, in an empty directory, with warnings as errors.
"""

from __future__ import annotations

import doctest
import re
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]

FENCE = re.compile(r"^ *(?P<ticks>`{3,}|~{3,}) *(?P<language>[^\s`]*)[^`]*$")


@dataclass(frozen=True)
class Block:
    """A fenced block of one language; `line` is where its text starts, counted from 1."""

    language: str
    line: int
    text: str


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_snippets_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page)


def test_the_readme_has_a_snippet() -> None:
    assert README.exists(), "README.md is missing."
    assert any(block.language == "python" for block in blocks(README)), "README.md has no ```python block."


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n", 6, "AssertionError"),
        ("```python\nx = 1\nx +\n```\n", 3, "SyntaxError"),
        ("```python\nimport warnings\nwarnings.warn('old')\n```\n", 3, "UserWarning"),
        ("```python\nx = 1\n```\n\n```pycon\n>>> x\n1\n>>> x + 1\n3\n```\n", 8, "Got:\n    2"),
        ("```pycon\n>>> x = 0\n>>> 1 / x\n1\n```\n", 3, "ZeroDivisionError"),
        ("```python\nx = 1\n", 2, "is not closed"),
    ],
)
def test_a_wrong_snippet_is_found(tmp_path: Path, text: str, line: int, reason: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    with pytest.raises(pytest.fail.Exception) as failure:
        run_page(page)
    assert f"{page}:{line}: " in str(failure.value)
    assert reason in str(failure.value)


def test_right_snippets_pass(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```text\n>>> 1 / 0\n```\n"
        "````markdown\n```python\n1 / 0\n```\n````\n"
        "- item\n\n  ```python\n  x = 2\n  ```\n"
        "```pycon\n>>> x\n2\n>>> y = x + 1\n```\n"
        "```python\nassert y == 3\n```\n",
        encoding="utf-8",
    )
    run_page(page)


def run_page(page: Path) -> None:
    if not page.exists():
        pytest.fail(f"{page} is missing.")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for block in blocks(page):
            if block.language == "python":
                execute(block, page, namespace)
            elif block.language == "pycon":
                compare(block, page, namespace)


def execute(block: Block, page: Path, namespace: dict[str, Any]) -> None:
    # Empty lines before the text make Python count lines as the page does.
    source = "\n" * (block.line - 1) + block.text
    try:
        exec(compile(source, str(page), "exec", dont_inherit=True), namespace)
    except SyntaxError as error:
        pytest.fail(f"{page}:{error.lineno}: SyntaxError: {error.msg}", pytrace=False)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        line = max((frame.lineno or 0 for frame in frames if frame.filename == str(page)), default=block.line)
        pytest.fail(f"{page}:{line}: {type(error).__name__}: {error}", pytrace=False)


def compare(block: Block, page: Path, namespace: dict[str, Any]) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, namespace, page.name, str(page), block.line - 1)
    try:
        doctest.DebugRunner(verbose=False).run(test, clear_globs=False)
    except doctest.DocTestFailure as failure:
        example = failure.example
        reason = doctest.OutputChecker().output_difference(example, failure.got, 0)
    except doctest.UnexpectedException as failure:
        example = failure.example
        reason = f"{failure.exc_info[0].__name__}: {failure.exc_info[1]}"
    else:
        namespace.update(test.globs)
        return
    pytest.fail(f"{page}:{block.line + example.lineno}: {example.source.strip()}\n{reason}", pytrace=False)


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a Markdown page, in order."""
    ticks, language, start, body = "", "", 0, list[str]()
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        fence = FENCE.match(line)
        if not ticks and fence:
            ticks, language, start, body = fence["ticks"], fence["language"], number + 1, []
        elif ticks and fence and not fence["language"] and fence["ticks"].startswith(ticks):
            yield Block(language, start, dedent("\n".join(body)) + "\n")
            ticks = ""
        elif ticks:
            body.append(line)
    if ticks:
        pytest.fail(f"{page}:{start}: the block that starts here is not closed.", pytrace=False)
