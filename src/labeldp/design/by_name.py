"""Every mechanism by its name: the same words in the API, the receipts and on the command line."""

from __future__ import annotations

from collections.abc import Callable

from labeldp.additive import Additive, Laplace, Staircase
from labeldp.channel import Channel
from labeldp.design.bins import design_rr_on_bins
from labeldp.design.response import design_debiased_rr, design_randomized_response
from labeldp.design.unbiased import design_unbiased
from labeldp.errors import InputError
from labeldp.exact import Rational
from labeldp.labels import LabelSpace
from labeldp.prior import Prior

__all__ = ["MECHANISMS", "design_mechanism", "uses_prior"]

Mechanism = Channel | Additive

WITH_PRIOR: dict[str, Callable[[Prior, Rational], Mechanism]] = {
    "unbiased": design_unbiased,
    "rr-on-bins": design_rr_on_bins,
}
WITHOUT_PRIOR: dict[str, Callable[[LabelSpace, Rational], Mechanism]] = {
    "debiased-rr": design_debiased_rr,
    "randomized-response": design_randomized_response,
    "laplace": Laplace,
    "laplace-clipped": lambda space, epsilon: Laplace(space, epsilon, clip=True),
    "staircase": Staircase,
    "staircase-clipped": lambda space, epsilon: Staircase(space, epsilon, clip=True),
}
MECHANISMS = (*WITH_PRIOR, *WITHOUT_PRIOR)


def design_mechanism(name: str, prior: Prior, epsilon: Rational) -> Mechanism:
    """The mechanism of this name for this prior; some use only its label set."""
    if uses_prior(name):
        return WITH_PRIOR[name](prior, epsilon)
    return WITHOUT_PRIOR[name](prior.space, epsilon)


def uses_prior(name: str) -> bool:
    """Whether the mechanism is designed for a prior. Raises: InputError for a name that is none."""
    if name not in MECHANISMS:
        raise InputError(f"mechanism={name!r} is unknown; choose one of {', '.join(MECHANISMS)}.")
    return name in WITH_PRIOR
