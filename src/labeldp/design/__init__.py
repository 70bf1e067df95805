"""Designs: from a prior to a certified channel. A solver suggests; only the certificate permits."""

from labeldp.design.bins import design_rr_on_bins
from labeldp.design.by_name import MECHANISMS, design_mechanism, uses_prior
from labeldp.design.grid import design_on_grid, feasible_outputs
from labeldp.design.response import design_debiased_rr, design_randomized_response
from labeldp.design.signature import Signature, signature
from labeldp.design.unbiased import design_unbiased

__all__ = [
    "MECHANISMS",
    "Signature",
    "design_debiased_rr",
    "design_mechanism",
    "design_on_grid",
    "design_randomized_response",
    "design_rr_on_bins",
    "design_unbiased",
    "feasible_outputs",
    "signature",
    "uses_prior",
]
