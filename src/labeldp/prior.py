"""Prior: a distribution over a label set, and what it cost to learn it.

>>> from labeldp.labels import LabelSpace
>>> Prior(LabelSpace.integers(0, 2), [0.6, 0.25, 0.15]).epsilon
Fraction(0, 1)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labeldp.channel import probabilities_over
from labeldp.entropy import Entropy, Stream, SystemEntropy
from labeldp.errors import EpsilonError, InputError, LabelError
from labeldp.exact import Rational, epsilon_of, rational
from labeldp.labels import LabelSpace

__all__ = ["Prior", "estimate_prior", "prior_from_counts"]


@dataclass(frozen=True, eq=False, repr=False)
class Prior:
    """`probabilities[i]` is the believed share of label `space.values[i]`; `epsilon` what was spent to learn it.

    A prior that was known in public costs nothing: its epsilon is 0.
    """

    space: LabelSpace
    probabilities: NDArray[np.float64]
    epsilon: Fraction = Fraction(0)
    seed: int | None = None

    def __init__(
        self, space: LabelSpace, probabilities: ArrayLike, epsilon: Rational = Fraction(0), seed: int | None = None
    ) -> None:
        if not isinstance(space, LabelSpace):
            raise InputError(f"space must be a LabelSpace, not {type(space).__name__}.")
        cost = rational(epsilon, "epsilon")
        if cost < 0:
            raise EpsilonError(f"epsilon={epsilon}: a prior cannot have cost less than 0.")
        values = probabilities_over(probabilities, len(space))
        values.setflags(write=False)
        object.__setattr__(self, "space", space)
        object.__setattr__(self, "probabilities", values)
        object.__setattr__(self, "epsilon", cost)
        object.__setattr__(self, "seed", seed)

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
        stamp = "" if self.seed is None else "NOT PRIVATE, "
        return f"<Prior over {self.space!r}, {stamp}mean {self.mean():.4g}, {cost}>"


def estimate_prior(labels: ArrayLike, space: LabelSpace, epsilon: Rational, *, entropy: Entropy | None = None) -> Prior:
    """The private histogram of the labels, the paper's Algorithm 4: counts plus noise, clipped at 0, normalised.

    Changing one label moves one count up and one down, so noise of scale 2/ε makes all counts together ε-DP.
    Raises: LabelError for a label outside the space, or for no labels at all.
    """
    source = entropy or SystemEntropy()
    given = space.checked(np.asarray(labels, dtype=np.float64))
    counts = np.bincount(space.indices(given, source.stream("rounding")), minlength=len(space))
    estimated = prior_from_counts(counts, space, epsilon_of(epsilon), source.stream("prior"))
    if source.private:
        return estimated
    # What a seed has touched says so, and makes what is released with it say so.
    return Prior(space, estimated.probabilities, estimated.epsilon, seed=getattr(source, "seed", 0))


def prior_from_counts(counts: NDArray[np.int64], space: LabelSpace, epsilon: Fraction, stream: Stream) -> Prior:
    """`estimate_prior` for counts that are there already; `stream` has one row per label of the space."""
    if counts.sum() == 0:
        raise LabelError("there are no labels; a prior cannot be estimated from nothing.")
    noisy = [max(0, int(count) + _discrete_laplace(2 / epsilon, _words(stream, i))) for i, count in enumerate(counts)]
    total = sum(noisy)
    if total == 0:
        # Nothing is left of the counts: say nothing rather than something wrong.
        return Prior(space, np.full(len(space), 1 / len(space)), epsilon)
    return Prior(space, np.array([count / total for count in noisy]), epsilon)


def _discrete_laplace(scale: Fraction, words: Iterator[int]) -> int:
    """An exact draw of P(n) ∝ e^(−|n|/scale) from uniform 64-bit words (Canonne, Kamath and Steinke 2020)."""
    t, s = scale.numerator, scale.denominator
    while True:
        u = _below(t, words)
        if not _flip_exp(Fraction(u, t), words):
            continue
        v = 0
        while _flip_exp(Fraction(1), words):
            v += 1
        size = (u + t * v) // s
        negative = _below(2, words) == 1
        if not (negative and size == 0):
            return -size if negative else size


def _flip_exp(x: Fraction, words: Iterator[int]) -> bool:
    """True with probability e^-x exactly, for 0 ≤ x ≤ 1."""
    k = 1
    while _below(x.denominator * k, words) < x.numerator:
        k += 1
    return k % 2 == 1


def _below(n: int, words: Iterator[int]) -> int:
    """A uniform integer in 0 … n − 1, from as many words as n needs."""
    count = (n - 1).bit_length() // 64 + 1
    accepted = (1 << 64 * count) // n * n
    while True:
        value = 0
        for _ in range(count):
            value = value << 64 | next(words)
        if value < accepted:
            return value % n


def _words(stream: Stream, row: int) -> Iterator[int]:
    """The words of one row, as many as are asked for."""
    batch, start = 16, 0
    while True:
        yield from stream.blocks(np.full(batch, row), np.arange(start, start + batch)).ravel().tolist()
        start += batch
