import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from labeldp import Channel, LabelSpace, NotPrivateError, Prior, certify, design_on_grid, design_unbiased
from labeldp.errors import EpsilonError, InputError
from labeldp.exact import exp_upper
from tests.cases import EPSILONS, prior, space


@pytest.fixture(scope="module")
def channel() -> Channel:
    return design_unbiased(Prior(LabelSpace.integers(0, 2), [0.6, 0.25, 0.15]), 0.5)


def worst_ratio(channel: Channel) -> Fraction:
    """From the exact law alone, without the strip: the largest likelihood ratio of any output and two labels."""
    columns = channel.weights().T
    return max(Fraction(max(column), min(column)) for column in columns)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_ratio_bounds_the_law_and_e_to_the_epsilon_bounds_the_ratio(epsilon: float) -> None:
    made = design_unbiased(prior("random", space("uneven", 7)), epsilon)
    certificate = certify(made)
    assert worst_ratio(made) == certificate.ratio <= certificate.bound < exp_upper(certificate.epsilon)
    # and it is not wasteful: no more than one step of the coin is left unused
    assert certificate.ratio > certificate.bound * (1 - Fraction(2, made.coin))


def test_partial_cells_stay_below_the_strip_ratio() -> None:
    made = design_on_grid(prior("random", space("integers", 5)), 1, mesh=31)
    assert worst_ratio(made) <= certify(made).ratio


def test_a_coin_one_unit_too_small_is_caught(channel: Channel) -> None:
    with pytest.raises(NotPrivateError, match=r"not 0.5-DP: .* Worst place: cell \d .* under label"):
        certify(dataclasses.replace(channel, coin=channel.coin - 1))


def test_a_larger_coin_is_more_private(channel: Channel) -> None:
    assert certify(dataclasses.replace(channel, coin=channel.coin + 1)).ratio < certify(channel).ratio


def test_a_smaller_claim_is_refused_and_the_excess_named(channel: Channel) -> None:
    with pytest.raises(NotPrivateError, match=r"not 0.4-DP: .* above e\^epsilon by 0.157"):
        certify(channel, 0.4)
    assert certify(channel, "0.6").epsilon == Fraction(3, 5)


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("offsets", np.array([0, 1, 1 << 61]), "every window lies on the strip"),
        ("offsets", np.array([0, 1]), "one offset per label"),
        ("offsets", np.array([0.0, 1.0, 2.0]), "integers"),
        ("window", 0, "at least one unit"),
        ("coin", 0, "coin"),
        ("cuts", np.array([0, 5, 5, 7]), "cover the strip once"),
        ("cell_outputs", np.array([1.0]), "one output per cell"),
    ],
)
def test_geometry_is_checked_again(channel: Channel, field: str, value: object, says: str) -> None:
    """Even a channel whose own checks were side-stepped."""
    broken = dataclasses.replace(channel)
    object.__setattr__(broken, field, value)
    with pytest.raises(NotPrivateError, match=says):
        certify(broken)


def test_what_is_no_mechanism() -> None:
    with pytest.raises(InputError, match="Channel"):
        certify(np.eye(3))  # type: ignore[arg-type]


def test_what_is_no_epsilon(channel: Channel) -> None:
    with pytest.raises(EpsilonError):
        certify(channel, -1)


def test_repr(channel: Channel) -> None:
    assert "epsilon 0.5; ratio 1.6487212707" in repr(certify(channel))
