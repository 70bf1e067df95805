"""Mechanisms side by side, from their laws, not from simulation.

>>> from labeldp.labels import LabelSpace
>>> from labeldp.prior import Prior
>>> prior = Prior(LabelSpace.integers(0, 2), [0.6, 0.25, 0.15])
>>> for row in compare(["unbiased", "laplace", "rr-on-bins"], prior, epsilon=0.5):
...     print(f"{row.mechanism:12} {row.noisy_loss:7.3f} {row.worst_bias:5.2f} {row.times_examples:5.2f}")
unbiased       7.929  0.00  1.00
laplace       15.917  0.00  2.01
rr-on-bins     0.261  1.40   nan
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from labeldp.additive import Additive
from labeldp.channel import Channel
from labeldp.design import design_mechanism
from labeldp.errors import InputError
from labeldp.exact import Rational
from labeldp.prior import Prior

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True)
class Comparison:
    """What one mechanism does to labels from one prior.

    `noisy_loss` has the ½. `standard_deviation` is the root of the mean variance over the prior. `times_examples` is
    how many times more examples the mechanism needs than the best unbiased one here for the same variance of a mean;
    it is NaN where the mechanism is biased, because no number of examples averages a bias away.
    """

    mechanism: str
    epsilon: Fraction
    noisy_loss: float
    worst_bias: float
    standard_deviation: float
    lowest: float
    highest: float
    times_examples: float


def compare(
    mechanisms: Iterable[str | Channel | Additive], prior: Prior, epsilon: Rational | Sequence[Rational] | None = None
) -> list[Comparison]:
    """Compare mechanisms for one prior: finished ones, or names that are designed at each `epsilon`.

    Returns: one row per mechanism and epsilon, in the order given. Raises: InputError for a name without an epsilon,
    or a mechanism over other labels than the prior's.
    """
    asked = list(mechanisms)
    if not asked:
        raise InputError("there is nothing to compare; name at least one mechanism.")
    rows = []
    for at in _each(epsilon):
        rows += _rows([_made(mechanism, prior, at) for mechanism in asked], prior)
    return rows


def _rows(mechanisms: list[Channel | Additive], prior: Prior) -> list[Comparison]:
    p, spread = prior.probabilities, prior.space.high - prior.space.low
    variances = [float(p @ mechanism.variance()) for mechanism in mechanisms]
    biases = [float(np.abs(mechanism.bias()).max()) for mechanism in mechanisms]
    unbiased = [v for v, b in zip(variances, biases, strict=True) if b <= 1e-6 * spread]
    rows = []
    for mechanism, variance, bias in zip(mechanisms, variances, biases, strict=True):
        low, high = _range(mechanism)
        rows.append(
            Comparison(
                mechanism=mechanism.name,
                epsilon=mechanism.epsilon,
                noisy_loss=mechanism.noisy_loss(prior),
                worst_bias=bias,
                standard_deviation=variance**0.5,
                lowest=low,
                highest=high,
                times_examples=variance / min(unbiased) if bias <= 1e-6 * spread else float("nan"),
            )
        )
    return rows


def _range(mechanism: Channel | Additive) -> tuple[float, float]:
    if isinstance(mechanism, Channel):
        return float(mechanism.cell_outputs.min()), float(mechanism.cell_outputs.max())
    low, high = (float(mechanism.space.exact[0] + mechanism.unit * point) for point in mechanism.bounds)
    return low, high


def _made(mechanism: str | Channel | Additive, prior: Prior, epsilon: Rational | None) -> Channel | Additive:
    if isinstance(mechanism, str):
        if epsilon is None:
            raise InputError(f"{mechanism!r} is a name: pass epsilon= to design it.")
        return design_mechanism(mechanism, prior, epsilon)
    if mechanism.space != prior.space:
        raise InputError(f"{mechanism!r} is for other labels than the prior's, {prior.space!r}.")
    return mechanism


def _each(epsilon: Rational | Sequence[Rational] | None) -> list[Rational | None]:
    return list(epsilon) if isinstance(epsilon, Sequence) and not isinstance(epsilon, str) else [epsilon]
