"""The audit is sound (its bound stays below the truth), tight (not far below), and finds what it is there to find."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from labeldp import (
    Channel,
    InputError,
    LabelDPError,
    LabelError,
    LabelSpace,
    Prior,
    design_randomized_response,
    design_unbiased,
)
from labeldp.additive import Laplace
from labeldp.audit import Audit, audit

Floats = NDArray[np.float64]
Randomizer = Callable[[Floats], Floats]

FIVE = LabelSpace.integers(0, 4)

# labeldp.audit is the function, once the package offers it; the module of that name is found this way.
module = importlib.import_module("labeldp.audit")


def by_the_matrix(channel: Channel, seed: int) -> Randomizer:
    """The channel drawn by NumPy from its float matrix: nothing of the package's own sampler."""
    rng, law = np.random.default_rng(seed), channel.matrix()
    law /= law.sum(axis=1, keepdims=True)

    def release(labels: Floats) -> Floats:
        released = np.empty_like(labels)
        for row, label in zip(law, channel.space.values, strict=True):
            here = labels == label
            released[here] = rng.choice(channel.outputs, size=np.count_nonzero(here), p=row)
        return released

    return release


def laplace(epsilon: float, seed: int, *, clip: bool = False) -> Randomizer:
    rng = np.random.default_rng(seed)

    def release(labels: Floats) -> Floats:
        noisy = labels + rng.laplace(scale=4 / epsilon, size=labels.shape)
        return np.clip(noisy, 0, 4) if clip else noisy

    return release


def leaking(release: Randomizer, leak: Callable[[Floats], Floats], seed: int, probability: float = 1e-3) -> Randomizer:
    rng = np.random.default_rng(seed)
    return lambda labels: np.where(rng.random(labels.size) < probability, leak(labels), release(labels))


@pytest.mark.parametrize("draws", [4000, 200_000])
@pytest.mark.parametrize("epsilon", [0.5, 1, 4])
def test_sound(epsilon: float, draws: int) -> None:
    # A right bound fails in 1 % of the audits: 0.2 are expected here, and 3 or more have a probability of 0.1 %.
    channel = design_randomized_response(FIVE, epsilon)
    found = [audit(by_the_matrix(channel, seed), space=FIVE, draws=draws).lower for seed in range(20)]
    assert sum(lower > epsilon for lower in found) <= 2


def test_the_error_is_spent_on_both_sides() -> None:
    # At 60 % each side may err with 20 %, 0.84 deviations. The estimate exceeds both together, 1.08 of its own, in
    # 14 % of the audits: 28 of 200, give or take 5. With the whole error on each side it would be 37 %, or 74.
    channel = design_randomized_response(LabelSpace.integers(0, 1), 1)
    release = by_the_matrix(channel, 0)
    found = [audit(release, space=channel.space, draws=20_000, confidence=0.6).lower for _ in range(200)]
    assert 10 <= sum(lower > 1 for lower in found) <= 50


def test_nothing_is_found_where_there_is_nothing() -> None:
    # Thousands of values, all labels alike: whoever measured where he searched would report a large epsilon.
    for seed in range(10):
        rng = np.random.default_rng(seed)
        found = audit(lambda y, rng=rng: rng.integers(5000, size=y.size), space=FIVE, draws=200_000)
        assert found.lower < 0.01


@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
@pytest.mark.parametrize("k", [2, 53])
def test_tight(k: int, epsilon: float) -> None:
    channel = design_unbiased(Prior.uniform(LabelSpace.integers(0, k - 1)), epsilon)
    found = audit(by_the_matrix(channel, 5), space=channel.space)
    assert 0.9 * epsilon < found.lower <= epsilon
    assert found.draws == 4_000_000


def test_unions_are_found_where_no_interval_is_one() -> None:
    # Even outputs are three times as likely under even labels: single values say so, but with a tenth of the draws.
    rng = np.random.default_rng(0)

    def parity(labels: Floats) -> Floats:
        keep = rng.random(labels.size) < 0.75
        return 2 * rng.integers(50, size=labels.size) + np.where(keep, labels % 2, 1 - labels % 2)

    found = audit(parity, space=FIVE, draws=100_000)
    assert 0.95 * np.log(3) < found.lower <= np.log(3)
    values = re.fullmatch(r"released in \{.*\} \((\d+) values\)", found.event)
    assert values is not None
    assert 40 <= int(values[1]) <= 50


@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("epsilon", [0.5, 1, 4])
def test_continuous_outputs(epsilon: float, clip: bool) -> None:
    found = audit(laplace(epsilon, 3, clip=clip), space=FIVE, draws=1_000_000)
    assert 0.9 * epsilon < found.lower <= epsilon
    assert found.event.startswith(("released <= ", "released >= "))


def test_few_draws_still_say_something() -> None:
    # Too few to be sure of any event while exploring: the surest difference is confirmed, not the sure triviality.
    wide = LabelSpace.integers(0, 52)
    rng = np.random.default_rng(2)
    found = audit(lambda y: y + rng.laplace(scale=520, size=y.shape), space=wide, draws=200_000)
    assert 0.03 < found.lower <= 0.1


def test_continuous_outputs_that_no_half_line_tells_apart() -> None:
    # Noise of 0.1 around ±label: the two ends have the same mean, and label 0 sits between the modes of label 4.
    rng = np.random.default_rng(1)

    def both_sides(labels: Floats) -> Floats:
        return rng.choice([-1.0, 1.0], labels.size) * labels + rng.normal(scale=0.1, size=labels.size)

    found = audit(both_sides, space=FIVE, draws=200_000, pairs=[(0, 4)])
    assert found.lower > 8


@pytest.mark.parametrize("epsilon", [1, 4])
def test_a_rare_leak_of_the_label_is_found(epsilon: float) -> None:
    channel = design_randomized_response(FIVE, epsilon)
    found = audit(leaking(by_the_matrix(channel, 1), lambda labels: labels + 1e6, seed=2), space=FIVE)
    assert found.lower > (4.9 if epsilon == 1 else 4.1)
    assert found.event == f"released = {found.label + 1e6:.0f}"


def test_a_rare_leak_in_continuous_noise_is_found() -> None:
    for leak in (lambda labels: labels + 1e6, lambda labels: labels + 0.125):
        found = audit(leaking(laplace(1, 1), leak, seed=2), space=FIVE)
        assert found.lower > 3


def test_a_value_that_one_label_alone_releases_is_found() -> None:
    channel = design_randomized_response(FIVE, 1)
    release = leaking(by_the_matrix(channel, 1), lambda labels: np.where(labels == 4, -7.0, 2.0), seed=2)
    found = audit(release, space=FIVE)
    assert found.lower > 4
    assert (found.label, found.event) == (4, "released = -7")


@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
def test_a_ratio_that_is_30_percent_too_large_is_flagged(epsilon: float) -> None:
    release = by_the_matrix(design_randomized_response(FIVE, 1.3 * epsilon), 4)
    release.epsilon = epsilon  # type: ignore[attr-defined]
    found = audit(release, space=FIVE)
    assert found.claimed == Fraction(str(epsilon))
    assert found.violation
    assert "REFUTED" in repr(found)


def test_a_channel_and_an_additive_mechanism_are_drawn_as_they_are_released() -> None:
    for mechanism in (design_unbiased(Prior.uniform(FIVE), 1), Laplace(FIVE, 1), Laplace(FIVE, 1, clip=True)):
        found = audit(mechanism, draws=400_000, seed=11)
        assert 0.9 < found.lower <= 1
        assert found.claimed == 1
        assert not found.violation
        assert found == audit(mechanism, draws=400_000, seed=11)
        assert found != audit(mechanism, draws=400_000, seed=12)


def test_a_seeded_callable_repeats_its_audit() -> None:
    first, second, third = (audit(laplace(1, seed), space=FIVE, draws=50_000) for seed in (7, 7, 8))
    assert first == second
    assert first != third


def test_small_chunks_and_intervals_change_what_is_in_memory_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    channel = design_unbiased(Prior.uniform(FIVE), 1)
    monkeypatch.setattr(module, "CHUNK", 1000)
    monkeypatch.setattr(module, "VALUES_MAX", 4)
    sizes = []
    release = by_the_matrix(channel, 3)
    found = audit(lambda y: (sizes.append(y.size), release(y))[1], space=FIVE, draws=100_001)
    assert max(sizes) <= 1000
    assert sum(sizes) == found.draws == 100_001
    assert 0.9 < found.lower <= 1


def test_infinite_outputs_are_outputs_like_others() -> None:
    rng = np.random.default_rng(5)

    def release(labels: Floats) -> Floats:
        extreme = np.where(rng.random(labels.size) < np.where(labels == 4, 0.75, 0.25), np.inf, -np.inf)
        return np.where(rng.random(labels.size) < 0.5, extreme, rng.random(labels.size))

    found = audit(release, space=FIVE, draws=200_000)
    assert 0.95 * np.log(3) < found.lower <= np.log(3)


def test_pairs_are_compared_both_ways_and_no_others() -> None:
    seen: set[float] = set()
    rng = np.random.default_rng(6)

    def release(labels: Floats) -> Floats:
        seen.update(labels)
        return np.where((labels == 3) & (rng.random(labels.size) < 0.5), 1.0, 0.0)

    found = audit(release, space=FIVE, pairs=[(1, 3)], draws=10_000)
    assert seen == {1, 3}
    assert (found.label, found.other, found.event) == (3, 1, "released = 1")
    assert found.lower > 5


@pytest.mark.parametrize("k", [2, 3, 4, 5, 9, 53, 2001])
def test_default_pairs(k: int) -> None:
    pairs = module._default_pairs(k)
    assert {(0, k - 1), (0, 1), (k - 2, k - 1), (k // 2 - 1, k // 2)} <= set(pairs)
    assert all(0 <= low < high < k for low, high in pairs)
    assert len({label for pair in pairs for label in pair}) <= 8


def test_progress_reaches_the_draws() -> None:
    steps: list[tuple[int, int]] = []
    audit(lambda labels: labels, space=FIVE, draws=1_000_003, progress=lambda done, total: steps.append((done, total)))
    assert steps == sorted(steps)
    assert steps[-1] == (1_000_003, 1_000_003)


def test_clopper_pearson_at_its_edges() -> None:
    assert module._log_ratio_lower(0, 100, 50, 100, 0.01) == -np.inf
    # All against none: (α/2)^(1/n) over 1 − (α/2)^(1/n).
    edge = 0.005 ** (1 / 100)
    assert module._log_ratio_lower(100, 100, 0, 100, 0.01) == pytest.approx(np.log(edge / (1 - edge)))
    assert module._log_ratio_lower(100, 100, 100, 100, 0.01) == pytest.approx(np.log(edge))


def test_what_an_audit_says() -> None:
    found = Audit(1.25, 0.99, 4_000_000, 3.0, 0.0, "released = 5.366", Fraction(1))
    assert repr(found) == (
        "<Audit: epsilon ≥ 1.25 at 99 % confidence, 4000000 draws; released = 5.366 under label 3 against label 0; "
        "claimed 1 is REFUTED>"
    )
    assert "not refuted" in repr(Audit(0.95, 0.99, 1000, 3.0, 0.0, "released = 5.366", Fraction(1)))
    assert not Audit(9.0, 0.99, 1000, 3.0, 0.0, "released = 5.366", None).violation


@pytest.mark.parametrize(
    ("starts", "ends", "text"),
    [
        ([5.366], [5.366], "released = 5.366"),
        ([-np.inf], [-3.2], "released <= -3.2"),
        ([0.1], [np.inf], "released >= 0.1"),
        ([1], [2], "released in [1, 2]"),
        ([1, 2], [1, 2], "released in {1, 2} (2 values)"),
        ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5], "released in {1, 2, 3, 4, …} (5 values)"),
        ([1, 3], [2, 4], "released in {[1, 2], [3, 4]} (2 intervals)"),
    ],
)
def test_events_are_written_for_people(starts: list[float], ends: list[float], text: str) -> None:
    event = module._Event(np.array(starts, dtype=float), np.array(ends, dtype=float))
    assert str(event) == text
    inside = np.concatenate([event.starts, event.ends])
    assert event.holds(inside).all()
    gaps = np.nextafter(event.ends[np.isfinite(event.ends)], np.inf)
    assert not event.holds(gaps).any()


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"space": None}, InputError, "pass space=LabelSpace"),
        ({"space": [0, 1]}, InputError, "must be a LabelSpace, not list"),
        ({"draws": 999}, InputError, "draws=999 are too few .* at least 1000"),
        ({"draws": 1e6}, InputError, "must be a whole number"),
        (
            {"draws": 10_000, "space": LabelSpace.integers(0, 400), "pairs": [(0, i) for i in range(1, 400)]},
            InputError,
            "100 per label",
        ),
        ({"confidence": 0}, InputError, "confidence=0 must lie between 0 and 1"),
        ({"confidence": 1.0}, InputError, "confidence=1.0 must lie"),
        ({"confidence": float("nan")}, InputError, "confidence=nan must lie"),
        ({"pairs": []}, InputError, "pairs is empty"),
        ({"pairs": [(1, 1)]}, InputError, r"pair \(1, 1\) compares a label with itself"),
        ({"pairs": [(0, 7)]}, LabelError, r"label 7 is not one of the values of LabelSpace.integers\(0, 4\)"),
        ({"pairs": [(0.5, 1)]}, LabelError, "label 0.5 is not one of the values"),
        ({"pairs": [(float("nan"), 1)]}, LabelError, "label nan is not one of the values"),
        ({"pairs": [(0, 1, 2)]}, InputError, "must be two labels"),
        ({"pairs": [3]}, InputError, "must be two labels"),
        ({"seed": 7}, InputError, "seed=7 cannot reach a callable"),
    ],
)
def test_arguments_that_break_a_rule(arguments: dict[str, object], error: type[LabelDPError], text: str) -> None:
    with pytest.raises(error, match=text):
        audit(lambda labels: labels, **{"space": FIVE, "draws": 2000} | arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (lambda labels: labels[:-1], r"answered 1000 labels with shape \(999,\)"),
        (lambda labels: labels[:, None], r"shape \(1000, 1\); it must return one released value per label"),
        (lambda labels: 3.0, r"shape \(\)"),
        (lambda labels: None, "NaN|array of numbers|shape"),
        (lambda labels: ["a"] * labels.size, "answered with list; it must return an array of numbers"),
        (lambda labels: np.where(labels == 3, np.nan, labels), "released NaN for label 3"),
    ],
)
def test_answers_that_break_a_rule(answer: Randomizer, text: str) -> None:
    with pytest.raises(InputError, match=text):
        audit(answer, space=FIVE, draws=4000)


def test_what_is_no_mechanism() -> None:
    with pytest.raises(InputError, match="takes a function of labels, a Channel or an additive mechanism, not int"):
        audit(3, space=FIVE)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="is not the mechanism's own"):
        audit(design_randomized_response(FIVE, 1), space=LabelSpace.integers(0, 5))
