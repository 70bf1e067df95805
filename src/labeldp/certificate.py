"""certify(): the exact check that a mechanism is epsilon-differentially private, or a refusal with the worst place.

Integers and rationals alone. Nothing is taken on trust from the code that made the mechanism: the geometry is
looked at again here, and the ratio is computed from the integers that the sampler will use.
Proof that these conditions suffice: docs/proofs/strip.md and docs/proofs/additive.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from labeldp.additive import Additive
from labeldp.channel import COIN_SIDES, Channel
from labeldp.errors import InputError, NotPrivateError
from labeldp.exact import Rational, epsilon_of, exp_lower

__all__ = ["Certificate", "certify"]


@dataclass(frozen=True)
class Certificate:
    """A proof that `mechanism` (its digest) is epsilon-DP: `ratio` ≤ `bound` ≤ e^epsilon, all exact.

    `ratio` is the largest factor between the likelihoods of one output under two labels; `bound` is a rational
    lower bound of e^epsilon, tight to 2^-80.
    """

    mechanism: str
    epsilon: Fraction
    ratio: Fraction
    bound: Fraction

    def __repr__(self) -> str:
        return (
            f"<Certificate: epsilon {float(self.epsilon):g}; ratio {float(self.ratio):.12g} ≤ "
            f"e^epsilon, {float((self.bound - self.ratio) / self.bound):.1e} below it; mechanism {self.mechanism[:12]}>"
        )


def certify(mechanism: Channel | Additive, epsilon: Rational | None = None) -> Certificate:
    """Prove that `mechanism` is `epsilon`-DP (its own claim by default), or raise NotPrivateError.

    Raises: NotPrivateError naming the worst place and the excess; InputError for what is no mechanism.
    """
    if not isinstance(mechanism, Channel | Additive):
        raise InputError(f"certify() takes a Channel or an additive mechanism, not {type(mechanism).__name__}.")
    claimed = mechanism.epsilon if epsilon is None else epsilon_of(epsilon)
    bound = exp_lower(claimed)
    if isinstance(mechanism, Channel):
        _check_strip(mechanism)
        ratio, what = _strip_ratio(mechanism), "strip"
    else:
        _check_lattice(mechanism)
        (ratio, place), what = _noise_ratio(mechanism), "noise"
    if ratio > bound:
        worst = _worst_cell(mechanism) if isinstance(mechanism, Channel) else place
        raise NotPrivateError(
            f"not {float(claimed):g}-DP: the {what}'s likelihood ratio is {float(ratio):.15g}, above e^epsilon by "
            f"{float(ratio - bound):.3g}. Worst place: {worst}."
        )
    return Certificate(mechanism.digest, claimed, ratio, bound)


def _strip_ratio(channel: Channel) -> Fraction:
    coin, strip, window = int(channel.coin), int(channel.strip), int(channel.window)
    return 1 + Fraction((COIN_SIDES - coin) * strip, coin * window)


def _check_strip(channel: Channel) -> None:
    """Every label draws from one strip of `strip` units, its window lies on it, and the cells cover it once."""
    coin, strip, window = int(channel.coin), int(channel.strip), int(channel.window)
    offsets, cuts = channel.offsets, channel.cuts
    conditions = {
        "offsets and cuts are integers": offsets.dtype == np.int64 and cuts.dtype == np.int64,
        "there is one offset per label": offsets.shape == (len(channel.space),),
        "the coin is in 1…2^64": 1 <= coin <= COIN_SIDES,
        "the window is at least one unit and no longer than the strip": 1 <= window <= strip,
        "every window lies on the strip": bool(np.all(offsets >= 0) and np.all(offsets <= strip - window)),
        "the cells cover the strip once": bool(cuts[0] == 0 and cuts[-1] == strip and np.all(cuts[1:] > cuts[:-1])),
        "there is one output per cell": channel.cell_outputs.shape == (len(cuts) - 1,),
    }
    for condition, holds in conditions.items():
        if not holds:
            raise NotPrivateError(f"this channel is no strip: the condition “{condition}” does not hold.")


def _worst_cell(channel: Channel) -> str:
    """Name the cell and the two labels whose likelihoods differ most."""
    lengths = np.diff(channel.cuts)
    worst: tuple[Fraction, int, int, int] | None = None
    for first in range(0, len(channel.space), 256):
        overlaps = channel.overlaps(slice(first, first + 256))
        for cell in np.unique((overlaps / lengths).argmax(axis=1)):
            high = first + int(overlaps[:, cell].argmax())
            start = channel.offsets
            shared = np.minimum(start + channel.window, channel.cuts[cell + 1]) - np.maximum(start, channel.cuts[cell])
            low = int(np.maximum(shared, 0).argmin())
            here = _likelihood(channel, high, int(cell)) / _likelihood(channel, low, int(cell))
            if worst is None or here > worst[0]:
                worst = (here, int(cell), high, low)
    assert worst is not None
    at, cell, high, low = worst
    values = channel.space.values
    return (
        f"cell {cell} (output {channel.cell_outputs[cell]:.6g}) is {float(at):.15g} times as likely under label "
        f"{values[high]:g} as under label {values[low]:g}"
    )


def _likelihood(channel: Channel, label: int, cell: int) -> Fraction:
    length = int(channel.cuts[cell + 1] - channel.cuts[cell])
    shared = int(channel.overlaps(slice(label, label + 1))[0, cell])
    return Fraction(channel.coin * length, COIN_SIDES * channel.strip) + Fraction(
        (COIN_SIDES - channel.coin) * shared, COIN_SIDES * channel.window
    )


def _check_lattice(noise: Additive) -> None:
    """Every label stands on the lattice, weights fall along a step and from step to step, clipping hides the tail."""
    places, steps = noise.places, noise.steps
    low, high = noise.bounds
    reach = len(steps) * int(noise.period)
    conditions = {
        "weights and positions are integers": isinstance(noise.period, int)
        and isinstance(noise.tail, int)
        and all(array.dtype == np.int64 for array in (places, steps, noise.positions)),
        "there is one position per label": noise.positions.shape == (len(noise.space),),
        "every label, rounded up or down, stands within the period": bool(
            np.all(noise.positions >= 0) and np.all(noise.positions + (noise.fractions > 0) <= noise.period)
        ),
        "there is one weight per place of the period": places.shape == (noise.period,),
        "all weights are positive": bool(np.all(places > 0) and np.all(steps > 0) and noise.tail > 0),
        "weights do not rise within a step": bool(np.all(places[1:] <= places[:-1])),
        "weights do not rise from step to step": bool(np.all(steps[1:] <= steps[:-1])),
        "outputs are clipped before the tail": noise.period - reach <= low < high <= reach,
        "the tables that are drawn from are those of the weights": bool(
            np.array_equal(np.diff(noise.place_cuts), places)
            and np.array_equal(np.diff(noise.step_cuts), [*steps, noise.tail])
            and noise.place_cuts[0] == noise.step_cuts[0] == 0
        ),
    }
    for condition, holds in conditions.items():
        if not holds:
            raise NotPrivateError(f"this noise breaks its law: the condition “{condition}” does not hold.")


def _noise_ratio(noise: Additive) -> tuple[Fraction, str]:
    """The largest factor between the likelihoods of noise values at most one period apart, and where it is."""
    places, steps = noise.places.tolist(), noise.steps.tolist()
    falls = [(Fraction(a, b), f"from step {g} to step {g + 1}") for g, (a, b) in enumerate(pairwise(steps))]
    within = (Fraction(places[0], places[-1]), "between the first and the last place of a step")
    onwards = (Fraction(noise.tail + steps[-1], noise.tail), f"from step {len(steps) - 1} on into the tail")
    return max([within, onwards, *falls])
