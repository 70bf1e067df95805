"""labeldp: label differential privacy for regression, by optimal unbiased randomizers.

>>> import labeldp
>>> prior = labeldp.Prior(labeldp.LabelSpace.integers(0, 2), [0.6, 0.25, 0.15])
>>> channel = labeldp.design_unbiased(prior, epsilon=0.5)
>>> round(channel.noisy_loss(prior), 4), float(labeldp.certify(channel).epsilon)
(7.9288, 0.5)
"""

from labeldp.additive import Laplace, Staircase
from labeldp.audit import Audit, audit
from labeldp.certificate import Certificate, certify
from labeldp.channel import Channel
from labeldp.compare import Comparison, compare
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
from labeldp.entropy import ReleaseKey, SeededEntropy, SystemEntropy
from labeldp.errors import (
    BudgetError,
    ChannelError,
    DesignError,
    EpsilonError,
    FileFormatError,
    IdError,
    InputError,
    KeyFormatError,
    LabelDPError,
    LabelError,
    LabelSpaceError,
    LeakError,
    LedgerError,
    MissingExtraError,
    NotPrivateError,
    NotPrivateWarning,
    OutputsError,
    PriorError,
    StructureError,
)
from labeldp.labels import LabelSpace
from labeldp.prior import Prior, estimate_prior
from labeldp.release import FrameRelease, LabelRandomizer, Ledger, Receipt, Release, release_frame
from labeldp.version import __version__ as __version__

__all__ = [
    "Audit",
    "BudgetError",
    "Certificate",
    "Channel",
    "ChannelError",
    "Comparison",
    "DesignError",
    "EpsilonError",
    "FileFormatError",
    "FrameRelease",
    "IdError",
    "InputError",
    "KeyFormatError",
    "LabelDPError",
    "LabelError",
    "LabelRandomizer",
    "LabelSpace",
    "LabelSpaceError",
    "Laplace",
    "LeakError",
    "Ledger",
    "LedgerError",
    "MissingExtraError",
    "NotPrivateError",
    "NotPrivateWarning",
    "OutputsError",
    "Prior",
    "PriorError",
    "Receipt",
    "Release",
    "ReleaseKey",
    "SeededEntropy",
    "Signature",
    "Staircase",
    "StructureError",
    "SystemEntropy",
    "audit",
    "certify",
    "compare",
    "design_debiased_rr",
    "design_on_grid",
    "design_randomized_response",
    "design_rr_on_bins",
    "design_unbiased",
    "estimate_prior",
    "feasible_outputs",
    "release_frame",
    "signature",
]
