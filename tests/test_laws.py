"""Laws that hold for every prior, epsilon and label set, searched by hypothesis."""

import numpy as np
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from labeldp import Channel, DesignError, LabelSpace, Prior, certify, design_on_grid, design_rr_on_bins, design_unbiased
from labeldp.exact import exp_upper

labels = st.lists(st.integers(-50, 50), min_size=2, max_size=9, unique=True).map(LabelSpace.of)


@st.composite
def priors(draw: st.DrawFn) -> Prior:
    space = draw(labels)
    weights = draw(st.lists(st.integers(0, 20), min_size=len(space), max_size=len(space)).filter(any))
    return Prior(space, np.array(weights) / sum(weights))


epsilons = st.sampled_from(["0.05", "0.2", "1/3", "1", "2.5", "5", "8"])


def on_grid(prior: Prior, epsilon: str) -> Channel:
    """A grid design, where the linear program is sharp enough to give one; a refusal by name breaks no law."""
    try:
        return design_on_grid(prior, epsilon, mesh=12)
    except DesignError:
        reject()


designs = st.sampled_from([design_unbiased, design_rr_on_bins, on_grid])


@settings(max_examples=150, deadline=None)
@given(priors(), epsilons, designs)
def test_rows_sum_to_the_total_and_ratios_are_bounded(prior: Prior, epsilon: str, design: object) -> None:
    channel = design(prior, epsilon)  # type: ignore[operator]
    certify(channel)
    weights = channel.weights()
    assert all(sum(row) == channel.total for row in weights)
    upper = exp_upper(epsilon)
    for column in weights.T:
        assert min(column) > 0
        assert max(column) <= upper * min(column)


@settings(max_examples=60, deadline=None)
@given(priors(), st.sampled_from([(0.1, 0.2), (0.5, 1), (1, 1.1), (2, 4), (4, 8)]))
def test_more_budget_never_costs_more(prior: Prior, pair: tuple[float, float]) -> None:
    for design in (design_unbiased, design_rr_on_bins):
        strict, loose = (design(prior, epsilon).noisy_loss(prior) for epsilon in pair)
        assert loose <= strict * (1 + 1e-6) + 1e-12


@settings(max_examples=60, deadline=None)
@given(priors(), epsilons, st.integers(-1000, 1000), st.sampled_from([0.25, 1, 16]))
def test_shifting_and_scaling_labels_shifts_and_scales_outputs(
    prior: Prior, epsilon: str, shift: int, scale: float
) -> None:
    """Exactly, where floats can follow: integers shifted by integers, scaled by powers of two."""
    moved = Prior(LabelSpace.of(prior.space.values * scale + shift), prior.probabilities)
    before, after = design_unbiased(prior, epsilon), design_unbiased(moved, epsilon)
    np.testing.assert_array_equal(after.offsets, before.offsets)
    reach = np.abs(after.cell_outputs).max() + 1000
    np.testing.assert_allclose(after.cell_outputs, before.cell_outputs * scale + shift, rtol=0, atol=1e-14 * reach)


@settings(max_examples=60, deadline=None)
@given(priors(), epsilons)
def test_mirrored_labels_have_the_same_loss(prior: Prior, epsilon: str) -> None:
    mirrored = Prior(LabelSpace.of(-prior.space.values), prior.probabilities[::-1])
    loss = design_unbiased(prior, epsilon).noisy_loss(prior)
    assert abs(design_unbiased(mirrored, epsilon).noisy_loss(mirrored) - loss) <= 1e-6 * loss
