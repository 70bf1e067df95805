"""From masses and outputs to a strip: windows by their means, whole units, outputs of least variance.

Three steps; the first and the last can only lower the loss (docs/proofs/strip.md), the second costs a trifle:

1. `windows_by_mean`: lay the outputs side by side in ascending order, each as long as its mass, and give label y the
   contiguous window whose mean is y. Among rows of the same mass and mean it has the least convex loss, so any
   solution of the flow or of the paper's linear program becomes a strip, ties included.
2. `whole_units`: round offsets and window to integers.
3. `unbiased_outputs`: cut cells at window ends only, and choose their outputs anew: least variance, no bias.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import splu

from labeldp.channel import smallest_coin
from labeldp.design.arcs import Floats

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Strip:
    """Offsets, window and length in whole units, with the smallest coin that epsilon allows."""

    offsets: Integers
    window: int
    length: int
    coin: int

    @property
    def growth(self) -> float:
        """ratio − 1, of the integers themselves."""
        return ((1 << 64) - self.coin) * self.length / (self.coin * self.window)

    @property
    def cuts(self) -> Integers:
        """Cells cut at window ends only: at most 2k − 1 of them."""
        ends = (self.offsets, self.offsets + self.window, [0, self.length])
        return np.unique(np.concatenate(ends)).astype(np.int64)


def windows_by_mean(mass: Floats, outputs: Floats, labels: Floats, growth: float) -> tuple[Floats, float, float]:
    """Offsets, window and length of the strip whose windows have the labels as means."""
    kept = mass > 1e-13 * mass.max()
    mass, outputs = mass[kept], outputs[kept]
    order = np.argsort(outputs, kind="stable")
    mass, outputs = mass[order], outputs[order]
    cuts = np.concatenate(([0.0], np.cumsum(mass)))
    sums = np.concatenate(([0.0], np.cumsum(mass * outputs)))
    length = float(cuts[-1])
    window = (1 - length) / growth
    starts = np.unique(np.clip(np.concatenate((cuts, cuts - window)), 0.0, max(length - window, 0.0)))
    gained = np.interp(starts + window, cuts, sums) - np.interp(starts, cuts, sums)
    return np.interp((labels - sums[-1]) / growth, gained, starts), window, length


def whole_units(offsets: Floats, window: float, length: float, units: int, epsilon: Fraction) -> Strip:
    """About `units` units. Windows stay distinct, leave no gap between neighbours, and share no cell all together."""
    steps = np.rint((offsets - offsets[0]) / length * units).astype(np.int64)
    width = max(round(window / length * units), 1)
    whole = [0]
    for step in steps[1:].tolist():
        whole.append(min(max(step, whole[-1] + 1), whole[-1] + width))
    width = min(width, whole[-1])
    total = whole[-1] + width
    return Strip(np.array(whole, dtype=np.int64), width, total, smallest_coin(epsilon, total, width))


def unbiased_outputs(strip: Strip, labels: Floats, prior: Floats) -> Floats:
    """The outputs of least variance among the unbiased ones.

        min ½ Σ_c q_c z_c²   s.t.  Σ_c P(c|y)·z_c = y for every label,    q_c = Σ_y p_y P(c|y)

    Written for differences of neighbouring labels, a row adds the cells that the window takes in and subtracts those
    that it drops, so the normal equations are sparse. Residuals are refined in extended precision.
    """
    k, growth, cuts = len(labels), strip.growth, strip.cuts
    length = np.diff(cuts) / strip.length
    # A cell lies in the windows of labels first … last − 1.
    first = np.searchsorted(strip.offsets + strip.window, cuts[:-1], side="right")
    last = np.searchsorted(strip.offsets, cuts[:-1], side="right")
    running = np.concatenate(([0.0], np.cumsum(prior)))
    weight = 1 + growth * (running[last] - running[first])

    # Row 0 is label 0 itself; row y ≥ 1 is label y minus label y − 1.
    cells, taken, dropped = np.arange(len(length)), np.flatnonzero(first >= 1), np.flatnonzero(last < k)
    rows = np.concatenate((np.zeros(len(cells), int), first[taken], last[dropped]))
    entries = np.concatenate((1 + growth * (first == 0), np.ones(len(taken)), -np.ones(len(dropped))))
    columns = np.concatenate((cells, taken, dropped))
    pattern = sparse.csr_matrix((entries, (rows, columns)), shape=(k, len(cells)))

    total = 1 + growth * strip.window / strip.length
    target = np.concatenate(([labels[0]], np.diff(labels) / growth)) * total
    scaled = sparse.csr_matrix((entries * (length / weight)[columns], (rows, columns)), shape=pattern.shape)
    factor = splu((scaled @ pattern.T).tocsc())
    outputs = np.zeros(len(cells), dtype=np.longdouble)
    wide = pattern.astype(np.longdouble)
    for _ in range(3):
        residual = target - wide @ (length * outputs)
        outputs += (pattern.T @ factor.solve(residual.astype(np.float64))) / weight
    return outputs.astype(np.float64)
