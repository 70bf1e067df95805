from __future__ import annotations

import json
import os
import pickle
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeldp.errors import BudgetError, EpsilonError, InputError, LabelDPError, LedgerError, MissingExtraError
from labeldp.release import ledger as module
from labeldp.release.ledger import Entry, Ledger

TENTH = Fraction(1, 10)


def entry(**changes: Any) -> Entry:
    usual: dict[str, Any] = {
        "dataset": "census",
        "column": "weeks",
        "epsilon": TENTH,
        "terms": '{"mechanism":"unbiased"}',
        "law": "1a" * 32,
        "labels": 1000,
        "prior": '{"probabilities":[0.5,0.5]}',
        "mechanism": '{"strip":4}',
    }
    return Entry(**{**usual, **changes})


def keyed(**changes: Any) -> Entry:
    return entry(**{"name": "march", "key_fingerprint": "f00d", "data_digest": "d1" * 32, **changes})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def hand_edit(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def test_ten_tenths_fit_a_budget_of_one(path: Path) -> None:
    ledger = Ledger(path, 1)
    for number in range(1, 11):
        stored, replay = ledger.record(entry(epsilon=0.1))
        assert (stored.number, replay) == (number, False)
    assert ledger.spent("census", "weeks") == 1
    assert ledger.remaining("census", "weeks") == 0
    with pytest.raises(BudgetError):
        ledger.record(entry(epsilon="0.000001"))


def test_thirds_are_exact_too(path: Path) -> None:
    ledger = Ledger(path, "1")
    for _ in range(3):
        ledger.record(entry(epsilon=Fraction(1, 3)))
    assert ledger.remaining("census", "weeks") == 0


def test_over_budget_is_refused_and_nothing_is_written(path: Path) -> None:
    ledger = Ledger(path, "0.5")
    ledger.record(entry(epsilon="0.3"))
    before = path.read_bytes()
    with pytest.raises(BudgetError) as refused:
        ledger.record(entry(epsilon="0.25"))
    text = str(refused.value)
    assert "epsilon=0.25 was asked" in text
    assert "only 0.2 remains of the budget of 0.5" in text
    assert 'data set "census", column "weeks"' in text
    assert path.read_bytes() == before
    assert ledger.remaining("census", "weeks") == Fraction(1, 5)
    assert ledger.record(entry(epsilon="0.2"))[0].number == 2


def test_an_entry_comes_back_as_it_was_recorded(path: Path) -> None:
    given = keyed(dataset='données "2024"', column="weeks\nworked", name="März ✓", labels=2**62)
    started = datetime.now(UTC)
    stored, _ = Ledger(path, 1).record(given)
    assert stored.number == 1
    assert abs(datetime.fromisoformat(stored.at) - started) < timedelta(minutes=1)
    assert datetime.fromisoformat(stored.at).tzinfo is not None
    assert Ledger(path).entries() == [stored]
    for field in ("dataset", "column", "epsilon", "terms", "law", "labels", "name", "key_fingerprint", "data_digest"):
        assert getattr(stored, field) == getattr(given, field)
    assert (stored.prior, stored.mechanism) == (given.prior, given.mechanism)


def test_a_replay_is_free(path: Path) -> None:
    ledger = Ledger(path, TENTH)
    first, _ = ledger.record(keyed())
    # Another solver build may bring other papers; those of the release itself come back.
    again, replay = ledger.record(keyed(prior='{"other":1}', mechanism='{"other":2}'))
    assert replay
    assert again == first == ledger.find("census", "weeks", "march", "f00d")
    assert ledger.spent("census", "weeks") == TENTH
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"data_digest": "d2" * 32}, "for other data"),
        ({"data_digest": "d2" * 32, "terms": "{}", "law": "2b" * 32}, "for other data"),
        ({"terms": "{}"}, "with other terms"),
        ({"epsilon": Fraction(1, 5)}, "with other terms"),
        ({"law": "2b" * 32}, "with another law"),
    ],
)
def test_one_name_is_one_release(path: Path, change: dict[str, Any], difference: str) -> None:
    ledger = Ledger(path, 1)
    ledger.record(keyed())
    with pytest.raises(LedgerError, match=f'the name "march" was already used {difference}: entry 1 .* new name'):
        ledger.record(keyed(**change))
    assert ledger.spent("census", "weeks") == TENTH
    stored, replay = ledger.record(keyed(name="april", **change))
    assert (stored.number, replay) == (2, False)


@pytest.mark.parametrize("change", [{"key_fingerprint": "beef"}, {"dataset": "survey"}, {"column": "hours"}])
def test_another_key_data_set_or_column_is_another_entry(path: Path, change: dict[str, Any]) -> None:
    ledger = Ledger(path, 1)
    ledger.record(keyed())
    other = keyed(data_digest="d2" * 32, **change)
    assert ledger.find(other.dataset, other.column, "march", str(other.key_fingerprint)) is None
    stored, replay = ledger.record(other)
    assert (stored.number, replay) == (2, False)
    assert ledger.find(other.dataset, other.column, "march", str(other.key_fingerprint)) == stored


def test_releases_without_a_name_always_pay(path: Path) -> None:
    ledger = Ledger(path, 1)
    ledger.record(entry())
    assert ledger.record(entry())[1] is False
    assert ledger.find("census", "weeks", None, None) is None
    assert ledger.spent("census", "weeks") == 2 * TENTH


def test_each_column_has_a_budget_of_its_own(path: Path) -> None:
    ledger = Ledger(path, 1)
    ledger.record(entry(epsilon=1))
    ledger.record(entry(epsilon=1, column="hours"))
    ledger.record(entry(epsilon=1, dataset="survey"))
    Ledger(path, "2.5").record(entry(epsilon=2, dataset="other"))
    assert ledger.budgets() == {
        ("census", "weeks"): 1,
        ("census", "hours"): 1,
        ("survey", "weeks"): 1,
        ("other", "weeks"): Fraction(5, 2),
    }
    assert [one.number for one in ledger.entries("census")] == [1, 2]
    assert [one.number for one in ledger.entries(column="weeks")] == [1, 3, 4]
    assert [one.number for one in ledger.entries("census", "hours")] == [2]
    assert ledger.spent("nowhere", "weeks") == 0
    assert ledger.remaining("nowhere", "weeks") == 1


def test_another_budget_is_refused_and_none_means_the_stored_one(path: Path) -> None:
    Ledger(path, 1).record(keyed())
    for refused in (lambda ledger: ledger.record(keyed()), lambda ledger: ledger.remaining("census", "weeks")):
        with pytest.raises(LedgerError, match=r'budget=2 differs from 1, .*"census", column "weeks"'):
            refused(Ledger(path, 2))
    assert Ledger(path, "1.0").remaining("census", "weeks") == 9 * TENTH
    stored = Ledger(path)
    assert stored.remaining("census", "weeks") == 9 * TENTH
    assert stored.record(entry())[0].number == 2
    for refused in (lambda ledger: ledger.record(entry(column="hours")), lambda ledger: ledger.remaining("a", "b")):
        with pytest.raises(LedgerError, match="has no budget"):
            refused(stored)


@pytest.mark.parametrize("budget", [0, -1, "x", float("nan"), float("inf"), True, "1/0"])
def test_a_budget_is_a_positive_number(path: Path, budget: Any) -> None:
    with pytest.raises(InputError, match="budget="):
        Ledger(path, budget)
    assert not path.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"dataset": ""},
        {"column": None},
        {"column": "we\0eks"},
        {"dataset": "\ud800"},
        {"terms": {"a": 1}},
        {"labels": -1},
        {"labels": 1.0},
        {"labels": True},
        {"labels": 2**63},
        {"name": "march"},
        {"key_fingerprint": "f00d"},
        {"name": "march", "key_fingerprint": "f00d"},
        {"name": "", "key_fingerprint": "f00d", "data_digest": "d1"},
    ],
)
def test_an_entry_is_checked(change: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        entry(**change)


@pytest.mark.parametrize("epsilon", [0, -1, "x", 41])
def test_an_entry_has_a_positive_epsilon(epsilon: Any) -> None:
    with pytest.raises(EpsilonError):
        entry(epsilon=epsilon)


def test_the_repr_shows_what_is_spent(path: Path) -> None:
    ledger = Ledger(path, 1)
    assert repr(ledger) == f"<Ledger {path}: no entries>"
    ledger.record(entry(epsilon=Fraction(1, 3)))
    ledger.record(entry(column="hours"))
    assert repr(ledger) == f"<Ledger {path}: census/weeks 1/3 / 1 spent, census/hours 0.1 / 1 spent>"
    path.write_text("no longer a ledger")
    assert repr(ledger) == f"<Ledger {path}: unreadable>"


def test_the_secret_parts_of_an_entry_are_not_printed() -> None:
    assert "d1d1" not in repr(keyed())


def test_the_file_is_for_its_owner_alone(path: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Ledger(path, 1).record(entry())
        empty = tmp_path / "empty.db"
        empty.touch(mode=0o666)
        Ledger(empty, 1).record(entry())
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(empty.stat().st_mode) == 0o600
    assert sorted(tmp_path.iterdir()) == [empty, path]


@pytest.mark.parametrize("name", ["a b?mode=ro#x%41.db", "ledger", "é.db", ":memory:"])
def test_any_file_name_will_do(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = Ledger(name, 1)
    monkeypatch.chdir("/")
    ledger.record(entry())
    assert os.listdir(tmp_path) == [name]


def test_a_ledger_travels_to_another_process(path: Path) -> None:
    ledger = pickle.loads(pickle.dumps(Ledger(path, 1)))
    ledger.record(entry())
    assert ledger.remaining("census", "weeks") == 9 * TENTH


def test_without_a_budget_no_file_is_made(path: Path) -> None:
    with pytest.raises(LedgerError, match="there is no ledger at"):
        Ledger(path)
    assert not path.exists()
    path.touch()
    with pytest.raises(LedgerError, match="is empty"):
        Ledger(path)
    assert path.read_bytes() == b""


def test_a_ledger_that_went_away_is_not_made_again(path: Path) -> None:
    ledger = Ledger(path, 1)
    path.unlink()
    for use in (lambda: ledger.record(entry()), lambda: ledger.spent("census", "weeks")):
        with pytest.raises(LedgerError, match="cannot be read or written"):
            use()
    assert not path.exists()


def foreign_database(path: Path) -> None:
    hand_edit(path, "CREATE TABLE entries (number INTEGER)")


def foreign_database_without_tables(path: Path) -> None:
    hand_edit(path, "PRAGMA user_version = 1")


def foreign_database_with_a_log(path: Path) -> None:
    # Left by a process that died: whoever opens it for writing folds the log into the file.
    code = "c = sqlite3.connect(sys.argv[1]); c.execute('PRAGMA journal_mode = wal'); c.execute('CREATE TABLE t (x)')"
    subprocess.run([sys.executable, "-c", f"import os, sqlite3, sys; {code}; os._exit(0)", str(path)], check=True)
    assert path.with_name("ledger.db-wal").stat().st_size


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (foreign_database, "another SQLite file"),
        (foreign_database_without_tables, "another SQLite file"),
        (foreign_database_with_a_log, "another SQLite file"),
        (lambda path: path.write_text("dataset,epsilon\ncensus,1\n"), "no SQLite file"),
        (lambda path: path.write_text("x"), "is no ledger"),
        (lambda path: path.write_bytes(os.urandom(20_000)), "no SQLite file"),
        (lambda path: path.write_bytes(b"SQLite format 3\0" + bytes(4080)), "is no"),
    ],
)
@pytest.mark.parametrize("budget", [1, None])
def test_a_foreign_file_is_refused_and_left_as_it_was(path: Path, make: Any, text: str, budget: int | None) -> None:
    make(path)
    before = {file: (file.read_bytes(), file.stat().st_mode) for file in path.parent.iterdir()}
    with pytest.raises(LedgerError, match=text):
        Ledger(path, budget)
    assert {file: (file.read_bytes(), file.stat().st_mode) for file in path.parent.iterdir()} == before


def test_a_ledger_of_a_newer_version_is_refused(path: Path) -> None:
    Ledger(path, 1)
    hand_edit(path, "PRAGMA user_version = 2")
    with pytest.raises(LedgerError, match="has version 2; this labeldp reads version 1"):
        Ledger(path, 1)


@pytest.mark.parametrize("budget", [1, None])
def test_a_place_that_cannot_hold_a_ledger_is_refused(tmp_path: Path, budget: int | None) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere" / "x")
    os.mkfifo(tmp_path / "pipe")
    places = [tmp_path, tmp_path / "missing" / "l.db", tmp_path / "file" / "l.db", tmp_path / "dangling"]
    for place in [*places, tmp_path / ("x" * 300), tmp_path / "pipe", Path("/dev/null"), Path("/proc/ledger.db")]:
        with pytest.raises(LedgerError):
            Ledger(place, budget)


def test_a_file_that_cannot_be_written_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(path, 1)
    connect = module._connect
    monkeypatch.setattr(module, "_connect", lambda path, how: connect(path, "mode=ro"))
    assert ledger.remaining("census", "weeks") == 1
    with pytest.raises(LedgerError, match="cannot be read or written"):
        ledger.record(entry())


def test_damage_is_an_error_of_the_ledger_wherever_it_is(path: Path) -> None:
    ledger = Ledger(path, 10)
    for number in range(20):
        ledger.record(keyed(name=f"release {number}", prior=json.dumps([number] * 500)))
    whole, sound, refused = path.read_bytes(), ledger.entries(), 0
    for page in range(0, len(whole), 512):
        path.write_bytes(whole[:page] + bytes(byte ^ 0xA5 for byte in whole[page : page + 512]) + whole[page + 512 :])
        try:
            assert Ledger(path).entries() == sound
        except LabelDPError:
            refused += 1
    assert refused > len(whole) / 512 / 2
    for length in (100, 4096, len(whole) // 2, len(whole) - 4096):
        path.write_bytes(whole[:length])
        with pytest.raises(LedgerError):
            Ledger(path)


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        ("UPDATE entries SET epsilon = '1/1000' WHERE number = 3", "entry 3 .* was changed after it was written"),
        ("UPDATE entries SET budget = '100' WHERE number = 1", "entry 1 .* was changed after it was written"),
        ("UPDATE entries SET prior = '[]' WHERE number = 5", "entry 5 .* was changed after it was written"),
        ("UPDATE entries SET at = '2001-01-01' WHERE number = 2", "entry 2 .* was changed after it was written"),
        ("UPDATE entries SET \"column\" = 'hours' WHERE number = 4", "entry 4 .* was changed after it was written"),
        ("DELETE FROM entries WHERE number = 3", "entry 3 .* was removed after it was written"),
        ("DELETE FROM entries WHERE number = 5", "5 entries were written .* and 4 are there"),
        ("DELETE FROM entries", "5 entries were written .* and 0 are there"),
        ("DELETE FROM sqlite_sequence", "0 entries were written .* and 5 are there"),
        ("DROP TABLE entries", "is damaged: no such table"),
    ],
)
def test_an_edit_by_hand_is_found(path: Path, edit: str, text: str) -> None:
    ledger = Ledger(path, 1)
    for number in range(5):
        ledger.record(keyed(name=f"release {number}"))
    hand_edit(path, edit)
    uses = (
        lambda: Ledger(path, 1),
        lambda: ledger.record(entry()),
        lambda: ledger.remaining("census", "weeks"),
        lambda: ledger.find("census", "weeks", "release 0", "f00d"),
        ledger.entries,
    )
    for use in uses:
        with pytest.raises(LedgerError, match=text):
            use()


def test_a_row_cut_out_and_the_rest_renumbered_is_found(path: Path) -> None:
    ledger = Ledger(path, 1)
    for _ in range(3):
        ledger.record(entry())
    cut = "DELETE FROM entries WHERE number = 2", "UPDATE entries SET number = 2 WHERE number = 3"
    hand_edit(path, *cut, "UPDATE sqlite_sequence SET seq = 2")
    with pytest.raises(LedgerError, match=r"entry 2 .* was changed"):
        ledger.entries()


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE entries SET epsilon = NULL",
        "UPDATE entries SET labels = 'many'",
        "UPDATE entries SET terms = x'00'",
        "UPDATE entries SET data_digest = NULL",
        "UPDATE entries SET name = 'march'",
    ],
)
def test_the_schema_refuses_what_an_entry_cannot_be(path: Path, edit: str) -> None:
    for name in ("march", "april"):
        Ledger(path, 1).record(keyed(name=name))
    with pytest.raises(sqlite3.IntegrityError):
        hand_edit(path, edit)


HELPERS = """
import os, signal, sqlite3, sys
from fractions import Fraction
from labeldp.errors import BudgetError
from labeldp.release import ledger as module
from labeldp.release.ledger import Entry, Ledger

def entry(**changes):
    usual = dict(dataset="census", column="weeks", epsilon=Fraction(1, 10), terms="{}", law="1a", labels=1)
    return Entry(**{**usual, "prior": "{}", "mechanism": "{}", **changes})

class Dying(sqlite3.Connection):
    # Dies where the transaction would be committed, after its pages were pushed out to the file.
    def execute(self, sql, *values):
        if sql == "COMMIT":
            os.kill(os.getpid(), signal.SIGKILL)
        if sql.startswith("BEGIN"):
            super().execute("PRAGMA cache_size = 1")
        return super().execute(sql, *values)

def die_at_the_next_commit():
    connect = sqlite3.connect
    module.sqlite3.connect = lambda *args, **options: connect(*args, **options, factory=Dying)
"""

HAMMER = """
print("ready", flush=True)
sys.stdin.readline()
ledger, taken = Ledger(sys.argv[1], 1), 0
for _ in range(20):
    try:
        ledger.record(entry())
        taken += 1
    except BudgetError:
        pass
print(taken)
"""


def child(code: str, path: Path, **options: Any) -> subprocess.Popen[str]:
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", HELPERS + code, str(path)], **pipes, **options)


def run_and_die(code: str, path: Path) -> None:
    with child(code, path) as process:
        process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL


def test_two_processes_cannot_overspend(path: Path) -> None:
    with child(HAMMER, path) as one, child(HAMMER, path) as other:
        for process in (one, other):
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in (one, other):
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        taken = [int(process.communicate(timeout=120)[0]) for process in (one, other)]
    assert [one.returncode, other.returncode] == [0, 0]
    assert sum(taken) == 10
    ledger = Ledger(path)
    assert len(ledger.entries()) == 10
    assert ledger.remaining("census", "weeks") == 0


def test_the_write_lock_is_taken_before_the_budget_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, read, refused = Ledger(path, 1), module._read, []

    def look(connection: sqlite3.Connection, path: Path) -> Any:
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
            try:
                other.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                refused.append(str(error))
        return read(connection, path)

    monkeypatch.setattr(module, "_read", look)
    ledger.entries()
    assert refused == []
    ledger.record(entry())
    assert refused == ["database is locked"]


def test_threads_of_one_process_cannot_overspend(path: Path) -> None:
    taken: list[Any] = []
    start = threading.Barrier(4)

    def hammer() -> None:
        start.wait()
        ledger = Ledger(path, 1)
        for _ in range(5):
            try:
                taken.append(ledger.record(entry())[0].number)
            except BudgetError:
                pass
            except LabelDPError as error:
                taken.append(error)

    threads = [threading.Thread(target=hammer) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(1, 11))


def test_one_named_release_by_two_processes_is_paid_once(path: Path) -> None:
    named = HAMMER.replace("record(entry())", 'record(entry(name="n", key_fingerprint="k", data_digest="d"))')
    with child(named, path) as one, child(named, path) as other:
        taken = [int(process.communicate("go\n", timeout=120)[0].split()[-1]) for process in (one, other)]
    assert taken == [20, 20]
    assert Ledger(path).spent("census", "weeks") == TENTH


def test_a_crash_after_record_leaves_the_budget_spent(path: Path) -> None:
    run_and_die("Ledger(sys.argv[1], 1).record(entry()); os.kill(os.getpid(), signal.SIGKILL)", path)
    ledger = Ledger(path, 1)
    assert ledger.spent("census", "weeks") == TENTH
    assert len(ledger.entries()) == 1


def test_a_crash_before_the_commit_leaves_nothing(path: Path) -> None:
    sound, _ = Ledger(path, 1).record(entry())
    size = path.stat().st_size
    big = 'entry(prior="x" * 1_000_000)'
    run_and_die(f"ledger = Ledger(sys.argv[1], 1); die_at_the_next_commit(); ledger.record({big})", path)
    # The test is worth something only if the dead process had begun to change the file.
    assert path.with_name("ledger.db-journal").stat().st_size
    assert path.stat().st_size > size
    ledger = Ledger(path, 1)
    assert ledger.entries() == [sound]
    assert ledger.record(entry())[0].number == 2
    assert not path.with_name("ledger.db-journal").exists()


def test_a_crash_while_the_ledger_is_made_leaves_a_place_for_it(path: Path) -> None:
    run_and_die("die_at_the_next_commit(); Ledger(sys.argv[1], 1)", path)
    assert path.exists()
    assert Ledger(path, 1).record(entry())[0].number == 1


def test_an_interruption_before_the_commit_leaves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(path, 1)
    insert = module._insert

    def interrupted(*args: Any) -> None:
        insert(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "_insert", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ledger.record(entry())
    assert ledger.entries() == []


def test_a_ledger_in_use_for_too_long_is_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(path, 1)
    monkeypatch.setattr(module, "BUSY_SECONDS", 0.2)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="in use for more than"):
            ledger.record(entry())
        assert ledger.spent("census", "weeks") == 0
        other.execute("ROLLBACK")
    assert ledger.record(entry())[0].number == 1


def test_the_commit_reaches_the_disk(path: Path) -> None:
    Ledger(path, 1)
    with module._connection(path) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def true_epsilon(noise: float) -> mpmath.mpf:
    with mpmath.workprec(300):
        return mpmath.log((2 - mpmath.mpf(noise)) / mpmath.mpf(noise))


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=40, max_denominator=10**9))
def test_the_noise_parameter_never_understates_epsilon(epsilon: Fraction) -> None:
    noise = module._noise_lower(epsilon)
    with mpmath.workprec(300):
        excess = true_epsilon(noise) - mpmath.mpf(epsilon.numerator) / epsilon.denominator
        assert 0 <= excess < 1e-15
        # The next float up would understate it, so the rounding is as tight as it can be.
        above = float(mpmath.mpf(noise)) * (1 + 2**-51)
        assert true_epsilon(above) < mpmath.mpf(epsilon.numerator) / epsilon.denominator


def test_dp_accounting_sees_every_entry(path: Path) -> None:
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    ledger = Ledger(path, 3)
    epsilons = [TENTH, Fraction(1, 3), Fraction(1), TENTH]
    for epsilon in epsilons:
        ledger.record(entry(epsilon=epsilon))
    ledger.record(entry(epsilon=2, column="hours"))
    event = ledger.to_dp_accounting("census", "weeks")
    assert isinstance(event, dp_accounting.ComposedDpEvent)
    assert [type(one).__name__ for one in event.events] == ["RandomizedResponseDpEvent"] * 4
    assert {one.num_buckets for one in event.events} == {2}
    spent = float(ledger.spent("census", "weeks"))
    total = sum(true_epsilon(one.noise_parameter) for one in event.events)
    assert spent <= total < spent + 1e-14
    relation = dp_accounting.NeighboringRelation.REPLACE_ONE
    accountant = PLDAccountant(relation, value_discretization_interval=1e-4)
    accountant.compose(event)
    # Pure epsilon, on a grid of 1e-4 per event, rounded up.
    assert spent <= accountant.get_epsilon(0) < spent + 5e-4
    assert accountant.get_epsilon(0.1) < spent - 0.05
    assert ledger.to_dp_accounting("nowhere", "weeks") == dp_accounting.ComposedDpEvent([])


def test_without_dp_accounting_the_install_line_is_printed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(MissingExtraError, match="pip install dp-accounting"):
        Ledger(path, 1).to_dp_accounting("census", "weeks")
    # An old version, from before there were events.
    monkeypatch.setitem(sys.modules, "dp_accounting", type(sys)("dp_accounting"))
    with pytest.raises(MissingExtraError, match=r"0\.5 or newer"):
        Ledger(path, 1).to_dp_accounting("census", "weeks")
