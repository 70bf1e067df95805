"""The cheapest partition: least  Σ cost(arc) / (growth + number of arcs)  over all paths from node 0 to node k.

A path cuts the labels into bins. RR-on-Bins is this problem with the cost ½V of each bin; the dual bound of the
unbiased design is the same problem with costs that also price the bias (docs/proofs/flow.md). Dinkelbach's
iteration: guess the value, find the path that beats the guess most by dynamic programming, guess its value. Each
pass is O(k²), and a handful of passes reach the exact optimum over all partitions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labeldp.design.arcs import ArcCosts, Floats, Instance

BLOCK = 64


def cheapest_path(costs: Floats, growth: float) -> tuple[float, NDArray[np.int64]]:
    """The least ratio and the nodes 0 = n_0 < n_1 < … = k of a path that has it; costs[a, b] is k × (k+1)."""
    k = len(costs)
    path = np.arange(k + 1)
    value = _ratio(costs, growth, path)
    # Each pass that improves lowers the number of arcs or ends the search, so k + 1 passes are enough.
    for _ in range(k + 1):
        better = _best_path(costs, value)
        improved = _ratio(costs, growth, better)
        if not improved < value:
            break
        value, path = improved, better
    return value, path


def cost_table(problem: Instance, potentials: Floats | None = None) -> Floats:
    """The cost of each arc at its cheapest output, when the bias of label i is paid by `potentials`.

    `potentials` are v_0 … v_k with v_k = 0, the multipliers of the momentum rows in flow.py; None prices no bias.
    """
    k, y, growth = len(problem.y), problem.y, problem.growth
    arc = ArcCosts.of(problem)
    ends = np.append(y, y[-1])
    table = np.full((k, k + 1), np.inf)
    for top in range(0, k, BLOCK):
        a, b = np.arange(top, min(top + BLOCK, k))[:, None], np.arange(top + 1, k + 1)[None, :]
        weight, mean, spread = arc(a, np.maximum(a + 1, b))
        costs = spread / 2
        if potentials is not None:
            v, level = potentials, potentials[0] / growth
            slope = v[a] - v[b] + level
            costs -= (mean - ends[a]) * v[a] - (mean - ends[b]) * v[b] + (mean - y[0]) * level
            costs -= slope**2 / (2 * weight)
        table[top : top + len(a), top + 1 :] = np.where(a < b, costs, np.inf)
    return table


def _ratio(costs: Floats, growth: float, path: NDArray[np.int64]) -> float:
    return float(costs[path[:-1], path[1:]].sum() / (growth + len(path) - 1))


def _best_path(costs: Floats, value: float) -> NDArray[np.int64]:
    """The path of least Σ (cost − value)."""
    k = len(costs)
    to_end = np.zeros(k + 1)
    following = np.zeros(k + 1, dtype=np.int64)
    for a in range(k - 1, -1, -1):
        through = costs[a, a + 1 :] + to_end[a + 1 :]
        best = int(through.argmin())
        following[a] = a + 1 + best
        to_end[a] = through[best] - value
    path = [0]
    while path[-1] < k:
        path.append(int(following[path[-1]]))
    return np.array(path)
