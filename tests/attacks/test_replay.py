"""Releases that are run again: what a key repeats, what it must not, and attacks on schemes that repeat too much."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from labeldp import (
    Channel,
    LabelRandomizer,
    LabelSpace,
    Laplace,
    Ledger,
    LedgerError,
    Prior,
    ReleaseKey,
    audit,
    design_randomized_response,
    design_unbiased,
)
from labeldp.additive import Additive
from labeldp.entropy import CHUNK, Ids, Stream
from labeldp.prior import prior_from_counts
from labeldp.sampler import draw

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SECRET = bytes(range(32))
KEY = ReleaseKey(SECRET)
SIX = LabelSpace.integers(0, 5)
N = 20_000
LABELS = np.random.default_rng(1).integers(6, size=N).astype(np.float64)
IDS = np.random.default_rng(2).permutation(10 * N)[:N]
PLACE = {"name": "march", "dataset": "census", "column": "weeks"}

RANDOMIZERS = {
    "unbiased": LabelRandomizer(SIX, 1, prior=Prior.uniform(SIX)),
    "randomized-response": LabelRandomizer(SIX, 1, mechanism="randomized-response"),
    "laplace": LabelRandomizer(SIX, 1, mechanism="laplace"),
    "grid": LabelRandomizer(LabelSpace.grid(-1, 7, 5), 1, mechanism="staircase"),
    "off the lattice": LabelRandomizer(LabelSpace.of([0, 1, 2, 3, 4, 5, "7.1234567"]), 1, mechanism="laplace"),
}


def released(randomizer: LabelRandomizer, labels: Any = LABELS, ids: Any = IDS, **changes: Any) -> Floats:
    return np.asarray(randomizer.release(labels, ids=ids, **{"key": KEY, **PLACE, **changes}).labels)


@pytest.mark.parametrize("name", RANDOMIZERS)
def test_any_order_and_any_batch_gives_the_same_labels(name: str) -> None:
    randomizer = RANDOMIZERS[name]
    whole = released(randomizer)
    order = np.random.default_rng(3).permutation(N)
    np.testing.assert_array_equal(released(randomizer, LABELS[order], IDS[order]), whole[order])
    for start, stop in ((0, 1), (1, 2), (17, 1017), (N // 2, N)):
        part = slice(start, stop)
        np.testing.assert_array_equal(released(randomizer, LABELS[part], IDS[part]), whole[part])
    assert len(np.unique(whole)) > 2


@pytest.mark.parametrize("kind", [str, str.encode])
def test_text_and_bytes_are_ids_as_well(kind: Callable[[str], Any]) -> None:
    randomizer = RANDOMIZERS["unbiased"]
    ids = [kind(f"record {i}") for i in IDS]
    whole = released(randomizer, ids=ids)
    np.testing.assert_array_equal(released(randomizer, LABELS[::-1], ids[::-1]), whole[::-1])
    np.testing.assert_array_equal(released(randomizer, LABELS[5:9], ids[5:9]), whole[5:9])
    # An id is another id in another type.
    assert not np.array_equal(released(randomizer), whole)


def test_the_streams_give_the_same_blocks_in_any_number_of_threads() -> None:
    n = 2 * CHUNK + 100
    labels, ids = np.random.default_rng(4).integers(6, size=n), np.random.default_rng(5).permutation(n)
    order = np.random.default_rng(6).permutation(n)
    for mechanism in (design_unbiased(Prior.uniform(SIX), 1), Laplace(SIX, 1)):
        context = ("march", "census", "weeks", mechanism.digest)
        whole = draw(mechanism, labels, KEY.stream("draw", KEY.ids(ids), *context), threads=1)
        np.testing.assert_array_equal(whole, released_by(mechanism, labels, ids))
        for threads in (2, 4):
            again = KEY.stream("draw", KEY.ids(ids[order]), *context)
            np.testing.assert_array_equal(draw(mechanism, labels[order], again, threads=threads), whole[order])


def released_by(mechanism: Channel | Additive, labels: Integers, ids: Integers) -> Floats:
    name = "unbiased" if isinstance(mechanism, Channel) else "laplace"
    return released(RANDOMIZERS[name], labels.astype(np.float64), ids)


@pytest.mark.parametrize("name", ["unbiased", "grid"])
def test_another_process_gives_the_same_labels(name: str) -> None:
    randomizer = RANDOMIZERS[name]
    script = """
import json, sys
from labeldp import LabelRandomizer, LabelSpace, Prior
given = json.load(sys.stdin)
six = LabelSpace.integers(0, 5)
randomizer = {
    "unbiased": lambda: LabelRandomizer(six, 1, prior=Prior.uniform(six)),
    "grid": lambda: LabelRandomizer(LabelSpace.grid(-1, 7, 5), 1, mechanism="staircase"),
}[given["which"]]()
place = {"name": "march", "dataset": "census", "column": "weeks"}
release = randomizer.release(given["labels"], ids=given["ids"], key=bytes.fromhex(given["key"]), **place)
json.dump(release.labels, sys.stdout)
"""
    labels, ids = LABELS[:500].tolist(), [f"record {i}" for i in IDS[:500]]
    given = json.dumps({"which": name, "labels": labels, "ids": ids, "key": SECRET.hex()})
    answer = subprocess.run([sys.executable, "-c", script], input=given, capture_output=True, text=True, check=True)
    assert json.loads(answer.stdout) == released(randomizer, labels, ids).tolist()


def agreement_fits(first: Floats, second: Floats, expected: Floats) -> bool:
    """Whether the rows agree as often as independent draws would: `expected` for each row, to 4.5 deviations."""
    deviation = math.sqrt(float((expected * (1 - expected)).sum()))
    return abs(np.count_nonzero(first == second) - float(expected.sum())) <= 4.5 * deviation


RESPONSE = RANDOMIZERS["randomized-response"]
CHANGES = {
    "key": {"key": ReleaseKey(bytes(range(1, 33)))},
    "one bit of the key": {"key": ReleaseKey(bytes([SECRET[0] ^ 1, *SECRET[1:]]))},
    "name": {"name": "april"},
    "data set": {"dataset": "survey"},
    "column": {"column": "hours"},
    "name and data set swapped": {"name": "census", "dataset": "march"},
    "where one ends and the other begins": {"name": "marchc", "dataset": "ensus"},
}


@pytest.mark.parametrize("change", CHANGES)
def test_another_key_name_data_set_or_column_draws_again(change: str) -> None:
    first, second = released(RESPONSE), released(RESPONSE, **CHANGES[change])
    matrix = design_randomized_response(SIX, 1).matrix()
    expected = (matrix**2).sum(axis=1)[LABELS.astype(int)]
    assert agreement_fits(first, second, expected)
    assert not agreement_fits(first, released(RESPONSE), expected)
    # Where a tenth of the rows were replayed, the same check would say so.
    second[: N // 10] = first[: N // 10]
    assert not agreement_fits(first, second, expected)


@pytest.mark.parametrize("other", [1.3, "1.000001"])
def test_another_law_draws_again(other: float | str) -> None:
    channels = [design_randomized_response(SIX, epsilon) for epsilon in (1, other)]
    first, second = (
        released(LabelRandomizer(SIX, channel.epsilon, mechanism="randomized-response")) for channel in channels
    )
    expected = (channels[0].matrix() * channels[1].matrix()).sum(axis=1)[LABELS.astype(int)]
    assert agreement_fits(first, second, expected)
    # One block under both laws, as in the naive scheme below, would be noticed.
    first, second = (draw(channel, LABELS.astype(np.int64), FromIdAlone(KEY, KEY.ids(IDS))) for channel in channels)
    assert not agreement_fits(first, second, expected)


def test_the_uses_of_one_record_are_independent() -> None:
    """Rounding, draw and data digest of one (id, label) have blocks of their own."""
    ids, labels = KEY.ids(IDS), LABELS.astype(np.int64)
    blocks = [KEY.stream(use, ids, "march").blocks(slice(0, N), labels) for use in ("rounding", "draw", "rows")]
    assert len(np.unique(np.concatenate(blocks).ravel())) == 3 * 2 * N


class FromIdAlone:
    """The naive stream: one block per record, whatever is drawn from it."""

    def __init__(self, key: ReleaseKey, ids: Ids) -> None:
        self.stream: Stream = key.stream("naive", ids)

    def blocks(self, rows: slice | Integers, labels: Integers, attempt: int = 0) -> NDArray[np.uint64]:
        return self.stream.blocks(rows, np.zeros_like(labels), attempt)


def pairs_of(channels: list[Channel], naive: bool) -> Callable[[Floats], Floats]:
    """Release each label through two channels with fresh ids; the pair of outputs as one number."""
    done = 0

    def release(labels: Floats) -> Floats:
        nonlocal done
        ids = KEY.ids(np.arange(done, done + len(labels)))
        done += len(labels)
        indices = np.searchsorted(channels[0].space.values, labels)
        outputs = []
        for channel in channels:
            ours = KEY.stream("draw", ids, "march", "census", "weeks", channel.digest)
            values = draw(channel, indices, FromIdAlone(KEY, ids) if naive else ours)
            outputs.append(np.searchsorted(channel.outputs, values))
        return outputs[0] * 1000.0 + outputs[1]

    return release


TWO_LAWS = {
    "randomized-response": [design_randomized_response(SIX, epsilon) for epsilon in ("0.85", "1.30")],
    "unbiased": [design_unbiased(Prior.uniform(SIX), epsilon) for epsilon in ("0.85", "1.30")],
}


def test_one_block_under_two_laws_can_prove_the_label() -> None:
    """Between the two coins one release forgets the label and the other keeps it: unequal outputs prove the label."""
    strict, loose = TWO_LAWS["randomized-response"]
    assert strict.coin > loose.coin
    naive = pairs_of([strict, loose], naive=True)
    for label in range(6):
        first, second = np.divmod(naive(np.full(20_000, float(label))), 1000)
        proofs = second[first != second]
        assert len(proofs) > 500
        assert set(proofs) == {label}
    ours = pairs_of(TWO_LAWS["randomized-response"], naive=False)
    for label in range(6):
        first, second = np.divmod(ours(np.full(20_000, float(label))), 1000)
        assert set(second[first != second]) == set(range(6))


@pytest.mark.parametrize("name", TWO_LAWS)
def test_two_releases_of_one_record_leak_no_more_than_their_sum(name: str) -> None:
    channels = TWO_LAWS[name]
    naive = pairs_of(channels, naive=True)
    assert audit(naive, space=SIX, draws=1_000_000, confidence=0.9999).lower > 4
    ours = audit(pairs_of(channels, naive=False), space=SIX, draws=1_000_000, confidence=0.9999)
    assert ours.lower <= 0.85 + 1.30
    # It is no empty bound: one release alone is less.
    assert ours.lower > 1.30


def test_noise_from_the_id_alone_shows_by_how_much_a_label_changed() -> None:
    noise = Laplace(LabelSpace.integers(0, 100), 1)
    ids = KEY.ids(IDS)
    before, after = np.full(N, 20), np.full(N, 57)
    naive = [draw(noise, labels, FromIdAlone(KEY, ids)) for labels in (before, after)]
    assert (naive[1] - naive[0] == 37).all()
    ours = [draw(noise, labels, KEY.stream("draw", ids, "march", noise.digest)) for labels in (before, after)]
    difference = ours[1] - ours[0]
    # Independent draws differ by their own noise, on both sides.
    assert (difference == 37).mean() < 0.02
    spread = math.sqrt(2 * noise.variance()[20])
    assert abs(difference.mean() - 37) < 4.5 * spread / math.sqrt(N)
    assert difference.std() == pytest.approx(spread, rel=0.05)
    assert abs(np.corrcoef(*ours)[0, 1]) < 4.5 / math.sqrt(N)


def test_windows_from_the_id_alone_show_their_offsets() -> None:
    channel = RANDOMIZERS["unbiased"].release([0.0]).channel
    ids = KEY.ids(IDS)
    before, after = np.full(N, 1), np.full(N, 4)
    rows = [channel.matrix()[label] for label in (1, 4)]
    expected = np.full(N, float(rows[0] @ rows[1]))
    naive = [draw(channel, labels, FromIdAlone(KEY, ids)) for labels in (before, after)]
    assert not agreement_fits(*naive, expected)
    # Each pair of outputs that is never seen is a change that is ruled out.
    assert len(pairs_seen(*naive)) < len(channel.outputs) ** 2 / 2
    ours = [draw(channel, labels, KEY.stream("draw", ids, "march", channel.digest)) for labels in (before, after)]
    assert agreement_fits(*ours, expected)
    likely = np.outer(*rows) * N > 30
    assert len(pairs_seen(*ours)) >= np.count_nonzero(likely) > len(channel.outputs) ** 2 / 2


def pairs_seen(first: Floats, second: Floats) -> set[tuple[float, float]]:
    return set(zip(first.tolist(), second.tolist(), strict=True))


@pytest.mark.parametrize("ids", [IDS, [f"record {i}" for i in IDS]], ids=["integers", "text"])
def test_a_changed_label_draws_again_and_the_others_stay(ids: Any) -> None:
    """Without a ledger a second release under one name shows which labels changed, and nothing about their values."""
    changed = LABELS.copy()
    changed[: N // 2] = (changed[: N // 2] + 1) % 6
    first, second = released(RESPONSE, LABELS, ids), released(RESPONSE, changed, ids)
    np.testing.assert_array_equal(first[N // 2 :], second[N // 2 :])
    matrix = design_randomized_response(SIX, 1).matrix()
    half = slice(0, N // 2)
    expected = (matrix[LABELS[half].astype(int)] * matrix[changed[half].astype(int)]).sum(axis=1)
    assert agreement_fits(first[half], second[half], expected)


def test_without_ids_one_changed_label_draws_every_row_again() -> None:
    changed = LABELS.copy()
    changed[0] = (changed[0] + 1) % 6
    first, again, second = (released(RESPONSE, labels, None) for labels in (LABELS, LABELS, changed))
    np.testing.assert_array_equal(first, again)
    expected = (design_randomized_response(SIX, 1).matrix() ** 2).sum(axis=1)[LABELS.astype(int)]
    assert agreement_fits(first[1:], second[1:], expected[1:])


@pytest.mark.parametrize("ids", [IDS, None], ids=["ids", "rows"])
def test_a_ledger_refuses_changed_data_under_an_old_name(tmp_path: Path, ids: Integers | None) -> None:
    ledger = Ledger(tmp_path / "ledger.db", 2)
    first = released(RESPONSE, ids=ids, ledger=ledger)
    np.testing.assert_array_equal(released(RESPONSE, ids=ids, ledger=ledger), first)
    assert ledger.spent("census", "weeks") == 1
    changed = LABELS.copy()
    changed[7] = (changed[7] + 1) % 6
    fewer = None if ids is None else ids[:-1]
    for labels, rows in ((changed, ids), (LABELS[:-1], fewer)):
        with pytest.raises(LedgerError, match='"march" was already used for other data'):
            released(RESPONSE, labels, rows, ledger=ledger)
    with pytest.raises(LedgerError, match="with other terms"):
        released(LabelRandomizer(SIX, "0.5", mechanism="randomized-response"), ids=ids, ledger=ledger)
    assert ledger.spent("census", "weeks") == 1
    # A new name pays, and draws every row again: the rows that did not change do not show.
    second = released(RESPONSE, changed, ids, ledger=ledger, name="april")
    assert ledger.spent("census", "weeks") == 2
    expected = (design_randomized_response(SIX, 1).matrix() ** 2).sum(axis=1)[LABELS.astype(int)]
    assert agreement_fits(np.delete(first, 7), np.delete(second, 7), np.delete(expected, 7))


def test_a_ledger_finds_rows_whose_labels_were_exchanged(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db", 2)
    released(RESPONSE, ledger=ledger)
    one, two = np.flatnonzero(LABELS == 1)[0], np.flatnonzero(LABELS == 2)[0]
    exchanged = LABELS.copy()
    exchanged[[one, two]] = LABELS[[two, one]]
    with pytest.raises(LedgerError, match="for other data"):
        released(RESPONSE, exchanged, ledger=ledger)
    order = np.random.default_rng(7).permutation(N)
    released(RESPONSE, LABELS[order], IDS[order], ledger=ledger)
    assert ledger.spent("census", "weeks") == 1


COUNTS = np.array([500, 700, 900, 1100, 1300, 1500])
MOVED = COUNTS + np.array([-1, 1, 0, 0, 0, 0])


def test_prior_noise_that_ignores_the_counts_shows_which_of_them_changed() -> None:
    noise = KEY.words("naive", 6)
    before, after = (prior_from_counts(counts, SIX, Fraction(1, 10), noise).probabilities for counts in (COUNTS, MOVED))
    assert (before != after).tolist() == [True, True, False, False, False, False]


def test_changed_counts_get_other_prior_noise() -> None:
    randomizer = LabelRandomizer(SIX, 1, mechanism="rr-on-bins", prior_epsilon="0.1")
    noise: list[list[Floats]] = [[], []]
    for name in (f"release {i}" for i in range(150)):
        for kept, counts in zip(noise, (COUNTS, MOVED), strict=True):
            labels = np.repeat(SIX.values, counts)
            prior = randomizer.release(labels, ids=np.arange(6000), **(PLACE | {"name": name}), key=KEY).prior
            assert prior is not None
            kept.append(prior.probabilities * 6000 - counts)
    first, second = (np.array(kept) for kept in noise)
    # The noise of scale 20 has a deviation of 28; if it were the same, all of these would be at most 1 apart.
    assert np.mean(np.abs(first - second) <= 1) < 0.1
    assert first.std() == pytest.approx(28, rel=0.2)
    for bin_ in range(6):
        assert abs(np.corrcoef(first[:, bin_], second[:, bin_])[0, 1]) < 4.5 / math.sqrt(150)


def test_the_same_counts_get_the_same_prior_in_any_order() -> None:
    randomizer = LabelRandomizer(SIX, 1, mechanism="rr-on-bins", prior_epsilon="0.1")
    labels, ids = np.repeat(SIX.values, COUNTS), np.arange(6000)
    order = np.random.default_rng(8).permutation(6000)
    first = randomizer.release(labels, ids=ids, key=KEY, **PLACE)
    second = randomizer.release(labels[order], ids=ids[order], key=KEY, **PLACE)
    assert first.prior == second.prior
    np.testing.assert_array_equal(first.labels[order], second.labels)
    assert first.prior != randomizer.release(labels, ids=ids, key=KEY, **(PLACE | {"name": "april"})).prior
