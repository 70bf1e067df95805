"""Draws: labels and random blocks in, outputs out; integers only, until the last table look-up.

A block has two words. For a channel the first is compared with the coin, the second is reduced modulo the strip or
the window; words from the last, incomplete cycle are rejected and drawn again with the next attempt, so that every
residue is equally likely, exactly. For additive noise the first word gives sign and step, the second the place within
the step. A guide table from the high bits of the point to the output makes the look-up one step for almost all points;
the few whose table entry is cut are searched.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labeldp.additive import Additive
from labeldp.channel import COIN_SIDES, Channel
from labeldp.entropy import CHUNK, Stream

__all__ = ["draw", "uniform"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Unsigned = NDArray[np.uint64]

GUIDE_BITS = 16
ROUNDING = 1 << 30


def draw(mechanism: Channel | Additive, labels: Integers, stream: Stream, *, threads: int | None = None) -> Floats:
    """One released value per label index, from one block each (more where a word is rejected).

    The result depends on the blocks alone, not on `threads` (all cores by default).
    """
    one = _channel_draw(mechanism) if isinstance(mechanism, Channel) else _additive_draw(mechanism)
    released = np.empty(len(labels))

    def fill(rows: slice) -> None:
        released[rows] = one(rows, labels[rows], stream)

    workers = threads or os.cpu_count() or 1
    if workers == 1 or len(labels) <= CHUNK:
        for rows in _chunks(len(labels)):
            fill(rows)
    else:
        with ThreadPoolExecutor(workers) as pool:
            for _ in pool.map(fill, _chunks(len(labels))):
                pass
    return released


def uniform(word: Unsigned, size: int) -> tuple[Unsigned, NDArray[np.bool_]]:
    """word modulo size, and which words lie in the last, incomplete cycle and must be rejected."""
    n = np.uint64(size)
    residue = word - word // n * n
    last = np.uint64(COIN_SIDES // size * size - 1)
    return residue, word > last


Draw = Callable[[slice | Integers, Integers, Stream], Floats]


def _channel_draw(channel: Channel) -> Draw:
    strip, window = np.uint64(channel.strip), np.uint64(channel.window)
    last_forgetting = np.uint64(channel.coin - 1)
    offsets = channel.offsets.astype(np.uint64)
    # The largest word that both reductions accept; only above it must a word be looked at more closely.
    cycles = (COIN_SIDES // size * size for size in (channel.strip, channel.window))
    safe = np.uint64(min(cycles) - 1)
    guide = _Guide.of(channel.cuts, channel.cell_outputs)

    def one(rows: slice | Integers, labels: Integers, stream: Stream, attempt: int = 0) -> Floats:
        blocks = stream.blocks(rows, labels, attempt)
        coin, word = blocks[:, 0], np.ascontiguousarray(blocks[:, 1])
        forget = coin <= last_forgetting
        point = word // window
        point *= window
        np.subtract(word, point, out=point)
        point += offsets[labels]
        anywhere = word // strip
        anywhere *= strip
        np.subtract(word, anywhere, out=anywhere)
        np.copyto(point, anywhere, where=forget)
        released = guide(point)
        if word.max(initial=0) > safe:
            rejected = np.where(forget, uniform(word, channel.strip)[1], uniform(word, channel.window)[1])
            again = np.flatnonzero(rejected)
            if len(again):
                released[again] = one(_subset(rows, again), labels[again], stream, attempt + 1)
        return released

    return one


def _additive_draw(noise: Additive) -> Draw:
    steps = _Guide.of(noise.step_cuts, np.arange(len(noise.step_cuts) - 1, dtype=np.float64))
    places = _Guide.of(noise.place_cuts, np.arange(noise.period, dtype=np.float64))
    both_signs = 2 * int(noise.step_cuts[-1])
    rounds = bool(noise.fractions.any())

    def one(rows: slice | Integers, labels: Integers, stream: Stream, attempt: int = 0) -> Floats:
        blocks = stream.blocks(rows, labels, attempt)
        first, rejected = uniform(blocks[:, 0], both_signs)
        second, rejected_too = uniform(blocks[:, 1], int(noise.place_cuts[-1]))
        negative = (first & np.uint64(1)).astype(bool)
        distance = steps(first >> np.uint64(1)).astype(np.int64) * noise.period + places(second).astype(np.int64)
        # Zero has one sign, not two.
        rejected |= rejected_too | (negative & (distance == 0))
        carried: Integers | int = 0
        if rounds:
            # A block of its own: attempts of draws stay far below ROUNDING.
            word = stream.blocks(rows, labels, attempt + ROUNDING)[:, 0]
            carried = (word < noise.fractions[labels]).astype(np.int64)
        released = noise.values(labels, np.where(negative, -distance, distance), carried)
        again = np.flatnonzero(rejected)
        if len(again):
            released[again] = one(_subset(rows, again), labels[again], stream, attempt + 1)
        return released

    return one


@dataclass(frozen=True)
class _Guide:
    """From a point to the value of the cell that holds it: `table[point >> shift]`, or a search where a cut lies."""

    shift: np.uint64
    table: Floats
    cuts: Unsigned
    values: Floats

    @classmethod
    def of(cls, cuts: Integers, values: Floats) -> _Guide:
        shift = max(int(cuts[-1] - 1).bit_length() - GUIDE_BITS, 0)
        first = np.arange((int(cuts[-1] - 1) >> shift) + 1, dtype=np.int64) << shift
        last = np.minimum(first + ((1 << shift) - 1), cuts[-1] - 1)
        start, end = (np.searchsorted(cuts, edge, side="right") - 1 for edge in (first, last))
        table = np.where(start == end, values[start], np.nan)
        return cls(np.uint64(shift), table, cuts.astype(np.uint64), values)

    def __call__(self, points: Unsigned) -> Floats:
        found: Floats = self.table.take((points >> self.shift).view(np.int64))
        cut = np.flatnonzero(np.isnan(found))
        if len(cut):
            found[cut] = self.values[np.searchsorted(self.cuts, points[cut], side="right") - 1]
        return found


def _chunks(count: int) -> Iterator[slice]:
    return (slice(start, min(start + CHUNK, count)) for start in range(0, count, CHUNK))


def _subset(rows: slice | Integers, chosen: Integers) -> Integers:
    return chosen + rows.start if isinstance(rows, slice) else rows[chosen]
