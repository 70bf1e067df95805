"""LabelRandomizer: the whole of the paper's Algorithm 3, from true labels to released ones with a receipt.

    ε = ε1 + ε2:   ε1 buys a private estimate of the prior, ε2 randomizes the labels with the design for it.

Whether an estimate pays is decided by a public rule, from the number of label values k, the number of labels n and ε
alone (`spend_on_prior`); where it does not, the design is for a uniform prior, which costs nothing.

A release happens once. With a key and a name it can be run again and gives the same labels; a ledger makes sure that
under one name there is one data set, and that the budget holds. docs/proofs/keyed.md says why each part is there.
"""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from labeldp.additive import Additive, mechanism_from_json
from labeldp.certificate import certify
from labeldp.channel import Channel
from labeldp.design import design_mechanism, uses_prior
from labeldp.entropy import Entropy, Ids, ReleaseKey, SeededEntropy, Stream, SystemEntropy
from labeldp.errors import IdError, InputError, LabelError, LedgerError, NotPrivateWarning
from labeldp.exact import Rational, epsilon_of
from labeldp.labels import LabelSpace
from labeldp.prior import Prior, prior_from_counts
from labeldp.release.columns import read_ids, read_labels
from labeldp.release.ledger import Entry, Ledger
from labeldp.release.receipt import Receipt
from labeldp.sampler import draw
from labeldp.version import __version__

__all__ = ["LabelRandomizer", "Release", "spend_on_prior"]

Mechanism = Channel | Additive

PARTS = 10**6
"""The paper's √(k/n) is irrational; it is spent to this many parts of one, rounded down."""


@dataclass(frozen=True)
class Release:
    """Released labels, the mechanism that made them, the prior it was designed for, and the receipt.

    `clipped` is how many labels were moved to a bound: for the labels party alone, it is not in the receipt.
    """

    labels: Any
    channel: Mechanism
    prior: Prior | None
    receipt: Receipt
    clipped: int = field(default=0, repr=False)

    def __repr__(self) -> str:
        stamp = "" if self.receipt.private else "NOT PRIVATE, "
        epsilon = float(self.receipt.epsilon)
        return f"<Release: {stamp}{self.receipt.labels} labels, epsilon {epsilon:g}, {self.channel!r}>"


@dataclass(frozen=True)
class LabelRandomizer:
    """How labels are to be released: label set, budget, mechanism, and where the prior comes from.

    `mechanism`: "unbiased", "rr-on-bins", "debiased-rr", "randomized-response", "laplace", "staircase", or one of the
    last two with "-clipped". `prior`: a public one, which costs nothing. Without it `prior_epsilon` says what to spend
    on an estimate: None leaves it to the rule, "paper" is √(k/n), a number is that number.
    """

    space: LabelSpace
    epsilon: Fraction
    mechanism: str = "unbiased"
    prior: Prior | None = None
    prior_epsilon: Fraction | Literal["paper"] | None = None

    def __init__(
        self,
        space: LabelSpace,
        epsilon: Rational,
        *,
        mechanism: str = "unbiased",
        prior: Prior | None = None,
        prior_epsilon: Rational | None = None,
    ) -> None:
        exact = epsilon_of(epsilon)
        if not uses_prior(mechanism) and (prior is not None or prior_epsilon is not None):
            raise InputError(f"{mechanism} uses no prior; leave out prior= and prior_epsilon=.")
        if prior is not None and prior_epsilon is not None:
            raise InputError("give prior= or prior_epsilon=, not both: a public prior costs nothing.")
        if prior is not None and prior.space != space:
            raise InputError(f"the prior is over {prior.space!r}, the labels are from {space!r}.")
        if prior is not None and prior.epsilon >= exact:
            raise InputError(f"the prior alone cost epsilon {float(prior.epsilon):g} of {epsilon}; nothing is left.")
        spend = prior_epsilon
        if spend is not None and spend != "paper":
            spend = epsilon_of(spend, "prior_epsilon")
            if spend >= exact:
                raise InputError(f"prior_epsilon={prior_epsilon} must be less than epsilon={epsilon}.")
        for name, value in (
            ("space", space),
            ("epsilon", exact),
            ("mechanism", mechanism),
            ("prior", prior),
            ("prior_epsilon", spend),
        ):
            object.__setattr__(self, name, value)

    def release(
        self,
        labels: Any,
        *,
        ids: Any = None,
        key: bytes | ReleaseKey | None = None,
        name: str | None = None,
        clip: bool = False,
        ledger: Ledger | None = None,
        dataset: str | None = None,
        column: str | None = None,
        entropy: Entropy | None = None,
    ) -> Release:
        """Randomize `labels`: an array, a list or a series of any data frame library; the same kind comes back.

        `key` and `name` make the release repeatable: one name, one fixed set of (id, label) rows. `ids` are then the
        record ids (integers, strings or bytes, none twice); without them the row position serves, and the rows must
        come in the same order. `ledger` needs `dataset` and `column`. `clip` moves labels to the nearer bound.
        Raises: LabelError, IdError, LedgerError, BudgetError, …; then nothing was released and nothing spent.
        """
        for what, given in (("name", name), ("dataset", dataset), ("column", column)):
            if given is not None and not isinstance(given, str):
                raise InputError(f"{what}={given!r} must be text.")
        column_of_labels = read_labels(labels)
        n = len(column_of_labels.values)
        if n == 0:
            raise LabelError("there are no labels to release.")
        true_labels = self.space.checked(column_of_labels.values, clip=clip)
        clipped = int(np.count_nonzero(true_labels != column_of_labels.values))
        source = _source(key, name, entropy, ids, n, true_labels, (name or "", dataset or "", column or ""))
        if ledger is not None:
            if not dataset or not column:
                raise InputError("a ledger keeps budgets per data set and column: pass dataset= and column=.")
            if not source.private or self._seed is not None:
                raise LedgerError("a seeded release is not private; it is not entered in a ledger.")
        terms = self._terms(n, clip)
        earlier = None
        if ledger is not None and isinstance(source, _Keyed):
            earlier = ledger.find(str(dataset), str(column), str(name), source.key.fingerprint)
        if earlier is None or earlier.terms != terms:
            # Under other terms the ledger will refuse the name; it says why.
            prior, how, mechanism = self._design(true_labels, source)
        else:
            # Another build of a solver may return other floats, so the stored law is used, not a new one.
            prior, how, mechanism = _restored(earlier, self.space)
        spent = self._checked_spending(prior, mechanism)
        at = datetime.now(UTC).isoformat(timespec="seconds")
        if ledger is not None:
            entry, _ = ledger.record(
                Entry(
                    dataset=str(dataset),
                    column=str(column),
                    epsilon=self.epsilon,
                    terms=terms,
                    law=mechanism.digest,
                    labels=n,
                    name=name if isinstance(source, _Keyed) else None,
                    key_fingerprint=source.key.fingerprint if isinstance(source, _Keyed) else None,
                    data_digest=source.data_digest if isinstance(source, _Keyed) else None,
                    prior=_stored_prior(prior, how),
                    mechanism=mechanism.to_json(),
                )
            )
            at = entry.at
            prior, how, mechanism = _restored(entry, self.space)
            spent = self._checked_spending(prior, mechanism)
        indices = self.space.indices(true_labels, source.stream("rounding", _digest(repr(self.space.exact))))
        released = draw(mechanism, indices, source.stream("draw", mechanism.digest))
        private, seed = source.private and self._seed is None, source.seed if source.seed is not None else self._seed
        if not private:
            warnings.warn("these labels were drawn from a seed: they are NOT PRIVATE.", NotPrivateWarning, stacklevel=2)
        receipt = Receipt(
            private=private,
            epsilon=spent + mechanism.epsilon,
            epsilon_prior=spent,
            epsilon_labels=mechanism.epsilon,
            mechanism=mechanism.name,
            mechanism_digest=mechanism.digest,
            prior=how,
            labels=n,
            low=self.space.low,
            high=self.space.high,
            label_values=len(self.space),
            continuous=self.space.continuous,
            clip=clip,
            keyed=isinstance(source, _Keyed),
            name=name,
            dataset=dataset,
            column=column,
            seed=seed,
            at=at,
            labeldp=__version__,
        )
        return Release(column_of_labels.rebuilt(released), mechanism, prior, receipt, clipped)

    def _design(self, true_labels: NDArray[np.float64], source: _Fresh | _Keyed) -> tuple[Prior | None, str, Mechanism]:
        """Prior, where it came from, and the mechanism for what is left of the budget."""

        def design(prior: Prior, epsilon: Fraction) -> Mechanism:
            return design_mechanism(self.mechanism, prior, epsilon)

        if not uses_prior(self.mechanism):
            return None, "none is used", design(Prior.uniform(self.space), self.epsilon)
        if self.prior is not None:
            how = "public" if self.prior.epsilon == 0 else "given, and paid for in this budget"
            return self.prior, how, design(self.prior, self.epsilon - self.prior.epsilon)
        k, n = len(self.space), len(true_labels)
        spend, how = self._spend(k, n)
        if spend == 0:
            prior = Prior.uniform(self.space)
            return prior, how, design(prior, self.epsilon)
        rounding = source.stream("rounding", _digest(repr(self.space.exact)))
        counts = np.bincount(self.space.indices(true_labels, rounding), minlength=k)
        # The same noise on changed counts would show the change: a digest of all counts is in its key.
        noise = source.numbers("prior", k, _digest(counts.astype("<i8").tobytes()), str(spend))
        prior = prior_from_counts(counts, self.space, spend, noise)
        return prior, how, design(prior, self.epsilon - spend)

    @property
    def _seed(self) -> int | None:
        """The seed that the given prior was estimated with, if any: it is contagious."""
        return None if self.prior is None else self.prior.seed

    def _checked_spending(self, prior: Prior | None, mechanism: Mechanism) -> Fraction:
        """What the prior cost, once the mechanism is certified for the rest; nothing is released before this."""
        spent = prior.epsilon if prior is not None else Fraction(0)
        certify(mechanism, self.epsilon - spent)
        if spent < 0 or spent + mechanism.epsilon != self.epsilon:
            raise LedgerError("the stored prior and mechanism do not add up to the epsilon of this release.")
        return spent

    def _spend(self, k: int, n: int) -> tuple[Fraction, str]:
        if isinstance(self.prior_epsilon, Fraction):
            return self.prior_epsilon, "estimated, as asked for"
        paper = Fraction(math.isqrt(k * PARTS**2 // n), PARTS)
        if self.prior_epsilon == "paper":
            if paper >= self.epsilon:
                raise InputError(
                    f"√(k/n) = {float(paper):g} is not less than epsilon={float(self.epsilon):g}: too few labels to "
                    "estimate a prior as the paper does; leave prior_epsilon out."
                )
            return paper, "estimated, √(k/n) as in the paper"
        if self.mechanism == "rr-on-bins":
            return min(paper, self.epsilon / 4), "estimated: RR-on-Bins needs a prior"
        if spend_on_prior(k, n, self.epsilon):
            return paper, "estimated, since √(k/n) is small for this epsilon"
        return Fraction(0), "uniform, since an estimate would cost more than it gains"

    def _terms(self, n: int, clip: bool) -> str:
        return json.dumps(
            {
                "labels": _digest(repr((self.space.continuous, self.space.exact))),
                "epsilon": str(self.epsilon),
                "mechanism": self.mechanism,
                "prior": None if self.prior is None else _digest(self.prior.probabilities.tobytes()),
                "prior_epsilon": None if self.prior_epsilon is None else str(self.prior_epsilon),
                "count": n,
                "clip": clip,
            },
            sort_keys=True,
        )


def spend_on_prior(k: int, n: int, epsilon: Fraction) -> bool:
    """Whether √(k/n) spent on a prior estimate pays for an unbiased design; public, from k, n and ε alone.

    Spending ε1 multiplies the loss by about (ε/(ε − ε1))²; knowing the prior gains little below ε = 1, since small
    budgets give every design the same two-sided shape, and more as ε grows. Measured, the break-even lies at
    ε1 = ε·min(ε/24, 1/8).
    """
    limit = epsilon * min(epsilon / 24, Fraction(1, 8))
    return Fraction(k, n) <= limit**2


@dataclass(frozen=True)
class _Fresh:
    """Blocks that are new each time: from the operating system, or from a seed."""

    entropy: Entropy

    @property
    def private(self) -> bool:
        return self.entropy.private

    @property
    def seed(self) -> int | None:
        return self.entropy.seed if isinstance(self.entropy, SeededEntropy) else None

    def stream(self, use: str, *_: str) -> Stream:
        return self.entropy.stream(use)

    def numbers(self, use: str, _count: int, *_: str) -> Stream:
        return self.entropy.stream(use)


@dataclass(frozen=True)
class _Keyed:
    """Blocks that depend on the release key, its context, and the (id, label) row."""

    key: ReleaseKey
    ids: Ids
    context: tuple[str, ...]
    data_digest: str
    private: bool = True
    seed: None = None

    def stream(self, use: str, *more: str) -> Stream:
        return self.key.stream(use, self.ids, *self.context, *more)

    def numbers(self, use: str, count: int, *more: str) -> Stream:
        return self.key.words(use, count, *self.context, *more)


def _source(
    key: bytes | ReleaseKey | None,
    name: str | None,
    entropy: Entropy | None,
    ids: Any,
    n: int,
    true_labels: NDArray[np.float64],
    context: tuple[str, str, str],
) -> _Fresh | _Keyed:
    if key is None:
        if ids is not None or name is not None:
            raise InputError("ids= and name= belong to a keyed release: pass key= too.")
        return _Fresh(entropy or SystemEntropy())
    if entropy is not None:
        raise InputError("give key= or entropy=, not both.")
    if not name:
        raise InputError("a keyed release needs name=: one name, one fixed set of (id, label) rows.")
    release_key = key if isinstance(key, ReleaseKey) else ReleaseKey(key)
    if ids is None:
        # A row's position says nothing about the record, so the whole data set is in the context.
        rows = Ids("row", np.arange(n, dtype=np.uint64))
        digest = release_key.digest_of_rows(rows, true_labels, *context)
        return _Keyed(release_key, rows, (*context, digest), digest)
    read = release_key.ids(read_ids(ids))
    if len(read) != n:
        raise IdError(f"there are {len(read)} ids for {n} labels.")
    _refuse_repeated(read)
    return _Keyed(release_key, read, context, release_key.digest_of_rows(read, true_labels, *context))


def _refuse_repeated(ids: Ids) -> None:
    """Any repeated id is refused, whatever its labels: an error for unequal labels alone would tell them apart."""
    if ids.words.ndim == 1:
        order = np.argsort(ids.words, kind="stable")
        same = ids.words[order][1:] == ids.words[order][:-1]
    else:
        order = np.lexsort(ids.words.T)
        same = (ids.words[order][1:] == ids.words[order][:-1]).all(axis=1)
    if same.any():
        at = int(np.argmax(same))
        rows = sorted((int(order[at]), int(order[at + 1])))
        raise IdError(f"the id at row {rows[1]} is that of row {rows[0]} again; every record needs an id of its own.")


def _stored_prior(prior: Prior | None, how: str) -> str:
    if prior is None:
        return json.dumps({"how": how})
    body = {"how": how, "epsilon": str(prior.epsilon), "probabilities": prior.probabilities.tolist()}
    return json.dumps(body)


def _restored(entry: Entry, space: LabelSpace) -> tuple[Prior | None, str, Mechanism]:
    body = json.loads(entry.prior)
    prior = None
    if "probabilities" in body:
        prior = Prior(space, body["probabilities"], Fraction(body["epsilon"]))
    return prior, body["how"], mechanism_from_json(entry.mechanism)


def _digest(content: str | bytes) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()
