"""labeldp: label differential privacy for regression, by optimal unbiased randomizers.

>>> import labeldp
>>> prior = labeldp.Prior(labeldp.LabelSpace.integers(0, 2), [0.6, 0.25, 0.15])
>>> channel = labeldp.design_unbiased(prior, epsilon=0.5)
>>> round(channel.noisy_loss(prior), 4), float(labeldp.certify(channel).epsilon)
(7.9288, 0.5)
"""

from labeldp.certificate import Certificate, certify
from labeldp.channel import Channel
from labeldp.design import (
    Signature,
    design_debiased_rr,
    design_on_grid,
    design_randomized_response,
    design_rr_on_bins,
    design_unbiased,
    feasible_outputs,
    signature,
)
from labeldp.errors import (
    ChannelError,
    DesignError,
    EpsilonError,
    FileFormatError,
    InputError,
    LabelDPError,
    LabelError,
    LabelSpaceError,
    NotPrivateError,
    OutputsError,
    PriorError,
    StructureError,
)
from labeldp.labels import LabelSpace
from labeldp.prior import Prior

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "Channel",
    "ChannelError",
    "DesignError",
    "EpsilonError",
    "FileFormatError",
    "InputError",
    "LabelDPError",
    "LabelError",
    "LabelSpace",
    "LabelSpaceError",
    "NotPrivateError",
    "OutputsError",
    "Prior",
    "PriorError",
    "Signature",
    "StructureError",
    "certify",
    "design_debiased_rr",
    "design_on_grid",
    "design_randomized_response",
    "design_rr_on_bins",
    "design_unbiased",
    "feasible_outputs",
    "signature",
]
