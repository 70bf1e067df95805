"""The optimal unbiased randomizer as a convex flow over arcs, solved in its dual form with Clarabel.

Primal, with mass w and momentum m = w·z per arc (symbols in arcs.py; docs/proofs/flow.md):

    min  Σ ½V·w + ½A·(m − c·w)²/w
    s.t. at inner node j:   Σ_b w_jb − Σ_a w_aj = 0,   Σ_b m_jb − Σ_a m_aj = (y_j − y_{j−1})/growth
         in all:            Σ w + growth·Σ_b w_0b = 1,  Σ m + growth·Σ_b m_0b = y_0

Dual, with potentials u, v per node (u_k = v_k = 0), u measured from the local label so that nothing cancels:

    max  u_0/growth + Σ_{j≥1} v_j·(y_j − y_{j−1})/growth
    s.t. for each arc:  cost ≥ slope²/(2A)
         slope = v_a − v_b + v_0/growth
         cost  = ½V − (u_a − u_b + u_0/growth) − (c − y_a)·v_a + (c − y_b)·v_b − (c − y_0)·v_0/growth

It has 2k variables and one three-dimensional cone per arc; the cones' multipliers are w and m.
"""

from __future__ import annotations

from dataclasses import dataclass

import clarabel
import numpy as np
from scipy import sparse

from labeldp.design.arcs import ArcCosts, Floats, Instance, Nodes


@dataclass(frozen=True)
class Flow:
    """What the solver suggests: arcs with mass and output, and the potentials that price them."""

    a: Nodes
    b: Nodes
    mass: Floats
    outputs: Floats
    u: Floats
    v: Floats
    loss: float


def solve_flow(problem: Instance, a: Nodes, b: Nodes, scale: float, tolerance: float, stretch: float = 1.0) -> Flow:
    """The flow over the given arcs. Its status is not asked: whoever uses it recomputes both sides of the gap.

    `scale` is a loss of the right order of magnitude; it makes the numbers that the solver sees of order one for
    every epsilon: costs and u in units of E·scale, v in units of 10·E·√scale. `stretch` enlarges these units, which
    helps the solver beyond epsilon = 16, where likelihoods span eight orders of magnitude.
    """
    k, n, y, growth = len(problem.y), len(a), problem.y, problem.growth
    weight, mean, spread = ArcCosts.of(problem)(a, b)
    unit = (growth + 1) * scale * stretch
    u_unit = np.full(k, (growth + 1) * scale)
    v_unit = np.full(k, 10 * (growth + 1) * np.sqrt(scale) * stretch)
    u_unit[0] *= growth / (growth + 1)
    v_unit[0] *= growth / (growth + 1)
    slope_unit = np.sqrt(weight * unit)

    # cost/unit ≥ ½(slope/slope_unit)² is (cost/unit + ½, cost/unit − ½, slope/slope_unit) in the cone: three rows.
    arc, inner, zero = np.arange(n), np.flatnonzero(b < k), np.zeros(n, dtype=np.int64)
    end = b[inner]
    node = np.concatenate((a, end, zero))
    of_arc = np.concatenate((arc, inner, arc))
    by_u = np.concatenate((-u_unit[a], u_unit[end], np.full(n, -u_unit[0] / growth))) / unit
    by_v = (
        np.concatenate(
            (
                -(mean - y[a]) * v_unit[a],
                (mean[inner] - y[end]) * v_unit[end],
                -(mean - y[0]) * v_unit[0] / growth,
            )
        )
        / unit
    )
    slope = np.concatenate((v_unit[a], -v_unit[end], np.full(n, v_unit[0] / growth))) / slope_unit[of_arc]
    rows = sparse.csc_matrix(
        (
            np.concatenate((-by_u, -by_v, -by_u, -by_v, -slope)),
            (
                np.concatenate((3 * of_arc, 3 * of_arc, 3 * of_arc + 1, 3 * of_arc + 1, 3 * of_arc + 2)),
                np.concatenate((node, k + node, node, k + node, k + node)),
            ),
        ),
        shape=(3 * n, 2 * k),
    )
    base = spread / (2 * unit)
    offset = np.stack((base + 0.5, base - 0.5, np.zeros(n)), axis=1).ravel()
    gain = np.zeros(2 * k)
    gain[0] = u_unit[0] / (growth * scale)
    gain[k + 1 :] = v_unit[1:] * np.diff(y) / (growth * scale)

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = 200
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix((2 * k, 2 * k)),
        -gain,
        rows,
        offset,
        [clarabel.SecondOrderConeT(3)] * n,
        settings,
    )
    solution = solver.solve()
    potentials = np.nan_to_num(np.array(solution.x))
    cones = np.nan_to_num(np.array(solution.z)).reshape(n, 3)
    mass = np.maximum((cones[:, 0] + cones[:, 1]) * scale / unit, 0.0)
    drift = -cones[:, 2] * scale / slope_unit
    outputs = mean + np.divide(drift, mass, out=np.zeros(n), where=mass > 0)
    loss = float(mass @ (spread / 2 + weight * (outputs - mean) ** 2 / 2))
    return Flow(
        a, b, mass, outputs, np.append(potentials[:k] * u_unit, 0.0), np.append(potentials[k:] * v_unit, 0.0), loss
    )
