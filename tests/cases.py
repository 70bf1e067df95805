"""Label sets and priors that designs must cope with, by name."""

from __future__ import annotations

import numpy as np

from labeldp import LabelSpace, Prior

LABELS = ("integers", "uneven", "negative", "offset", "tiny")
PRIORS = ("uniform", "random", "zeros", "spike", "one-label")
EPSILONS = (0.01, 0.05, 0.3, 1, 4, 8, 12, 20)


def space(kind: str, k: int) -> LabelSpace:
    rng = np.random.default_rng(k)
    if kind == "integers":
        return LabelSpace.integers(0, k - 1)
    if kind == "uneven":
        return LabelSpace.of(np.exp(2 * rng.normal(size=k)))
    if kind == "negative":
        return LabelSpace.of(-np.cumsum(rng.random(k) + 0.01))
    if kind == "offset":
        return LabelSpace.of(1e9 + 0.5 * np.arange(k))
    return LabelSpace.of(1e-7 * np.arange(k) / k)


def prior(kind: str, labels: LabelSpace) -> Prior:
    k = len(labels)
    rng = np.random.default_rng(k + 1)
    weights = {
        "uniform": np.ones(k),
        "random": rng.dirichlet(np.full(k, 0.3)),
        "zeros": np.where(np.arange(k) % 4 == 1, 1.0, 0.0),
        "spike": np.where(np.arange(k) == k - 1, 1.0, 1e-9),
        "one-label": np.where(np.arange(k) == k // 2, 1.0, 0.0),
    }[kind]
    return Prior(labels, weights / weights.sum())


def bias_is_negligible(channel: object) -> bool:
    """At most 1e-9 of the label range, or two units in the last place of the largest output."""
    worst = np.abs(channel.bias()).max()  # type: ignore[attr-defined]
    labels, outputs = channel.space, channel.outputs  # type: ignore[attr-defined]
    return bool(worst <= max(1e-9 * (labels.high - labels.low), 2 * np.spacing(np.abs(outputs).max())))
