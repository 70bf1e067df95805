"""Where random blocks come from: the operating system, a release key, or a seed that stamps "not private".

A block is 128 bits, two unsigned 64-bit words. Whoever draws asks a *stream* for one block per row:

    stream.blocks(rows, labels, attempt)     rows: which rows, labels: an integer per row, attempt: 0, 1, 2, …

`SystemEntropy` answers with fresh AES-256-CTR output under a key from the operating system. `ReleaseKey` answers with
the same block for the same (id, label, attempt), in any order, batch, thread or process, so that a release may be run
again. Why its blocks depend on all that they depend on: docs/proofs/keyed.md.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from labeldp.errors import IdError, KeyFormatError

__all__ = ["Entropy", "Ids", "ReleaseKey", "SeededEntropy", "Stream", "SystemEntropy"]

Words = NDArray[np.uint64]
"""Blocks, n × 2."""
Integers = NDArray[np.int64]

FORMAT = b"labeldp.keyed.1"
KEY_BYTES = 32


class Stream(Protocol):
    """One block per row, for one use."""

    def blocks(self, rows: slice | Integers, labels: Integers, attempt: int = 0) -> Words: ...


class Entropy(Protocol):
    """A source that is not keyed: its blocks are fresh each time they are asked for."""

    @property
    def private(self) -> bool: ...

    def stream(self, use: str) -> Stream: ...


@dataclass(frozen=True)
class SystemEntropy:
    """Fresh randomness: AES-256-CTR under a key and a counter from the operating system, new for every call."""

    @property
    def private(self) -> bool:
        return True

    def stream(self, use: str) -> Stream:  # noqa: ARG002  fresh blocks need no domain separation
        return self

    def blocks(self, rows: slice | Integers, labels: Integers, attempt: int = 0) -> Words:  # noqa: ARG002
        return _counter_mode(os.urandom(KEY_BYTES), os.urandom(16), len(labels))


@dataclass(frozen=True)
class SeededEntropy:
    """Repeatable blocks from a seed anyone can guess. For tests: whatever it touches is marked not private."""

    seed: int

    @property
    def private(self) -> bool:
        return False

    def stream(self, use: str) -> Stream:
        return _SeededStream(f"labeldp.seed {int(self.seed)} {use}")


@dataclass(frozen=True)
class _SeededStream:
    name: str

    def blocks(self, rows: slice | Integers, labels: Integers, attempt: int = 0) -> Words:
        where = str(rows.start).encode() if isinstance(rows, slice) else rows.tobytes()
        parts = (self.name.encode(), where, np.ascontiguousarray(labels).tobytes(), str(attempt).encode())
        key = hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).digest()
        return _counter_mode(key, bytes(16), len(labels))


@dataclass(frozen=True)
class Ids:
    """The record ids of a release, all of one type: `kind` says which, `words` holds 64 or 128 bits of each.

    Integers are taken as they are. Strings and bytes are hashed under the release key to 128 bits.
    """

    kind: str
    words: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.words)


class ReleaseKey:
    """32 secret bytes from which every block of a repeatable release is derived. It prints nothing of itself."""

    def __init__(self, secret: bytes) -> None:
        if not isinstance(secret, bytes | bytearray):
            raise KeyFormatError(f"a release key is {KEY_BYTES} bytes, not {type(secret).__name__}.")
        if len(secret) != KEY_BYTES:
            raise KeyFormatError(f"a release key is {KEY_BYTES} bytes, not {len(secret)}; ReleaseKey.new() makes one.")
        self._secret = bytes(secret)

    @classmethod
    def new(cls) -> ReleaseKey:
        return cls(os.urandom(KEY_BYTES))

    @property
    def secret(self) -> bytes:
        return self._secret

    @property
    def fingerprint(self) -> str:
        """Tells keys apart and reveals nothing else: 64 bits of a subkey of its own."""
        return self._subkey("fingerprint")[:8].hex()

    def ids(self, values: Sequence[str] | Sequence[bytes] | Integers | NDArray[np.object_]) -> Ids:
        """Read record ids: integers that fit 64 bits, strings, or bytes; all of one type."""
        if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
            if values.dtype.kind == "u" and values.size and int(values.max()) >= 1 << 63:
                raise IdError("an integer id is 2^63 or more; pass such ids as strings.")
            return Ids("integer", values.astype(np.int64).view(np.uint64))
        kinds = {type(value) for value in values}
        if kinds == {str}:
            kind, encoded = "text", [str(value).encode("utf-8", "surrogatepass") for value in values]
        elif kinds == {bytes}:
            kind, encoded = "bytes", [bytes(value) for value in values]  # type: ignore[arg-type]
        else:
            shown = ", ".join(sorted(kind.__name__ for kind in kinds)) or "nothing"
            raise IdError(f"ids must be all integers, all strings or all bytes; these hold {shown}.")
        key = self._subkey("id", kind)
        hashed = b"".join(hashlib.blake2b(value, digest_size=16, key=key).digest() for value in encoded)
        return Ids(kind, np.frombuffer(hashed, dtype="<u8").reshape(-1, 2))

    def stream(self, use: str, ids: Ids, *context: str) -> Stream:
        """Blocks for one use (rounding, draw, …) in one context (release name, data set, column, digest of the law)."""
        return _KeyedStream(self._subkey(use, ids.kind, *context), self._subkey(use + " id", ids.kind, *context), ids)

    def digest_of_rows(self, ids: Ids, labels: NDArray[np.float64], *context: str) -> str:
        """A keyed digest of the set of (id, label) rows, whatever their order: an HMAC over the sum of their blocks."""
        stream = self.stream("rows", ids, *context)
        total = np.zeros(2, dtype=np.uint64)
        bits = (labels + 0.0).view(np.int64)
        for start in range(0, len(labels), CHUNK):
            rows = slice(start, min(start + CHUNK, len(labels)))
            total += stream.blocks(rows, bits[rows]).sum(axis=0, dtype=np.uint64)
        key = self._subkey("rows digest", ids.kind, *context)
        return hmac.new(key, total.tobytes() + len(labels).to_bytes(8, "little"), hashlib.sha256).hexdigest()

    def words(self, use: str, count: int, *context: str) -> Stream:
        """Blocks for numbered things, such as the bins of a histogram, in one context."""
        return self.stream(use, Ids("number", np.arange(count, dtype=np.uint64)), *context)

    def _subkey(self, *parts: str) -> bytes:
        # Lengths before the parts make the encoding injective, whatever the parts hold.
        encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
        info = FORMAT + b"".join(len(part).to_bytes(8, "little") + part for part in encoded)
        return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=info).derive(self._secret)

    def __repr__(self) -> str:
        return f"<ReleaseKey {self.fingerprint}>"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a ReleaseKey is not pickled; pass its .secret where it must travel.")


CHUNK = 1 << 16
"""Rows per step: what is in flight stays in the processor's cache."""
ZEROS = memoryview(bytes(16 * CHUNK))


@dataclass(frozen=True)
class _KeyedStream:
    """AES of an injective encoding of (id, label, attempt). The id's type, the use and the context are in the key.

    Integer ids: one block (id, label + 2^32·attempt), labels of 32 bits; attempt 0 leaves all 64 bits to the label.
    Hashed ids: two blocks chained, AES(AES'(hash) xor (0, label + 2^32·attempt)).
    """

    key: bytes = field(repr=False)
    id_key: bytes = field(repr=False)
    ids: Ids = field(repr=False)

    def blocks(self, rows: slice | Integers, labels: Integers, attempt: int = 0) -> Words:
        words = self.ids.words[rows]
        text = np.empty((len(labels), 2), dtype="<u8")
        text[:, 1] = labels.view(np.uint64)
        if attempt:
            if not 0 < attempt < 1 << 31 or (len(labels) and (labels.min() < 0 or int(labels.max()) >> 32)):
                raise OverflowError("a label or an attempt does not fit its half of the block.")
            text[:, 1] |= np.uint64(attempt << 32)
        if words.ndim == 1:
            text[:, 0] = words
        else:
            text[:, 0] = 0
            text ^= _code_book(self.id_key, np.ascontiguousarray(words))
        return _code_book(self.key, text)


def _code_book(key: bytes, blocks: Words) -> Words:
    """AES of each block by itself; the blocks differ, so this is a pseudorandom function of them."""
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    out = np.empty(blocks.nbytes + 15, dtype=np.uint8)
    written = encryptor.update_into(blocks.reshape(-1).view(np.uint8).data, out.data)
    return out[:written].view("<u8").reshape(-1, 2)


def _counter_mode(key: bytes, counter: bytes, count: int) -> Words:
    encryptor = Cipher(algorithms.AES(key), modes.CTR(counter)).encryptor()
    out = np.empty(16 * count + 15, dtype=np.uint8)
    for start in range(0, 16 * count, len(ZEROS)):
        end = min(start + len(ZEROS), 16 * count)
        encryptor.update_into(ZEROS[: end - start], out[start : end + 15].data)
    return out[: 16 * count].view("<u8").reshape(-1, 2)
