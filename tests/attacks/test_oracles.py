"""What is not released must not tell either: errors, receipts, keys in logs, and what a refused release has spent."""

from __future__ import annotations

import base64
import copy
import json
import logging
import pickle
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labeldp import (
    BudgetError,
    IdError,
    InputError,
    KeyFormatError,
    LabelDPError,
    LabelError,
    LabelRandomizer,
    LabelSpace,
    Ledger,
    LedgerError,
    Prior,
    Receipt,
    ReleaseKey,
    SeededEntropy,
)

SECRET = bytes(range(100, 132))
WEEKS = LabelSpace.integers(0, 52)
RANDOMIZER = LabelRandomizer(WEEKS, 1, prior=Prior.uniform(WEEKS))
KEYED: dict[str, Any] = {"key": SECRET, "name": "march"}
PLACE: dict[str, Any] = {"dataset": "census", "column": "weeks"}


def refusal(error: type[LabelDPError], labels: Any, **arguments: Any) -> str:
    with pytest.raises(error) as refused:
        RANDOMIZER.release(labels, **arguments)
    # Nothing hangs on to the error that would say more.
    assert refused.value.__cause__ is None
    return str(refused.value)


def numbers_in(text: str) -> set[float]:
    return {float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", text)}


@pytest.mark.parametrize(
    "ids",
    [[11, 12, 13, 12, 15], ["a", "b", "c", "b", "e"], [b"a", b"b", b"c", b"b", b"e"], np.array([1, 0, 2, 0, 4])],
    ids=["integers", "text", "bytes", "array"],
)
def test_a_repeated_id_says_the_same_whatever_the_labels(ids: Any) -> None:
    labels = ([0, 7, 0, 7, 0], [0, 7, 0, 8, 0], [52, 0, 52, 52, 52], [1, 2, 3, 4, 5], [9, 9, 9, 9, 9])
    texts = {refusal(IdError, values, ids=ids, **KEYED) for values in labels}
    assert texts == {"the id at row 3 is that of row 1 again; every record needs an id of its own."}


def test_ids_that_are_repeated_more_often() -> None:
    ids = [5, 6, 5, 6, 5, 7]
    texts = {refusal(IdError, labels, ids=ids, **KEYED) for labels in ([1] * 6, [1, 2, 1, 2, 1, 3], [6, 5, 4, 3, 2, 1])}
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("bad", "worse", "said"),
    [
        (61.0, 4711.0, {61, 2, 0, 52}),
        (-4.0, -4711.0, {-4, 2, 0, 52}),
        (17.5, 19.5, {17.5, 2, 53}),
        (float("nan"), 4711.0, {2}),
        (float("inf"), -float("inf"), {2}),
        (None, "x4711", {2}),
        ("x31", "x4711", {2, 31}),
    ],
)
def test_a_bad_label_is_named_with_its_row_and_no_other_label(bad: Any, worse: Any, said: set[float]) -> None:
    # Row 2, bounds 0 and 52, 53 labels; not the other true labels, nor a second one that does not belong.
    text = refusal(LabelError, [23, 29, bad, 37, worse, 41, 43])
    assert numbers_in(text) == said
    assert text == refusal(LabelError, [1, 2, bad, 3, 5, 8, 13])


def test_a_length_mismatch_tells_the_lengths_alone() -> None:
    text = refusal(IdError, [23, 29, 37], ids=[101, 102], **KEYED)
    assert numbers_in(text) == {2, 3}
    assert numbers_in(refusal(IdError, [23, 29, 37], ids=[101, 102, "x"], **KEYED)) == set()


class TestReceipt:
    """Marked values are planted, and the published texts searched for them."""

    SPACE = LabelSpace.grid(0, 100_000, 101)
    MARKED = 31415.926
    CLIPPED = 2718
    KEPT = 5000

    def release(self, **arguments: Any) -> Any:
        labels = np.concatenate([np.full(self.KEPT, self.MARKED), np.full(self.CLIPPED, 161803.0)])
        randomizer = LabelRandomizer(self.SPACE, 1, prior_epsilon="0.25")
        arguments = {"ids": np.arange(len(labels)) + 57721, "clip": True, **KEYED, **PLACE, **arguments}
        return randomizer.release(labels, **arguments)

    def test_it_holds_no_label_no_key_and_no_count_of_clipped_labels(self, tmp_path: Path) -> None:
        release = self.release(ledger=Ledger(tmp_path / "ledger.db", 1))
        assert release.clipped == self.CLIPPED
        for text in (release.receipt.to_json(), str(release.receipt), repr(release.receipt), repr(release)):
            # The digest is that of the mechanism, which was paid for and is published itself.
            digest = release.channel.digest
            assert self.found_in(text.replace(digest, "").replace(digest[:12], "")) == []

    def test_the_search_would_find_it(self) -> None:
        body = json.loads(self.release().receipt.to_json())
        for leak in (self.CLIPPED, self.KEPT, self.MARKED, SECRET.hex(), list(SECRET), repr(SECRET)):
            assert self.found_in(json.dumps({**body, "leak": leak})) != []

    def found_in(self, text: str) -> list[str]:
        marks = ["31415", "161803", "57721", str(self.CLIPPED), str(self.KEPT), *key_marks(SECRET)]
        return [mark for mark in marks if mark in text]

    def test_its_fields_are_known_one_by_one(self) -> None:
        body = json.loads(self.release().receipt.to_json())
        assert set(body) == {
            *("format", "version", "private", "epsilon", "epsilon_prior", "epsilon_labels", "mechanism"),
            *("mechanism_digest", "prior", "labels", "low", "high", "label_values", "continuous", "clip"),
            *("keyed", "name", "dataset", "column", "seed", "at", "labeldp", "digest"),
        }

    def test_the_ledger_holds_no_label_and_no_key(self, tmp_path: Path) -> None:
        path = tmp_path / "ledger.db"
        self.release(ledger=Ledger(path, 1))
        stored = path.read_bytes()
        assert SECRET not in stored
        assert [mark for mark in (*key_marks(SECRET), "31415.926", "161803.0") if mark.encode() in stored] == []
        assert b"census" in stored


def key_marks(secret: bytes) -> list[str]:
    """How a key, or a half of it, might be written."""
    marks = [base64.b64encode(secret).decode()]
    for part in (secret, secret[:16], secret[16:]):
        marks += [part.hex(), part.hex().upper(), part.decode("latin-1"), ", ".join(map(str, part))]
    return marks


@pytest.mark.parametrize("mechanism", ["unbiased", "rr-on-bins", "debiased-rr", "laplace", "staircase-clipped"])
@pytest.mark.parametrize("keyed", [True, False])
def test_receipts_of_different_labels_are_the_same(mechanism: str, keyed: bool, tmp_path: Path) -> None:
    prior = Prior.uniform(WEEKS) if mechanism in ("unbiased", "rr-on-bins") else None
    randomizer = LabelRandomizer(WEEKS, 1, mechanism=mechanism, prior=prior)
    texts = []
    for number, labels in enumerate(([0.0] * 50, [52.0] * 50, [*range(49), 4711.0])):
        ledger = Ledger(tmp_path / f"{number}.db", 1)
        arguments = {**KEYED, "ids": np.arange(50)} if keyed else {}
        release = randomizer.release(labels, clip=True, ledger=ledger, **PLACE, **arguments)
        assert release.clipped == (4711.0 in labels)
        body = json.loads(release.receipt.to_json())
        assert body.pop("at")
        assert body.pop("digest")  # over all of it, the time included
        texts.append(json.dumps(body))
    assert len(set(texts)) == 1


def test_receipts_tell_a_prior_that_was_paid_for() -> None:
    """The other side: where a prior is estimated, the digest depends on the labels, and the receipt says the price."""
    randomizer = LabelRandomizer(WEEKS, 4, prior_epsilon=1)
    receipts = [randomizer.release(np.full(5000, value), **KEYED).receipt for value in (3.0, 40.0)]
    assert receipts[0].mechanism_digest != receipts[1].mechanism_digest
    assert [receipt.epsilon_prior for receipt in receipts] == [1, 1]


class TestReleaseKey:
    KEY = ReleaseKey(SECRET)

    def test_no_text_shows_it(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.INFO):
            logging.getLogger("test").info("releasing with %s, %r", self.KEY, {"key": self.KEY})
        texts = [repr(self.KEY), str(self.KEY), f"{self.KEY}", repr([self.KEY]), caplog.text]
        assert [mark for text in texts for mark in key_marks(SECRET) if mark in text] == []
        assert self.KEY.fingerprint in caplog.text

    def test_its_fingerprint_is_no_part_of_it_nor_of_what_is_drawn(self) -> None:
        fingerprint = bytes.fromhex(self.KEY.fingerprint)
        assert fingerprint not in SECRET
        ids = self.KEY.ids(np.arange(1000))
        blocks = self.KEY.stream("draw", ids, "march").blocks(slice(0, 1000), np.zeros(1000, dtype=np.int64))
        assert fingerprint not in blocks.tobytes()
        others = {ReleaseKey(bytes([byte, *SECRET[1:]])).fingerprint for byte in range(256)}
        assert len(others) == 256

    @pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
    def test_it_is_not_pickled(self, protocol: int) -> None:
        for holder in (self.KEY, [self.KEY], {"key": self.KEY}):
            with pytest.raises(TypeError, match="a ReleaseKey is not pickled") as refused:
                pickle.dumps(holder, protocol)
            assert [mark for mark in key_marks(SECRET) if mark in str(refused.value)] == []

    def test_it_is_not_copied_nor_written_as_json(self) -> None:
        for copier in (copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="a ReleaseKey is not pickled"):
                copier(self.KEY)
        with pytest.raises(TypeError):
            json.dumps({"key": self.KEY})

    @pytest.mark.parametrize("secret", [SECRET[:31], SECRET * 2, SECRET.hex(), "a secret of text", b"", 5, None])
    def test_a_key_of_the_wrong_kind_is_not_shown(self, secret: Any) -> None:
        with pytest.raises(KeyFormatError, match="a release key is 32 bytes") as refused:
            ReleaseKey(secret)
        text = str(refused.value)
        assert "secret of" not in text
        assert SECRET[:16].hex() not in text
        assert SECRET[:16].decode("latin-1") not in text


GOOD = [1.0, 2.0, 3.0]
IDS = [101, 102, 103]
REFUSED: dict[str, tuple[type[LabelDPError], Any, dict[str, Any]]] = {
    "NaN": (LabelError, [1, float("nan"), 3], {}),
    "infinity": (LabelError, np.array([1, np.inf, 3]), {}),
    "None": (LabelError, [1, None, 3], {}),
    "text": (LabelError, [1, "two", 3], {}),
    "a boolean": (LabelError, [1, True, 3], {}),
    "out of range": (LabelError, [1, 53, 3], {}),
    "NaN and clip": (LabelError, [1, float("nan"), 3], {"clip": True}),
    "between the labels": (LabelError, [1, 2.5, 3], {}),
    "a table": (LabelError, np.ones((3, 2)), {}),
    "a number": (LabelError, 3.0, {}),
    "empty list": (LabelError, [], {}),
    "empty array": (LabelError, np.array([]), {}),
    "empty, keyed": (LabelError, [], {**KEYED, "ids": []}),
    "NaN, keyed": (LabelError, [1, float("nan"), 3], {**KEYED, "ids": IDS}),
    "too few ids": (IdError, GOOD, {**KEYED, "ids": IDS[:2]}),
    "too many ids": (IdError, GOOD, {**KEYED, "ids": [*IDS, 104]}),
    "no ids at all": (IdError, GOOD, {**KEYED, "ids": []}),
    "repeated ids": (IdError, GOOD, {**KEYED, "ids": [101, 102, 101]}),
    "mixed ids": (IdError, GOOD, {**KEYED, "ids": [101, "102", 103]}),
    "a missing id": (IdError, GOOD, {**KEYED, "ids": [101, None, 103]}),
    "fractional ids": (IdError, GOOD, {**KEYED, "ids": [0.5, 1.5, 2.5]}),
    "huge ids": (IdError, GOOD, {**KEYED, "ids": [1, 2, 2**63]}),
    "a key without a name": (InputError, GOOD, {"key": SECRET, "ids": IDS}),
    "an empty name": (InputError, GOOD, {"key": SECRET, "ids": IDS, "name": ""}),
    "a name without a key": (InputError, GOOD, {"name": "march"}),
    "ids without a key": (InputError, GOOD, {"ids": IDS}),
    "a short key": (KeyFormatError, GOOD, {"key": SECRET[:31], "name": "march", "ids": IDS}),
    "a key of text": (KeyFormatError, GOOD, {"key": SECRET.hex(), "name": "march", "ids": IDS}),
    "a key and a seed": (InputError, GOOD, {**KEYED, "ids": IDS, "entropy": SeededEntropy(1)}),
    "a seed": (LedgerError, GOOD, {"entropy": SeededEntropy(1)}),
    "no data set": (InputError, GOOD, {"dataset": None}),
    "no column": (InputError, GOOD, {"column": ""}),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_refused_release_spends_nothing(what: str, tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    ledger = Ledger(path, 1)
    before = path.read_bytes()
    error, labels, arguments = REFUSED[what]
    refusal(error, labels, ledger=ledger, **{**PLACE, **arguments})
    assert (ledger.entries(), path.read_bytes()) == ([], before)
    # The same ledger still has all of its budget, and the next release takes it.
    release = RANDOMIZER.release(GOOD, ids=IDS, ledger=ledger, **KEYED, **PLACE)
    assert isinstance(release.receipt, Receipt)
    assert ledger.remaining("census", "weeks") == 0


def test_a_release_beyond_the_budget_spends_nothing_and_releases_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db", "1.5")
    RANDOMIZER.release(GOOD, ledger=ledger, **PLACE)
    refusal(BudgetError, GOOD, ledger=ledger, **PLACE)
    refusal(BudgetError, GOOD, ids=IDS, ledger=ledger, **KEYED, **PLACE)
    assert ledger.remaining("census", "weeks") == Fraction(1, 2)
    assert ledger.find("census", "weeks", "march", ReleaseKey(SECRET).fingerprint) is None


def test_a_refused_replay_says_the_same_whatever_changed_in_the_labels(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db", 1)
    RANDOMIZER.release(GOOD, ids=IDS, ledger=ledger, **KEYED, **PLACE)
    texts = {
        refusal(LedgerError, labels, ids=IDS, ledger=ledger, **KEYED, **PLACE)
        for labels in ([1, 2, 4], [52, 52, 52], [3, 2, 1])
    }
    assert len(texts) == 1
    assert "other data" in texts.pop()
