"""Designs: from a prior to a certified channel. A solver suggests; only the certificate permits."""

from labeldp.design.bins import design_rr_on_bins
from labeldp.design.grid import design_on_grid, feasible_outputs
from labeldp.design.response import design_debiased_rr, design_randomized_response
from labeldp.design.signature import Signature, signature
from labeldp.design.unbiased import design_unbiased

__all__ = [
    "Signature",
    "design_debiased_rr",
    "design_on_grid",
    "design_randomized_response",
    "design_rr_on_bins",
    "design_unbiased",
    "feasible_outputs",
    "signature",
]
