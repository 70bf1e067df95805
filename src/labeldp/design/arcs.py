"""Arcs: sets of consecutive labels, and what an output that favours them costs.

Symbols, used throughout this folder (docs/proofs/flow.md derives them):

    y, p        labels in units of their range, centred on the prior's mean; their prior probabilities
    E, growth   e^epsilon, and growth = E − 1
    (a, b)      an arc, 0 ≤ a < b ≤ k: the output is E times as likely under labels a … b−1 as under the others
    A           Σ p·(1 + growth·[label in arc]): the arc's share of the loss
    c           the mean label under those weights: the cheapest output for the arc
    V           Σ p·(1 + growth·[label in arc])·(y − c)²: what even that output costs

An arc of mass w that releases z adds  w·(½V + ½A·(z − c)²)  to the noisy loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from labeldp.errors import DesignError
from labeldp.prior import Prior

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]

LABELS_MAX = 8192
"""A k × k table of costs must fit in memory."""


@dataclass(frozen=True)
class Instance:
    """One design problem, scaled: real label = middle + spread·(y + centre)."""

    y: Floats
    p: Floats
    growth: float
    middle: float
    spread: float
    centre: float

    @classmethod
    def of(cls, prior: Prior, epsilon: Fraction) -> Instance:
        values = prior.space.values
        if len(values) > LABELS_MAX:
            raise DesignError(f"{len(values)} labels are too many to design for; use a grid of at most {LABELS_MAX}.")
        # Floats of nearby size subtract exactly, so that labels around 1e9 lose nothing here.
        middle = float(values[len(values) // 2])
        spread = float(values[-1] - values[0])
        y = (values - middle) / spread
        p = prior.probabilities / prior.probabilities.sum()
        centre = float(p @ y)
        return cls(y - centre, p, float(np.expm1(float(epsilon))), middle, spread, centre)

    def merged(self) -> tuple[Instance, Nodes]:
        """A coarser problem whose solution looks alike, and the fine node at which each coarse node stands.

        Neighbours are joined pairwise where they lie close together for this many labels. The ends keep their
        place, since the loss hangs on the range more than on anything else.
        """
        k = len(self.y)
        pairs = np.arange(0, k - 1, 2)
        close = self.y[pairs + 1] - self.y[pairs] <= 4 * (self.y[-1] - self.y[0]) / (k - 1)
        nodes = np.setdiff1d(np.arange(k + 1), pairs[close] + 1)
        p = np.add.reduceat(self.p, nodes[:-1])
        y = np.add.reduceat(self.y, nodes[:-1]) / np.diff(nodes)
        y[0], y[-1] = self.y[0], self.y[-1]
        return Instance(y - p @ y, p, self.growth, 0.0, 1.0, 0.0), nodes

    def loss_scale(self) -> float:
        """The smaller loss of two simple unbiased randomizers: debiased RR over all labels, and over the two ends."""
        y, p, growth, k = self.y, self.p, self.growth, len(self.y)
        z = ((growth + k) * y - y.sum()) / growth
        second_moment = (z @ z + growth * (p @ z**2)) / (growth + k)
        ends = p @ ((y[-1] - y + (y[-1] - y[0]) / growth) * (y - y[0] + (y[-1] - y[0]) / growth))
        return 0.5 * float(min(second_moment - p @ y**2, ends))

    def to_labels(self, z: Floats) -> Floats:
        return self.middle + self.spread * (z + self.centre)


@dataclass(frozen=True)
class ArcCosts:
    """A, c and V of any arcs of an instance, from running sums of p, p·y and p·y².

    The sums are kept in extended precision and V is added up from terms that are all positive, so that it keeps its
    digits where growth is as large as 1e8.
    """

    sums: tuple[NDArray[np.longdouble], NDArray[np.longdouble], NDArray[np.longdouble]]
    growth: float

    @classmethod
    def of(cls, problem: Instance) -> ArcCosts:
        y, p = problem.y.astype(np.longdouble), problem.p.astype(np.longdouble)
        zero = np.zeros(1, np.longdouble)
        share, first, second = (np.concatenate((zero, np.cumsum(p * y**power))) for power in range(3))
        return cls((share, first, second), problem.growth)

    def __call__(self, a: Nodes | int, b: Nodes) -> tuple[Floats, Floats, Floats]:
        share, first, second = (total[b] - total[a] for total in self.sums)
        _, overall_mean, overall_second = (total[-1] for total in self.sums)
        inside_mean = np.divide(first, share, out=np.zeros_like(first), where=share > 0)
        inside_scatter = np.maximum(second - share * inside_mean**2, 0)
        extra = self.growth * share
        weight = 1 + extra
        mean = (overall_mean + self.growth * first) / weight
        between = extra / weight * (inside_mean - overall_mean) ** 2
        scatter = overall_second - overall_mean**2 + self.growth * inside_scatter + between
        return weight.astype(np.float64), mean.astype(np.float64), scatter.astype(np.float64)


def all_arcs(k: int) -> tuple[Nodes, Nodes]:
    """Every arc but (0, k), which favours all labels and so none."""
    a, b = np.triu_indices(k + 1, 1)
    proper = ~((a == 0) & (b == k))
    return a[proper], b[proper]


def arcs_near(a: Nodes, b: Nodes, k: int) -> tuple[Nodes, Nodes]:
    """The given arcs, those one step from them along a strip (either end or both moved), and all arcs of one label."""
    steps = ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1))
    single = np.arange(k)
    left = np.concatenate([*(a + step for step, _ in steps), single])
    right = np.concatenate([*(b + step for _, step in steps), single + 1])
    proper = (left >= 0) & (right <= k) & (left < right) & ~((left == 0) & (right == k))
    key = np.unique(left[proper] * (k + 1) + right[proper])
    return key // (k + 1), key % (k + 1)
