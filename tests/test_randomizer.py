"""LabelRandomizer: the whole of Algorithm 3, on every kind of input, with and without key and ledger."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from labeldp import (
    BudgetError,
    EpsilonError,
    IdError,
    InputError,
    KeyFormatError,
    LabelDPError,
    LabelError,
    LabelRandomizer,
    LabelSpace,
    Ledger,
    LedgerError,
    NotPrivateWarning,
    Prior,
    Receipt,
    ReleaseKey,
    SeededEntropy,
    certify,
    estimate_prior,
)
from labeldp.design import MECHANISMS
from labeldp.errors import FileFormatError
from labeldp.release.randomizer import spend_on_prior

SPACE = LabelSpace.integers(0, 52)
TRUE = np.random.default_rng(0).binomial(52, 0.8, 5000)
KEY = ReleaseKey(bytes(range(32)))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_mechanism_releases_certifies_and_accounts(mechanism: str) -> None:
    released = LabelRandomizer(SPACE, "1.5", mechanism=mechanism).release(TRUE)
    assert released.labels.shape == TRUE.shape
    certify(released.channel)
    receipt = released.receipt
    assert receipt.epsilon == receipt.epsilon_prior + receipt.epsilon_labels == Fraction(3, 2)
    assert receipt.epsilon_labels == released.channel.epsilon
    assert receipt.private
    assert receipt.mechanism == released.channel.name == mechanism
    assert (released.prior is None) == (mechanism not in ("unbiased", "rr-on-bins"))
    if mechanism in ("unbiased", "laplace", "staircase", "debiased-rr"):
        spread = np.sqrt(released.channel.variance().max() / len(TRUE))
        assert abs(released.labels.mean() - TRUE.mean()) < 5 * spread


def test_continuous_labels_stay_unbiased() -> None:
    """20 labels of each of 2,000 values; the slope on the true label is 1 within 5 standard errors."""
    space = LabelSpace.grid(0, 1, 6)
    true = np.tile(np.linspace(0, 1, 2000), 20)
    released = LabelRandomizer(space, 6).release(true, entropy=SeededEntropy(1)).labels
    centred = true - true.mean()
    slope = centred @ released / (centred @ centred)
    error = released.std() / np.sqrt(centred @ centred)
    assert abs(slope - 1) < 5 * error < 0.1


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (lambda y: y, np.ndarray),
        (lambda y: y.tolist(), list),
        (lambda y: tuple(y.tolist()), tuple),
        (lambda y: pd.Series(y, name="weeks", index=np.arange(len(y)) * 3 + 7), pd.Series),
        (lambda y: pl.Series("weeks", y), pl.Series),
        (lambda y: pa.chunked_array([y[:10], y[10:]]), pa.ChunkedArray),
        (lambda y: np.array([Fraction(int(v)) for v in y], dtype=object), np.ndarray),
    ],
    ids=["array", "list", "tuple", "pandas", "polars", "pyarrow", "objects"],
)
def test_the_same_kind_comes_back(made: object, kind: type) -> None:
    given = made(TRUE)  # type: ignore[operator]
    labels = LabelRandomizer(SPACE, 1).release(given, key=KEY, name="kinds").labels
    assert isinstance(labels, kind)
    expected = LabelRandomizer(SPACE, 1).release(TRUE, key=KEY, name="kinds").labels
    np.testing.assert_array_equal(np.array(labels, dtype=float), expected)
    if isinstance(labels, pd.Series):
        assert labels.name == "weeks"
        assert labels.index.equals(given.index)
    if isinstance(labels, pl.Series):
        assert labels.name == "weeks"


def test_where_the_prior_comes_from() -> None:
    few, many = TRUE[:1000], np.tile(TRUE, 40)
    uniform = LabelRandomizer(SPACE, 1).release(few)
    assert uniform.receipt.epsilon_prior == 0
    assert uniform.prior == Prior.uniform(SPACE)
    assert "uniform" in uniform.receipt.prior
    estimated = LabelRandomizer(SPACE, 4).release(many)
    assert estimated.receipt.epsilon_prior == Fraction(16278, 10**6)  # √(53/200,000), rounded down
    assert "estimated" in estimated.receipt.prior
    paper = LabelRandomizer(SPACE, 1, prior_epsilon="paper").release(few)
    assert paper.receipt.epsilon_prior == Fraction(230217, 10**6)
    asked = LabelRandomizer(SPACE, 1, prior_epsilon="0.25").release(few)
    assert asked.receipt.epsilon_prior == Fraction(1, 4)
    bins = LabelRandomizer(SPACE, "0.5", mechanism="rr-on-bins").release(few)
    assert bins.receipt.epsilon_prior == Fraction(1, 8)
    public = LabelRandomizer(SPACE, 1, prior=Prior.uniform(SPACE)).release(few)
    assert (public.receipt.epsilon_prior, public.receipt.prior) == (0, "public")
    paid = estimate_prior(few, SPACE, "0.1")
    given = LabelRandomizer(SPACE, 1, prior=paid).release(few)
    assert (given.receipt.epsilon_prior, given.receipt.epsilon) == (Fraction(1, 10), 1)


def test_the_rule_is_public_and_monotone() -> None:
    assert not spend_on_prior(53, 1000, Fraction(1))
    assert spend_on_prior(53, 1_000_000, Fraction(1))
    assert spend_on_prior(53, 10_000, Fraction(4))


def test_a_seed_is_loud_and_contagious() -> None:
    with pytest.warns(NotPrivateWarning, match="NOT PRIVATE"):
        released = LabelRandomizer(SPACE, 1).release(TRUE, entropy=SeededEntropy(7))
    assert not released.receipt.private
    assert released.receipt.seed == 7
    assert "NOT PRIVATE" in repr(released)
    assert "NOT PRIVATE" in str(released.receipt)
    assert json.loads(released.receipt.to_json())["private"] is False


def test_clipping_tells_the_labels_party_alone() -> None:
    true = TRUE.astype(float)
    true[:3] = [99, 60, -5]
    released = LabelRandomizer(SPACE, 1, mechanism="laplace").release(true, clip=True)
    assert released.clipped == 3
    assert 3 not in json.loads(released.receipt.to_json()).values()
    assert released.receipt.clip is True


def test_the_receipt_reads_back() -> None:
    receipt = LabelRandomizer(SPACE, 1).release(TRUE, key=KEY, name="r", dataset="d", column="c").receipt
    assert Receipt.from_json(receipt.to_json()) == receipt
    assert receipt.keyed
    newer = receipt.to_json().replace('"version": 1', '"version": 2')
    for broken in ("", "{}", newer, '{"format": "labeldp.receipt", "version": 1}'):
        with pytest.raises(FileFormatError):
            Receipt.from_json(broken)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.db", budget=2)


def spent(ledger: Ledger) -> Fraction:
    return sum((entry.epsilon for entry in ledger.entries()), Fraction(0))


@pytest.mark.parametrize("mechanism", ["unbiased", "rr-on-bins", "laplace", "staircase-clipped"])
def test_a_replay_is_free_and_equal(ledger: Ledger, mechanism: str) -> None:
    randomizer = LabelRandomizer(SPACE, "0.75", mechanism=mechanism)
    arguments = {"key": KEY, "name": "first", "ledger": ledger, "dataset": "census", "column": "weeks"}
    ids = [f"person {i}" for i in range(len(TRUE))]
    first = randomizer.release(TRUE, ids=ids, **arguments)
    order = np.random.default_rng(3).permutation(len(TRUE))
    again = randomizer.release(TRUE[order], ids=[ids[i] for i in order], **arguments)
    np.testing.assert_array_equal(first.labels[order], again.labels)
    assert again.receipt == first.receipt
    assert spent(ledger) == Fraction(3, 4)


def test_other_data_under_an_old_name_is_refused(ledger: Ledger) -> None:
    arguments = {"key": KEY, "name": "first", "ledger": ledger, "dataset": "census", "column": "weeks"}
    ids = np.arange(len(TRUE))
    LabelRandomizer(SPACE, 1).release(TRUE, ids=ids, **arguments)
    changed = TRUE.copy()
    changed[5] ^= 1
    with pytest.raises(LedgerError, match="other data"):
        LabelRandomizer(SPACE, 1).release(changed, ids=ids, **arguments)
    with pytest.raises(LedgerError, match="other terms"):
        LabelRandomizer(SPACE, "0.5").release(TRUE, ids=ids, **arguments)
    assert spent(ledger) == 1
    LabelRandomizer(SPACE, 1).release(changed, ids=ids, **{**arguments, "name": "second"})
    with pytest.raises(BudgetError, match="only 0 remains"):
        LabelRandomizer(SPACE, 1).release(TRUE, ledger=ledger, dataset="census", column="weeks")
    assert spent(ledger) == 2


def test_without_ids_rows_are_tied_to_the_whole_data_set() -> None:
    first = LabelRandomizer(SPACE, 1).release(TRUE, key=KEY, name="rows").labels
    np.testing.assert_array_equal(first, LabelRandomizer(SPACE, 1).release(TRUE, key=KEY, name="rows").labels)
    changed = TRUE.copy()
    changed[0] ^= 1
    other = LabelRandomizer(SPACE, 1).release(changed, key=KEY, name="rows").labels
    assert np.mean(first == other) < 0.1


NOTHING_SPENT = [
    ([1.0, np.nan], {}, LabelError, "nan at row 1"),
    ([1.0, np.inf], {}, LabelError, "inf at row 1"),
    ([1.0, None], {}, LabelError, "row 1 is missing"),
    (pl.Series([1, None]), {}, LabelError, "row 1 is missing"),
    ([1, "two"], {}, LabelError, "'two' at row 1 is no number"),
    ([1, True], {}, LabelError, "True' at row 1 is no number"),
    ([1, 61], {}, LabelError, "label 61 at row 1 is outside 0…52"),
    ([1, 2.5], {}, LabelError, "row 1 is not one of the 53 labels"),
    ([], {}, LabelError, "no labels to release"),
    (np.zeros((2, 2)), {}, LabelError, "one column"),
    ({"a": 1}, {}, LabelError, "not dict"),
    ([1, 2], {"key": KEY}, InputError, "needs name="),
    ([1, 2], {"key": KEY, "name": 5}, InputError, "name=5 must be text"),
    ([1, 2], {"key": b"short", "name": "n"}, KeyFormatError, "32 bytes"),
    ([1, 2], {"key": KEY, "name": "n", "ids": [1]}, IdError, "1 ids for 2 labels"),
    ([1, 2], {"key": KEY, "name": "n", "ids": [7, 7]}, IdError, "row 1 is that of row 0 again"),
    ([1, 1], {"key": KEY, "name": "n", "ids": ["a", "a"]}, IdError, "row 1 is that of row 0 again"),
    ([1, 2], {"key": KEY, "name": "n", "ids": [1, None]}, IdError, "NoneType"),
    ([1, 2], {"key": KEY, "name": "n", "ids": pl.Series([1, None])}, IdError, "id at row 1 is missing"),
    ([1, 2], {"key": KEY, "name": "n", "ids": 5}, IdError, "not int"),
    ([1, 2], {"ids": [1, 2]}, InputError, "pass key= too"),
    ([1, 2], {"key": KEY, "name": "n", "entropy": SeededEntropy(1)}, InputError, "not both"),
    ([1, 2], {"entropy": SeededEntropy(1)}, LedgerError, "not private"),
    ([1, 2], {"dataset": None}, InputError, "pass dataset= and column="),
]


@pytest.mark.parametrize(("labels", "arguments", "error", "says"), NOTHING_SPENT)
def test_bad_input_releases_and_spends_nothing(
    ledger: Ledger, labels: object, arguments: dict[str, object], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        LabelRandomizer(SPACE, 1).release(labels, **{"ledger": ledger, "dataset": "d", "column": "c", **arguments})
    assert ledger.entries() == []


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"epsilon": 0}, EpsilonError, "greater than 0"),
        ({"mechanism": "magic"}, InputError, "unknown; choose one of unbiased, rr-on-bins"),
        ({"mechanism": "laplace", "prior": Prior.uniform(SPACE)}, InputError, "uses no prior"),
        ({"prior": Prior.uniform(SPACE), "prior_epsilon": 0.1}, InputError, "not both"),
        ({"prior": Prior.uniform(LabelSpace.integers(0, 2))}, InputError, "the labels are from"),
        ({"prior_epsilon": 1}, InputError, "must be less than epsilon"),
        ({"prior_epsilon": "half"}, EpsilonError, "prior_epsilon"),
        ({"prior": Prior(SPACE, np.full(53, 1 / 53), Fraction(1))}, InputError, "nothing is left"),
    ],
)
def test_bad_randomizers(arguments: dict[str, object], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        LabelRandomizer(**{"space": SPACE, "epsilon": 1, **arguments})  # type: ignore[arg-type]


def test_too_few_labels_for_the_paper_s_split() -> None:
    with pytest.raises(LabelDPError, match="too few labels"):
        LabelRandomizer(SPACE, 1, prior_epsilon="paper").release(TRUE[:50])


def test_a_seeded_prior_is_contagious(ledger: Ledger) -> None:
    prior = estimate_prior(TRUE, SPACE, "0.1", entropy=SeededEntropy(7))
    assert "NOT PRIVATE" in repr(prior)
    with pytest.warns(NotPrivateWarning):
        receipt = LabelRandomizer(SPACE, 1, prior=prior).release(TRUE).receipt
    assert (receipt.private, receipt.seed) == (False, 7)
    with pytest.raises(LedgerError, match="not private"):
        LabelRandomizer(SPACE, 1, prior=prior).release(TRUE, ledger=ledger, dataset="d", column="c")


def test_masked_and_complex_labels_are_refused() -> None:
    for labels in (np.ma.array([1, 2, 3], mask=[0, 1, 0]), np.array([1 + 2j, 3])):
        with pytest.raises(LabelError, match="real numbers, none masked"):
            LabelRandomizer(SPACE, 1).release(labels)
    with pytest.raises(IdError, match="masked"):
        LabelRandomizer(SPACE, 1).release([1, 2], ids=np.ma.array([1, 2], mask=[0, 1]), key=KEY, name="n")
