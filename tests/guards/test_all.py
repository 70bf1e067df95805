"""`__all__` tells the truth: what it lists is there, and what a module offers is listed."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from types import ModuleType

import pytest

import labeldp

# What an extra brings; a module that needs one is skipped where the extra is not installed.
EXTRAS = {"altair", "opendp", "pyspark", "sklearn", "torch", "vl_convert"}

MODULES = ["labeldp", *sorted(info.name for info in pkgutil.walk_packages(labeldp.__path__, "labeldp."))]
TOP_LEVEL = [name for name in MODULES if name.count(".") == 1]


@pytest.mark.parametrize("name", MODULES)
def test_what_is_listed_exists(name: str) -> None:
    assert missing(load(name)) == []


@pytest.mark.parametrize("name", TOP_LEVEL)
def test_what_is_public_is_listed(name: str) -> None:
    assert unlisted(load(name)) == []


def test_the_package_lists_its_names_in_order() -> None:
    # The order that ruff keeps (RUF022): constants, classes, functions.
    names = labeldp.__all__
    assert names == sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name))
    assert len(names) == len(set(names))


def test_a_wrong_list_is_found() -> None:
    module = ModuleType("example")
    exec("class Listed: ...\nclass Forgotten: ...\ndef _inner(): ...\n", module.__dict__)
    module.__dict__["__all__"] = ["Gone", "Listed"]
    assert missing(module) == ["Gone"]
    assert unlisted(module) == ["Forgotten"]


def missing(module: ModuleType) -> list[str]:
    return [name for name in getattr(module, "__all__", []) if not hasattr(module, name)]


def unlisted(module: ModuleType) -> list[str]:
    """Public functions and classes that the module defines and its `__all__` does not list."""
    if not hasattr(module, "__all__"):
        return []
    return [
        name
        for name, value in sorted(vars(module).items())
        if not name.startswith("_")
        and (inspect.isfunction(value) or inspect.isclass(value))
        and value.__module__ == module.__name__
        and name not in module.__all__
    ]


def load(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and error.name.split(".")[0] in EXTRAS:
            pytest.skip(f"{name} needs {error.name}")
        raise
