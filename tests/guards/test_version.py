"""The version is written twice, and says the same."""

from __future__ import annotations

import tomllib
from pathlib import Path

import labeldp


def test_the_package_and_the_project_agree() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert labeldp.__version__ == project["version"]
