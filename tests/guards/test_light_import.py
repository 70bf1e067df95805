"""`import labeldp` loads nothing heavy: frameworks and frames come when they are used."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {"altair", "matplotlib", "narwhals", "pandas", "polars", "pyarrow", "pyspark", "sklearn", "torch"}


def test_import_labeldp_is_light() -> None:
    assert heavy_after("import labeldp") == set()


def test_a_heavy_import_is_found() -> None:
    assert "narwhals" in heavy_after("import labeldp; import narwhals")


def heavy_after(statement: str) -> set[str]:
    """The heavy packages that a fresh interpreter has loaded after the statement."""
    program = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return HEAVY & set(done.stdout.split())
