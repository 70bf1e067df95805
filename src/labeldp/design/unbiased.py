"""design_unbiased: the epsilon-DP randomizer of least noisy loss among all unbiased ones. No output grid.

    min_M  Σ_y p_y Σ_z M(y→z)·½(z − y)²
    s.t.   M(y→z) ≤ e^ε·M(y'→z),   Σ_z M(y→z) = 1,   Σ_z z·M(y→z) = y     for all labels y, y' and real outputs z

The paper proves that some optimum has at most 2k outputs, each favouring a run of consecutive labels. So the problem
is a convex flow over the k(k+1)/2 runs (flow.py), its answer a strip (strip.py), and the strip a certified Channel.
Large label sets are solved coarse first, then on the arcs near the coarse answer, and every arc is priced before the
answer counts. The gap is not the solver's word: the loss is that of the finished integers, the bound the value of
the dual for the caller's own prior over all arcs, by dynamic programming (paths.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import numpy as np

from labeldp.certificate import certify
from labeldp.channel import Channel
from labeldp.design.arcs import Floats, Instance, Nodes, all_arcs, arcs_near
from labeldp.design.flow import Flow, solve_flow
from labeldp.design.paths import cheapest_path, cost_table
from labeldp.design.strip import Strip, unbiased_outputs, whole_units, windows_by_mean
from labeldp.errors import ChannelError, DesignError
from labeldp.exact import Rational, epsilon_of
from labeldp.prior import Prior

__all__ = ["design_unbiased"]

COARSE = 20
"""Label sets up to this size are solved over all arcs at once."""
ROUNDS_MAX = 12
STRETCHES = (1.0, 10.0, 0.1)
"""Each round tries other units in the solver; a stubborn case yields to one of them."""
UNITS = (1 << 24, 1 << 32, 1 << 40)
UNUSABLE = (ArithmeticError, RuntimeError, ChannelError)
"""What a useless answer of the solver, or too few units to keep windows apart, leads to; another try may do."""


def design_unbiased(prior: Prior, epsilon: Rational) -> Channel:
    """The optimal unbiased channel for `prior` at `epsilon`, certified, with its optimality gap.

    Returns: a Channel with at most 2k − 1 outputs; `.optimality_gap` bounds its relative excess loss.
    Raises: DesignError, naming the gap, where the optimum could not be proved closely enough.
    """
    exact = epsilon_of(epsilon)
    problem = Instance.of(prior, exact)
    accepted = accepted_gap(exact)
    enough = min(accepted / 10, 1e-5)
    best, least, gap = None, np.inf, np.inf
    with np.errstate(divide="raise", invalid="raise", over="raise"), suppress(*UNUSABLE):
        for flow, bound in _flows(problem):
            for units in UNITS:
                with suppress(*UNUSABLE):
                    channel = _channel_of(problem, _strip_of(problem, flow, units, exact), prior, exact)
                    loss = channel.noisy_loss(problem.p) / problem.spread**2
                    if loss < least and is_unbiased(channel):
                        best, least = channel, loss
                gap = (least - bound) / least if best is not None else np.inf
                if gap <= enough:
                    break
            if gap <= enough:
                break
    if best is None or not gap <= accepted:
        raise DesignError(
            f"no unbiased design for epsilon={float(exact):g} and {len(prior.space)} labels was proved optimal: the "
            f"relative gap is {gap:.1e}, above {accepted:.0e}. Try fewer labels, or an epsilon between 0.01 and 20."
        )
    certify(best)
    return replace(best, optimality_gap=gap)


def is_unbiased(channel: Channel) -> bool:
    """To 1e-9 of the label range, or two units in the last place of the largest output."""
    floats = 2 * np.spacing(np.abs(channel.cell_outputs).max())
    return bool(np.abs(channel.bias()).max() <= max(1e-9 * (channel.space.high - channel.space.low), floats))


def accepted_gap(epsilon: Fraction) -> float:
    """The largest relative gap that is not an error."""
    return 1e-6 if Fraction(1, 100) <= epsilon <= 12 else 1e-2


def dual_bound(problem: Instance, potentials: Floats) -> tuple[float, Floats]:
    """A lower bound of every unbiased loss from any potentials v_0 … v_k, and the arc costs it rests on.

    Whatever v is, u is then chosen best: the bound is the least cost of a path plus the linear part
    (docs/proofs/flow.md). So it holds without trusting the solver, for all arcs at once.
    """
    costs = cost_table(problem, potentials)
    value, _ = cheapest_path(costs, problem.growth)
    return value + float(potentials[1:-1] @ np.diff(problem.y)) / problem.growth, costs


def _flows(problem: Instance) -> Iterator[tuple[Flow, float]]:
    """Better and better flows, each with the best lower bound so far."""
    levels = [(problem, np.arange(0))]
    while len(levels[-1][0].y) > COARSE:
        levels.append(levels[-1][0].merged())
    a, b = all_arcs(len(levels[-1][0].y))
    scale = levels[-1][0].loss_scale()
    # At small epsilon the loss hardly depends on the offsets, so that a coarse answer must be sharp to be a guide; and
    # over many levels the guide must not drift.
    rough = 1e-8 if problem.growth < 0.5 else 1e-6 if len(levels) > 3 else 1e-4
    for coarse, nodes in reversed(levels[1:]):
        flow = solve_flow(coarse, a, b, scale, tolerance=rough)
        scale = flow.loss if flow.loss > 0 else scale
        a, b = _refined(coarse, flow, nodes)
    usual = 1 if 0.3 < problem.growth < 1e7 else 10
    sharp = 1e-8 if len(levels) > 1 else 1e-10
    bound = -np.inf
    for round_ in range(ROUNDS_MAX):
        stretch = STRETCHES[round_ % len(STRETCHES)] * usual
        flow = solve_flow(problem, a, b, scale, tolerance=sharp, stretch=stretch)
        value, costs = dual_bound(problem, flow.v)
        bound = max(bound, value)
        yield flow, bound
        scale = flow.loss if flow.loss > 0 else scale
        a, b = _with_violated(problem, flow, costs)


def _refined(coarse: Instance, flow: Flow, nodes: Nodes) -> tuple[Nodes, Nodes]:
    """The fine arcs near the cells of the coarse strip; a strip has few, even where the flow has ties."""
    offsets, window, _ = windows_by_mean(flow.mass, flow.outputs, coarse.y, coarse.growth)
    cuts = np.unique(np.concatenate((offsets, offsets + window)))
    middles = (cuts[1:] + cuts[:-1]) / 2
    a = np.searchsorted(offsets + window, middles, side="right")
    b = np.searchsorted(offsets, middles, side="right")
    proper = a < b
    return arcs_near(nodes[a[proper]], nodes[b[proper]], int(nodes[-1]))


def _with_violated(problem: Instance, flow: Flow, costs: Floats) -> tuple[Nodes, Nodes]:
    """The flow's own arcs and those of negative reduced cost, worst per start and per end, with their neighbours."""
    k, u = len(problem.y), flow.u
    slack = costs - (u[:-1, None] - u + u[0] / problem.growth)
    worst_end, worst_start = slack.argmin(axis=1), slack.argmin(axis=0)
    by_start = np.flatnonzero(slack[np.arange(k), worst_end] < 0)
    by_end = np.flatnonzero(slack[worst_start, np.arange(k + 1)] < 0)
    used = flow.mass > 1e-6 * flow.mass.max()
    a = np.concatenate((by_start, worst_start[by_end], flow.a[used]))
    b = np.concatenate((worst_end[by_start], by_end, flow.b[used]))
    near_a, near_b = arcs_near(a, b, k)
    key = np.unique(np.concatenate((flow.a * (k + 1) + flow.b, near_a * (k + 1) + near_b)))
    return key // (k + 1), key % (k + 1)


def _strip_of(problem: Instance, flow: Flow, units: int, epsilon: Fraction) -> Strip:
    offsets, window, length = windows_by_mean(flow.mass, flow.outputs, problem.y, problem.growth)
    return whole_units(offsets, window, length, units, epsilon)


def _channel_of(problem: Instance, strip: Strip, prior: Prior, epsilon: Fraction) -> Channel:
    outputs = problem.to_labels(unbiased_outputs(strip, problem.y, problem.p))
    return Channel(
        space=prior.space,
        epsilon=epsilon,
        strip=strip.length,
        window=strip.window,
        offsets=strip.offsets,
        cuts=strip.cuts,
        coin=strip.coin,
        cell_outputs=outputs,
        name="unbiased",
        prior=prior.probabilities,
    )
