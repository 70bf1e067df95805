"""Imports point down. The layers are written here, and a module without a place fails."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "labeldp"

# Lower first. Within a layer a module may import only what is listed before it. "learn.*" is the package and all that
# is in it, which may import one another.
LAYERS = (
    ("version", "errors", "stored", "exact"),
    ("entropy", "labels"),
    ("channel", "additive", "certificate"),
    ("sampler", "prior"),
    (
        "design.arcs",
        "design.paths",
        "design.flow",
        "design.strip",
        "design.unbiased",
        "design.grid",
        "design.bins",
        "design.response",
        "design.by_name",
        "design.signature",
        "design",
    ),
    (
        "release.columns",
        "release.receipt",
        "release.ledger",
        "release.randomizer",
        "release.leaks",
        "release.frames",
        "release.files",
        "release.spark",
        "release",
    ),
    ("learn.*", "datasets.*", "compare", "audit"),
    ("report.*",),
    ("terminal", "cli", "__main__"),
    ("labeldp",),
)
ORDER = [place for layer in LAYERS for place in layer]

KERNEL = {"stored", "exact", "entropy", "labels", "channel", "additive", "certificate", "sampler"}
KERNEL_MAY_IMPORT = {"numpy", "cryptography", *sys.stdlib_module_names}


def test_every_module_has_a_place() -> None:
    assert without_a_place(SOURCE) == []


def test_imports_point_down() -> None:
    assert upward_imports(SOURCE) == []


def test_the_kernel_is_small() -> None:
    assert foreign_to_the_kernel(SOURCE) == []


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("exact", "from labeldp.channel import Channel"),
        ("exact", "from labeldp import channel"),
        ("exact", "import labeldp.channel"),
        ("exact", "from .channel import Channel"),
        ("exact", "def f():\n    from labeldp.channel import Channel"),
        ("exact", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from labeldp.channel import Channel"),
        ("exact", "import labeldp"),
        ("exact", "from labeldp import Channel"),
        ("channel", "from labeldp.certificate import certify"),
        ("design.arcs", "from . import flow"),
        ("design.arcs", "from labeldp.design import design_unbiased"),
        ("compare", "from labeldp.report.page import render"),
    ],
)
def test_an_upward_import_is_found(tmp_path: Path, module: str, line: str) -> None:
    root = fake_tree(tmp_path, {module: line})
    [found] = upward_imports(root)
    assert found.startswith(f"{module} imports ")


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("channel", "from labeldp.exact import exp_lower"),
        ("channel", "from labeldp import exact"),
        ("certificate", "from .channel import Channel"),
        ("design", "from labeldp.design.flow import solve_flow"),
        ("design.flow", "from .arcs import all_arcs"),
        ("compare", "from labeldp.design import design_unbiased"),
        ("report.page", "from labeldp.report import render"),
        ("labeldp", "from labeldp.channel import Channel"),
    ],
)
def test_a_downward_import_is_welcome(tmp_path: Path, module: str, line: str) -> None:
    assert upward_imports(fake_tree(tmp_path, {module: line})) == []


def test_an_unknown_module_is_found(tmp_path: Path) -> None:
    assert without_a_place(fake_tree(tmp_path, {"helpers": "", "design.tricks": ""})) == ["design.tricks", "helpers"]


@pytest.mark.parametrize("line", ["import scipy", "from labeldp.prior import Prior", "def f():\n    import torch"])
def test_a_foreign_import_in_the_kernel_is_found(tmp_path: Path, line: str) -> None:
    [found] = foreign_to_the_kernel(fake_tree(tmp_path, {"sampler": line}))
    assert found.startswith("sampler imports ")


def without_a_place(root: Path) -> list[str]:
    return [module for module in modules(root) if place_of(module) is None]


def upward_imports(root: Path) -> list[str]:
    """One line for each import that does not point down; a module without a place is another test's business."""
    found = []
    for module, path in modules(root).items():
        for target in sorted(own_imports(root, module, path)):
            here, there = place_of(module), place_of(target)
            if here is None or there is None:
                continue
            inside_one_package = here == there and ORDER[here].endswith(".*")
            if there >= here and not inside_one_package:
                found.append(f"{module} imports {target}, which stands above it")
    return found


def foreign_to_the_kernel(root: Path) -> list[str]:
    found = []
    for module, path in modules(root).items():
        if module in KERNEL:
            foreign = {name for name in outside_imports(path) if name not in KERNEL_MAY_IMPORT}
            foreign |= own_imports(root, module, path) - KERNEL - {"errors"}
            found += [f"{module} imports {name}" for name in sorted(foreign)]
    return found


def modules(root: Path) -> dict[str, Path]:
    """Every module under the package, by its name without "labeldp."; the package itself is "labeldp"."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        found[".".join(parts) or "labeldp"] = path
    return found


def place_of(module: str) -> int | None:
    package = module.split(".")[0]
    for place in (module, f"{package}.*"):
        if place in ORDER:
            return ORDER.index(place)
    return None


def own_imports(root: Path, module: str, path: Path) -> set[str]:
    """The labeldp modules that a module imports anywhere in its text, also under TYPE_CHECKING or in a function.

    `from labeldp.design import arcs` means the module arcs where there is one, and the package otherwise.
    """
    known = modules(root)
    found = set()
    for source, names in imports(path, package_of(module, path)):
        if source.split(".")[0] != "labeldp":
            continue
        base = source.removeprefix("labeldp").removeprefix(".")
        inner = {name: f"{base}.{name}" if base else name for name in names}
        found |= {inner[name] if inner[name] in known else base or "labeldp" for name in names} or {base or "labeldp"}
    return found - {module}


def outside_imports(path: Path) -> set[str]:
    return {source.split(".")[0] for source, _ in imports(path, "labeldp")} - {"labeldp"}


def package_of(module: str, path: Path) -> str:
    full = "labeldp" if module == "labeldp" else f"labeldp.{module}"
    return full if path.name == "__init__.py" else full.rpartition(".")[0]


def imports(path: Path, package: str) -> Iterator[tuple[str, list[str]]]:
    """(where from, which names) of each import statement; no names for a plain `import x`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), filename=str(path))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                parents = package.split(".")
                parents = parents[: len(parents) - node.level + 1]
                source = ".".join([*parents, source] if source else parents)
            yield source, [alias.name for alias in node.names]


def fake_tree(tmp_path: Path, texts: dict[str, str]) -> Path:
    """A small labeldp with empty modules, and the given text in some."""
    root = tmp_path / "labeldp"
    names = ["exact", "channel", "certificate", "prior", "sampler", "compare", "design.arcs", "design.flow"]
    for name in [*names, "report.page", *texts]:
        path = root / (name.replace(".", "/") + ".py")
        if name in ("labeldp", "design"):
            path = root / "__init__.py" if name == "labeldp" else root / "design" / "__init__.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(texts.get(name, ""), encoding="utf-8")
    for package in (root, root / "design", root / "report"):
        (package / "__init__.py").touch()
    return root
