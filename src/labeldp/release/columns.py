"""Columns: labels and ids as a caller has them (array, list, series of any library), and back in the same kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp.errors import IdError, LabelError

__all__ = ["LabelColumn", "read_ids", "read_labels"]


@dataclass(frozen=True)
class LabelColumn:
    """The labels as floats, and how to give others back in the kind in which they came."""

    values: NDArray[np.float64]
    rebuilt: Callable[[NDArray[np.float64]], Any]


def read_labels(labels: Any) -> LabelColumn:
    """Floats from an array, a list or tuple, or any series that narwhals knows; missing values and text are refused."""
    if isinstance(labels, np.ma.MaskedArray) or (isinstance(labels, np.ndarray) and labels.dtype.kind == "c"):
        raise LabelError("labels must be real numbers, none masked; fill or drop masked rows first.")
    if isinstance(labels, np.ndarray):
        if labels.ndim != 1:
            raise LabelError(f"labels must be one column, not an array of shape {labels.shape}.")
        return LabelColumn(_as_floats(labels), lambda released: released)
    if isinstance(labels, list | tuple):
        kind = type(labels)
        return LabelColumn(_as_floats(np.array(labels, dtype=object)), lambda released: kind(released.tolist()))
    series = _as_series(labels)
    if series is None:
        raise LabelError(f"labels must be an array, a list or a series, not {type(labels).__name__}.")
    if series.null_count():
        row = int(np.argmax(series.is_null().to_numpy()))
        raise LabelError(f"the label at row {row} is missing; fill or drop such rows first.")

    def rebuilt(released: NDArray[np.float64]) -> Any:
        import narwhals as nw

        fresh = nw.new_series(series.name, released, backend=series.implementation)
        index = nw.maybe_get_index(series)
        return nw.to_native(fresh if index is None else nw.maybe_set_index(fresh, index=index))

    return LabelColumn(_as_floats(series.to_numpy()), rebuilt)


def read_ids(ids: Any) -> Any:
    """Integers as an array; strings and bytes as a list; missing ids refused."""
    if not isinstance(ids, np.ndarray | list | tuple):
        series = _as_series(ids)
        if series is None:
            raise IdError(f"ids must be an array, a list or a series, not {type(ids).__name__}.")
        if series.null_count():
            row = int(np.argmax(series.is_null().to_numpy()))
            raise IdError(f"the id at row {row} is missing; every record needs one.")
        ids = series.to_numpy() if series.dtype.is_integer() else series.to_list()
    if isinstance(ids, np.ma.MaskedArray):
        raise IdError("ids must not be masked; every record needs one.")
    if isinstance(ids, np.ndarray):
        if ids.ndim != 1:
            raise IdError(f"ids must be one column, not an array of shape {ids.shape}.")
        if ids.dtype.kind in "iu":
            return ids
        ids = ids.tolist()
    if ids and all(isinstance(value, int | np.integer) and not isinstance(value, bool) for value in ids):
        try:
            return np.array(ids, dtype=np.int64)
        except OverflowError:
            raise IdError("an integer id is 2^63 or more; pass such ids as strings.") from None
    return list(ids)


def _as_series(values: Any) -> Any:
    import narwhals as nw

    try:
        return nw.from_native(values, series_only=True)
    except TypeError:
        return None


def _as_floats(values: NDArray[Any]) -> NDArray[np.float64]:
    if values.dtype.kind in "iuf":
        return values.astype(np.float64)
    floats = np.empty(len(values))
    for row, value in enumerate(values):
        if value is None:
            raise LabelError(f"the label at row {row} is missing; fill or drop such rows first.")
        if isinstance(value, str | bytes | bool | np.bool_):
            raise LabelError(f"label {str(value)!r} at row {row} is no number.")
        try:
            floats[row] = float(value)
        except (TypeError, ValueError):
            raise LabelError(f"label {value!r} at row {row} is no number.") from None
    return floats
