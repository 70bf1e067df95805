"""What may not travel beside released labels: a column, an index or a row order that gives the true ones away.

The true labels are post-processed into nothing else by accident: a copy, a recoding, or the order of the rows would
undo the release. These checks look for the plain cases and name them to the labels party; they cannot find them all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp.errors import LeakError

__all__ = ["refuse_copies", "refuse_order"]


def refuse_copies(labels: NDArray[np.float64], name: str, values: Any, kind: str = "column") -> None:
    """Refuse `values` that equal the labels or are a one-to-one map of them."""
    codes = _codes(values)
    if codes is None or len(codes) != len(labels):
        return
    _, label_codes = np.unique(labels, return_inverse=True)
    distinct, others = int(label_codes.max()) + 1, int(codes.max()) + 1
    if distinct < 2 or distinct != others:
        return
    if distinct == len(labels):
        # Where all labels differ, any key is a one-to-one map; only one in the same or the opposite order gives away.
        order = codes[np.argsort(label_codes)]
        told = bool(np.all(np.diff(order) > 0) or np.all(np.diff(order) < 0))
    else:
        pairs = label_codes.astype(np.int64) * others + codes
        told = len(np.unique(pairs)) == distinct
    if told:
        raise LeakError(
            f"{kind} {name!r} equals the label or is a one-to-one map of it: it would give the true labels away. "
            f"Drop it, or name it in keep= if that is meant."
        )


def refuse_order(labels: NDArray[np.float64]) -> None:
    """Refuse rows that are sorted by the label."""
    steps = np.diff(labels)
    if np.any(steps != 0) and (np.all(steps >= 0) or np.all(steps <= 0)):
        raise LeakError("the rows are sorted by the label: their order would give the true labels away. Shuffle them.")


def _codes(values: Any) -> NDArray[np.int64] | None:
    """Each value's rank among the distinct ones; None for what has no order or cannot be compared."""
    array = np.asarray(values)
    if array.dtype == object:
        array = np.array([str(value) for value in array.tolist()])
    if array.dtype.kind not in "biufUSMm" or array.ndim != 1:
        return None
    return np.unique(array, return_inverse=True)[1].astype(np.int64)
