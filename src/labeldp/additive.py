"""Laplace and Staircase: noise added to the label, exact in integers, by one law.

Labels stand on a lattice of which `period` units span the label range, the sensitivity. The noise n has

    P(n) ∝ W[|n| mod period] · c[⌊|n| / period⌋],      integers W_0 ≥ W_1 ≥ …  and  c_0 ≥ c_1 ≥ …

W shapes one step (two levels for the staircase, a geometric fall for Laplace), c falls from step to step. It is
ε-DP when  W_0 ≤ e^ε·W_last,  c_g ≤ e^ε·c_{g+1}  and the tail after the last step is heavy enough to go on falling no
faster: c_last ≤ (e^ε − 1)·tail. `certify` checks just that; the proof is in docs/proofs/additive.md. The sum of label
and noise is clipped to public bounds: to the label range where `clip` is asked for, else so far out that the noise
gets there about once in 2^48·ε² draws. Both are functions of the integer sum alone, as is the float that is released.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labeldp.channel import COIN_SIDES, Channel, Floats, HasProbabilities, Integers, probabilities_over
from labeldp.errors import EpsilonError, FileFormatError, InputError, LabelSpaceError
from labeldp.exact import Rational, epsilon_of, exp_lower
from labeldp.labels import LabelSpace
from labeldp.stored import digest_of, sealed, unsealed

__all__ = ["Additive", "Laplace", "Staircase", "mechanism_from_json"]

VERSION = 1
FINE = 1 << 12
"""At least this many lattice units span the range where the noise is meant to be continuous."""
COMMON_MAX = 1 << 16
TOTAL = 1 << 61
"""Room for the weights: twice their sum must fit one random word."""
STEPS_MIN, STEPS_MAX = 3, 1 << 18


@dataclass(frozen=True, eq=False, repr=False)
class Additive:
    """Integer noise on a lattice. If it exists, its shape is sound; `certify` proves it private.

    `positions[y] + fractions[y]/2^64` is where label y stands, in units from the lowest label; a label between two
    lattice points is rounded to one of them without bias. `places` is W, `steps` is c, `tail` what follows.
    """

    space: LabelSpace
    epsilon: Fraction
    name: str
    period: int
    positions: Integers
    fractions: NDArray[np.uint64]
    places: Integers
    steps: Integers
    tail: int
    clip: bool
    place_cuts: Integers = field(init=False)
    step_cuts: Integers = field(init=False)

    def __post_init__(self) -> None:
        k = len(self.space)
        for name, size in (("positions", k), ("places", self.period)):
            if getattr(self, name).shape != (size,):
                raise InputError(f"{name} must have {size} entries.")
        if len(self.steps) < 2 or self.places.min() < 1 or self.steps.min() < 1 or self.tail < 1:
            raise InputError("weights must be positive integers, over at least two steps.")
        if self.positions.min() < 0 or int(self.positions.max()) > self.period:
            raise InputError("a label stands outside the lattice that spans the label range.")
        object.__setattr__(self, "place_cuts", _cuts(self.places.tolist()))
        object.__setattr__(self, "step_cuts", _cuts([*self.steps.tolist(), self.tail]))
        for array in (self.positions, self.fractions, self.places, self.steps, self.place_cuts, self.step_cuts):
            array.setflags(write=False)

    @property
    def unit(self) -> Fraction:
        """The width of one lattice unit."""
        return (self.space.exact[-1] - self.space.exact[0]) / self.period

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest lattice point that is released."""
        reach = len(self.steps) * self.period
        return (0, self.period) if self.clip else (self.period - reach, reach)

    def values(self, labels: Integers, noise: Integers, carried: Integers | int = 0) -> Floats:
        """What is released for these label indices and this noise; `carried` is 1 where a label was rounded up."""
        points = np.clip(self.positions[labels] + carried + noise, *self.bounds)
        released: Floats = points * float(self.unit) + self.space.low
        return np.clip(released, self.space.low, self.space.high) if self.clip else released

    def mean(self) -> Floats:
        """The expected output of each label, from the law."""
        return np.array([float(first) for first, _ in self._moments()])

    def bias(self) -> Floats:
        """mean − label, computed exactly and then rounded once."""
        values = self.space.values.tolist()
        return np.array([float(first - Fraction(y)) for (first, _), y in zip(self._moments(), values, strict=True)])

    def variance(self) -> Floats:
        """The variance of each label's output, computed exactly and then rounded once."""
        return np.array([float(second - first**2) for first, second in self._moments()])

    def noisy_loss(self, prior: HasProbabilities | ArrayLike) -> float:
        """Expected half squared distance between a label from `prior` and its output."""
        probabilities = probabilities_over(prior, len(self.space))
        return 0.5 * float(probabilities @ (self.variance() + self.bias() ** 2))

    @property
    def digest(self) -> str:
        """SHA-256 of the exact law."""
        return digest_of(self._law())

    def to_json(self) -> str:
        """The mechanism as publishable JSON, with a version and a digest over everything in it."""
        return sealed("additive", VERSION, {**self._law(), "name": self.name})

    @classmethod
    def from_json(cls, text: str) -> Additive:
        """Read what `to_json` wrote; anything else is refused by name."""
        body = unsealed(text, "additive", VERSION)
        try:
            return Additive(
                space=LabelSpace.from_dict(body["labels"]),
                epsilon=epsilon_of(body["epsilon"]),
                name=str(body["name"]),
                period=int(body["period"]),
                positions=np.array(body["positions"], dtype=np.int64),
                fractions=np.array(body["fractions"], dtype=np.uint64),
                places=np.array(body["places"], dtype=np.int64),
                steps=np.array(body["steps"], dtype=np.int64),
                tail=int(body["tail"]),
                clip=bool(body["clip"]),
            )
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise FileFormatError(f"the additive file is broken: {error}") from None

    def __eq__(self, other: object) -> bool:
        return self.to_json() == other.to_json() if isinstance(other, Additive) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        low, high = (float(self.space.exact[0] + self.unit * point) for point in self.bounds)
        return (
            f"<{self.name}: {len(self.space)} labels {self.space.low:g}…{self.space.high:g}, epsilon "
            f"{float(self.epsilon):g}, lattice of {float(self.unit):.4g}, outputs {low:.4g}…{high:.4g}>"
        )

    def _moments(self) -> list[tuple[Fraction, Fraction]]:
        """Mean and second moment of each label's output, exact."""
        law = _Law(self)
        origin, unit = self.space.exact[0], self.unit
        moments = []
        for position, fraction in zip(self.positions.tolist(), self.fractions.tolist(), strict=True):
            first, second = law.at(position)
            if fraction:
                share = Fraction(fraction, COIN_SIDES)
                above = law.at(position + 1)
                first = (1 - share) * first + share * above[0]
                second = (1 - share) * second + share * above[1]
            mean = origin + unit * first
            moments.append((mean, origin**2 + 2 * origin * unit * first + unit**2 * second))
        return moments

    def _law(self) -> dict[str, Any]:
        return {
            "labels": self.space.to_dict(),
            "epsilon": str(self.epsilon),
            "period": self.period,
            "positions": self.positions.tolist(),
            "fractions": self.fractions.tolist(),
            "places": self.places.tolist(),
            "steps": self.steps.tolist(),
            "tail": self.tail,
            "clip": self.clip,
        }


class Laplace(Additive):
    """Laplace noise of scale range/ε, on the labels' own lattice (`discrete`) or on a fine one."""

    def __init__(
        self, space: LabelSpace, epsilon: Rational, *, clip: bool = False, discrete: bool | None = None
    ) -> None:
        exact = epsilon_of(epsilon)
        period, positions, fractions = _lattice(space, discrete)
        fall = np.exp(-float(exact) * np.arange(period) / period)
        top = (TOTAL >> 1) // period
        # Floats suggest the shape; that it does not rise is made sure in integers.
        places = np.minimum.accumulate(np.maximum(np.floor(fall * top), 1).astype(np.int64))
        name = "laplace-clipped" if clip else "laplace"
        super().__init__(space, exact, name, period, positions, fractions, places, *_steps(exact), clip)


class Staircase(Additive):
    """Staircase noise (Geng and Viswanath): two levels per step, of the width that has the least variance."""

    def __init__(
        self, space: LabelSpace, epsilon: Rational, *, clip: bool = False, discrete: bool | None = None
    ) -> None:
        exact = epsilon_of(epsilon)
        period, positions, fractions = _lattice(space, discrete)
        high = 1 << 44
        low = math.ceil(high / exp_lower(exact))
        width = _least_variance_width(period, float(exact))
        places = np.where(np.arange(period) < width, high, low)
        name = "staircase-clipped" if clip else "staircase"
        super().__init__(space, exact, name, period, positions, fractions, places, *_steps(exact), clip)


def _steps(epsilon: Fraction) -> tuple[Integers, int]:
    """c and the tail: each step the smallest integer that does not fall faster than e^-ε."""
    bound = exp_lower(epsilon)
    steps = [int((1 - 1 / bound) * TOTAL / 2)]
    # Where a step of one unit is no longer small against the fall, rounding up would stop it: the tail takes over.
    floor = 4096 / (1 - 1 / bound)
    while len(steps) < STEPS_MIN or steps[-1] > floor:
        if len(steps) == STEPS_MAX:
            raise EpsilonError(f"epsilon={float(epsilon):g} is too small for additive noise; use at least 0.0001.")
        steps.append(math.ceil(steps[-1] / bound))
    return np.array(steps, dtype=np.int64), math.ceil(steps[-1] / (bound - 1))


def _lattice(space: LabelSpace, discrete: bool | None) -> tuple[int, Integers, NDArray[np.uint64]]:
    """Units that span the range, and where each label stands: whole units, and 2^-64ths of one."""
    k, step = len(space), space.step
    own = (not space.continuous and step is not None) if discrete is None else discrete
    if own:
        if step is None:
            raise LabelSpaceError("discrete=True needs equally spaced labels; discrete=False takes a fine lattice.")
        return k - 1, np.arange(k), np.zeros(k, dtype=np.uint64)
    span = space.exact[-1] - space.exact[0]
    shares = [(value - space.exact[0]) / span for value in space.exact]
    common = math.lcm(*(share.denominator for share in shares[:COMMON_MAX]))
    period = common * -(-FINE // common) if common <= COMMON_MAX else FINE * 4
    whole = [math.floor(share * period) for share in shares]
    rest = [int((share * period - w) * COIN_SIDES) for share, w in zip(shares, whole, strict=True)]
    return period, np.array(whole, dtype=np.int64), np.array(rest, dtype=np.uint64)


def _least_variance_width(period: int, epsilon: float) -> int:
    """The number of high places per step at which the noise has the least variance."""
    b = math.exp(-epsilon)
    places = np.arange(period, dtype=np.float64)
    high = [np.cumsum(places**power) for power in range(3)]
    s0, s1, s2 = (part + b * (part[-1] - part) for part in high)
    step0, step1, step2 = 1 / (1 - b), b / (1 - b) ** 2, b * (1 + b) / (1 - b) ** 3
    square = 2 * (s2 * step0 + 2 * period * s1 * step1 + period**2 * s0 * step2)
    return int(np.argmin(square / (2 * s0 * step0 - 1))) + 1


class _Law:
    """Exact moments of the clipped sum of a position and the noise, from running sums of the weights."""

    def __init__(self, noise: Additive) -> None:
        self.period, self.reach = noise.period, len(noise.steps)
        self.low, self.high = noise.bounds
        places, steps = noise.places.tolist(), noise.steps.tolist()
        self.places = [[0, *accumulate(w * i**power for i, w in enumerate(places))] for power in range(3)]
        self.steps = [sum(c * g**power for g, c in enumerate(steps[:-1])) for power in range(3)]
        self.first, self.last, self.tail = steps[0], steps[-1], noise.tail
        self.clip = noise.clip
        everything = sum(steps) + noise.tail
        self.total = 2 * everything * self.places[0][-1] - steps[0] * places[0]

    def at(self, position: int) -> tuple[Fraction, Fraction]:
        up = self._side(self.high - position)
        down = self._side(position - self.low)
        # Zero noise is in both sides and counts once.
        zero = self.first * (self.places[0][1] - self.places[0][0])
        mass = up[0] + down[0] - zero
        first = mass * position + up[1] - down[1]
        second = mass * position**2 + 2 * position * (up[1] - down[1]) + up[2] + down[2]
        return Fraction(first, self.total), Fraction(second, self.total)

    def _side(self, room: int) -> tuple[int, int, int]:
        """Σ weight, Σ weight·min(n, room), Σ weight·min(n, room)² over n ≥ 0."""
        p0, p1, p2 = self.places
        if self.clip:
            # n ≤ room happens within the first step, but for n = room = period, which is clipped to the same value.
            cut = min(room + 1, self.period)
            inside = [self.first * part[cut] for part in self.places]
            beyond = (sum(self.steps[:1]) + self.last + self.tail) * p0[-1] - inside[0]
            return inside[0] + beyond, inside[1] + beyond * room, inside[2] + beyond * room**2
        d = self.period
        # All steps but the last lie inside the bounds wherever the label stands.
        s0, s1, s2 = self.steps
        mass = s0 * p0[-1]
        first = s0 * p1[-1] + d * s1 * p0[-1]
        second = s0 * p2[-1] + 2 * d * s1 * p1[-1] + d * d * s2 * p0[-1]
        base = (self.reach - 1) * d
        cut = min(max(room - base + 1, 0), d)
        q0, q1, q2 = p0[cut], p1[cut], p2[cut]
        beyond = self.last * (p0[-1] - q0) + self.tail * p0[-1]
        mass += self.last * q0 + beyond
        first += self.last * (base * q0 + q1) + beyond * room
        second += self.last * (base * base * q0 + 2 * base * q1 + q2) + beyond * room**2
        return mass, first, second


def _cuts(weights: list[int]) -> Integers:
    cuts = [0, *accumulate(weights)]
    if cuts[-1] > TOTAL:
        raise InputError("the weights add up to more than one random word can express.")
    return np.array(cuts, dtype=np.int64)


def mechanism_from_json(text: str) -> Channel | Additive:
    """The Channel or additive mechanism that `to_json` wrote, by the format that it names."""
    try:
        written = json.loads(text)
    except (ValueError, RecursionError):
        raise FileFormatError("this is no JSON; a mechanism file is what to_json() writes.") from None
    kind = written.get("format") if isinstance(written, dict) else None
    if kind == "labeldp.channel":
        return Channel.from_json(text)
    if kind == "labeldp.additive":
        return Additive.from_json(text)
    raise FileFormatError('this is no mechanism: its "format" is none of labeldp.channel, labeldp.additive.')
