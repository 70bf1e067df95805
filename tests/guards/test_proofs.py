"""A proof is of the code it was written for: each page in docs/proofs/ carries a digest of the functions it is about.

`python -m tests.guards.test_proofs` renews the digests, after the pages were read again.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
PROOFS = ROOT / "docs" / "proofs"
INDEX = PROOFS / "README.md"
PAGES = sorted(set(PROOFS.glob("*.md")) - {INDEX})

TOP = 10
DEFINITION = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
CLAIM = re.compile(r"^Proves: (?P<names>\w+(?:\.\w+)+(?:, \w+(?:\.\w+)+)*) @ (?P<digest>[0-9a-f]{12})$")


@dataclass(frozen=True)
class Claim:
    """One line of a page: the objects it proves something about, and the digest of their source at that time."""

    names: tuple[str, ...]
    digest: str


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_proof_is_of_this_code(page: Path) -> None:
    assert stale(page, SOURCE) == []


def test_there_are_proofs_and_the_index_lists_them() -> None:
    assert PAGES
    index = INDEX.read_text(encoding="utf-8")
    assert [page.name for page in PAGES if f"({page.name})" not in index] == []


PLAIN = '''
def half(x):
    return x / 2

class Box:
    """A box."""
    def open(self):
        """Opens."""
        return self.lid
'''


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x / 2", "x // 2"),
        ("half(x)", "half(x, y=1)"),
        ("self.lid", "self.key"),
        ("class Box:", "class Box(dict):"),
    ],
)
def test_changed_code_has_another_digest(tmp_path: Path, old: str, new: str) -> None:
    assert digest_of(tmp_path, PLAIN.replace(old, new)) != digest_of(tmp_path, PLAIN)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    return x / 2", "    # a comment\n    return (x / 2)  # another"),
        ("half(x):", 'half(x):\n    """A docstring."""'),
        ('"""A box."""', '"""Another box."""'),
        ('        """Opens."""\n', ""),
        ("class Box", "other = 1\n\nclass Box"),
    ],
)
def test_comments_docstrings_and_other_code_do_not_count(tmp_path: Path, old: str, new: str) -> None:
    assert old in PLAIN
    assert digest_of(tmp_path, PLAIN.replace(old, new)) == digest_of(tmp_path, PLAIN)


def test_the_order_of_the_names_counts(tmp_path: Path) -> None:
    write_module(tmp_path, PLAIN)
    assert digest(["labeldp.example.half", "labeldp.example.Box"], tmp_path) != digest(
        ["labeldp.example.Box", "labeldp.example.half"], tmp_path
    )


def test_a_stale_proof_is_found_and_renewed(tmp_path: Path) -> None:
    page = tmp_path / "halves.md"
    page.write_text(f"# Halves\n\nProves: labeldp.example.half @ {'0' * 12}\n\nText.\n", encoding="utf-8")
    write_module(tmp_path, PLAIN)
    [message] = stale(page, tmp_path)
    new = digest(["labeldp.example.half"], tmp_path)
    assert all(part in message for part in ("halves.md", "labeldp.example.half", new, "Read the proof again first"))
    assert renew(page, tmp_path)
    assert stale(page, tmp_path) == []
    assert page.read_text(encoding="utf-8") == f"# Halves\n\nProves: labeldp.example.half @ {new}\n\nText.\n"
    assert not renew(page, tmp_path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("# Halves\n", "has no line"),
        ("# Halves\n" + "\n" * TOP + f"Proves: labeldp.example.half @ {'0' * 12}\n", "has no line"),
        ("Proves: labeldp.example.half\n", "is not of the form"),
        (f"Proves: labeldp.example.third @ {'0' * 12}\n", "labeldp.example.third is not there"),
        (f"Proves: labeldp.gone.half @ {'0' * 12}\n", "labeldp.gone.half is not there"),
    ],
)
def test_a_page_without_a_sound_claim_is_found(tmp_path: Path, text: str, reason: str) -> None:
    page = tmp_path / "halves.md"
    page.write_text(text, encoding="utf-8")
    write_module(tmp_path, PLAIN)
    [message] = stale(page, tmp_path)
    assert reason in message


def stale(page: Path, source: Path) -> list[str]:
    """What is wrong with the claims of a page, one line each."""
    found = []
    try:
        page_claims = list(claims(page))
        for claim in page_claims:
            now = digest(claim.names, source)
            if now != claim.digest:
                found.append(
                    f"{page.name} was written for other code: {', '.join(claim.names)} changed. Read the proof again "
                    f"first, and mend it; then write @ {now} in its line, or run: python -m tests.guards.test_proofs"
                )
    except LookupError as error:
        return [f"{page.name}: {error.args[0]}"]
    return found or ([] if page_claims else [f"{page.name} has no line “Proves: … @ …” in its first {TOP} lines."])


def renew(page: Path, source: Path) -> bool:
    """Write the present digests into a page; True where that changed it."""
    text = page.read_text(encoding="utf-8")
    renewed = text
    for claim in claims(page):
        line = f"Proves: {', '.join(claim.names)} @ "
        renewed = renewed.replace(line + claim.digest, line + digest(claim.names, source))
    page.write_text(renewed, encoding="utf-8")
    return renewed != text


def claims(page: Path) -> Iterator[Claim]:
    for line in page.read_text(encoding="utf-8").splitlines()[:TOP]:
        if line.startswith("Proves:"):
            match = CLAIM.match(line)
            if match is None:
                raise LookupError(f"“{line}” is not of the form “Proves: name, name @ 12 hex digits”.")
            yield Claim(tuple(match["names"].split(", ")), match["digest"])


def digest(names: tuple[str, ...] | list[str], source: Path) -> str:
    """The first 12 digits of the SHA-256 of the objects' code, without comments, docstrings and layout."""
    text = "\n".join(ast.unparse(without_docstrings(definition(name, source))) for name in names)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def definition(name: str, source: Path) -> ast.stmt:
    """The function or class of a dotted name, found in the text; nothing is imported."""
    parts = name.split(".")
    for split in range(len(parts) - 1, 0, -1):
        path = source.joinpath(*parts[:split]).with_suffix(".py")
        if path.exists():
            body = ast.parse(path.read_text(encoding="utf-8"), filename=str(path)).body
            for part in parts[split:]:
                node = next((n for n in body if isinstance(n, DEFINITION) and n.name == part), None)
                if node is None:
                    break
                body = node.body
            else:
                return node
    raise LookupError(f"{name} is not there; if it was renamed, read the proof again and name it anew.")


def without_docstrings(tree: ast.stmt) -> ast.stmt:
    for node in ast.walk(tree):
        if isinstance(node, DEFINITION) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def digest_of(tmp_path: Path, text: str) -> str:
    write_module(tmp_path, text)
    return digest(["labeldp.example.half", "labeldp.example.Box"], tmp_path)


def write_module(source: Path, text: str) -> None:
    (source / "labeldp").mkdir(exist_ok=True)
    (source / "labeldp" / "example.py").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for page in PAGES:
        print(f"{page.relative_to(ROOT)}: {'renewed' if renew(page, SOURCE) else 'as it was'}")
