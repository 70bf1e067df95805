"""Draws follow the exact law, through every branch of the sampler; the same tests notice a law that is a bit off."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from labeldp import (
    Channel,
    LabelRandomizer,
    LabelSpace,
    Laplace,
    Prior,
    ReleaseKey,
    SeededEntropy,
    Staircase,
    audit,
    design_debiased_rr,
    design_on_grid,
    design_randomized_response,
    design_rr_on_bins,
    design_unbiased,
)
from labeldp.additive import Additive
from labeldp.channel import COIN_SIDES
from labeldp.entropy import CHUNK
from labeldp.exact import exp_upper
from labeldp.sampler import ROUNDING, draw, uniform

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mechanism = Channel | Additive

LEVEL = 1e-4
"""A right law fails one χ² test with this probability. Seeds are fixed, so that a test that passes goes on passing."""
DEVIATIONS = 4.5
FIVE = LabelSpace.integers(0, 4)
UNEVEN = LabelSpace.of(["-1.7", "0.33", "0.9", "2.1234567", "3.1415927"])
"""No lattice of a reasonable size holds these."""
TOP = COIN_SIDES - 1

FINITE: dict[str, Callable[[LabelSpace, object], Mechanism]] = {
    "unbiased": lambda space, epsilon: design_unbiased(skewed(space), epsilon),
    "on-grid": lambda space, epsilon: design_on_grid(skewed(space), epsilon, mesh=20),
    "rr-on-bins": lambda space, epsilon: design_rr_on_bins(skewed(space), epsilon),
    "randomized-response": design_randomized_response,
    "debiased-rr": design_debiased_rr,
    "laplace-clipped": lambda space, epsilon: Laplace(space, epsilon, clip=True),
    "staircase-clipped": lambda space, epsilon: Staircase(space, epsilon, clip=True),
}
MECHANISMS = FINITE | {
    "laplace": Laplace,
    "staircase": Staircase,
    "laplace, fine": lambda space, epsilon: Laplace(space, epsilon, discrete=False),
    "staircase, fine": lambda space, epsilon: Staircase(space, epsilon, discrete=False),
    "laplace-clipped, fine": lambda space, epsilon: Laplace(space, epsilon, clip=True, discrete=False),
    "staircase-clipped, fine": lambda space, epsilon: Staircase(space, epsilon, clip=True, discrete=False),
}
EPSILONS = (0.1, 1, 4)


def skewed(space: LabelSpace) -> Prior:
    weights = 1.0 + np.arange(len(space))
    return Prior(space, weights / weights.sum())


def law(mechanism: Mechanism) -> tuple[Floats, NDArray[np.object_], int]:
    """The values that can be released, the integer weight of each under each label, and the sum of a row."""
    if isinstance(mechanism, Channel):
        return mechanism.outputs, mechanism.weights(), mechanism.total
    return _law_of_noise(mechanism)


def _law_of_noise(noise: Additive) -> tuple[Floats, NDArray[np.object_], int]:
    """By brute force: every sign, step and place, clipped to the bounds; a label off the lattice mixes two points."""
    low, high = noise.bounds
    steps = np.array([*noise.steps.tolist(), noise.tail], dtype=object)
    weight = np.multiply.outer(steps, noise.places.astype(object)).ravel()
    # Nothing beyond the last step is inside the bounds, so the tail may stand for one more step.
    noises = np.concatenate([-np.arange(1, len(weight)), np.arange(len(weight))])
    both_sides = np.concatenate([weight[1:], weight])
    weights = np.zeros((len(noise.space), high - low + 1), dtype=object)
    for row, position, fraction in zip(weights, noise.positions.tolist(), noise.fractions.tolist(), strict=True):
        for at, share in ((position, COIN_SIDES - fraction), (position + 1, fraction)):
            if share:
                np.add.at(row, np.clip(at + noises, low, high) - low, both_sides * share)
    support = np.arange(low, high + 1) * float(noise.unit) + noise.space.low
    return support, weights, int(both_sides.sum()) * COIN_SIDES


def draws_of(mechanism: Mechanism, labels: Iterable[int], n: int, seed: int) -> Floats:
    """n released values of each label, one row per label."""
    indices = np.repeat(np.fromiter(labels, dtype=np.int64), n)
    return draw(mechanism, indices, SeededEntropy(seed).stream("draw")).reshape(-1, n)


def shares(row: NDArray[np.object_], total: int) -> Floats:
    return np.array([weight / total for weight in row])


def pooled(expected: Floats, least: float) -> Integers:
    """The cell of each output: neighbours together until `least` draws are expected, the rest with the last cell."""
    cells, cell, filled = np.empty(len(expected), dtype=np.int64), 0, 0.0
    for output, count in enumerate(expected):
        cells[output] = cell
        filled += count
        if filled >= least:
            cell, filled = cell + 1, 0.0
    return np.minimum(cells, max(cell - 1, 0))


def p_value(counts: Integers, expected: Floats) -> float:
    statistic = float(((counts - expected) ** 2 / expected).sum())
    return float(chi2.sf(statistic, len(counts) - 1))


def check_frequencies(released: Floats, support: Floats, probabilities: Floats, *, least: float) -> int:
    """The draws fit their law, and no law with one weight moved by 30 %. Returns how many laws were refused."""
    outputs = np.searchsorted(support, released)
    assert np.array_equal(support[np.minimum(outputs, len(support) - 1)], released)
    cells = pooled(len(released) * probabilities, least)
    expected = np.bincount(cells, weights=len(released) * probabilities)
    counts = np.bincount(cells[outputs], minlength=len(expected))
    assert p_value(counts, expected) > LEVEL
    refused = 0
    for cell in np.flatnonzero(expected >= 1000):
        for factor in (0.7, 1.3):
            other = expected.copy()
            other[cell] *= factor
            other *= len(released) / other.sum()
            assert p_value(counts, other) < LEVEL
            refused += 1
    return refused


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", [*FINITE, "laplace", "staircase"])
def test_frequencies(name: str, epsilon: float) -> None:
    mechanism = MECHANISMS[name](FIVE, epsilon)
    support, weights, total = law(mechanism)
    # Without clipping there are hundreds of outputs: few enough cells are left that each of them matters.
    least = 20 if len(support) <= 20 else 6000
    for row, released in zip(weights, draws_of(mechanism, range(5), 150_000, seed=1), strict=True):
        assert check_frequencies(released, support, shares(row, total), least=least) >= 4


@pytest.mark.parametrize("clip", [True, False])
@pytest.mark.parametrize("noise", [Laplace, Staircase])
@pytest.mark.parametrize("space", [FIVE, UNEVEN], ids=["even", "uneven"])
def test_frequencies_on_a_fine_lattice(space: LabelSpace, noise: type[Additive], clip: bool) -> None:
    mechanism = noise(space, 4, clip=clip, discrete=False)  # type: ignore[call-arg]
    assert bool(mechanism.fractions.any()) == (space is UNEVEN)
    support, weights, total = law(mechanism)
    for row, released in zip(weights, draws_of(mechanism, range(5), 150_000, seed=2), strict=True):
        assert check_frequencies(released, support, shares(row, total), least=5000) >= 4


def test_frequencies_with_many_outputs() -> None:
    mechanism = design_unbiased(skewed(LabelSpace.integers(0, 52)), 2)
    assert len(mechanism.outputs) > 60
    support, weights, total = law(mechanism)
    labels = (0, 17, 52)
    for label, released in zip(labels, draws_of(mechanism, labels, 300_000, seed=3), strict=True):
        assert check_frequencies(released, support, shares(weights[label], total), least=5000) >= 40


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", [*FINITE, "laplace", "staircase"])
def test_the_law_has_the_moments_and_the_ratios_that_are_claimed(name: str, epsilon: float) -> None:
    mechanism = MECHANISMS[name](FIVE, epsilon)
    check_law(mechanism)


@pytest.mark.parametrize("noise", [Laplace, Staircase])
@pytest.mark.parametrize("clip", [True, False])
def test_the_law_of_labels_off_the_lattice(noise: type[Additive], clip: bool) -> None:
    check_law(between_the_points(noise(FIVE, 1, clip=clip)))  # type: ignore[call-arg]


def between_the_points(noise: Additive) -> Additive:
    """The same noise and lattice under labels that stand a quarter, a half and most of the way to the next point."""
    return Additive(
        space=LabelSpace.of([0, "1.25", "2.5", "3.875", 4]),
        epsilon=noise.epsilon,
        name=noise.name,
        period=noise.period,
        positions=noise.positions,
        fractions=np.array([0, 1 << 62, 1 << 63, 7 << 61, 0], dtype=np.uint64),
        places=noise.places,
        steps=noise.steps,
        tail=noise.tail,
        clip=noise.clip,
    )


def check_law(mechanism: Mechanism) -> None:
    support, weights, total = law(mechanism)
    assert all(sum(row) == total for row in weights)
    assert all(min(column) > 0 for column in weights.T)
    bound = exp_upper(mechanism.epsilon)
    assert all(max(column) <= bound * min(column) for column in weights.T)
    exact = [Fraction(value) for value in support.tolist()]
    scale = max(value.denominator for value in exact)
    integers = np.array([int(value * scale) for value in exact], dtype=object)
    for row, mean, variance in zip(weights, mechanism.mean(), mechanism.variance(), strict=True):
        first, second = Fraction(int(row @ integers), total * scale), Fraction(int(row @ integers**2), total * scale**2)
        reach = float(np.abs(support).max())
        assert float(first) == pytest.approx(mean, rel=1e-13, abs=1e-14 * reach)
        assert float(second - first**2) == pytest.approx(variance, rel=1e-12)


def moments_fit(released: Floats, mean: float, variance: float) -> tuple[bool, bool]:
    """Whether mean and variance of the draws lie within 4.5 standard errors of these."""
    n, centred = len(released), released - mean
    error = math.sqrt(variance / n)
    error_of_variance = math.sqrt((float((centred**4).mean()) - variance**2) / n)
    mean_fits = abs(float(centred.mean())) <= DEVIATIONS * error
    return mean_fits, abs(float((centred**2).mean()) - variance) <= DEVIATIONS * error_of_variance


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(
    ("name", "space"),
    [*((name, FIVE) for name in MECHANISMS), *((name, UNEVEN) for name in MECHANISMS if name[-4:] == "fine")],
    ids=[*MECHANISMS, *(f"{name}, uneven" for name in MECHANISMS if name[-4:] == "fine")],
)
def test_mean_and_variance(name: str, space: LabelSpace, epsilon: float) -> None:
    mechanism = MECHANISMS[name](space, epsilon)
    labels = (0, 2, 4)
    for label, released in zip(labels, draws_of(mechanism, labels, 400_000, seed=4), strict=True):
        assert moments_fit(released, mechanism.mean()[label], mechanism.variance()[label]) == (True, True)


@pytest.mark.parametrize("name", ["unbiased", "randomized-response", "laplace", "staircase, fine"])
def test_a_shift_of_two_percent_is_noticed(name: str) -> None:
    mechanism = MECHANISMS[name](FIVE, 1)
    (released,) = draws_of(mechanism, [2], 400_000, seed=4)
    mean, variance = mechanism.mean()[2], mechanism.variance()[2]
    for shift in (-0.02, 0.02):
        assert not moments_fit(released + shift * math.sqrt(variance), mean, variance)[0]
        assert not moments_fit(mean + (1 + shift) * (released - mean), mean, variance)[1]


@pytest.mark.parametrize("name", ["unbiased", "debiased-rr", "laplace", "staircase"])
def test_labels_between_the_points_of_a_grid_keep_their_mean(name: str) -> None:
    space = LabelSpace.grid(-1, 3, 9)
    randomizer = LabelRandomizer(space, 2, mechanism=name)
    for label in (-1.0, -0.9, 0.0, 0.3, 1.75, 2.9999, 3.0):
        release = randomizer.release(np.full(400_000, label), entropy=SeededEntropy(5))
        below = min(int((label + 1) / 0.5), 7)
        up = (label - space.values[below]) / 0.5
        mean, variance = (of()[below : below + 2] for of in (release.channel.mean, release.channel.variance))
        about = variance + (mean - label) ** 2
        assert mean[0] + up * (mean[1] - mean[0]) == pytest.approx(label)
        assert moments_fit(release.labels, label, about[0] + up * (about[1] - about[0])) == (True, True)
        # Rounding to the nearest point would not do, except on a point and next to it.
        nearest = space.values[below + (up > 0.5)]
        if abs(nearest - label) > 0.02 * math.sqrt(variance[0]):
            assert not moments_fit(release.labels, nearest, variance[0])[0]


@pytest.mark.parametrize(
    "size", [1, 2, 3, 5, 6, 7, 10, 1000, 2**16 + 1, 2**32 - 1, 2**61, 2**62 - 57, 3 * 2**61, 2**63]
)
def test_every_residue_is_equally_likely(size: int) -> None:
    """The accepted words are 0 … q·size − 1, so each residue has q of them; looked at around the ends of cycles."""
    accepted = COIN_SIDES // size * size
    near = {0, size - 1, size, 2 * size, accepted - size - 1, accepted - size, accepted - 1, accepted, TOP}
    words = sorted({word + d for word in near for d in range(-3, 4) if 0 <= word + d <= TOP})
    residues, rejected = uniform(np.array(words, dtype=np.uint64), size)
    assert residues.tolist() == [word % size for word in words]
    assert rejected.tolist() == [word >= accepted for word in words]
    assert accepted % size == 0
    assert (COIN_SIDES - accepted) / COIN_SIDES < 1 / 2


class Scripted:
    """A stream whose words are written down: blocks[attempt][row]. It remembers which rows were asked for."""

    def __init__(self, *attempts: list[tuple[int, int]], rounding: tuple[list[int], ...] = ()) -> None:
        self.attempts = attempts
        self.rounding = rounding
        self.asked: list[tuple[int, list[int]]] = []

    def blocks(self, rows: slice | Integers, labels: Integers, attempt: int = 0) -> NDArray[np.uint64]:
        chosen = range(rows.start, rows.stop) if isinstance(rows, slice) else rows.tolist()
        assert len(chosen) == len(labels)
        if attempt >= ROUNDING:
            words = self.rounding[attempt - ROUNDING]
            return np.array([(words[row], 0) for row in chosen], dtype=np.uint64)
        self.asked.append((attempt, list(chosen)))
        return np.array([self.attempts[attempt][row] for row in chosen], dtype=np.uint64)


def strip_of_seven(coin: int = 1 << 63) -> Channel:
    return Channel(
        space=LabelSpace.integers(0, 2),
        epsilon=Fraction(2),
        strip=7,
        window=3,
        offsets=np.array([0, 2, 4]),
        cuts=np.array([0, 1, 2, 3, 4, 5, 6, 7]),
        coin=coin,
        cell_outputs=10.0 * np.arange(7),
        name="seven",
    )


def test_a_channel_draws_again_where_a_word_is_rejected() -> None:
    # 2^64 is 2 modulo 7 and 1 modulo 3: the last two words are rejected on the strip, the last one in a window.
    forget, keep = (1 << 63) - 1, 1 << 63
    stream = Scripted(
        [(forget, TOP), (keep, TOP), (forget, TOP - 1), (keep, TOP - 1), (forget, TOP - 2), (forget, 12)],
        [(forget, 8), (keep, 8), (keep, 3), *[(0, 0)] * 3],
    )
    labels = np.array([0, 1, 2, 1, 0, 0])
    released = draw(strip_of_seven(), labels, stream)
    points = [8 % 7, 2 + 8 % 3, 4 + 3 % 3, 2 + (TOP - 1) % 3, (TOP - 2) % 7, 12 % 7]
    assert released.tolist() == [10.0 * point for point in points]
    assert stream.asked == [(0, [0, 1, 2, 3, 4, 5]), (1, [0, 1, 2])]


def test_a_channel_draws_again_as_often_as_it_must() -> None:
    rejected = [(0, TOP), (TOP, TOP), (0, 0)]
    stream = Scripted(rejected, rejected, [*rejected[1::-1], (0, 0)], [(TOP, 5), (0, 5), (0, 0)])
    assert draw(strip_of_seven(), np.array([2, 2, 2]), stream).tolist() == [10.0 * (4 + 5 % 3), 10.0 * 5, 0.0]
    assert stream.asked == [(0, [0, 1, 2]), (1, [0, 1]), (2, [0, 1]), (3, [0, 1])]


def test_rows_are_named_from_the_start_of_the_release_when_drawn_again() -> None:
    n = CHUNK + 5
    blocks = [(0, 3)] * n
    again = list(blocks)
    for row in (7, CHUNK, CHUNK + 4):
        blocks[row], again[row] = (0, TOP), (0, 6)
    released = draw(strip_of_seven(), np.zeros(n, dtype=np.int64), Scripted(blocks, again), threads=1)
    assert np.flatnonzero(released == 60.0).tolist() == [7, CHUNK, CHUNK + 4]
    assert np.count_nonzero(released == 30.0) == n - 3


@pytest.mark.parametrize("name", ["unbiased", "on-grid", "rr-on-bins", "randomized-response"])
def test_every_cell_begins_and_ends_where_its_cuts_are(name: str) -> None:
    channel = MECHANISMS[name](FIVE, 1)
    assert isinstance(channel, Channel)
    if name in ("unbiased", "on-grid"):
        assert channel.strip > 1 << 16, "a table entry holds more than one unit, so that some of them are cut"
    ends = points_around(channel.cuts)
    cell = np.searchsorted(channel.cuts, ends, side="right") - 1
    forgetting = Scripted([(channel.coin - 1, int(point)) for point in ends])
    np.testing.assert_array_equal(draw(channel, np.zeros_like(ends), forgetting), channel.cell_outputs[cell])
    for label, offset in enumerate(channel.offsets):
        inside = (ends >= offset) & (ends < offset + channel.window)
        keeping = Scripted([(channel.coin, int(point - offset)) for point in ends[inside]])
        released = draw(channel, np.full(np.count_nonzero(inside), label), keeping)
        np.testing.assert_array_equal(released, channel.cell_outputs[cell[inside]])


@pytest.mark.parametrize("name", ["laplace", "staircase", "laplace, fine"])
def test_every_step_and_place_begins_and_ends_where_its_cuts_are(name: str) -> None:
    noise = MECHANISMS[name](FIVE, 1)
    assert isinstance(noise, Additive)
    in_step, in_place = points_around(noise.step_cuts), points_around(noise.place_cuts)
    steps = np.searchsorted(noise.step_cuts, in_step, side="right") - 1
    places = np.searchsorted(noise.place_cuts, in_place, side="right") - 1
    # The last place in every step, and every place of the second step, which is no part of minus zero.
    blocks = [(2 * int(point), int(noise.place_cuts[-1]) - 1) for point in in_step]
    blocks += [(2 * int(noise.step_cuts[1]) + 1, int(point)) for point in in_place]
    distances = np.concatenate([steps * noise.period + noise.period - 1, -(noise.period + places)])
    labels = np.full(len(blocks), 1)
    np.testing.assert_array_equal(draw(noise, labels, Scripted(blocks)), noise.values(labels, distances))


def points_around(cuts: Integers) -> Integers:
    """The first and last points of every cell, and a few next to them."""
    near = np.unique(cuts[:, None] + np.arange(-3, 4))
    return near[(near >= 0) & (near < cuts[-1])]


def scripted_noise(space: LabelSpace, fractions: list[int]) -> Additive:
    """Steps of weight 4, 2, 1 and a tail of 2, so 2·9 for both signs; places of weight 3, 2, so 5."""
    return Additive(
        space=space,
        epsilon=Fraction(1),
        name="small",
        period=2,
        positions=np.array([0, 1, 2]),
        fractions=np.array(fractions, dtype=np.uint64),
        places=np.array([3, 2]),
        steps=np.array([4, 2, 1]),
        tail=2,
        clip=False,
    )


def test_noise_draws_again_where_either_word_is_rejected_and_for_minus_zero() -> None:
    # A first word is (step point, sign), the sign in its last bit. 2^64 is 16 modulo 18 and 1 modulo 5.
    noise = scripted_noise(LabelSpace.integers(0, 2), [0, 0, 0])
    minus_zero, plus_zero = (2 * 3 + 1, 2), (2 * 3, 2)
    stream = Scripted(
        [(TOP, 0), (0, TOP), minus_zero, plus_zero, (TOP - 16, 4), minus_zero],
        [(2 * 4, 0), (2 * 6 + 1, 3), (1, 3), (0, 0), (0, 0), minus_zero],
        [*[(0, 0)] * 5, (2 * 7, 0)],
    )
    released = draw(noise, np.array([0, 0, 1, 1, 2, 0]), stream)
    steps = [0] * 4 + [1] * 2 + [2] + [3] * 2
    point = (TOP - 16) % 18
    last = (-1) ** (point % 2) * (2 * steps[point // 2] + 1)
    # Steps 1, −2 and −0, places 0, 1 and 1; then zero; the tail is clipped to the bounds, −4 … 6.
    assert released.tolist() == [2, -4, 1 - 1, 1, max(2 + last, -4), 6]
    assert stream.asked == [(0, [0, 1, 2, 3, 4, 5]), (1, [0, 1, 2, 5]), (2, [5])]


def test_rounding_has_a_block_of_its_own_in_every_attempt() -> None:
    half = 1 << 63
    noise = scripted_noise(LabelSpace.of([0, "1.25", 2]), [half, half, 0])
    stream = Scripted(
        [(1, 0), (0, 3), (0, 3), (1, 0)],
        [(0, 0), *[(0, 0)] * 2, (0, 0)],
        rounding=([0, half - 1, half, TOP], [TOP, TOP, 0, 0]),
    )
    assert draw(noise, np.array([0, 1, 1, 0]), stream).tolist() == [0, 1 + 1 + 1, 1 + 1, 1]


def test_a_seed_has_as_many_words_as_are_asked_for() -> None:
    """A prior takes its words in batches of one row; with few of them it would walk in a circle."""
    stream = SeededEntropy(7).stream("prior")
    batches = [stream.blocks(np.full(16, 3), np.arange(start, start + 16)) for start in (0, 16, 32)]
    assert len(np.unique(np.concatenate(batches).ravel())) == 3 * 32


@pytest.mark.parametrize("n", [1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 17])
@pytest.mark.parametrize("name", ["unbiased", "randomized-response", "laplace", "staircase, fine"])
def test_the_number_of_threads_changes_nothing(name: str, n: int) -> None:
    mechanism = MECHANISMS[name](UNEVEN if name == "staircase, fine" else FIVE, 1)
    labels = np.random.default_rng(0).integers(5, size=n)
    key = ReleaseKey(bytes(range(32)))
    for stream in (SeededEntropy(6).stream("draw"), key.stream("draw", key.ids(np.arange(n)), "a name")):
        released = draw(mechanism, labels, stream, threads=1)
        for threads in (2, 4, None):
            np.testing.assert_array_equal(draw(mechanism, labels, stream, threads=threads), released)
    # Of a key, fewer rows are the first of them, wherever the last chunk ends.
    np.testing.assert_array_equal(draw(mechanism, labels[: n - n // 3], stream), released[: n - n // 3])
    if n > 2 * CHUNK:
        assert np.mean(released[CHUNK:] == released[: n - CHUNK]) < 0.9


@pytest.mark.parametrize("name", ["unbiased", "rr-on-bins", "randomized-response"])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_audits_come_close_to_epsilon_from_below(name: str, epsilon: float) -> None:
    draws = 1_000_000 if epsilon >= 1 else 8_000_000
    if name == "randomized-response":
        # Its best event has a fifth of the outputs, not half: four times the draws.
        draws *= 4
    found = audit(MECHANISMS[name](FIVE, epsilon), draws=draws, seed=8, confidence=0.999)
    assert 0.9 * epsilon < found.lower <= epsilon
    assert not found.violation


@pytest.mark.parametrize("name", [name for name in MECHANISMS if name not in ("unbiased", "rr-on-bins")])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_audits_stay_below_epsilon(name: str, epsilon: float) -> None:
    found = audit(MECHANISMS[name](FIVE, epsilon), draws=400_000, seed=9, confidence=0.9999)
    assert 0.3 * epsilon < found.lower <= epsilon
    assert not found.violation


@pytest.mark.parametrize("name", ["unbiased", "rr-on-bins", "randomized-response"])
def test_an_audit_refutes_the_same_draws_under_a_smaller_claim(name: str) -> None:
    channel = MECHANISMS[name](FIVE, 1)
    assert not audit(channel, draws=2_000_000, seed=8, confidence=0.999).violation
    object.__setattr__(channel, "epsilon", Fraction(9, 10))
    assert audit(channel, draws=2_000_000, seed=8, confidence=0.999).violation
