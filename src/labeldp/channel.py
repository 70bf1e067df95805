"""Channel: the finite randomizer, as a strip with equal windows, in integers.

A strip of `strip` units is cut into cells; each cell has one output value. Every label owns a window of `window`
units, starting at its offset. To release a label, throw a coin of 2^64 sides:

    below `coin`:  forget the label, pick a unit anywhere on the strip;
    otherwise:     pick a unit inside the label's own window.

The cell that holds the unit names the output. A unit outside the window has likelihood coin / (2^64·strip), one
inside it (2^64 − coin) / (2^64·window) more; so between any two labels the likelihood of an output differs at most
by the factor

    ratio = 1 + (2^64 − coin)/coin · strip/window,

a rational number, whatever the offsets, the cuts and the outputs are. `certify` compares it with e^epsilon.
Outputs are floats because they are post-processing of the cell; privacy never depends on them.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labeldp.errors import ChannelError, FileFormatError, InputError, PriorError
from labeldp.exact import epsilon_of, exp_lower
from labeldp.labels import LabelSpace
from labeldp.stored import digest_of, sealed, unsealed

__all__ = ["COIN_SIDES", "Channel", "HasProbabilities", "probabilities_over", "smallest_coin"]

COIN_SIDES = 1 << 64
STRIP_MAX = 1 << 62
VERSION = 1

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class HasProbabilities(Protocol):
    """A Prior, seen from below."""

    @property
    def probabilities(self) -> Floats: ...


@dataclass(frozen=True, eq=False, repr=False)
class Channel:
    """A finite label randomizer with an exact law. If it exists, its geometry is sound; `certify` proves it private.

    `offsets[y]` is where label y's window starts; cell c is the units cuts[c] … cuts[c+1] − 1 and releases
    `cell_outputs[c]`. `prior` is what the channel was designed for, where it was. `optimality_gap` is how far the
    noisy loss may at most lie above the least possible one, relative, where a solver made the channel.
    """

    space: LabelSpace
    epsilon: Fraction
    strip: int
    window: int
    offsets: Integers
    cuts: Integers
    coin: int
    cell_outputs: Floats
    name: str
    prior: Floats | None = None
    optimality_gap: float | None = None

    def __post_init__(self) -> None:
        for field in ("offsets", "cuts"):
            object.__setattr__(self, field, _frozen_integers(getattr(self, field), field))
        object.__setattr__(self, "cell_outputs", _frozen(np.array(self.cell_outputs, dtype=np.float64)))
        object.__setattr__(self, "epsilon", epsilon_of(self.epsilon))
        if self.prior is not None:
            object.__setattr__(self, "prior", _frozen(probabilities_over(self.prior, len(self.space))))
        self._check_geometry()

    @property
    def outputs(self) -> Floats:
        """The distinct values that can be released, ascending."""
        return np.unique(self.cell_outputs)

    @property
    def total(self) -> int:
        """The common denominator of the law."""
        return COIN_SIDES * self.strip * self.window

    @property
    def ratio(self) -> Fraction:
        """The exact factor between the likelihoods of a strip unit inside and outside a window."""
        return 1 + Fraction((COIN_SIDES - self.coin) * self.strip, self.coin * self.window)

    def weights(self) -> NDArray[np.object_]:
        """The exact law: P(outputs[c] | label y) = weights()[y, c] / total, Python integers."""
        column = np.searchsorted(self.outputs, self.cell_outputs)
        weights = np.zeros((len(self.space), len(self.outputs)), dtype=object)
        lengths = np.diff(self.cuts).astype(object) * (self.coin * self.window)
        for y in range(len(self.space)):
            row = lengths + self.overlaps(slice(y, y + 1))[0].astype(object) * ((COIN_SIDES - self.coin) * self.strip)
            np.add.at(weights[y], column, row)
        return weights

    def matrix(self) -> Floats:
        """P(outputs[c] | label y) as floats, k × m, each within a few units of the last place."""
        column = np.searchsorted(self.outputs, self.cell_outputs)
        everywhere = self.coin / (COIN_SIDES * self.strip)
        inside = (COIN_SIDES - self.coin) / (COIN_SIDES * self.window)
        matrix = np.zeros((len(self.space), len(self.outputs)))
        np.add.at(matrix.T, column, everywhere * np.diff(self.cuts)[:, None] + inside * self.overlaps().T)
        return matrix

    def overlaps(self, labels: slice = slice(None)) -> Integers:
        """Units of each cell inside each label's window, labels × cells."""
        start = self.offsets[labels, None]
        shared = np.minimum(start + self.window, self.cuts[1:]) - np.maximum(start, self.cuts[:-1])
        units: Integers = np.maximum(shared, 0)
        return units

    def mean(self) -> Floats:
        """The expected output of each label, exact up to one rounding."""
        numerators, denominator = self._first_moment
        return np.array([n / denominator for n in numerators])

    def bias(self) -> Floats:
        """mean − label, computed exactly and then rounded once."""
        numerators, denominator = self._first_moment
        labels = (Fraction(value) for value in self.space.values.tolist())
        return np.array(
            [
                (n * y.denominator - y.numerator * denominator) / (denominator * y.denominator)
                for n, y in zip(numerators, labels, strict=True)
            ]
        )

    def variance(self) -> Floats:
        """The variance of each label's output, computed exactly and then rounded once."""
        first, denominator = self._first_moment
        second, square = self._moment(2)
        return np.array(
            [
                (s * denominator**2 - n * n * square) / (square * denominator**2)
                for n, s in zip(first, second, strict=True)
            ]
        )

    def noisy_loss(self, prior: HasProbabilities | ArrayLike) -> float:
        """Expected half squared distance between a label from `prior` and its output."""
        probabilities = probabilities_over(prior, len(self.space))
        return 0.5 * float(probabilities @ (self.variance() + self.bias() ** 2))

    @property
    def digest(self) -> str:
        """SHA-256 of the exact law: label set, epsilon, strip, outputs. Name, prior and gap are not in it."""
        return digest_of(self._law())

    def to_json(self) -> str:
        """The channel as publishable JSON, with a version and a digest over everything in it."""
        return sealed(
            "channel",
            VERSION,
            {
                **self._law(),
                "name": self.name,
                "prior": None if self.prior is None else self.prior.tolist(),
                "optimality_gap": self.optimality_gap,
            },
        )

    @classmethod
    def from_json(cls, text: str) -> Channel:
        """Read what `to_json` wrote; anything else is refused by name."""
        body = unsealed(text, "channel", VERSION)
        try:
            return cls(
                space=LabelSpace.from_dict(body["labels"]),
                epsilon=Fraction(body["epsilon"]),
                strip=int(body["strip"]),
                window=int(body["window"]),
                offsets=np.array(body["offsets"], dtype=np.int64),
                cuts=np.array(body["cuts"], dtype=np.int64),
                coin=int(body["coin"]),
                cell_outputs=np.array(body["cell_outputs"], dtype=np.float64),
                name=str(body["name"]),
                prior=None if body["prior"] is None else np.array(body["prior"], dtype=np.float64),
                optimality_gap=body["optimality_gap"],
            )
        except (KeyError, TypeError, ValueError, OverflowError, ZeroDivisionError) as error:
            raise FileFormatError(f"the channel file is broken: {error}") from None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Channel):
            return NotImplemented
        return self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return (
            f"<Channel {self.name}: {len(self.space)} labels {self.space.low:g}…{self.space.high:g}, "
            f"epsilon {float(self.epsilon):g}, {len(self.outputs)} outputs "
            f"{self.cell_outputs.min():.4g}…{self.cell_outputs.max():.4g}>"
        )

    @cached_property
    def _first_moment(self) -> tuple[list[int], int]:
        return self._moment(1)

    def _moment(self, power: int) -> tuple[list[int], int]:
        """Σ_c P(c|y)·output_c^power for every label, as integers over one denominator."""
        ratios = [value.as_integer_ratio() for value in self.cell_outputs.tolist()]
        scale = max(denominator for _, denominator in ratios)
        values = [(n * (scale // d)) ** power for n, d in ratios]
        cuts = self.cuts.tolist()
        sums = [0, *accumulate(v * (right - left) for v, left, right in zip(values, cuts, cuts[1:], strict=False))]

        def up_to(unit: int) -> int:
            cell = min(bisect_right(cuts, unit), len(values)) - 1
            return int(sums[cell] + values[cell] * (unit - cuts[cell]))

        anywhere = self.coin * self.window * sums[-1]
        inside = (COIN_SIDES - self.coin) * self.strip
        numerators = [anywhere + inside * (up_to(s + self.window) - up_to(s)) for s in self.offsets.tolist()]
        return numerators, self.total * scale**power

    def _law(self) -> dict[str, Any]:
        return {
            "labels": self.space.to_dict(),
            "epsilon": str(self.epsilon),
            "strip": self.strip,
            "window": self.window,
            "offsets": self.offsets.tolist(),
            "cuts": self.cuts.tolist(),
            "coin": self.coin,
            "cell_outputs": self.cell_outputs.tolist(),
        }

    def _check_geometry(self) -> None:
        k, last = len(self.space), self.strip - self.window
        if not 1 <= self.window <= self.strip <= STRIP_MAX:
            raise ChannelError(f"window={self.window} and strip={self.strip}: 1 ≤ window ≤ strip ≤ 2^62 must hold.")
        if not 1 <= self.coin <= COIN_SIDES:
            raise ChannelError(f"coin={self.coin} must be in 1…2^64.")
        if self.offsets.shape != (k,):
            raise ChannelError(f"{self.offsets.size} offsets were given for {k} labels.")
        if self.offsets.min() < 0 or self.offsets.max() > last:
            raise ChannelError(f"an offset is outside 0…{last}; every window must lie on the strip.")
        if self.cuts.ndim != 1 or self.cuts.size < 2 or self.cuts[0] != 0 or self.cuts[-1] != self.strip:
            raise ChannelError("cuts must run from 0 to the strip's length.")
        if np.any(np.diff(self.cuts) <= 0):
            raise ChannelError("cuts must increase, so that the cells cover each unit once.")
        if self.cell_outputs.shape != (self.cuts.size - 1,):
            raise ChannelError(f"{self.cell_outputs.size} outputs were given for {self.cuts.size - 1} cells.")
        if not np.all(np.isfinite(self.cell_outputs)):
            raise ChannelError("an output is NaN or infinite.")


def smallest_coin(epsilon: Fraction, strip: int, window: int) -> int:
    """The smallest coin whose ratio does not exceed a lower bound of e^epsilon: the least noise that is allowed.

    1 + (2^64 − t)/t · U/F ≤ e   ⇔   t ≥ 2^64·U / (U + (e − 1)·F)
    """
    share = (exp_lower(epsilon) - 1) * window
    return -(-COIN_SIDES * strip * share.denominator // (strip * share.denominator + share.numerator))


def probabilities_over(prior: HasProbabilities | ArrayLike, count: int) -> Floats:
    """The probabilities of a Prior, or of an array that is checked to be a distribution over `count` labels."""
    given = getattr(prior, "probabilities", prior)
    try:
        probabilities = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise PriorError("a prior must be an array of numbers.") from None
    if probabilities.shape != (count,):
        raise PriorError(f"a prior over {count} labels needs {count} probabilities, got shape {probabilities.shape}.")
    if not np.all(np.isfinite(probabilities)):
        raise PriorError(f"probability {int(np.argmin(np.isfinite(probabilities)))} is NaN or infinite.")
    if np.any(probabilities < 0):
        worst = int(np.argmin(probabilities))
        raise PriorError(f"probability {worst} is {probabilities[worst]:g}; none may be negative.")
    total = float(probabilities.sum())
    if abs(total - 1) > 1e-9:
        raise PriorError(f"the probabilities add up to {total:.12g}, not to 1; divide them by their sum.")
    return probabilities


def _frozen(array: Any) -> Any:
    array.setflags(write=False)
    return array


def _frozen_integers(values: ArrayLike, name: str) -> Integers:
    array = np.array(values)
    if array.dtype.kind not in "iu":
        raise InputError(f"{name} must be integers, not {array.dtype}.")
    frozen: Integers = _frozen(array.astype(np.int64))
    return frozen
