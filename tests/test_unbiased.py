"""design_unbiased: certified, unbiased, and provably optimal, over everything a caller may bring."""

from fractions import Fraction

import numpy as np
import pytest

from labeldp import (
    Channel,
    DesignError,
    LabelSpace,
    Prior,
    certify,
    design_debiased_rr,
    design_on_grid,
    design_unbiased,
    signature,
)
from labeldp.design import unbiased
from labeldp.design.arcs import Instance, all_arcs
from labeldp.design.flow import solve_flow
from labeldp.design.paths import cheapest_path, cost_table
from labeldp.errors import EpsilonError
from tests.cases import EPSILONS, LABELS, PRIORS, bias_is_negligible, prior, space


def assert_holds(channel: Channel, epsilon: float) -> None:
    certify(channel)
    assert bias_is_negligible(channel)
    assert channel.optimality_gap is not None
    limit = 1e-6 if 0.05 <= epsilon <= 8 else 1e-4 if 0.01 <= epsilon <= 12 else 1e-2
    rounding = np.spacing(np.abs(channel.outputs).max()) / (channel.space.high - channel.space.low)
    assert -1e-8 - 4 * rounding < channel.optimality_gap <= limit
    assert len(channel.outputs) <= 2 * len(channel.space)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("prior_kind", PRIORS)
@pytest.mark.parametrize("labels", LABELS)
def test_small_label_sets(labels: str, prior_kind: str, epsilon: float) -> None:
    for k in (2, 3, 9, 33):
        channel = design_unbiased(prior(prior_kind, space(labels, k)), epsilon)
        assert_holds(channel, epsilon)
        signature(channel)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(
    ("labels", "prior_kind"),
    [("integers", "random"), ("uneven", "uniform"), ("offset", "zeros"), ("negative", "spike")],
)
def test_medium_label_sets(labels: str, prior_kind: str, epsilon: float) -> None:
    assert_holds(design_unbiased(prior(prior_kind, space(labels, 301)), epsilon), epsilon)


@pytest.mark.parametrize(
    ("labels", "prior_kind", "epsilon"),
    [
        ("integers", "random", 0.05),
        ("integers", "zeros", 1),
        ("uneven", "uniform", 4),
        ("integers", "spike", 8),
        ("uneven", "random", 12),
        ("integers", "uniform", 20),
    ],
)
def test_2001_labels(labels: str, prior_kind: str, epsilon: float) -> None:
    channel = design_unbiased(prior(prior_kind, space(labels, 2001)), epsilon)
    assert_holds(channel, epsilon)
    assert channel.strip < 1 << 45


def test_the_toy_example_of_the_paper() -> None:
    channel = design_unbiased(Prior(LabelSpace.integers(0, 2), [0.6, 0.25, 0.15]), 0.5)
    assert channel.noisy_loss(channel.prior) == pytest.approx(7.92876043, abs=2e-8)
    np.testing.assert_allclose(channel.outputs, [-3.307, -2.856, 4.804, 5.366], atol=1e-3)


def test_two_labels_are_debiased_randomized_response() -> None:
    """With k = 2 there is nothing to choose."""
    two = Prior(LabelSpace.of([-1, 4]), [0.3, 0.7])
    np.testing.assert_allclose(design_unbiased(two, 1).outputs, design_debiased_rr(two.space, 1).outputs, rtol=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1, 3, 6])
@pytest.mark.parametrize("prior_kind", ["random", "uniform", "one-label"])
@pytest.mark.parametrize("labels", ["integers", "uneven"])
def test_optimality_conditions(labels: str, prior_kind: str, epsilon: float) -> None:
    """Dual feasibility over all arcs, and complementary slackness for the cells of the finished channel."""
    given = prior(prior_kind, space(labels, 12))
    channel = design_unbiased(given, epsilon)
    problem = Instance.of(given, Fraction(str(epsilon)))
    flow = solve_flow(problem, *all_arcs(12), problem.loss_scale(), 1e-10)
    costs = cost_table(problem, flow.v)
    value, _ = cheapest_path(costs, problem.growth)
    u = np.zeros(13)
    for a in range(11, -1, -1):
        u[a] = (costs[a, a + 1 :] - value + u[a + 1 :]).min()
    loss = channel.noisy_loss(given) / problem.spread**2
    unit = loss * (problem.growth + 1)
    # dual feasibility: no arc, used or not, has a negative reduced cost, and label 0 closes the ring
    slack = costs - value - (u[:-1, None] - u)
    assert slack.min() >= -1e-12 * unit
    assert u[0] >= problem.growth * value - 1e-9 * unit
    # strong duality
    assert value + flow.v[1:-1] @ np.diff(problem.y) / problem.growth == pytest.approx(loss, rel=1e-6)
    # complementary slackness: the channel puts its mass on arcs of reduced cost zero
    cells = signature(channel)
    mass = np.diff(channel.cuts) * float(channel.coin) / float(1 << 64) / channel.strip
    reduced = np.array([slack[f, e + 1] for f, e in zip(cells.first, cells.last, strict=True)])
    assert mass @ reduced <= 1e-6 * loss
    # a mass moved to arcs at random would not pass
    assert slack[np.isfinite(slack)].mean() * mass.sum() > 1e-4 * loss


def test_any_potentials_give_a_lower_bound() -> None:
    """The bound is a theorem about potentials, not a word of the solver."""
    given = prior("random", space("uneven", 9))
    channel = design_unbiased(given, 1)
    problem = Instance.of(given, Fraction(1))
    loss = channel.noisy_loss(given) / problem.spread**2
    rng = np.random.default_rng(0)
    flow = solve_flow(problem, *all_arcs(9), problem.loss_scale(), 1e-10)
    bounds = [
        unbiased.dual_bound(problem, np.append(flow.v[:-1] + size * rng.normal(size=9), 0.0))[0]
        for size in (0, 1e-3, 1e-2, 0.1, 1)
        for _ in range(20)
    ]
    assert max(bounds) <= loss * (1 + 1e-9)
    assert bounds[0] >= loss * (1 - 1e-7)


@pytest.mark.parametrize("mesh", [2, 7, 40, 200])
@pytest.mark.parametrize("prior_kind", PRIORS)
@pytest.mark.parametrize("epsilon", [0.2, 1, 4])
def test_never_above_the_paper_s_program(mesh: int, prior_kind: str, epsilon: float) -> None:
    given = prior(prior_kind, space("uneven", 8))
    exact, on_grid = design_unbiased(given, epsilon), design_on_grid(given, epsilon, mesh=mesh)
    assert exact.noisy_loss(given) <= on_grid.noisy_loss(given) * (1 + 1e-7)


@pytest.mark.parametrize("epsilon", [0.3, 1, 4])
@pytest.mark.parametrize("prior_kind", ["uniform", "random", "zeros"])
def test_the_paper_s_program_comes_close_on_a_fine_grid_around_the_outputs(prior_kind: str, epsilon: float) -> None:
    given = prior(prior_kind, space("integers", 6))
    exact = design_unbiased(given, epsilon)
    fine = np.linspace(exact.outputs[0], exact.outputs[-1], 300)
    close = design_on_grid(given, epsilon, outputs=fine)
    assert 1 - 1e-7 <= close.noisy_loss(given) / exact.noisy_loss(given) <= 1 + 1e-3


def test_the_paper_s_interval_can_exclude_the_optimum() -> None:
    """Documented in docs/proofs/grid.md: five labels, uniform prior, epsilon 4: 4.5 % above at every mesh."""
    given = Prior.uniform(LabelSpace.of([0, 1, 5, 9, 10]))
    least = design_unbiased(given, 4).noisy_loss(given)
    narrow = [design_on_grid(given, 4, mesh=mesh).noisy_loss(given) / least for mesh in (101, 401, 1601)]
    assert all(1.045 < ratio < 1.05 for ratio in narrow)
    wide = design_on_grid(given, 4, outputs=np.linspace(-11, 21, 1601)).noisy_loss(given) / least
    assert wide < 1.001


def test_a_gap_that_does_not_close_is_a_loud_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = unbiased.dual_bound

    def pessimist(problem: Instance, potentials: np.ndarray) -> tuple[float, np.ndarray]:
        bound, costs = honest(problem, potentials)
        return 0.9 * bound, costs

    monkeypatch.setattr(unbiased, "dual_bound", pessimist)
    with pytest.raises(DesignError, match=r"relative gap is 1\.0e-01, above 1e-06"):
        design_unbiased(prior("uniform", space("integers", 5)), 1)


def test_too_many_labels() -> None:
    with pytest.raises(DesignError, match="at most 8192"):
        design_unbiased(Prior.uniform(LabelSpace.integers(0, 9000)), 1)


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "much", 41, 1e-9])
def test_bad_epsilon(epsilon: object) -> None:
    with pytest.raises(EpsilonError):
        design_unbiased(Prior.uniform(LabelSpace.integers(0, 2)), epsilon)  # type: ignore[arg-type]
