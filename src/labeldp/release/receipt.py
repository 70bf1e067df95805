"""Receipt: what a release spent, on what, by which mechanism. It may be published.

It holds no true label, no key and nothing computed from the labels that was not paid for; the number of labels is
public.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from labeldp.errors import FileFormatError
from labeldp.stored import sealed, unsealed

__all__ = ["Receipt"]

VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """One release. `epsilon` = `epsilon_prior` + `epsilon_labels`, exact; `private` is False where a seed was used."""

    private: bool
    epsilon: Fraction
    epsilon_prior: Fraction
    epsilon_labels: Fraction
    mechanism: str
    mechanism_digest: str
    prior: str
    labels: int
    low: float
    high: float
    label_values: int
    continuous: bool
    clip: bool
    keyed: bool
    name: str | None
    dataset: str | None
    column: str | None
    seed: int | None
    at: str
    labeldp: str

    def to_json(self) -> str:
        """The receipt as JSON; budgets as exact fractions."""
        body: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            body[field.name] = str(value) if isinstance(value, Fraction) else value
        return sealed("receipt", VERSION, body)

    @classmethod
    def from_json(cls, text: str) -> Receipt:
        """Read what `to_json` wrote; anything else is refused by name."""
        body = unsealed(text, "receipt", VERSION)
        try:
            values = {field.name: body[field.name] for field in fields(cls)}
            for name in ("epsilon", "epsilon_prior", "epsilon_labels"):
                values[name] = Fraction(values[name])
        except (KeyError, TypeError, ValueError) as error:
            raise FileFormatError(f"the receipt is broken: {error}") from None
        return cls(**values)

    def __str__(self) -> str:
        lines = [
            f"{self.labels:,} labels released by {self.mechanism} (digest {self.mechanism_digest[:12]})",
            f"epsilon {_shown(self.epsilon)} = {_shown(self.epsilon_prior)} on the prior "
            f"+ {_shown(self.epsilon_labels)} on the labels",
            f"prior: {self.prior}",
            f"labels from {self.low:g} to {self.high:g}, {self.label_values} values",
        ]
        if not self.private:
            lines.insert(0, f"NOT PRIVATE: drawn from the seed {self.seed}")
        return "\n".join(lines)


def _shown(epsilon: Fraction) -> str:
    return f"{float(epsilon):g}"
