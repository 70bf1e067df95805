"""LabelSpace: what a label may be, known in public before any label is seen.

>>> LabelSpace.integers(0, 52)
LabelSpace.integers(0, 52)
>>> LabelSpace.grid(0, 400, 401).continuous
True
>>> LabelSpace.of([1, 2, 5]).values
array([1., 2., 5.])
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp.entropy import CHUNK, Stream
from labeldp.errors import InputError, LabelError, LabelSpaceError
from labeldp.exact import Rational, rational

__all__ = ["LabelSpace"]

SHARE_MAX = 1 - 2.0**-53
LABELS_MAX = 1 << 20
"""More labels than this are a mistake: a design takes k² steps, and a grid of a thousand points loses nothing."""


@dataclass(frozen=True, eq=False, repr=False)
class LabelSpace:
    """The public set of labels, ascending.

    `values` are the labels as floats. `continuous` says that labels between two values are welcome and are rounded
    onto the set without bias; otherwise a label must be one of the values. `exact` are the rationals that the
    values write: shortest decimals, so that a grid of tenths is equally spaced although its floats are not.
    """

    values: NDArray[np.float64]
    continuous: bool
    exact: tuple[Fraction, ...]

    @classmethod
    def integers(cls, low: int, high: int) -> LabelSpace:
        """The integers low, low + 1, …, high."""
        first, last = rational(low, "low"), rational(high, "high")
        if first.denominator != 1 or last.denominator != 1:
            raise LabelSpaceError(f"integers({low}, {high}) needs whole bounds; LabelSpace.grid takes others.")
        return cls._build(first, last, int(last - first) + 1, continuous=False, given=f"integers({low}, {high})")

    @classmethod
    def grid(cls, low: Rational, high: Rational, points: int) -> LabelSpace:
        """Real labels from low to high, rounded without bias onto `points` equally spaced values."""
        first, last, count = rational(low, "low"), rational(high, "high"), rational(points, "points")
        if count.denominator != 1:
            raise LabelSpaceError(f"points={points} must be a whole number of at least 2.")
        return cls._build(first, last, int(count), continuous=True, given=f"grid({low}, {high}, {points})")

    @classmethod
    def of(cls, values: Iterable[Rational]) -> LabelSpace:
        """Exactly these labels, in any order."""
        try:
            exact = sorted(rational(value, "label") for value in values)
        except InputError as error:
            raise LabelSpaceError(str(error)) from None
        for left, right in itertools.pairwise(exact):
            if left == right:
                raise LabelSpaceError(f"label {float(left):g} is there twice; each label may be given once.")
        return cls._of_exact(tuple(exact), continuous=False)

    @property
    def low(self) -> float:
        return float(self.values[0])

    @property
    def high(self) -> float:
        return float(self.values[-1])

    @property
    def step(self) -> Fraction | None:
        """The exact distance between neighbours where it is the same for all, else None."""
        first = self.exact[1] - self.exact[0]
        equal = all(right - left == first for left, right in zip(self.exact, self.exact[1:], strict=False))
        return first if equal else None

    def checked(self, labels: NDArray[np.float64], *, clip: bool = False) -> NDArray[np.float64]:
        """The labels, or a LabelError with the row and the value of the first that does not belong here.

        `clip` moves labels beyond the bounds to the nearer bound; it does not mend NaN, nor a value between labels.
        """
        finite = np.isfinite(labels)
        if not finite.all():
            row = int(np.argmin(finite))
            raise LabelError(f"label {labels[row]} at row {row} is no finite number; fill or drop such rows first.")
        if clip:
            labels = np.clip(labels, self.low, self.high)
        inside = (labels >= self.low) & (labels <= self.high)
        if not inside.all():
            row = int(np.argmin(inside))
            raise LabelError(
                f"label {labels[row]:g} at row {row} is outside {self.low:g}…{self.high:g}; "
                "widen the bounds or pass clip=True."
            )
        if not self.continuous:
            known = self.values[np.searchsorted(self.values, labels)] == labels
            if not known.all():
                row = int(np.argmin(known))
                raise LabelError(
                    f"label {labels[row]:.17g} at row {row} is not one of the {len(self)} labels; "
                    "LabelSpace.grid takes labels in between."
                )
        return labels

    def indices(self, labels: NDArray[np.float64], stream: Stream) -> NDArray[np.int64]:
        """The index of each checked label; one between two values goes to either, so that its mean stays.

        Up with probability (label − below)/(above − below), as a 64-bit threshold: the bias from rounding that
        probability is below 2^-50 of the step. It happens before the mechanism, so privacy does not rest on it.
        """
        if not self.continuous:
            return np.searchsorted(self.values, labels)
        indices = np.empty(len(labels), dtype=np.int64)
        for start in range(0, len(labels), CHUNK):
            rows = slice(start, min(start + CHUNK, len(labels)))
            part = labels[rows] + 0.0  # one zero, not two
            below = np.minimum(np.searchsorted(self.values, part, side="right") - 1, len(self) - 2)
            share = (part - self.values[below]) / (self.values[below + 1] - self.values[below])
            words = stream.blocks(rows, part.view(np.int64))[:, 0]
            up = (words < (np.minimum(share, SHARE_MAX) * 2.0**64).astype(np.uint64)) | (share >= 1)
            indices[rows] = below + up
        return indices

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the exact values as text, and whether labels in between are welcome."""
        return {"values": [str(value) for value in self.exact], "continuous": self.continuous}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> LabelSpace:
        """Read what `to_dict` gave."""
        exact = [Fraction(value) for value in stored["values"]]
        return cls.grid(exact[0], exact[-1], len(exact)) if stored["continuous"] else cls.of(exact)

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelSpace):
            return NotImplemented
        return self.continuous == other.continuous and self.exact == other.exact

    def __hash__(self) -> int:
        return hash((self.continuous, self.exact))

    def __repr__(self) -> str:
        step = self.step
        if self.continuous:
            return f"LabelSpace.grid({_shown(self.low)}, {_shown(self.high)}, {len(self)})"
        if step == 1 and self.exact[0].denominator == 1:
            return f"LabelSpace.integers({int(self.exact[0])}, {int(self.exact[-1])})"
        shown = [_shown(value) for value in self.values.tolist()]
        if len(shown) > 8:
            shown[4:-2] = ["…"]
        return f"LabelSpace.of([{', '.join(shown)}])"

    @classmethod
    def _build(cls, first: Fraction, last: Fraction, count: int, *, continuous: bool, given: str) -> LabelSpace:
        if last <= first:
            raise LabelSpaceError(f"{given}: high must be greater than low.")
        if count < 2:
            raise LabelSpaceError(f"{given}: at least two labels are needed, got {count}.")
        if count > LABELS_MAX:
            raise LabelSpaceError(f"{given}: {count} labels are more than {LABELS_MAX}; use a coarser grid.")
        step = (last - first) / (count - 1)
        return cls._of_exact(tuple(first + i * step for i in range(count)), continuous=continuous)

    @classmethod
    def _of_exact(cls, exact: tuple[Fraction, ...], *, continuous: bool) -> LabelSpace:
        if len(exact) < 2:
            raise LabelSpaceError(f"at least two labels are needed, got {len(exact)}.")
        try:
            values = np.array([float(value) for value in exact])
        except OverflowError:
            values = np.array([math.inf])
        if not np.all(np.isfinite(values)) or np.any(np.abs(values) > 1e150):
            raise LabelSpaceError("a label is larger than 1e150; rescale the labels.")
        if np.any(np.diff(values) <= 0):
            raise LabelSpaceError("two labels are so close that floats cannot tell them apart; widen the spacing.")
        values.setflags(write=False)
        return cls(values, continuous, exact)


def _shown(value: float) -> str:
    """Short where that says it all, else with every digit."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)
