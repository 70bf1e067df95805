"""audit(): an empirical lower bound on epsilon, at a stated confidence, for any randomizer.

A mechanism M is epsilon-DP when P(M(y) ∈ S) ≤ e^epsilon · P(M(y') ∈ S) for all labels y, y' and every set S of
released values. So every triple (y, y', S) bounds epsilon from below, by

    epsilon ≥ log P(M(y) ∈ S) − log P(M(y') ∈ S),

and draws estimate both probabilities. Looking for a good triple and measuring it on the same draws would find the
noise as well as the leak, so the draws are split:

    explore, a quarter   count what is released for each label; order the released values of each pair by their
                         likelihood ratio;
    explore, a quarter   score events on fresh counts: each single value, the half-lines z ≤ c and z ≥ c, and the
                         unions of the values that were ordered first. The score is log(lower/upper), Wilson's
                         bounds `CAUTION` deviations from both frequencies: thousands of candidates, and none of
                         them should win by luck. Where none is above 0, the surest difference wins. The best
                         triple goes on; the counts do not. A second one joins it when its plain frequencies
                         promise a much better bound, as those of a rare leak do;
    confirm, a half      n draws of y with h hits of S, n' of y' with h' hits. With α = 1 − confidence for one
                         triple and half of that for each of two, the Clopper-Pearson bounds, each wrong with
                         probability at most α/2, are

                             p_lower  = the α/2 quantile of Beta(h, n − h + 1),             0 where h = 0,
                             p'_upper = the 1 − α/2 quantile of Beta(h' + 1, n' − h'),      1 where h' = n',

                         and the answer is lower = max(0, log(p_lower / p'_upper)), the larger one of two.

The triples are fixed before the first draw of the second half, so however badly they were chosen, lower ≤ epsilon
with probability at least `confidence`. One or two are confirmed, not one per pair: they get all the draws and all of
the allowed error.

How many draws. The distance to log(p/p') is about z·(√((1−p)/(p·n)) + √((1−p')/(p'·n'))), with z = 2.58 at 99 %
and n = n' = draws/4. An event that covers half of the outputs needs (4·z/(0.1·epsilon))² draws to come within 10 %:
1.1 million at epsilon 0.1, and 3.5 million to do so with a margin of three standard errors. The default of 4 million
does; at epsilon 1 a tenth of it is plenty. An event of probability p needs (1 − p)/p times as many.

What an audit cannot do is prove privacy. It misses a leak that shows in fewer than about 40 of the draws that one
label gets in a quarter (or more, where epsilon is large: a leak must stand out from the ratios that are allowed), one
between labels that `pairs` does not name, and one in the last bits of a continuous output. `certify` is the proof; the
audit is the check that the code does what was proved.

    >>> rng = np.random.default_rng(7)
    >>> def often_true(labels):
    ...     return np.where(rng.random(labels.size) < 0.9, labels, 1 - labels)  # epsilon = log 9 = 2.197
    >>> audit(often_true, space=LabelSpace.integers(0, 1), draws=100_000)
    <Audit: epsilon ≥ 2.149 at 99 % confidence, 100000 draws; released = 0 under label 0 against label 1>
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from labeldp.additive import Additive
from labeldp.channel import Channel
from labeldp.entropy import SeededEntropy, SystemEntropy
from labeldp.errors import InputError, LabelError
from labeldp.exact import epsilon_of
from labeldp.labels import LabelSpace
from labeldp.sampler import draw

__all__ = ["Audit", "audit"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

DRAWS_MIN = 1000
CHUNK = 1 << 19
"""Draws that are in memory at once."""
VALUES_MAX = 1 << 14
"""More distinct outputs than this are counted in intervals."""
INTERVALS = 1 << 10
"""About how many intervals, and at most how many values that are so frequent that each keeps its own count."""
FREQUENT = 32
CAUTION = 4.0
"""A candidate must be lucky on both sides at once, 4·√2 = 5.7 deviations together: less than 1e-8."""
PROMISE = 0.5
"""How much more epsilon a second triple must promise before it may take draws and error from the best one."""


@dataclass(frozen=True, repr=False)
class Audit:
    """epsilon ≥ `lower`, with probability at least `confidence` over the draws.

    The bound was measured on how often `event` happens under `label` and under `other`. `claimed` is the epsilon
    that the mechanism says it has, None where it says nothing; `violation` is whether the bound refutes it.
    """

    lower: float
    confidence: float
    draws: int
    label: float
    other: float
    event: str
    claimed: Fraction | None

    @property
    def violation(self) -> bool:
        return self.claimed is not None and self.claimed < self.lower

    def __repr__(self) -> str:
        claim = ""
        if self.claimed is not None:
            claim = f"; claimed {float(self.claimed):g} is {'REFUTED' if self.violation else 'not refuted'}"
        return (
            f"<Audit: epsilon ≥ {self.lower:.4g} at {100 * self.confidence:g} % confidence, {self.draws} draws; "
            f"{self.event} under label {self.label:g} against label {self.other:g}{claim}>"
        )


def audit(
    mechanism: Callable[[Floats], Floats] | Channel | Additive,
    *,
    space: LabelSpace | None = None,
    pairs: Iterable[tuple[float, float]] | None = None,
    draws: int = 4_000_000,
    confidence: float = 0.99,
    seed: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Audit:
    """A lower bound on the epsilon of `mechanism` that holds with probability at least `confidence`.

    mechanism   label values in, released values out, same shape, every entry drawn independently of the others;
                or a Channel or additive mechanism, which the sampler of releases draws.
    space       the labels, for a callable without a `.space` of its own. An `.epsilon` is taken as its claim.
    pairs       the labels to compare, each pair both ways. By default the ends, the neighbours at both ends and in
                the middle, and pairs at half the range: at most eight labels, always the same.
    draws       released values in all, over all labels and both halves.
    seed        repeats the draws of a Channel or additive mechanism; a callable holds its own generator.
    progress    is called with the draws done and the draws in all, after each chunk.

    Raises: InputError for an argument that breaks its rule or a mechanism that answers NaN or another shape;
    LabelError for a label that the space does not hold.
    """
    labels = _space_of(mechanism, space)
    claim = getattr(mechanism, "epsilon", None)
    claimed = None if claim is None else epsilon_of(claim)
    total = _checked_draws(draws)
    if not 0 < confidence < 1:
        raise InputError(f"confidence={confidence} must lie between 0 and 1, as 0.99 does.")
    compared = _default_pairs(len(labels)) if pairs is None else _checked_pairs(pairs, labels)
    if total < 100 * len(set(itertools.chain(*compared))):
        raise InputError(f"draws={draws} are too few for so many labels; give 100 per label, or compare fewer pairs.")
    source = _Source(labels, _released_by(mechanism, labels, seed), total, progress)
    bound, best = _confirm(source, _explore(source, compared), 1 - confidence)
    return Audit(
        lower=max(0.0, bound),
        confidence=float(confidence),
        draws=source.done,
        label=float(labels.values[best.label]),
        other=float(labels.values[best.other]),
        event=str(best.event),
        claimed=claimed,
    )


@dataclass(frozen=True)
class _Event:
    """A union of closed intervals, ascending and apart; a single value is an interval of one point."""

    starts: Floats
    ends: Floats

    def holds(self, released: Floats) -> NDArray[np.bool_]:
        interval = np.searchsorted(self.starts, released, side="right") - 1
        inside: NDArray[np.bool_] = (interval >= 0) & (released <= self.ends[interval])
        return inside

    def __str__(self) -> str:
        count = len(self.starts)
        points = bool(np.all(self.starts == self.ends))
        if count > 1:
            first = zip(self.starts[:4], self.ends[:4], strict=True)
            shown = [f"{start:.10g}" if points else f"[{start:.10g}, {end:.10g}]" for start, end in first]
            listed = ", ".join([*shown, *["…"] * (count > 4)])
            what = "values" if points else "intervals"
            return f"released in {{{listed}}} ({count} {what})"
        start, end = float(self.starts[0]), float(self.ends[0])
        if points:
            return f"released = {start:.10g}"
        if start == -math.inf:
            return f"released <= {end:.10g}"
        if end == math.inf:
            return f"released >= {start:.10g}"
        return f"released in [{start:.10g}, {end:.10g}]"


@dataclass(frozen=True)
class _Triple:
    """A label, another one (both as indices) and an event; what it scored, and what it promises for the second half."""

    label: int
    other: int
    event: _Event
    score: float
    promise: float


@dataclass
class _Source:
    """Released values in chunks, checked and counted against the draws that the audit may use."""

    space: LabelSpace
    release: Callable[[Integers], Floats]
    total: int
    progress: Callable[[int, int], None] | None
    done: int = 0

    def chunks(self, labels: Integers, each: int) -> Iterator[Floats]:
        """`each` draws of every label (indices), as arrays labels × draws that fit into memory."""
        width = max(1, CHUNK // len(labels))
        for first in range(0, each, width):
            indices = np.repeat(labels, min(width, each - first))
            yield self._checked(self.release(indices), indices).reshape(len(labels), -1)
            self.done += indices.size
            if self.progress is not None:
                self.progress(self.done, self.total)

    def _checked(self, answer: object, indices: Integers) -> Floats:
        try:
            released = np.asarray(answer, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                f"the mechanism answered with {type(answer).__name__}; it must return an array of numbers."
            ) from None
        if released.shape != indices.shape:
            raise InputError(
                f"the mechanism answered {indices.size} labels with shape {released.shape}; it must return one "
                f"released value per label, shape {indices.shape}."
            )
        missing = np.isnan(released)
        if missing.any():
            label = self.space.values[indices[int(np.argmax(missing))]]
            raise InputError(
                f"the mechanism released NaN for label {label:g}; a released value must be a number. If NaN is "
                "meant to be released, map it to a number that nothing else releases."
            )
        return released


@dataclass(frozen=True)
class _Table:
    """counts[part, label, cell]: how many draws. A cell is a value that was seen, or one of the line's intervals."""

    starts: Floats
    ends: Floats
    counts: Integers
    intervals: bool = False

    def with_draws(self, part: int, released: Floats) -> _Table:
        """The table with released values, labels × draws, added to one part."""
        table = self if self.intervals else self._with_cells_for(released)
        cells, labels = len(table.starts), len(released)
        at = table._cell_of(released) + cells * np.arange(labels)[:, None]
        counts = table.counts.copy()
        counts[part] += np.bincount(at.ravel(), minlength=cells * labels).reshape(labels, cells)
        return _Table(table.starts, table.ends, counts, table.intervals)

    def _with_cells_for(self, released: Floats) -> _Table:
        fresh, weight = np.unique(released, return_counts=True)
        seen = np.union1d(self.starts, fresh)
        if len(seen) <= VALUES_MAX:
            return self._moved_to(seen, seen, intervals=False)
        weights = np.zeros(len(seen), dtype=np.int64)
        weights[np.searchsorted(seen, fresh)] += weight
        weights[np.searchsorted(seen, self.starts)] += self.counts.sum(axis=(0, 1))
        starts = _interval_starts(seen, weights)
        return self._moved_to(starts, np.append(_next(starts[1:], -np.inf), np.inf), intervals=True)

    def _moved_to(self, starts: Floats, ends: Floats, *, intervals: bool) -> _Table:
        table = _Table(starts, ends, np.zeros((*self.counts.shape[:2], len(starts)), dtype=np.int64), intervals)
        np.add.at(table.counts.T, table._cell_of(self.starts), self.counts.T)
        return table

    def _cell_of(self, released: Floats) -> Integers:
        cell: Integers = np.searchsorted(self.starts, released, side="right") - 1
        return cell

    def union(self, cells: Integers) -> _Event:
        """The event that one of these cells is hit; intervals that touch become one."""
        cells = np.sort(cells)
        if not self.intervals:
            return _Event(self.starts[cells], self.ends[cells])
        apart = np.diff(cells) > 1
        return _Event(self.starts[cells[np.append(True, apart)]], self.ends[cells[np.append(apart, True)]])


def _explore(source: _Source, pairs: list[tuple[int, int]]) -> list[_Triple]:
    """The triple with the best score on the first half of the draws, and the one that promises much more, if any."""
    labels = np.unique(np.array(pairs, dtype=np.int64))
    nothing = np.array([], dtype=np.float64)
    table = _Table(nothing, nothing, np.zeros((2, len(labels), 0), dtype=np.int64))
    each = source.total // 2 // len(labels)
    for part, draws in enumerate((each // 2, each - each // 2)):
        for released in source.chunks(labels, draws):
            table = table.with_draws(part, released)

    scored: list[_Triple] = []
    promising: list[_Triple] = []
    for label, other in [*pairs, *((other, label) for label, other in pairs)]:
        rows = np.searchsorted(labels, (label, other))
        for found, best_one in zip((scored, promising), _best_events(table, rows, source.total // 4), strict=True):
            found.append(_Triple(label, other, *best_one))
    best = max(scored, key=lambda triple: triple.score)
    bold = max(promising, key=lambda triple: triple.promise)
    return [best, bold] if bold.score > 0 and bold.promise > max(best.promise, 0.0) + PROMISE else [best]


def _best_events(table: _Table, rows: Integers, draws: int) -> list[tuple[_Event, float, float]]:
    """The event with the best score and the one with the best promise, for two rows of the table.

    Order on the first part, score on the second: what luck put in front finds no luck there.
    """
    (seen, seen_other), (hits, hits_other) = table.counts[:, rows]
    order = np.argsort((seen_other + 0.5) / (seen + 0.5), kind="stable")

    def candidates(counts: Integers) -> Integers:
        below, above, first = counts.cumsum(), counts[::-1].cumsum()[::-1], counts[order].cumsum()
        return np.array([counts, below, above, first])

    def event(kind: int, at: int) -> _Event:
        start, end = table.starts[at : at + 1], table.ends[at : at + 1]
        if kind == 3:
            return table.union(order[: at + 1])
        return _Event(np.array([-np.inf]) if kind == 1 else start, np.array([np.inf]) if kind == 2 else end)

    share, share_other = (candidates(counts) / counts.sum() for counts in (hits, hits_other))
    score = _score(share, share_other, int(hits.sum()))
    # 2.6 deviations: about what a confidence of 99 % will ask for.
    promise = np.where(score > 0, _log_ratio_wilson(share, share_other, draws, 2.6), -np.inf)
    places = (np.unravel_index(np.argmax(values), values.shape) for values in (score, promise))
    return [(event(int(kind), int(at)), float(score[kind, at]), float(promise[kind, at])) for kind, at in places]


def _score(share: Floats, share_other: Floats, draws: int) -> Floats:
    """log(lower/upper) where that is positive; else, from −1 up to 0, how sure the difference is that there is."""
    score = _log_ratio_wilson(share, share_other, draws, CAUTION)
    deviation, deviation_other = (np.sqrt((p * (1 - p) + 1 / draws) / draws) for p in (share, share_other))
    sureness = (share - share_other) / (deviation + deviation_other) / CAUTION
    return np.where(score > 0, score, np.minimum(sureness - 1, 0))


def _log_ratio_wilson(share: Floats, share_other: Floats, draws: int, deviations: float) -> Floats:
    """log(lower/upper), Wilson's bounds on the probabilities behind two frequencies."""
    spread = deviations**2 / draws

    def bound(share: Floats, side: int) -> Floats:
        found: Floats = share + spread / 2 + side * np.sqrt(spread * (share * (1 - share) + spread / 4))
        return found / (1 + spread)

    ratio: Floats = np.maximum(bound(share, -1), 1e-300) / bound(share_other, 1)
    return np.log(ratio)


def _confirm(source: _Source, triples: list[_Triple], error: float) -> tuple[float, _Triple]:
    """The best lower bound that the rest of the draws gives any of the triples, and that triple."""
    labels = sorted({label for triple in triples for label in (triple.label, triple.other)})
    ends = [(source.total - source.done) * i // len(labels) for i in range(len(labels) + 1)]
    draws = {label: end - start for label, (start, end) in zip(labels, itertools.pairwise(ends), strict=True)}
    hits = {label: [0] * len(triples) for label in labels}
    for label in labels:
        for released in source.chunks(np.array([label]), draws[label]):
            for i, triple in enumerate(triples):
                hits[label][i] += int(np.count_nonzero(triple.event.holds(released)))
    bounds = [
        _log_ratio_lower(hits[t.label][i], draws[t.label], hits[t.other][i], draws[t.other], error / len(triples))
        for i, t in enumerate(triples)
    ]
    best = int(np.argmax(bounds))
    return bounds[best], triples[best]


def _log_ratio_lower(hits: int, draws: int, hits_other: int, draws_other: int, error: float) -> float:
    """log(p_lower/p'_upper): at most log(p/p') except with probability `error`, half of it on each side."""
    from scipy.special import betainccinv, betaincinv  # slow to import

    if hits == 0:
        return -math.inf
    p_lower = float(betaincinv(hits, draws - hits + 1, error / 2))
    everything = hits_other == draws_other
    p_upper = 1.0 if everything else float(betainccinv(hits_other + 1, draws_other - hits_other, error / 2))
    return math.log(p_lower / p_upper)


def _interval_starts(seen: Floats, weights: Integers) -> Floats:
    """Starts of intervals that cover the line: about equal shares, finer in the tails, frequent values apart."""
    upto = weights.cumsum()
    tails = 2 ** np.arange(3, int(upto[-1]).bit_length() - 1)
    ranks = np.concatenate([tails, upto[-1] - tails, np.linspace(1, upto[-1], INTERVALS).astype(np.int64)])
    heaviest = np.argsort(-weights, kind="stable")[:INTERVALS]
    frequent = seen[heaviest[weights[heaviest] >= FREQUENT]]
    shares = seen[np.searchsorted(upto, ranks)]
    return np.unique(np.concatenate([np.array([-np.inf]), shares, frequent, _next(frequent, np.inf)]))


def _next(values: Floats, towards: float) -> Floats:
    """The neighbouring floats; beyond the largest one lies infinity, which is an output like others."""
    with np.errstate(over="ignore"):
        return np.nextafter(values, towards)


def _released_by(
    mechanism: Callable[[Floats], Floats] | Channel | Additive, space: LabelSpace, seed: int | None
) -> Callable[[Integers], Floats]:
    """Label indices in, released values out."""
    if isinstance(mechanism, Channel | Additive):
        entropy = SystemEntropy() if seed is None else SeededEntropy(seed)
        calls = itertools.count()
        # A seeded stream repeats itself from its first row on; each call needs one of its own.
        return lambda indices: draw(mechanism, indices, entropy.stream(f"audit {next(calls)}"))
    if seed is not None:
        raise InputError(f"seed={seed} cannot reach a callable; seed the generator that the callable draws from.")
    return lambda indices: mechanism(space.values[indices])


def _space_of(mechanism: object, space: LabelSpace | None) -> LabelSpace:
    if not callable(mechanism) and not isinstance(mechanism, Channel | Additive):
        raise InputError(
            f"audit() takes a function of labels, a Channel or an additive mechanism, not {type(mechanism).__name__}."
        )
    own = getattr(mechanism, "space", None)
    found = own if space is None else space
    if found is None:
        raise InputError("a plain function does not say which labels it takes; pass space=LabelSpace….")
    if not isinstance(found, LabelSpace):
        raise InputError(f"space must be a LabelSpace, not {type(found).__name__}.")
    if own is not None and own != found:
        raise InputError(f"space={found!r} is not the mechanism's own, {own!r}; leave it out.")
    return found


def _checked_draws(draws: int) -> int:
    try:
        total = operator.index(draws)
    except TypeError:
        raise InputError(f"draws={draws!r} must be a whole number.") from None
    if total < DRAWS_MIN:
        raise InputError(f"draws={draws} are too few to bound anything; give at least {DRAWS_MIN}.")
    return total


def _checked_pairs(pairs: Iterable[tuple[float, float]], space: LabelSpace) -> list[tuple[int, int]]:
    """The pairs as indices of labels."""
    checked = []
    for pair in pairs:
        try:
            label, other = (float(value) for value in pair)
        except (TypeError, ValueError):
            raise InputError(f"pairs holds {pair!r}; each entry must be two labels, as in pairs=[(0, 5)].") from None
        if label == other:
            raise InputError(f"pair ({label:g}, {other:g}) compares a label with itself; give two different labels.")
        checked.append((_index_of(label, space), _index_of(other, space)))
    if not checked:
        raise InputError("pairs is empty; give at least one pair of labels, or leave it out.")
    return checked


def _index_of(label: float, space: LabelSpace) -> int:
    index = int(np.searchsorted(space.values, label))
    if index == len(space) or space.values[index] != label:
        raise LabelError(f"label {label:g} is not one of the values of {space!r}; pairs compares those alone.")
    return index


def _default_pairs(k: int) -> list[tuple[int, int]]:
    middle, quarter = k // 2, k // 4
    pairs = [
        (0, k - 1),
        (0, 1),
        (k - 2, k - 1),
        (middle - 1, middle),
        (0, middle),
        (middle, k - 1),
        (quarter, k - 1 - quarter),
    ]
    return sorted({(low, high) for low, high in pairs if low < high})
