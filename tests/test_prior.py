import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chisquare

from labeldp import (
    EpsilonError,
    LabelError,
    LabelSpace,
    Prior,
    PriorError,
    SeededEntropy,
    design_unbiased,
    estimate_prior,
)
from labeldp.errors import InputError
from labeldp.prior import _discrete_laplace, _words, prior_from_counts
from labeldp.release.randomizer import spend_on_prior

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


COUNTS = json.loads((Path(__file__).parent / "data" / "label_counts.json").read_text())


def bundled(name: str) -> tuple[LabelSpace, np.ndarray]:
    kind, *bounds = COUNTS[name]["labels"]
    return getattr(LabelSpace, kind)(*bounds), np.array(COUNTS[name]["counts"])


def test_an_estimate_is_close_and_knows_what_it_cost() -> None:
    space, counts = bundled("weeks")
    labels = np.repeat(space.values, counts)
    prior = estimate_prior(labels, space, "0.1", entropy=SeededEntropy(1))
    assert prior.epsilon == Fraction(1, 10)
    assert "cost epsilon 0.1" in repr(prior)
    np.testing.assert_allclose(prior.probabilities, counts / counts.sum(), atol=300 / counts.sum())


def test_the_noise_is_discrete_laplace_of_scale_2_over_epsilon() -> None:
    """χ² of 20,000 draws against P(n) ∝ e^(−ε|n|/2), at level 1e-4; the law for 1.3 ε is rejected by the same test."""
    stream = SeededEntropy(2).stream("prior")
    noise = np.array([_discrete_laplace(2 / Fraction(4, 5), _words(stream, row)) for row in range(20_000)])

    def p_value(rate: float) -> float:
        cells = np.arange(-8, 9)
        law = np.exp(-rate * np.abs(cells)) * (1 - np.exp(-rate)) / (1 + np.exp(-rate))
        expected = np.append(law, 1 - law.sum()) * len(noise)
        seen = np.append([(noise == n).sum() for n in cells], (np.abs(noise) > 8).sum())
        return float(chisquare(seen, expected).pvalue)

    assert p_value(0.4) > 1e-4
    assert p_value(0.52) < 1e-12


def test_counts_that_all_clip_to_zero_give_a_uniform_prior() -> None:
    zero = [
        seed
        for seed in range(60)
        if prior_from_counts(np.array([1, 0, 0]), SPACE, Fraction(1, 100), SeededEntropy(seed).stream("prior"))
        == Prior(SPACE, np.full(3, 1 / 3), Fraction(1, 100))
    ]
    assert zero


def test_nothing_to_estimate_from() -> None:
    with pytest.raises(LabelError, match="no labels"):
        estimate_prior([], SPACE, 1)
    with pytest.raises(LabelError, match="row 1"):
        estimate_prior([0, 7], SPACE, 1)
    with pytest.raises(EpsilonError):
        estimate_prior([0], SPACE, 0)


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("n", [1_000, 10_000, None])
def test_the_rule_is_within_5_percent_of_the_better_choice(name: str, n: int | None) -> None:
    """Real labels; the loss of both choices under the true histogram, estimates averaged over three samples."""
    space, counts = bundled(name)
    truth = counts / counts.sum()
    size = n or int(counts.sum())
    for epsilon in (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4)):
        uniform = design_unbiased(Prior.uniform(space), epsilon).noisy_loss(truth)
        spend = min(Fraction(math.isqrt(len(space) * 10**12 // size), 10**6), epsilon / 4)
        estimated = []
        for seed in range(3):
            sample = np.random.default_rng(seed).multinomial(size, truth)
            prior = prior_from_counts(sample, space, spend, SeededEntropy(seed).stream("prior"))
            estimated.append(design_unbiased(prior, epsilon - spend).noisy_loss(truth))
        losses = {True: float(np.mean(estimated)), False: uniform}
        assert losses[spend_on_prior(len(space), size, epsilon)] <= 1.05 * min(losses.values())
