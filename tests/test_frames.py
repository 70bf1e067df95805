"""release_frame: the same kind of frame out, only the label column changed, nothing that betrays it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from labeldp import InputError, LabelError, LabelRandomizer, LabelSpace, LeakError, Ledger, ReleaseKey, release_frame

SPACE = LabelSpace.integers(0, 52)
RANDOMIZER = LabelRandomizer(SPACE, 1)
KEY = ReleaseKey(bytes(range(32)))
RNG = np.random.default_rng(0)
COLUMNS = {
    "person": [f"p{i}" for i in range(400)],
    "age": RNG.integers(18, 90, 400).tolist(),
    "weeks": RNG.binomial(52, 0.7, 400).tolist(),
    "wage": RNG.normal(size=400).tolist(),
}
KINDS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}


def as_dict(frame: Any) -> dict[str, list[Any]]:
    return frame.to_pydict() if isinstance(frame, pa.Table) else {c: list(frame[c]) for c in frame.columns}


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_label_column_changes(kind: str) -> None:
    frame = KINDS[kind](COLUMNS)
    released = release_frame(frame, "weeks", RANDOMIZER, id_column="person", key=KEY, name="frames")
    assert type(released.frame) is type(frame)
    after = as_dict(released.frame)
    assert list(after) == list(COLUMNS)
    assert all(after[c] == COLUMNS[c] for c in COLUMNS if c != "weeks")
    expected = RANDOMIZER.release(COLUMNS["weeks"], ids=COLUMNS["person"], key=KEY, name="frames", column="weeks")
    assert after["weeks"] == expected.labels
    assert as_dict(frame)["weeks"] == COLUMNS["weeks"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_name_takes_the_label_s_place(kind: str) -> None:
    released = release_frame(KINDS[kind](COLUMNS), "weeks", RANDOMIZER, into="noisy_weeks").frame
    assert list(as_dict(released)) == ["person", "age", "noisy_weeks", "wage"]


def test_an_index_and_types_survive_but_metadata_does_not() -> None:
    frame = pd.DataFrame(COLUMNS).set_index(np.arange(400) * 2 + 5)
    frame["age"] = frame["age"].astype("int16")
    frame.attrs["weeks"] = COLUMNS["weeks"]
    released = release_frame(frame, "weeks", RANDOMIZER).frame
    assert released.index.equals(frame.index)
    assert released["age"].dtype == "int16"
    assert released.attrs == {}
    marked = pa.table(COLUMNS).replace_schema_metadata({"min": "weeks=0"})
    assert release_frame(marked, "weeks", RANDOMIZER).frame.schema.metadata is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "copy",
    [
        lambda weeks: weeks,
        lambda weeks: [w * 2 - 100 for w in weeks],
        lambda weeks: [f"{w:x}" for w in weeks],
        lambda weeks: [float(w) ** 3 for w in weeks],
    ],
    ids=["copy", "scaled", "text", "cubed"],
)
def test_a_column_that_gives_the_label_away_is_refused(kind: str, copy: Callable[[list[int]], list[Any]]) -> None:
    frame = KINDS[kind]({**COLUMNS, "code": copy(COLUMNS["weeks"])})
    with pytest.raises(LeakError, match="'code' equals the label or is a one-to-one map"):
        release_frame(frame, "weeks", RANDOMIZER)
    assert "code" in as_dict(release_frame(frame, "weeks", RANDOMIZER, keep=["code"]).frame)


def test_an_index_that_gives_the_label_away_is_refused() -> None:
    frame = pd.DataFrame(COLUMNS).set_index(pd.Index([w + 7 for w in COLUMNS["weeks"]], name="secret"))
    with pytest.raises(LeakError, match="index 'secret'"):
        release_frame(frame, "weeks", RANDOMIZER)


def test_continuous_labels_and_keys_do_not_alarm() -> None:
    """All labels differ, and so do all ids: only a key in the order of the labels gives them away."""
    wages = RNG.uniform(0, 1, 400)
    randomizer = LabelRandomizer(LabelSpace.grid(0, 1, 11), 1)
    frame = pl.DataFrame({"id": RNG.permutation(400), "wage": wages})
    assert len(release_frame(frame, "wage", randomizer).frame) == 400
    ranked = pl.DataFrame({"rank": np.argsort(np.argsort(wages)), "wage": wages})
    with pytest.raises(LeakError, match="'rank'"):
        release_frame(ranked, "wage", randomizer)


def test_sorted_rows_are_refused() -> None:
    for weeks in (sorted(COLUMNS["weeks"]), sorted(COLUMNS["weeks"], reverse=True)):
        with pytest.raises(LeakError, match="sorted by the label"):
            release_frame(pl.DataFrame({"weeks": weeks}), "weeks", RANDOMIZER)


@pytest.mark.parametrize(
    ("frame", "arguments", "error", "says"),
    [
        ({}, {"column": "hours"}, InputError, "no column 'hours'; the frame has 'person', 'age', 'weeks', 'wage'"),
        ({}, {"id_column": "nobody"}, InputError, "no column 'nobody'"),
        ({}, {"id_column": "weeks"}, InputError, "cannot be the id column"),
        ({}, {"into": "age"}, InputError, "a column 'age' already"),
        ({}, {"keep": ["weeks"]}, InputError, "true labels cannot be kept"),
        ({"weeks": [None] + [1, 2] * 200}, {}, LabelError, "row 0 is missing"),
        ({"weeks": ["x", "y"] * 200}, {}, LabelError, "'x' at row 0 is no number"),
        ({"weeks": [60, 1] * 200}, {}, LabelError, "label 60 at row 0 is outside"),
    ],
)
def test_bad_input_spends_nothing(
    tmp_path: Any, frame: dict[str, Any], arguments: dict[str, Any], error: type[Exception], says: str
) -> None:
    ledger = Ledger(tmp_path / "ledger.db", budget=1)
    columns = {c: values[: len(frame["weeks"])] if "weeks" in frame else values for c, values in COLUMNS.items()}
    if "weeks" in frame:
        columns = {"weeks": frame["weeks"]}
    call = {"column": "weeks", "ledger": ledger, "dataset": "d", **arguments}
    with pytest.raises(error, match=says):
        release_frame(pl.DataFrame(columns), randomizer=RANDOMIZER, **call)
    assert ledger.entries() == []


def test_what_is_no_frame() -> None:
    for thing in ([1, 2], pl.LazyFrame(COLUMNS), None):
        with pytest.raises(InputError, match="eager data frame"):
            release_frame(thing, "weeks", RANDOMIZER)
