import dataclasses
import json
from fractions import Fraction

import numpy as np
import pytest

from labeldp import (
    Channel,
    ChannelError,
    FileFormatError,
    LabelSpace,
    Prior,
    PriorError,
    design_rr_on_bins,
    design_unbiased,
)
from labeldp.channel import COIN_SIDES, smallest_coin
from labeldp.errors import InputError
from labeldp.exact import exp_lower

PRIOR = Prior(LabelSpace.integers(0, 2), [0.6, 0.25, 0.15])


@pytest.fixture(scope="module")
def channel() -> Channel:
    return design_unbiased(PRIOR, 0.5)


def test_the_law_is_exact(channel: Channel) -> None:
    """mean, bias, variance and loss equal what the integer weights say, computed here in rationals."""
    weights, outputs = channel.weights(), [Fraction(z) for z in channel.outputs.tolist()]
    loss = Fraction(0)
    for y, row in enumerate(weights):
        assert sum(row) == channel.total
        law = [Fraction(w, channel.total) for w in row]
        mean = sum(q * z for q, z in zip(law, outputs, strict=True))
        second = sum(q * z * z for q, z in zip(law, outputs, strict=True))
        label = Fraction(float(channel.space.values[y]))
        assert channel.mean()[y] == float(mean)
        assert channel.bias()[y] == float(mean - label)
        assert channel.variance()[y] == float(second - mean**2)
        loss += Fraction(float(PRIOR.probabilities[y])) * (second - 2 * label * mean + label**2) / 2
    assert channel.noisy_loss(PRIOR) == pytest.approx(float(loss), rel=1e-14)
    assert channel.noisy_loss(PRIOR.probabilities) == channel.noisy_loss(PRIOR)


def test_matrix_is_the_law_in_floats(channel: Channel) -> None:
    exact = (channel.weights() / channel.total).astype(float)
    np.testing.assert_allclose(channel.matrix(), exact, rtol=1e-14)


def test_equal_outputs_are_one_column() -> None:
    """A cell may repeat another's output; the law is over distinct values."""
    coin = smallest_coin(Fraction(1), 3, 1)
    space = LabelSpace.integers(0, 2)
    twice = Channel(space, Fraction(1), 3, 1, np.arange(3), np.arange(4), coin, np.array([5.0, 1.0, 5.0]), "twice")
    assert twice.outputs.tolist() == [1.0, 5.0]
    assert twice.weights().shape == twice.matrix().shape == (3, 2)
    assert [sum(row) for row in twice.weights()] == [twice.total] * 3


def test_a_cell_may_be_cut_by_a_window() -> None:
    space = LabelSpace.integers(0, 1)
    offsets, cuts, outputs = np.array([1, 2]), np.array([0, 2, 4]), np.array([0.0, 1.0])
    halves = Channel(space, Fraction(1), 4, 2, offsets, cuts, 1 << 63, outputs, "cut")
    assert halves.overlaps().tolist() == [[1, 1], [0, 2]]
    assert halves.mean().tolist() == [0.5, 0.75]


def test_json_round_trip(channel: Channel) -> None:
    again = Channel.from_json(channel.to_json())
    assert again == channel
    assert again.digest == channel.digest
    assert again.optimality_gap == channel.optimality_gap
    np.testing.assert_array_equal(again.prior, channel.prior)


def test_the_digest_is_of_the_law_alone(channel: Channel) -> None:
    assert dataclasses.replace(channel, name="other", prior=None).digest == channel.digest
    assert dataclasses.replace(channel, coin=channel.coin + 1).digest != channel.digest


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"coin": 1 << 63}, "changed after it was written"),
        ({"digest": None}, "changed after it was written"),
        ({"version": 99}, "version 99 is unknown"),
        ({"format": "other"}, "no channel"),
    ],
)
def test_a_changed_file_is_refused(channel: Channel, change: dict[str, object], says: str) -> None:
    body = json.loads(channel.to_json())
    with pytest.raises(FileFormatError, match=says):
        Channel.from_json(json.dumps({**body, **change}))


@pytest.mark.parametrize("text", ["", "[]", "3", "not json", '{"format": "labeldp.channel", "version": 1}'])
def test_what_is_no_channel_file_is_refused(text: str) -> None:
    with pytest.raises(FileFormatError):
        Channel.from_json(text)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"window": 0}, "1 ≤ window"),
        ({"window": 1 << 61}, "1 ≤ window"),
        ({"coin": 0}, "coin=0"),
        ({"coin": COIN_SIDES + 1}, "coin="),
        ({"offsets": np.array([0, 1])}, "2 offsets were given for 3 labels"),
        ({"offsets": np.array([-1, 0, 1])}, "an offset is outside"),
        ({"offsets": np.array([0.0, 1.0, 2.0])}, "must be integers"),
        ({"cuts": np.array([1, 5])}, "cuts must run"),
        ({"cell_outputs": np.array([1.0])}, "1 outputs were given"),
        ({"cell_outputs": np.array([np.nan] * 4)}, "NaN or infinite"),
    ],
)
def test_a_broken_strip_cannot_exist(channel: Channel, change: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        dataclasses.replace(channel, **change)


def test_repeated_cuts_are_refused(channel: Channel) -> None:
    cuts = channel.cuts.copy()
    cuts[1] = cuts[2]
    with pytest.raises(ChannelError, match="cuts must increase"):
        dataclasses.replace(channel, cuts=cuts)


def test_a_channel_cannot_be_written(channel: Channel) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        channel.coin = 1  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        channel.offsets[0] = 7


def test_loss_of_a_wrong_prior(channel: Channel) -> None:
    with pytest.raises(PriorError, match="needs 3"):
        channel.noisy_loss([0.5, 0.5])


@pytest.mark.parametrize("epsilon", ["0.000001", "0.01", "1", "20", "40"])
@pytest.mark.parametrize(("strip", "window"), [(2, 1), (3, 3), (1 << 40, 12345), (2001, 1)])
def test_the_coin_is_the_smallest_that_is_private(epsilon: str, strip: int, window: int) -> None:
    coin = smallest_coin(Fraction(epsilon), strip, window)
    bound = exp_lower(epsilon)

    def ratio(t: int) -> Fraction:
        return 1 + Fraction((COIN_SIDES - t) * strip, t * window)

    assert ratio(coin) <= bound
    assert coin == 1 or ratio(coin - 1) > bound


def test_repr_tells_what_it_is(channel: Channel) -> None:
    assert repr(channel) == "<Channel unbiased: 3 labels 0…2, epsilon 0.5, 4 outputs -3.307…5.366>"
    assert "rr-on-bins" in repr(design_rr_on_bins(PRIOR, 1))
