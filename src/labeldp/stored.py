"""What is written to disk: JSON with a format, a version and a digest over everything in it; never a pickle."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from labeldp.errors import FileFormatError

__all__ = ["digest_of", "sealed", "unsealed"]


def sealed(kind: str, version: int, body: dict[str, Any]) -> str:
    """`body` as JSON under its format and version, with a digest."""
    content = {"format": f"labeldp.{kind}", "version": version, **body}
    return json.dumps({**content, "digest": digest_of(content)}, indent=1, ensure_ascii=False)


def unsealed(text: str, kind: str, version: int) -> dict[str, Any]:
    """What `sealed` wrote; anything foreign, of another version or tampered with is refused by name."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise FileFormatError(f"this is no JSON; a {kind} file is what to_json() writes.") from None
    if not isinstance(content, dict) or content.get("format") != f"labeldp.{kind}":
        raise FileFormatError(f'this is no {kind}: its "format" is not "labeldp.{kind}".')
    if content.get("version") != version:
        found = content.get("version")
        raise FileFormatError(f"{kind} version {found!r} is unknown; this labeldp reads version {version}.")
    claimed = content.pop("digest", None)
    if claimed != digest_of(content):
        raise FileFormatError(f"the {kind} was changed after it was written: its digest does not fit its content.")
    return content


def digest_of(body: dict[str, Any]) -> str:
    """SHA-256 of the canonical JSON of `body`."""
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
