from itertools import combinations

import numpy as np
import pytest

from labeldp import (
    LabelSpace,
    Prior,
    certify,
    design_debiased_rr,
    design_randomized_response,
    design_rr_on_bins,
)
from tests.cases import EPSILONS, LABELS, PRIORS, bias_is_negligible, prior, space


def brute_force(given: Prior, epsilon: float) -> float:
    """Every partition into consecutive bins, its randomized response and posterior means spelled out."""
    k, y, p, ratio = len(given.space), given.space.values, given.probabilities, np.exp(epsilon)
    least = np.inf
    for count in range(1, k + 1):
        for inner in combinations(range(1, k), count - 1):
            bins = np.searchsorted(inner, np.arange(k), side="right")
            law = np.where(bins[:, None] == np.arange(count), ratio, 1.0) / (ratio + count - 1)
            joint = p[:, None] * law
            means = (joint * y[:, None]).sum(axis=0) / joint.sum(axis=0)
            least = min(least, float((joint * (means - y[:, None]) ** 2).sum()) / 2)
    return least


@pytest.mark.parametrize("epsilon", [0.05, 0.7, 2, 5])
@pytest.mark.parametrize("prior_kind", PRIORS)
@pytest.mark.parametrize("k", [2, 5, 10])
def test_bins_equal_brute_force_over_all_partitions(k: int, prior_kind: str, epsilon: float) -> None:
    given = prior(prior_kind, space("uneven", k))
    channel = design_rr_on_bins(given, epsilon)
    assert channel.noisy_loss(given) == pytest.approx(brute_force(given, epsilon), rel=1e-9, abs=1e-20)


def test_bins_of_the_paper_s_example() -> None:
    channel = design_rr_on_bins(Prior(LabelSpace.integers(0, 2), [0.6, 0.25, 0.15]), 0.5)
    assert channel.offsets.tolist() == [0, 1, 1]
    np.testing.assert_allclose(channel.outputs, [0.3959, 0.7200], atol=1e-4)
    joint = np.array([[0.35, 0.1, 0.05], [0.25, 0.15, 0.1]])
    predictors = joint @ channel.mean() / joint.sum(axis=1)
    np.testing.assert_allclose(predictors, [0.542, 0.558], atol=5e-4)
    # The printed example says 2.625 and 2.726 for the losses of the two Bayes predictors: a slip by ten.
    labels = np.arange(3)
    best = joint @ labels / joint.sum(axis=1)
    losses = [float((joint * (f[:, None] - labels) ** 2).sum() / 2) for f in (best, predictors)]
    np.testing.assert_allclose(losses, [0.2625, 0.2726], atol=5e-5)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("labels", LABELS)
def test_all_certify(labels: str, epsilon: float) -> None:
    given = prior("random", space(labels, 40))
    for channel in (
        design_rr_on_bins(given, epsilon),
        design_randomized_response(given.space, epsilon),
        design_debiased_rr(given.space, epsilon),
    ):
        certify(channel)
    assert bias_is_negligible(design_debiased_rr(given.space, epsilon))


def test_2001_labels() -> None:
    given = prior("random", space("integers", 2001))
    certify(design_rr_on_bins(given, 3))
    assert bias_is_negligible(design_debiased_rr(given.space, 3))


def test_response_keeps_the_label_with_the_known_probability() -> None:
    channel = design_randomized_response(LabelSpace.integers(0, 4), 1)
    law = channel.matrix()
    np.testing.assert_allclose(np.diag(law), np.e / (np.e + 4), rtol=1e-12)
    np.testing.assert_allclose(law[0, 1:], 1 / (np.e + 4), rtol=1e-12)
    assert channel.bias()[0] > 1


def test_debiased_outputs_follow_the_formula() -> None:
    y, growth = np.array([0.0, 1, 5, 6]), np.expm1(0.8)
    channel = design_debiased_rr(LabelSpace.of(y), 0.8)
    np.testing.assert_allclose(channel.outputs, ((growth + 4) * y - y.sum()) / growth, rtol=1e-12)
