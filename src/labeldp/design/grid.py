"""The paper's own designs: Algorithm 1 (a linear program over a given output grid) and Algorithm 2 (the grid).

    min_M  Σ_y p_y Σ_i M(y→i)·g(z_i, y)
    s.t.   t_i ≤ M(y→i) ≤ e^ε·t_i,   Σ_i M(y→i) = 1,   Σ_i z_i·M(y→i) = y      for all labels y, outputs z_i

Kept as the reference that `design_unbiased` is measured against, and for other convex losses g. The solver's floats
are not private as they come; the strip made of them is (docs/proofs/strip.md): one cell of length t_i per output,
and for each label the window whose mean is the label. It loses nothing, whatever convex loss was asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from labeldp.certificate import certify
from labeldp.channel import COIN_SIDES, Channel, smallest_coin
from labeldp.design.arcs import Floats
from labeldp.design.unbiased import is_unbiased
from labeldp.errors import DesignError, InputError, OutputsError
from labeldp.exact import Rational, epsilon_of, rational
from labeldp.labels import LabelSpace
from labeldp.prior import Prior

__all__ = ["Loss", "design_on_grid", "feasible_outputs"]

Loss = Callable[[Floats, float], ArrayLike]
"""g(outputs, label): the loss of each output for one label, convex in the output."""

MESH = 416
UNITS = 1 << 48
MAGNIFY = 1e3
BRIDGE = 1e5


def feasible_outputs(space: LabelSpace, epsilon: Rational, count: int) -> Floats:
    """Algorithm 2: `count` even steps between the least and the greatest output of debiased randomized response.

    Returns: ascending outputs for which the linear program is feasible; they may exclude the true optimum.
    """
    steps = rational(count, "mesh")
    if steps.denominator != 1 or steps < 2:
        raise OutputsError(f"mesh={count} must be a whole number of at least 2.")
    growth = float(np.expm1(float(epsilon_of(epsilon))))
    middle = space.values[len(space) // 2]
    y = space.values - middle
    ends = y[[0, -1]] + (len(y) * y[[0, -1]] - y.sum()) / growth
    outputs: Floats = middle + np.linspace(ends[0], ends[1], int(steps))
    return outputs


def design_on_grid(
    prior: Prior,
    epsilon: Rational,
    *,
    mesh: int | None = None,
    outputs: ArrayLike | None = None,
    loss: str | Loss = "squared",
) -> Channel:
    """Algorithm 1 on the grid of Algorithm 2 (`mesh` points, 416 by default) or on the `outputs` given.

    `loss` is "squared", "absolute" or a function g(outputs, label) that is convex in the outputs.
    Returns: a certified Channel whose outputs lie on the grid, as good as the linear program's answer.
    Raises: OutputsError where no unbiased randomizer lives on the grid, DesignError where the solver fails.
    """
    exact = epsilon_of(epsilon)
    if outputs is not None and mesh is not None:
        raise InputError("give mesh= or outputs=, not both.")
    mesh = MESH if mesh is None else mesh
    grid = feasible_outputs(prior.space, exact, mesh) if outputs is None else _checked(outputs)
    losses = _loss_table(loss, grid, prior.space.values)
    middle = prior.space.values[len(prior.space) // 2]
    spread = prior.space.high - prior.space.low
    labels, z = (prior.space.values - middle) / spread, (grid - middle) / spread
    least, window = _solve(labels, prior.probabilities, z, losses, exact)
    channel = _channel(prior, exact, grid, labels, z, least, window)
    if not is_unbiased(channel):
        # The solver's tolerance can leave an end label short of its mean; say so rather than return a biased channel.
        raise DesignError(
            f"the linear program's answer is biased by {np.abs(channel.bias()).max() / spread:.1e} of the label range, "
            "above 1e-09; try another mesh, or design_unbiased, which needs none."
        )
    certify(channel)
    return channel


def _solve(labels: Floats, p: Floats, z: Floats, losses: Floats, epsilon: Fraction) -> tuple[Floats, float]:
    """The smallest probability t_i of each output over the labels in an optimal solution, and the window Σ_i d_i.

    Written for M = t + growth·d with 0 ≤ d ≤ t, and for differences of neighbouring labels, in units of 1/E: then
    all numbers are of one order for small epsilon and for large. The units are a thousand times smaller still, so
    that the solver's absolute tolerance, which cannot go below 1e-10, asks for 1e-13.
    """
    from scipy.optimize import linprog  # slow to import, and only the reference needs it

    k, n = losses.shape
    growth = float(np.expm1(float(epsilon)))
    scale = (growth + 1) * MAGNIFY
    reach = max(float(np.abs(z).max()), 1.0)
    ones, values = np.ones((1, n)), z[None, :] / reach
    # Variables: t (n), Σt and Σzt in units of BRIDGE (2), d (k·n). The solver drops coefficients below 1e-9, which
    # 1/scale is for large epsilon; over the two sums it is reached in two steps.
    step = sparse.diags([np.ones(k), -np.ones(k - 1)], [0, -1], shape=(k, k), format="csr")[1:]
    first = sparse.csr_matrix(([1.0], ([0], [0])), shape=(1, k))
    equal = sparse.bmat(
        [
            [ones / BRIDGE, np.array([[-1.0, 0.0]]), None],
            [values / BRIDGE, np.array([[0.0, -1.0]]), None],
            [None, np.array([[BRIDGE / scale, 0.0]]), sparse.kron(first, ones) * (growth / scale)],
            [None, np.array([[0.0, BRIDGE / scale]]), sparse.kron(first, values) * (growth / scale)],
            [None, None, sparse.kron(step, ones)],
            [None, None, sparse.kron(step, values)],
        ],
        format="csr",
    )
    target = np.concatenate(([0, 0, 1, labels[0] / reach], np.zeros(k - 1), np.diff(labels) * scale / growth / reach))
    below = sparse.vstack([-sparse.identity(n)] * k)
    private = sparse.bmat([[below, sparse.csr_matrix((k * n, 2)), sparse.identity(k * n)]])
    weighted = p[:, None] * losses
    cost = np.concatenate((weighted.sum(axis=0), [0, 0], growth * weighted.ravel()))
    result = linprog(
        cost / max(float(np.abs(cost).max()), 1e-300),
        A_ub=private.tocsr(),
        b_ub=np.zeros(k * n),
        A_eq=equal,
        b_eq=target,
        bounds=[(0, None)] * (n + 1) + [(None, None)] + [(0, None)] * (k * n),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if result.status == 2:
        raise OutputsError(
            f"no unbiased randomizer at epsilon={float(epsilon):g} lives on these {n} outputs; "
            "feasible_outputs() gives a grid on which one does."
        )
    if result.status != 0:
        raise DesignError(f"the linear program was not solved: {result.message}")
    return np.maximum(result.x[:n], 0.0), float(result.x[n + 2 : 2 * n + 2].sum())


def _channel(
    prior: Prior, epsilon: Fraction, grid: Floats, labels: Floats, z: Floats, least: Floats, width: float
) -> Channel:
    """One cell per output, as long as its smallest probability; for each label the window whose mean it is."""
    used = least > least.sum() / UNITS
    lengths, z, width = least[used] / least.sum(), z[used], width / float(least.sum())
    whole = np.maximum(np.rint(lengths * UNITS).astype(np.int64), 1)
    strip = int(whole.sum())
    window = min(max(round(width * UNITS), 1), strip)
    coin = smallest_coin(epsilon, strip, window)
    growth = (COIN_SIDES - coin) * strip / (coin * window)
    starts, gained, wanted = _windows(whole, z, window, labels, growth)
    return Channel(
        space=prior.space,
        epsilon=epsilon,
        strip=strip,
        window=window,
        offsets=np.rint(np.interp(wanted, gained, starts)).astype(np.int64),
        cuts=np.concatenate(([0], np.cumsum(whole))),
        coin=coin,
        cell_outputs=grid[used],
        name="on-grid",
        prior=prior.probabilities,
    )


def _windows(
    lengths: NDArray[np.float64] | NDArray[np.int64], z: Floats, window: float, labels: Floats, growth: float
) -> tuple[Floats, Floats, Floats]:
    """Starts of windows, what a window there gains (its integral of outputs), and what each label wants it to gain."""
    cuts = np.concatenate(([0], np.cumsum(lengths)))
    sums = np.concatenate(([0.0], np.cumsum(lengths * z)))
    starts = np.unique(np.clip(np.concatenate((cuts, cuts - window)), 0, max(cuts[-1] - window, 0)))
    gained = np.interp(starts + window, cuts, sums) - np.interp(starts, cuts, sums)
    # (sums + growth·gained) / (strip + growth·window) = label
    return starts, gained, (labels * (cuts[-1] + growth * window) - sums[-1]) / growth


def _checked(outputs: ArrayLike) -> Floats:
    try:
        grid = np.unique(np.array(outputs, dtype=np.float64))
    except (TypeError, ValueError):
        raise OutputsError("outputs must be numbers.") from None
    if not np.all(np.isfinite(grid)):
        raise OutputsError("an output is NaN or infinite.")
    if len(grid) < 2:
        raise OutputsError(f"at least two different outputs are needed, got {len(grid)}.")
    return grid


def _loss_table(loss: str | Loss, grid: Floats, values: Floats) -> Floats:
    """g(z_i, y) for all labels and outputs, checked to be finite and convex along the grid."""
    if loss == "squared":
        table: NDArray[np.float64] = 0.5 * (grid - values[:, None]) ** 2
    elif loss == "absolute":
        table = np.abs(grid - values[:, None])
    elif callable(loss):
        try:
            table = np.stack([np.broadcast_to(np.array(loss(grid, y), float), grid.shape) for y in values.tolist()])
        except (TypeError, ValueError) as error:
            raise InputError(f"loss(outputs, label) must return one number per output: {error}") from None
    else:
        raise InputError(f'loss={loss!r} is not "squared", "absolute" or a function of (outputs, label).')
    if not np.all(np.isfinite(table)):
        raise InputError("the loss is NaN or infinite for some output and label.")
    bend = np.diff(np.diff(table, axis=1) / np.diff(grid), axis=1)
    if bend.size and bend.min() < -1e-9 * max(np.abs(np.diff(table, axis=1) / np.diff(grid)).max(), 1e-300):
        y, i = np.unravel_index(bend.argmin(), bend.shape)
        raise InputError(f"the loss is not convex in the output (label {values[y]:g}, near output {grid[i + 1]:g}).")
    return table
