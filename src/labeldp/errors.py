"""Every exception that labeldp raises on purpose.

LabelDPError
├── InputError (also a ValueError)   the caller can mend it
│   ├── EpsilonError                 a privacy budget that is no positive number, or beyond the integers
│   ├── LabelSpaceError              a label set that is not one
│   ├── LabelError                   a label that the label set does not hold
│   ├── IdError                      record ids that are missing, repeated or of mixed types
│   ├── KeyFormatError               a release key that is none
│   ├── PriorError                   probabilities that are not a distribution over the labels
│   ├── OutputsError                 an output grid that cannot carry an unbiased randomizer
│   ├── ChannelError                 a strip whose geometry is broken
│   └── FileFormatError              a stored object that is foreign, of another version, or tampered with
├── DesignError                      a solver did not reach what it had to reach
├── StructureError                   a channel without the structure that the paper proves
├── LedgerError                      a ledger that cannot be used, or an entry that it refuses
│   └── BudgetError                  a release that would cost more than what remains
├── LeakError                        something beside the released labels would give the true ones away
├── MissingExtraError                an optional package that is not installed
└── NotPrivateError                  the certificate is refused

NotPrivateWarning (a UserWarning)    labels were drawn from a seed
"""

from __future__ import annotations

__all__ = [
    "BudgetError",
    "ChannelError",
    "DesignError",
    "EpsilonError",
    "FileFormatError",
    "IdError",
    "InputError",
    "KeyFormatError",
    "LabelDPError",
    "LabelError",
    "LabelSpaceError",
    "LeakError",
    "LedgerError",
    "MissingExtraError",
    "NotPrivateError",
    "NotPrivateWarning",
    "OutputsError",
    "PriorError",
    "StructureError",
]


class LabelDPError(Exception):
    """The root: `except LabelDPError` catches whatever labeldp refuses."""


class InputError(LabelDPError, ValueError):
    """An argument that breaks a rule; the text says which, and the way out."""


class EpsilonError(InputError):
    pass


class LabelSpaceError(InputError):
    pass


class LabelError(InputError):
    pass


class IdError(InputError):
    pass


class KeyFormatError(InputError):
    pass


class PriorError(InputError):
    pass


class OutputsError(InputError):
    pass


class ChannelError(InputError):
    pass


class FileFormatError(InputError):
    pass


class DesignError(LabelDPError):
    pass


class StructureError(LabelDPError):
    pass


class LedgerError(LabelDPError):
    pass


class BudgetError(LedgerError):
    pass


class MissingExtraError(LabelDPError):
    pass


class LeakError(LabelDPError):
    pass


class NotPrivateError(LabelDPError):
    pass


class NotPrivateWarning(UserWarning):
    pass
