"""Prior: a distribution over a label set, and what it cost to learn it.

>>> from labeldp.labels import LabelSpace
>>> Prior(LabelSpace.integers(0, 2), [0.6, 0.25, 0.15]).epsilon
Fraction(0, 1)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labeldp.channel import probabilities_over
from labeldp.errors import InputError
from labeldp.labels import LabelSpace

__all__ = ["Prior"]


@dataclass(frozen=True, eq=False, repr=False)
class Prior:
    """`probabilities[i]` is the believed share of label `space.values[i]`; `epsilon` what was spent to learn it.

    A prior that was known in public costs nothing: its epsilon is 0.
    """

    space: LabelSpace
    probabilities: NDArray[np.float64]
    epsilon: Fraction = Fraction(0)

    def __init__(self, space: LabelSpace, probabilities: ArrayLike, epsilon: Fraction = Fraction(0)) -> None:
        if not isinstance(space, LabelSpace):
            raise InputError(f"space must be a LabelSpace, not {type(space).__name__}.")
        values = probabilities_over(probabilities, len(space))
        values.setflags(write=False)
        object.__setattr__(self, "space", space)
        object.__setattr__(self, "probabilities", values)
        object.__setattr__(self, "epsilon", epsilon)

    @classmethod
    def uniform(cls, space: LabelSpace) -> Prior:
        """Every label alike: what is believed where nothing is known, for nothing."""
        return cls(space, np.full(len(space), 1 / len(space)))

    def mean(self) -> float:
        return float(self.probabilities @ self.space.values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Prior):
            return NotImplemented
        same = np.array_equal(self.probabilities, other.probabilities)
        return self.space == other.space and same and self.epsilon == other.epsilon

    def __hash__(self) -> int:
        return hash((self.space, self.probabilities.tobytes(), self.epsilon))

    def __repr__(self) -> str:
        cost = "public" if self.epsilon == 0 else f"cost epsilon {float(self.epsilon):g}"
        return f"<Prior over {self.space!r}, mean {self.mean():.4g}, {cost}>"
