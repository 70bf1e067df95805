"""The last bits of a float: textbook Laplace noise gives labels away through them (Mironov 2012), ours does not.

A float near 0 has finer last bits than a float near 1. So `0.0 + noise` releases values that `1.0 + noise` can never
be, whatever the noise: the sum is rounded. One such value proves the label, at any epsilon.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from labeldp import Channel, LabelSpace, SeededEntropy, audit, certify
from labeldp.additive import Additive
from labeldp.sampler import draw
from tests.test_draws import MECHANISMS, law

Floats = NDArray[np.float64]
Release = Callable[[Floats], Floats]

EPSILON = 1
BITS = LabelSpace.integers(0, 1)
SPACES = {
    "bits": BITS,
    "weeks": LabelSpace.integers(0, 12),
    "tenths": LabelSpace.of([f"0.{i}" for i in range(10)]),
    "grid": LabelSpace.grid("-0.3", "0.4", 6),
    "uneven": LabelSpace.of(["-1.7", "0.33", "0.9", "2.1234567"]),
}
CASES = [
    (name, kind)
    for name in MECHANISMS
    for kind in SPACES
    # On the labels' own lattice there must be one; a label off the fine one makes the same support again.
    if not (kind == "uneven" and name in ("laplace", "staircase", "laplace-clipped", "staircase-clipped"))
]


def textbook(seed: int) -> Release:
    rng = np.random.default_rng(seed)
    return lambda labels: labels + rng.laplace(scale=1 / EPSILON, size=labels.shape)


def reachable(released: Floats, label: float) -> NDArray[np.bool_]:
    """Whether there is any float n at all, Laplace or not, with label + n = released in float arithmetic."""
    about = released - label
    candidates = (about, np.nextafter(about, -np.inf), np.nextafter(about, np.inf))
    return np.any([label + noise == released for noise in candidates], axis=0)


def lowest_bit(released: Floats) -> Floats:
    """The exponent of the last bit that is set: 0 for odd numbers, −2 for 0.75; 9999 for zero, which has none."""
    fraction, exponent = np.frexp(released)
    digits = np.abs(fraction * 2.0**53).astype(np.int64)
    last = np.log2(np.maximum(digits & -digits, 1))
    return np.where(digits == 0, 9999.0, exponent - 53 + last)


def last_bits(released: Floats) -> Floats:
    """All that the attack looks at, as one number: the last bit, and from which labels the value can be reached."""
    return 4 * lowest_bit(released) + 2 * reachable(released, 1.0) + reachable(released, 0.0)


def test_the_tools_of_the_attack() -> None:
    assert lowest_bit(np.array([1.0, 0.75, 2.0**-60 * 5, -6.0, 0.0])).tolist() == [0, -2, -60, 1, 9999]
    rng = np.random.default_rng(0)
    noise = rng.laplace(size=100_000)
    # Whatever is a sum is recognised as one.
    for label in (0.0, 1.0, 0.1, -7.3):
        assert reachable(label + noise, label).all()


def test_textbook_laplace_releases_values_that_prove_the_label() -> None:
    release = textbook(1)
    n = 200_000
    zero, one = release(np.zeros(n)), release(np.ones(n))
    proofs = ~reachable(zero, 1.0)
    assert proofs.mean() > 0.2
    # Under label 1 the same event is impossible, not rare.
    assert reachable(one, 1.0).all()
    assert lowest_bit(one).min() >= -53
    assert (lowest_bit(zero) < -53).mean() > 0.2


def test_an_audit_of_the_last_bits_refutes_textbook_laplace() -> None:
    release = textbook(2)
    found = audit(lambda labels: last_bits(release(labels)), space=BITS, draws=200_000, confidence=0.9999)
    assert found.lower > 5 * EPSILON
    assert (found.label, found.other) == (0, 1)


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_same_audit_finds_nothing_in_ours(name: str) -> None:
    mechanism = MECHANISMS[name](BITS, EPSILON)
    calls = iter(range(10**6))

    def release(labels: Floats) -> Floats:
        return draw(mechanism, labels.astype(np.int64), SeededEntropy(next(calls)).stream("draw"))

    found = audit(lambda labels: last_bits(release(labels)), space=BITS, draws=200_000, confidence=0.9999)
    assert found.lower <= EPSILON


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_one_public_support_for_all_labels(name: str, kind: str) -> None:
    space = SPACES[kind]
    mechanism = MECHANISMS[name](space, EPSILON)
    support = public_support(mechanism)
    k, n = len(space), 5000
    released = draw(mechanism, np.repeat(np.arange(k), n), SeededEntropy(3).stream("draw"))
    assert np.isin(released, support).all()
    assert every_label_reaches_all_of(mechanism)
    certify(mechanism, EPSILON)


@pytest.mark.parametrize("name", MECHANISMS)
def test_small_supports_are_seen_whole_from_every_label(name: str) -> None:
    mechanism = MECHANISMS[name](BITS, EPSILON)
    support, weights, total = law(mechanism)
    np.testing.assert_array_equal(support, public_support(mechanism))
    assert all(weight > 0 for weight in weights.ravel())
    n = 50_000
    # What is expected fifty times is missed with probability e^-50.
    common = np.array([min(column) * n >= 50 * total for column in weights.T])
    seen = [
        np.unique(draw(mechanism, np.full(n, label), SeededEntropy(4).stream(f"label {label}"))) for label in (0, 1)
    ]
    if len(support) < 1000:
        assert common.sum() >= 2
    assert all(np.isin(support[common], values).all() for values in seen)


def test_textbook_laplace_has_no_common_support() -> None:
    release = textbook(3)
    zero, one = release(np.zeros(50_000)), release(np.ones(50_000))
    # Each support holds a part of its own, and what both were seen to release is next to nothing.
    assert len(np.intersect1d(zero, one)) < 5
    support = public_support(MECHANISMS["laplace, fine"](BITS, EPSILON))
    assert np.isin(zero, support).mean() < 0.01


def public_support(mechanism: Channel | Additive) -> Floats:
    """Computed once, without a label."""
    if isinstance(mechanism, Channel):
        return mechanism.outputs
    low, high = mechanism.bounds
    return np.arange(low, high + 1) * float(mechanism.unit) + mechanism.space.low


def every_label_reaches_all_of(mechanism: Channel | Additive) -> bool:
    """From the exact law: no output has weight 0 under any label."""
    if isinstance(mechanism, Channel):
        return all(weight > 0 for weight in mechanism.weights().ravel())
    # Every distance up to the last step has a positive weight, and no bound is farther from any label.
    low, high = mechanism.bounds
    reach = len(mechanism.steps) * mechanism.period
    highest = int((mechanism.positions + (mechanism.fractions > 0)).max())
    lowest = int(mechanism.positions.min())
    positive = min(mechanism.places.min(), mechanism.steps.min(), mechanism.tail) > 0
    return bool(positive and highest - low <= reach and high - lowest <= reach)
