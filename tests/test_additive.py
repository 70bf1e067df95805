import dataclasses
import json
import math
from fractions import Fraction

import numpy as np
import pytest

from labeldp import (
    FileFormatError,
    LabelSpace,
    LabelSpaceError,
    Laplace,
    NotPrivateError,
    Prior,
    Staircase,
    certify,
)
from labeldp.additive import Additive
from labeldp.errors import InputError
from labeldp.exact import exp_lower
from tests.cases import EPSILONS, LABELS, space

KINDS = [(kind, clip) for kind in (Laplace, Staircase) for clip in (False, True)]


def exact_law(noise: Additive, position: int) -> dict[int, Fraction]:
    """The law of the released lattice point, spelled out: every noise value, the tail on the bounds."""
    low, high = noise.bounds
    law: dict[int, int] = {}

    def add(point: int, weight: int) -> None:
        point = min(max(point, low), high)
        law[point] = law.get(point, 0) + weight

    for sign in (1, -1):
        for g, c in enumerate(noise.steps.tolist()):
            for i, w in enumerate(noise.places.tolist()):
                n = g * noise.period + i
                if sign == 1 or n:
                    add(position + sign * n, c * w)
        add(sign * 10**12, noise.tail * int(noise.places.sum()))
    total = sum(law.values())
    return {point: Fraction(weight, total) for point, weight in law.items()}


@pytest.mark.parametrize(("kind", "clip"), KINDS)
@pytest.mark.parametrize("epsilon", ["0.7", "3"])
def test_moments_and_ratio_are_those_of_the_law(kind: type[Additive], clip: bool, epsilon: str) -> None:
    labels = LabelSpace.integers(2, 6)
    noise = kind(labels, epsilon, clip=clip)  # type: ignore[call-arg]
    laws = [exact_law(noise, position) for position in noise.positions.tolist()]
    for y, law in enumerate(laws):
        mean = sum(q * (point + 2) for point, q in law.items())
        second = sum(q * (point + 2) ** 2 for point, q in law.items())
        assert noise.mean()[y] == float(mean)
        assert noise.bias()[y] == float(mean - labels.exact[y])
        assert noise.variance()[y] == pytest.approx(float(second - mean**2), rel=1e-12)
    points = set().union(*laws)
    worst = max(max(law[p] for law in laws) / min(law[p] for law in laws) for p in points)
    certificate = certify(noise)
    assert worst <= certificate.ratio <= certificate.bound


@pytest.mark.parametrize(("kind", "clip"), KINDS)
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("epsilon", [0.001, *EPSILONS, 40])
def test_all_certify(kind: type[Additive], clip: bool, labels: str, epsilon: float) -> None:
    noise = kind(space(labels, 20), epsilon, clip=clip)  # type: ignore[call-arg]
    certify(noise)
    if not clip:
        limit = 1e-8 if epsilon < 0.01 else 1e-9
        reach = max(abs(noise.space.low), abs(noise.space.high))
        assert np.abs(noise.bias()).max() <= limit * (noise.space.high - noise.space.low) + 2 * np.spacing(reach)


def test_discrete_laplace_has_its_known_variance() -> None:
    """Range 51: the figures of discrete Laplace noise of scale 51/ε."""
    labels = LabelSpace.integers(1, 52)
    for epsilon, loss in ((0.5, 10403.92), (1, 2600.92), (2, 650.17), (4, 162.48)):
        b = math.exp(-epsilon / 51)
        assert loss == pytest.approx(b / (1 - b) ** 2, abs=0.005)
        assert Laplace(labels, epsilon).noisy_loss(Prior.uniform(labels)) == pytest.approx(b / (1 - b) ** 2, rel=1e-8)


def test_fine_noise_is_close_to_continuous() -> None:
    labels = LabelSpace.grid(0, 10, 11)
    for epsilon in (0.5, 2, 8):
        laplace = Laplace(labels, epsilon).variance()
        np.testing.assert_allclose(laplace, 2 * (10 / epsilon) ** 2, rtol=1e-4)


@pytest.mark.parametrize("epsilon", [0.3, 1, 4])
def test_the_staircase_has_the_width_of_least_variance(epsilon: float) -> None:
    labels = LabelSpace.integers(0, 12)
    best = Staircase(labels, epsilon)
    width = int((best.places == best.places[0]).sum())
    for other in range(1, 13):
        places = np.where(np.arange(12) < other, best.places[0], math.ceil(int(best.places[0]) / exp_lower(epsilon)))
        changed = Additive(
            labels, best.epsilon, "other", 12, best.positions, best.fractions, places, best.steps, best.tail, False
        )
        certify(changed)
        assert best.variance()[0] <= changed.variance()[0] * (1 + 1e-12)
        assert other == width or best.variance()[0] < changed.variance()[0]


@pytest.mark.parametrize("epsilon", [0.2, 1, 3, 8])
def test_the_staircase_is_never_worse_than_laplace(epsilon: float) -> None:
    for labels in (LabelSpace.integers(0, 30), LabelSpace.grid(0, 1, 5)):
        assert Staircase(labels, epsilon).variance()[0] < Laplace(labels, epsilon).variance()[0]


def test_labels_off_the_lattice_are_rounded_without_bias() -> None:
    labels = LabelSpace.of([0, 0.123456789, math.pi, 7])
    noise = Laplace(labels, 1)
    assert noise.fractions.any()
    assert np.abs(noise.bias()).max() < 1e-12


def worsened(noise: Additive, **changes: object) -> Additive:
    names = ("space", "epsilon", "name", "period", "positions", "fractions", "places", "steps", "tail", "clip")
    return Additive(**({name: getattr(noise, name) for name in names} | changes))  # type: ignore[arg-type]


def test_weights_one_unit_off_are_caught() -> None:
    noise = Staircase(LabelSpace.integers(0, 5), 1)
    low = noise.places.copy()
    low[-1] -= 1
    with pytest.raises(NotPrivateError, match="between the first and the last place"):
        certify(worsened(noise, places=low))
    steps = noise.steps.copy()
    steps[1] -= 1
    with pytest.raises(NotPrivateError, match="from step 0 to step 1"):
        certify(worsened(noise, steps=steps))
    with pytest.raises(NotPrivateError, match="into the tail"):
        certify(worsened(noise, tail=noise.tail - 1))


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("places", np.array([1, 2, 1, 1, 1]), "do not rise within a step"),
        ("steps", np.array([5, 9, 1]), "do not rise from step to step"),
        ("positions", np.array([0, 1, 2, 3, 4, 9]), "within the period"),
        ("tail", 0, "positive"),
        ("place_cuts", np.array([0, 1, 2, 3, 4, 6]), "tables that are drawn from"),
        ("places", np.array([1, 1]), "one weight per place"),
    ],
)
def test_the_law_is_checked_again(field: str, value: object, says: str) -> None:
    noise = dataclasses.replace(worsened(Laplace(LabelSpace.integers(0, 5), 1)))
    object.__setattr__(noise, field, value)
    with pytest.raises(NotPrivateError, match=says):
        certify(noise)


def test_a_smaller_claim_is_refused() -> None:
    with pytest.raises(NotPrivateError, match=r"not 0\.5-DP"):
        certify(Laplace(LabelSpace.integers(0, 5), 1), 0.5)


def test_json_round_trip_and_refusals() -> None:
    noise = Staircase(LabelSpace.of([0, 1, 2.5]), 1, clip=True)
    assert Additive.from_json(noise.to_json()) == noise
    body = json.loads(noise.to_json())
    for change in ({"tail": 9}, {"format": "x"}, {"version": 2}):
        with pytest.raises(FileFormatError):
            Additive.from_json(json.dumps({**body, **change}))
    with pytest.raises(FileFormatError):
        Additive.from_json("no json")


def test_bad_input() -> None:
    with pytest.raises(LabelSpaceError, match="equally spaced"):
        Laplace(LabelSpace.of([0, 1, 5]), 1, discrete=True)
    with pytest.raises(InputError, match="epsilon"):
        Staircase(LabelSpace.integers(0, 5), 0)
    noise = Laplace(LabelSpace.integers(0, 5), 1)
    with pytest.raises(InputError, match="outside the lattice"):
        worsened(noise, positions=np.array([0, 1, 2, 3, 4, 6]))
    with pytest.raises(InputError, match="positive integers"):
        worsened(noise, tail=0)


def test_repr() -> None:
    assert repr(Laplace(LabelSpace.integers(0, 52), 1, clip=True)) == (
        "<laplace-clipped: 53 labels 0…52, epsilon 1, lattice of 1, outputs 0…52>"
    )


def test_clipped_outputs_stay_within_the_range_to_the_last_bit() -> None:
    noise = Laplace(LabelSpace.of([0, 0.1, 0.2, 0.3]), 1, clip=True)
    assert noise.values(np.array([3]), np.array([9])).tolist() == [0.3]
