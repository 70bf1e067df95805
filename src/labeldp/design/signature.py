"""The structure that the paper proves for an optimal unbiased randomizer, read off a channel and checked.

Each cell is L (less likely) or U (more likely, by the full ratio) under each label. The theorem: down the labels a
column reads L*U⁺L*, with both letters; along the strip the run of U only moves forward while outputs ascend; there
are at most 2k outputs. Where the theory has equal outputs, whole units make them nearly equal, in any order; so an
order counts as ascending when sorting it would move the loss by less than a part in 10⁷, or ten times the design's gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from labeldp.channel import Channel
from labeldp.errors import StructureError

__all__ = ["Signature", "signature"]


@dataclass(frozen=True)
class Signature:
    """`columns[c]` spells cell c of the strip, one letter per label; `first[c]` … `last[c]` is its run of U."""

    columns: tuple[str, ...]
    first: tuple[int, ...]
    last: tuple[int, ...]


def signature(channel: Channel) -> Signature:
    """The letters of each cell along the strip, checked against the theorem.

    Raises: StructureError, naming the cell, where a cell is partly in a window, or a column, the motion, the order
    of the outputs or their number breaks the pattern.
    """
    k = len(channel.space)
    columns: list[str] = []
    first: list[int] = []
    last: list[int] = []
    for cell, (left, right) in enumerate(pairwise(channel.cuts.tolist())):
        shared = np.minimum(channel.offsets + channel.window, right) - np.maximum(channel.offsets, left)
        upper = shared >= right - left
        if np.any((shared > 0) & ~upper):
            raise StructureError(f"cell {cell} is only partly inside a window: it is neither L nor U for that label.")
        labels = np.flatnonzero(upper)
        if len(labels) in (0, k) or labels[-1] - labels[0] + 1 != len(labels):
            raise StructureError(f"cell {cell} does not read L*U⁺L* with both letters.")
        if first and (labels[0] < first[-1] or labels[-1] < last[-1]):
            raise StructureError(f"cell {cell} favours smaller labels than the cell before it.")
        columns.append("".join("U" if up else "L" for up in upper))
        first.append(int(labels[0]))
        last.append(int(labels[-1]))
    _check_order(channel)
    if len(channel.outputs) > 2 * k:
        raise StructureError(f"{len(channel.outputs)} outputs are more than 2k = {2 * k}.")
    return Signature(tuple(columns), tuple(first), tuple(last))


def _check_order(channel: Channel) -> None:
    from scipy.optimize import isotonic_regression  # slow to import, and rarely asked for

    lengths = np.diff(channel.cuts).astype(np.float64)
    outputs = channel.cell_outputs - channel.cell_outputs.mean()
    moved = outputs - isotonic_regression(outputs, weights=lengths).x
    if lengths @ moved**2 > max(1e-7, 10 * abs(channel.optimality_gap or 0.0)) * (lengths @ outputs**2):
        cell = int(np.argmax(lengths * moved**2))
        raise StructureError(f"the outputs do not ascend along the strip: cell {cell} is out of order.")
