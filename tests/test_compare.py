import math

import numpy as np
import pytest

from labeldp import LabelSpace, Prior, compare, design_on_grid, design_unbiased
from labeldp.design import MECHANISMS
from labeldp.errors import InputError

PRIOR = Prior(LabelSpace.integers(0, 9), np.arange(1, 11) / 55)


def test_every_mechanism_at_several_epsilons() -> None:
    rows = compare(MECHANISMS, PRIOR, epsilon=[0.5, 2])
    assert [(row.mechanism, float(row.epsilon)) for row in rows] == [(m, e) for e in (0.5, 2) for m in MECHANISMS]
    for row in rows:
        assert row.lowest < row.highest
        biased = row.mechanism in ("rr-on-bins", "randomized-response") or "clipped" in row.mechanism
        assert math.isnan(row.times_examples) == biased == (row.worst_bias > 0.01)
        if not biased:
            assert row.times_examples >= 1
            assert row.noisy_loss == pytest.approx(row.standard_deviation**2 / 2)
    assert [row.times_examples for row in rows if row.mechanism == "unbiased"] == [1, 1]


def test_rows_are_the_laws() -> None:
    exact, on_grid = design_unbiased(PRIOR, 1), design_on_grid(PRIOR, 1, mesh=10)
    first, second = compare([exact, on_grid], PRIOR)
    assert first.noisy_loss == exact.noisy_loss(PRIOR)
    assert second.times_examples == pytest.approx(on_grid.noisy_loss(PRIOR) / exact.noisy_loss(PRIOR))
    assert (second.lowest, second.highest) == (on_grid.outputs[0], on_grid.outputs[-1])


def test_a_standard_deviation_predicts_the_examples_that_are_needed() -> None:
    """Means of n released labels: with times_examples more of them, Laplace is as good as the unbiased design."""
    rows = {row.mechanism: row for row in compare(["unbiased", "laplace"], PRIOR, epsilon=1)}
    ratio = rows["laplace"].standard_deviation ** 2 / rows["unbiased"].standard_deviation ** 2
    assert rows["laplace"].times_examples == pytest.approx(ratio)
    assert ratio > 1.5


@pytest.mark.parametrize(
    ("mechanisms", "epsilon", "says"),
    [
        ([], 1, "nothing to compare"),
        (["unbiased"], None, "pass epsilon="),
        (["magic"], 1, "unknown; choose one of"),
        ([design_unbiased(Prior.uniform(LabelSpace.integers(0, 2)), 1)], None, "other labels"),
        (["unbiased"], [1, -1], "greater than 0"),
    ],
)
def test_bad_input(mechanisms: list[object], epsilon: object, says: str) -> None:
    with pytest.raises(InputError, match=says):
        compare(mechanisms, PRIOR, epsilon)  # type: ignore[arg-type]
