"""release_frame: a data frame in, the same kind out, with the label column released and nothing that betrays it.

pandas, Polars, PyArrow tables and their like, through narwhals. Only the label column changes. The frame is built anew
from its columns, so that an index, attributes or schema metadata made from the true labels do not come along.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from labeldp.entropy import Entropy, ReleaseKey
from labeldp.errors import InputError
from labeldp.prior import Prior
from labeldp.release.columns import read_labels
from labeldp.release.leaks import refuse_copies, refuse_order
from labeldp.release.ledger import Ledger
from labeldp.release.randomizer import LabelRandomizer, Mechanism
from labeldp.release.receipt import Receipt

__all__ = ["FrameRelease", "release_frame"]


@dataclass(frozen=True)
class FrameRelease:
    """The frame with released labels, the mechanism that made them, its prior, and the receipt."""

    frame: Any
    channel: Mechanism
    prior: Prior | None
    receipt: Receipt
    clipped: int = 0

    def __repr__(self) -> str:
        stamp = "" if self.receipt.private else "NOT PRIVATE, "
        epsilon = float(self.receipt.epsilon)
        return f"<FrameRelease: {stamp}{self.receipt.labels} rows, epsilon {epsilon:g}, {self.channel!r}>"


def release_frame(
    frame: Any,
    column: str,
    randomizer: LabelRandomizer,
    *,
    into: str | None = None,
    id_column: str | None = None,
    key: bytes | ReleaseKey | None = None,
    name: str | None = None,
    keep: Collection[str] = (),
    clip: bool = False,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    entropy: Entropy | None = None,
) -> FrameRelease:
    """Release `column` of `frame`: the same kind of frame comes back, the true labels do not.

    `into` names the released column (the label's own name by default; it takes the label's place). `id_column` holds
    the record ids of a keyed release. `keep` names columns that may stay although they give labels away.
    Raises: LeakError where a column, the index or the order of the rows would betray the labels; LabelError, … as
    LabelRandomizer.release does; then nothing was released and nothing spent.
    """
    import narwhals as nw

    try:
        data = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise InputError(f"frame must be an eager data frame, not {type(frame).__name__}.") from None
    _check_names(data.columns, column, into, id_column, keep)
    labels = data[column]
    values = read_labels(nw.to_native(labels)).values
    refuse_order(values)
    for other in data.columns:
        if other not in (column, id_column) and other not in keep:
            refuse_copies(values, other, data[other].to_numpy())
    index = nw.maybe_get_index(data)
    if index is not None and not _is_plain(index):
        refuse_copies(values, str(index.name or "index"), index.to_numpy(), kind="index")
    release = randomizer.release(
        nw.to_native(labels),
        ids=None if id_column is None else nw.to_native(data[id_column]),
        key=key,
        name=name,
        clip=clip,
        ledger=ledger,
        dataset=dataset,
        column=column,
        entropy=entropy,
    )
    released = nw.from_native(release.labels, series_only=True)
    columns = {
        (into or column) if other == column else other: released if other == column else data[other]
        for other in data.columns
    }
    fresh = nw.to_native(nw.from_dict(columns, backend=data.implementation))
    if index is not None:
        fresh.index = index
    return FrameRelease(fresh, release.channel, release.prior, release.receipt, release.clipped)


def _check_names(
    columns: list[str], column: str, into: str | None, id_column: str | None, keep: Collection[str]
) -> None:
    for asked in (column, *([id_column] if id_column is not None else []), *keep):
        if asked not in columns:
            raise InputError(f"there is no column {asked!r}; the frame has {', '.join(map(repr, columns))}.")
    if id_column == column:
        raise InputError("the label column cannot be the id column.")
    if into is not None and into != column and into in columns:
        raise InputError(f"there is a column {into!r} already; choose another name for the released labels.")
    if column in keep:
        raise InputError("the true labels cannot be kept: leave the label column out of keep=.")


def _is_plain(index: Any) -> bool:
    """0, 1, 2, …: an index that says nothing."""
    values = index.to_numpy()
    return bool(values.dtype.kind in "iu" and np.array_equal(values, np.arange(len(values))))
