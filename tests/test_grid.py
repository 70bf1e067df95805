import numpy as np
import pytest
from scipy.optimize import linprog

from labeldp import (
    EpsilonError,
    LabelSpace,
    OutputsError,
    Prior,
    certify,
    design_debiased_rr,
    design_on_grid,
    feasible_outputs,
)
from labeldp.errors import InputError
from tests.cases import LABELS, PRIORS, prior, space


def program(given: Prior, epsilon: float, outputs: np.ndarray, losses: np.ndarray) -> float:
    """The paper's linear program as printed: every pair of labels is compared, no helper variable."""
    k, n = losses.shape
    pairs = []
    for i in range(n):
        for y in range(k):
            for other in range(k):
                if y != other:
                    row = np.zeros((k, n))
                    row[y, i], row[other, i] = 1, -np.exp(epsilon)
                    pairs.append(row.ravel())
    rows = np.kron(np.eye(k), np.ones(n))
    means = np.kron(np.eye(k), outputs)
    result = linprog(
        (given.probabilities[:, None] * losses).ravel(),
        A_ub=np.array(pairs),
        b_ub=np.zeros(len(pairs)),
        A_eq=np.vstack((rows, means)),
        b_eq=np.concatenate((np.ones(k), given.space.values)),
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert result.status == 0
    return float(result.fun)


def pinball(outputs: np.ndarray, label: float) -> np.ndarray:
    return np.maximum(0.8 * (outputs - label), -0.2 * (outputs - label))


LOSSES = {
    "squared": ("squared", lambda z, y: 0.5 * (z - y) ** 2),
    "absolute": ("absolute", lambda z, y: np.abs(z - y)),
    "pinball": (pinball, pinball),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("prior_kind", PRIORS)
@pytest.mark.parametrize("epsilon", [0.5, 2])
def test_the_channel_is_as_good_as_the_program_as_printed(loss: str, prior_kind: str, epsilon: float) -> None:
    """Loss within 1e-9, bias within 1e-9 of the range, for any convex loss; priors with zeros leave ties."""
    given = prior(prior_kind, LabelSpace.of([0, 1, 3, 4]))
    asked, g = LOSSES[loss]
    outputs = feasible_outputs(given.space, epsilon, 14)
    losses = np.stack([g(outputs, y) for y in given.space.values])
    channel = design_on_grid(given, epsilon, mesh=14, loss=asked)
    columns = np.searchsorted(outputs, channel.outputs)
    achieved = float((given.probabilities[:, None] * channel.matrix() * losses[:, columns]).sum())
    assert achieved == pytest.approx(program(given, epsilon, outputs, losses), rel=1e-9)
    assert np.abs(channel.bias()).max() <= 1e-9 * 4
    certify(channel)


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 2, 8, 20])
def test_designs_certify_and_are_unbiased(labels: str, epsilon: float) -> None:
    given = prior("random", space(labels, 30))
    channel = design_on_grid(given, epsilon, mesh=60)
    certify(channel)
    largest = np.abs(channel.outputs).max()
    assert np.abs(channel.bias()).max() <= max(1e-9 * (given.space.high - given.space.low), 2 * np.spacing(largest))
    assert set(channel.outputs) <= set(feasible_outputs(given.space, epsilon, 60))


def test_many_labels_on_a_coarse_grid() -> None:
    given = prior("uniform", space("integers", 1001))
    channel = design_on_grid(given, 1, mesh=12)
    certify(channel)
    assert np.abs(channel.bias()).max() <= 1e-9 * 1000


def test_feasible_outputs_end_where_debiased_response_ends() -> None:
    labels = LabelSpace.of([0, 1, 5])
    debiased = design_debiased_rr(labels, 1.3).outputs
    grid = feasible_outputs(labels, 1.3, 9)
    assert len(grid) == 9
    np.testing.assert_allclose(grid[[0, -1]], debiased[[0, -1]], rtol=1e-12)
    np.testing.assert_allclose(np.diff(grid), np.diff(grid)[0])


def test_the_two_ends_alone_are_feasible() -> None:
    """The paper's proposition."""
    given = prior("random", space("uneven", 6))
    assert len(design_on_grid(given, 1, mesh=2).outputs) == 2


def test_outputs_that_carry_no_unbiased_randomizer() -> None:
    with pytest.raises(OutputsError, match=r"no unbiased randomizer .* feasible_outputs\(\)"):
        design_on_grid(Prior.uniform(LabelSpace.integers(0, 2)), 1, outputs=[0, 1, 2])


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"mesh": 1}, OutputsError, "at least 2"),
        ({"mesh": 2.5}, OutputsError, "whole number"),
        ({"mesh": 5, "outputs": [0, 1]}, InputError, "not both"),
        ({"outputs": [0, float("nan")]}, OutputsError, "NaN"),
        ({"outputs": [3, 3]}, OutputsError, "two different outputs"),
        ({"outputs": ["a", "b"]}, OutputsError, "numbers"),
        ({"loss": "cubic"}, InputError, "cubic"),
        ({"loss": lambda z, y: -((z - y) ** 2)}, InputError, "not convex"),
        ({"loss": lambda z, y: z * np.nan}, InputError, "NaN"),
        ({"loss": lambda z, y: [1, 2, 3]}, InputError, "one number per output"),
    ],
)
def test_bad_input(arguments: dict[str, object], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        design_on_grid(Prior.uniform(LabelSpace.integers(0, 2)), 1, **arguments)  # type: ignore[arg-type]


def test_bad_epsilon() -> None:
    with pytest.raises(EpsilonError):
        feasible_outputs(LabelSpace.integers(0, 2), 0, 5)
