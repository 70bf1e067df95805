"""Randomized response over all labels, as it is and debiased: a strip of k unit cells, one window each."""

from __future__ import annotations

import numpy as np

from labeldp.certificate import certify
from labeldp.channel import COIN_SIDES, Channel, smallest_coin
from labeldp.design.arcs import Floats
from labeldp.exact import Rational, epsilon_of
from labeldp.labels import LabelSpace

__all__ = ["design_debiased_rr", "design_randomized_response"]


def design_randomized_response(space: LabelSpace, epsilon: Rational) -> Channel:
    """The true label with probability e^ε/(e^ε + k − 1), else one of the others, all alike. Biased."""
    return _response(space, epsilon, "randomized-response", debias=False)


def design_debiased_rr(space: LabelSpace, epsilon: Rational) -> Channel:
    """Randomized response that releases Φ(y) = y + (k·y − Σy')/(ratio − 1) in place of y, which removes the bias."""
    return _response(space, epsilon, "debiased-rr", debias=True)


def _response(space: LabelSpace, epsilon: Rational, name: str, *, debias: bool) -> Channel:
    exact, k = epsilon_of(epsilon), len(space)
    coin = smallest_coin(exact, k, 1)
    outputs: Floats = space.values
    if debias:
        growth = (COIN_SIDES - coin) * k / coin
        middle = outputs[k // 2]
        y = outputs - middle
        outputs = middle + (y + (k * y - y.sum()) / growth)
    channel = Channel(
        space=space,
        epsilon=exact,
        strip=k,
        window=1,
        offsets=np.arange(k),
        cuts=np.arange(k + 1),
        coin=coin,
        cell_outputs=outputs,
        name=name,
    )
    certify(channel)
    return channel
