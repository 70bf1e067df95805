import numpy as np
import pytest

from labeldp import LabelSpace, Prior, PriorError
from labeldp.errors import InputError

SPACE = LabelSpace.integers(0, 2)


def test_a_public_prior_costs_nothing() -> None:
    prior = Prior(SPACE, [0.6, 0.25, 0.15])
    assert prior.epsilon == 0
    assert prior.mean() == pytest.approx(0.55)
    assert "public" in repr(prior)


def test_uniform() -> None:
    assert Prior.uniform(SPACE).probabilities.tolist() == [1 / 3] * 3
    assert Prior.uniform(SPACE) == Prior(SPACE, np.full(3, 1 / 3))


@pytest.mark.parametrize(
    ("probabilities", "says"),
    [
        ([0.5, 0.5], "needs 3 probabilities"),
        ([0.5, 0.25, 0.15], "add up to 0.9"),
        ([1.1, -0.1, 0], "probability 1 is -0.1"),
        ([np.nan, 0.5, 0.5], "probability 0 is NaN"),
        ([np.inf, 0, 0], "probability 0 is NaN or infinite"),
        ([[0.6, 0.25, 0.15]], "needs 3 probabilities"),
        (["a", "b", "c"], "array of numbers"),
        ([0, 0, 0], "add up to 0"),
    ],
)
def test_bad_priors(probabilities: object, says: str) -> None:
    with pytest.raises(PriorError, match=says):
        Prior(SPACE, probabilities)  # type: ignore[arg-type]


def test_a_prior_needs_a_space() -> None:
    with pytest.raises(InputError, match="LabelSpace"):
        Prior([0, 1, 2], [1, 0, 0])  # type: ignore[arg-type]
