"""Ledger: the privacy budget of each (data set, column), in one SQLite file that the labels party keeps to itself.

    spent(data set, column) = Σ epsilon of its entries ≤ budget(data set, column),      all exact rationals

An entry is committed, through to the disk, before a release may write its labels: a crash in between costs budget and
never privacy. A keyed release has a name, and one name stands for one fixed set of (id, label) rows: the same rows,
terms and law again are a replay, which draws the same labels and costs nothing; anything else under that name is
refused, because equal outputs would show which labels did not change.

Each row holds the SHA-256 of itself and of the row before it, so an edit by hand is found on the next reading.
That is a guard against accidents: it has no key, and it knows nothing of an old copy that is put back. Whoever may
write the file can forge it.

    >>> from tempfile import TemporaryDirectory
    >>> papers = {"terms": "{}", "law": "5f3a", "prior": "{}", "mechanism": "{}"}
    >>> entry = Entry(dataset="census", column="weeks", epsilon=Fraction(1, 10), labels=1000, **papers)
    >>> with TemporaryDirectory() as folder:
    ...     ledger = Ledger(f"{folder}/ledger.db", budget=1)
    ...     for _ in range(10):
    ...         stored, replay = ledger.record(entry)
    ...     stored.number, replay, ledger.remaining("census", "weeks")
    (10, False, Fraction(0, 1))
"""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import os
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from labeldp.errors import BudgetError, EpsilonError, InputError, LedgerError, MissingExtraError
from labeldp.exact import Rational, epsilon_of, exp_upper, rational

__all__ = ["Entry", "Ledger"]

APPLICATION_ID = 0x4C44504C  # "LDPL", in the SQLite header
VERSION = 1
BUSY_SECONDS = 30
SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)  # the second where damaged bytes get into SQLite's own message

SCHEMA = (
    """
    CREATE TABLE entries (
        number          INTEGER PRIMARY KEY AUTOINCREMENT,
        dataset         TEXT NOT NULL CHECK (typeof(dataset) = 'text' AND dataset <> ''),
        "column"        TEXT NOT NULL CHECK (typeof("column") = 'text' AND "column" <> ''),
        epsilon         TEXT NOT NULL CHECK (typeof(epsilon) = 'text' AND epsilon <> ''),
        budget          TEXT NOT NULL CHECK (typeof(budget) = 'text' AND budget <> ''),
        terms           TEXT NOT NULL CHECK (typeof(terms) = 'text' AND terms <> ''),
        law             TEXT NOT NULL CHECK (typeof(law) = 'text' AND law <> ''),
        labels          INTEGER NOT NULL CHECK (typeof(labels) = 'integer' AND labels >= 0),
        name            TEXT CHECK (name <> ''),
        key_fingerprint TEXT CHECK (key_fingerprint <> ''),
        data_digest     TEXT CHECK (data_digest <> ''),
        prior           TEXT NOT NULL CHECK (typeof(prior) = 'text' AND prior <> ''),
        mechanism       TEXT NOT NULL CHECK (typeof(mechanism) = 'text' AND mechanism <> ''),
        at              TEXT NOT NULL CHECK (typeof(at) = 'text' AND at <> ''),
        digest          TEXT NOT NULL UNIQUE CHECK (length(digest) = 64),
        CHECK ((name IS NULL) = (key_fingerprint IS NULL) AND (name IS NULL) = (data_digest IS NULL))
    )
    """,
    """
    CREATE UNIQUE INDEX one_release_per_name ON entries (dataset, "column", name, key_fingerprint)
    WHERE name IS NOT NULL
    """,
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {VERSION}",
)

# Closing any descriptor of a file drops the locks that this process holds on it, in other threads too; so a new
# ledger file is made by one thread at a time.
_CREATING = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One release, as the ledger keeps it.

    `epsilon` is the total that it costs, prior included. `terms` is canonical JSON of what was asked for, `law` the
    digest of the exact law that was drawn from; `prior` and `mechanism` are JSON, so that a replay need not design
    again. A keyed release has all of `name`, `key_fingerprint` and `data_digest` (an HMAC of its (id, label) rows), any
    other has none of them. `at` and `number` are set by the ledger.
    """

    dataset: str
    column: str
    epsilon: Fraction
    terms: str = field(repr=False)
    law: str
    labels: int
    name: str | None = None
    key_fingerprint: str | None = None
    data_digest: str | None = field(default=None, repr=False)
    prior: str = field(repr=False)
    mechanism: str = field(repr=False)
    at: str = ""
    number: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", epsilon_of(self.epsilon))
        for name in ("dataset", "column", "terms", "law", "prior", "mechanism"):
            _check_text(getattr(self, name), name)
        keyed = {name: getattr(self, name) for name in ("name", "key_fingerprint", "data_digest")}
        missing = [name for name, value in keyed.items() if value is None]
        if missing and len(missing) < len(keyed):
            raise InputError(
                f"{' and '.join(missing)} missing: a keyed release has a name, a key fingerprint and a data digest, "
                "any other has none of them."
            )
        for name, value in keyed.items():
            if value is not None:
                _check_text(value, name)
        if isinstance(self.labels, bool) or not isinstance(self.labels, int) or not 0 <= self.labels < 1 << 63:
            raise InputError(f"labels={self.labels!r} must be how many labels were released, an int in 0…2^63 − 1.")


FIELDS = (*(field.name for field in fields(Entry)), "budget", "digest")
COLUMNS = ", ".join(f'"{name}"' for name in FIELDS)


class Ledger:
    """The privacy budgets in the file at `path`, which is made where there is none.

    `budget` holds for each (data set, column) and is written with its first entry; afterwards it cannot be changed,
    and `None` means the stored one. The file is secret: it has mode 0600 and belongs beside the release key.
    """

    def __init__(self, path: str | os.PathLike[str], budget: Rational | None = None) -> None:
        self.path: Final = Path(path).absolute()
        self.budget: Final = None if budget is None else _budget_of(budget)
        if self.budget is not None:
            _make_file(self.path)
        _check_file(self.path, may_be_empty=self.budget is not None)
        if self.budget is not None:
            _write_schema(self.path)
        self._rows()

    def record(self, entry: Entry) -> tuple[Entry, bool]:
        """Spend what `entry` costs, or find that it is a replay: the entry as stored, and whether it is a replay.

        One transaction under the file's write lock, so two processes cannot both take the last of a budget. When
        this returns, the entry is on the disk. Raises BudgetError where too little remains, LedgerError where the
        name stands for another release; then nothing is written.
        """
        with self._transaction("BEGIN IMMEDIATE") as connection:
            rows = _read(connection, self.path)
            ours = _of(rows, entry.dataset, entry.column)
            budget = self._budget(ours, entry.dataset, entry.column)
            earlier = _named(ours, entry.name, entry.key_fingerprint)
            if earlier is not None:
                _check_replay(earlier, entry)
                return earlier, True
            remaining = budget - _spent(ours)
            if entry.epsilon > remaining:
                raise BudgetError(
                    f"epsilon={_plain(entry.epsilon)} was asked, but only {_plain(remaining)} remains of the budget of "
                    f"{_plain(budget)} for {_pair(entry.dataset, entry.column)}; nothing was spent. Ask for no more "
                    "than remains, or replay an earlier release under its own name and key."
                )
            stored = replace(entry, number=len(rows) + 1, at=datetime.now(UTC).isoformat(timespec="seconds"))
            _insert(connection, stored, budget, rows[-1].digest if rows else "")
        return stored, False

    def find(self, dataset: str, column: str, name: str | None, key_fingerprint: str | None) -> Entry | None:
        """The earlier release under this name and key, or None."""
        return _named(_of(self._rows(), dataset, column), name, key_fingerprint)

    def spent(self, dataset: str, column: str) -> Fraction:
        """What the entries of this column add up to."""
        return _spent(_of(self._rows(), dataset, column))

    def remaining(self, dataset: str, column: str) -> Fraction:
        """What further releases of this column may cost."""
        ours = _of(self._rows(), dataset, column)
        return self._budget(ours, dataset, column) - _spent(ours)

    def entries(self, dataset: str | None = None, column: str | None = None) -> list[Entry]:
        """The entries, oldest first; of one data set, of one column, or all."""
        return [row.entry for row in _of(self._rows(), dataset, column)]

    def budgets(self) -> dict[tuple[str, str], Fraction]:
        """The stored budget of every (data set, column)."""
        return {(row.entry.dataset, row.entry.column): row.budget for row in self._rows()}

    def to_dp_accounting(self, dataset: str, column: str) -> Any:
        """The column's entries as a `dp_accounting.ComposedDpEvent`, for an accountant with REPLACE_ONE neighbours.

        Each entry becomes binary randomized response that keeps its bit with probability e^epsilon/(1 + e^epsilon):
        every epsilon-DP mechanism is a post-processing of it, so what an accountant says of it holds for the entry.
        The noise parameter is rounded towards more epsilon.
        """
        try:
            dp_accounting = importlib.import_module("dp_accounting")
            # Beside packages that its newer versions refuse, pip may choose one from before there were events.
            composed, response = dp_accounting.ComposedDpEvent, dp_accounting.RandomizedResponseDpEvent
        except (ImportError, AttributeError):
            raise MissingExtraError(
                "to_dp_accounting() needs the package dp-accounting, 0.5 or newer: pip install dp-accounting --upgrade"
            ) from None
        return composed([response(_noise_lower(entry.epsilon), 2) for entry in self.entries(dataset, column)])

    def __repr__(self) -> str:
        try:
            rows = self._rows()
        except LedgerError:
            return f"<Ledger {self.path}: unreadable>"
        budgets = {(row.entry.dataset, row.entry.column): row.budget for row in rows}
        lines = [f"{d}/{c} {_plain(_spent(_of(rows, d, c)))} / {_plain(b)} spent" for (d, c), b in budgets.items()]
        return f"<Ledger {self.path}: {', '.join(lines) or 'no entries'}>"

    def _budget(self, ours: list[_Row], dataset: str, column: str) -> Fraction:
        given, stored = self.budget, ours[0].budget if ours else None
        if given is not None and stored is not None and given != stored:
            raise LedgerError(
                f"budget={_plain(given)} differs from {_plain(stored)}, the budget of {_pair(dataset, column)} in the "
                f"ledger {self.path}; a budget is set once. Leave it out to use the stored one."
            )
        budget = given if stored is None else stored
        if budget is None:
            raise LedgerError(f"{_pair(dataset, column)} has no budget in the ledger {self.path}; open it with one.")
        return budget

    def _rows(self) -> list[_Row]:
        with self._transaction("BEGIN") as connection:
            return _read(connection, self.path)

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        """A connection of its own for each call, so that none is carried across a fork or between threads."""
        with _connection(self.path) as connection:
            _check_header(connection, self.path)
            connection.execute(begin)
            yield connection
            connection.execute("COMMIT")


@dataclass(frozen=True)
class _Row:
    entry: Entry
    budget: Fraction
    digest: str


def _of(rows: list[_Row], dataset: str | None, column: str | None) -> list[_Row]:
    return [row for row in rows if dataset in (None, row.entry.dataset) and column in (None, row.entry.column)]


def _spent(rows: list[_Row]) -> Fraction:
    return sum((row.entry.epsilon for row in rows), Fraction(0))


def _named(rows: list[_Row], name: str | None, key_fingerprint: str | None) -> Entry | None:
    if name is None or key_fingerprint is None:
        return None
    wanted = (name, key_fingerprint)
    return next((row.entry for row in rows if (row.entry.name, row.entry.key_fingerprint) == wanted), None)


def _check_replay(earlier: Entry, entry: Entry) -> None:
    if earlier.data_digest != entry.data_digest:
        difference = "for other data"
    elif (earlier.terms, earlier.epsilon) != (entry.terms, entry.epsilon):
        difference = "with other terms"
    elif earlier.law != entry.law:
        difference = "with another law"
    else:
        return
    raise LedgerError(
        f'the name "{entry.name}" was already used {difference}: entry {earlier.number} of {earlier.at}, '
        f"{_pair(entry.dataset, entry.column)}. A new name is needed, which redraws every label and pays again."
    )


def _noise_lower(epsilon: Fraction) -> float:
    """A float at most 2/(1 + e^epsilon): the share of random answers at which a bit has a ratio of at least e^epsilon.

    With noise p the bit is kept with probability 1 − p/2, so the ratio is (2 − p)/p.
    """
    exact = 2 / (1 + exp_upper(epsilon))
    noise = float(exact)
    return noise if Fraction(noise) <= exact else math.nextafter(noise, 0)


def _read(connection: sqlite3.Connection, path: Path) -> list[_Row]:
    """Every row, in order, each checked against its digest and the one before it."""
    rows: list[_Row] = []
    changed = f"of the ledger {path} was {{}} after it was written; restore the file from its last backup."
    for values in connection.execute(f"SELECT {COLUMNS} FROM entries ORDER BY number"):
        body = dict(zip(FIELDS, values, strict=True))
        number = len(rows) + 1
        if body["number"] != number:
            raise LedgerError(f"entry {number} {changed.format('removed')}")
        digest = body.pop("digest")
        if digest != _digest(body, rows[-1].digest if rows else ""):
            raise LedgerError(f"entry {number} {changed.format('changed')}")
        budget, epsilon = Fraction(body.pop("budget")), Fraction(body.pop("epsilon"))
        rows.append(_Row(Entry(**body, epsilon=epsilon), budget, digest))
    # AUTOINCREMENT remembers the last number, so an entry taken from the end is missed too.
    (written,) = connection.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = 'entries'").fetchone()
    if (written or 0) != len(rows):
        raise LedgerError(
            f"{written or 0} entries were written to the ledger {path} and {len(rows)} are there; restore the file "
            "from its last backup."
        )
    return rows


def _insert(connection: sqlite3.Connection, entry: Entry, budget: Fraction, previous: str) -> None:
    amounts = {"epsilon": str(entry.epsilon), "budget": str(budget)}
    body = {name: amounts.get(name) or getattr(entry, name) for name in FIELDS if name != "digest"}
    values = (*body.values(), _digest(body, previous))
    connection.execute(f"INSERT INTO entries ({COLUMNS}) VALUES ({', '.join('?' * len(values))})", values)


def _digest(body: dict[str, Any], previous: str) -> str:
    text = json.dumps({**body, "previous": previous}, sort_keys=True, separators=(",", ":"), default=repr)
    return hashlib.sha256(text.encode()).hexdigest()


def _make_file(path: Path) -> None:
    """A file without a byte where there is none; where there is such a one already, it too becomes secret."""
    try:
        with _CREATING:
            try:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            except FileExistsError:
                status = path.stat()
                if stat.S_ISREG(status.st_mode) and not status.st_size:
                    path.chmod(0o600)
    except OSError as error:
        raise LedgerError(
            f"the ledger {path} cannot be made: {error.strerror}; choose a place that exists and that you may write to."
        ) from None


def _check_file(path: Path, *, may_be_empty: bool) -> None:
    """Refuse what is no ledger before SQLite opens it for writing, and might replay a journal that lies beside it."""
    try:
        status = path.stat()
    except OSError as error:
        raise LedgerError(f"there is no ledger at {path}: {error.strerror}; a budget would make one.") from None
    if not stat.S_ISREG(status.st_mode):
        raise LedgerError(f"{path} is no file, so it is no ledger; give the path of a file.")
    if not status.st_size:
        if not may_be_empty:
            raise LedgerError(f"{path} is empty, so it is no ledger yet; a budget would make it one.")
        return
    try:
        with closing(_connect(path, "mode=ro&immutable=1")) as connection:
            _check_header(connection, path)
    except SQLITE_ERRORS as error:
        # A commit under way, or cut off, may look like damage from here; then the opening under locks decides.
        journal = Path(f"{path.resolve()}-journal")
        if _primary_code(error) == sqlite3.SQLITE_NOTADB and not journal.exists():
            raise _explained(error, path) from None


def _write_schema(path: Path) -> None:
    """Make an empty file a ledger, unless another process was faster; a creation cut off leaves an empty file."""
    with _connection(path) as connection:
        if _is_blank(connection):
            connection.execute("BEGIN EXCLUSIVE")
            if _is_blank(connection):
                for statement in SCHEMA:
                    connection.execute(statement)
            connection.execute("COMMIT")


def _is_blank(connection: sqlite3.Connection) -> bool:
    (objects,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    return not objects and not application


def _check_header(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise LedgerError(f"{path} is no ledger, but another SQLite file; give another path.")
    if version != VERSION:
        raise LedgerError(
            f"the ledger {path} has version {version}; this labeldp reads version {VERSION}. "
            "Use the labeldp that wrote it, or a newer one."
        )


@contextmanager
def _connection(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection whose commits last and whose errors are the ledger's; what is not committed is undone."""
    try:
        with closing(_connect(path, "mode=rw")) as connection:
            # The default rollback journal: entries are few, and a write-ahead log would leave part of the ledger in a
            # second file that a copy forgets. With that journal a commit is the removal of a file, which FULL leaves in
            # memory: after a power cut the journal could be back and undo the entry. EXTRA is FULL, and syncs the
            # directory as well.
            connection.execute("PRAGMA synchronous = EXTRA")
            yield connection
    except SQLITE_ERRORS as error:
        raise _explained(error, path) from None


def _connect(path: Path, how: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?{how}", uri=True, timeout=BUSY_SECONDS, isolation_level=None)


def _explained(error: Exception, path: Path) -> LedgerError:
    primary = _primary_code(error)
    if primary == sqlite3.SQLITE_BUSY:
        return LedgerError(f"the ledger {path} was in use for more than {BUSY_SECONDS} seconds; try again.")
    if primary == sqlite3.SQLITE_NOTADB:
        return LedgerError(f"{path} is no ledger: it is no SQLite file, or its first bytes are damaged.")
    if primary in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return LedgerError(
            f"the ledger {path} cannot be read or written: {error}. It, its directory and the journal beside it must "
            "be writable, with space left."
        )
    return LedgerError(f"the ledger {path} is damaged: {error}; restore it from its last backup.")


def _primary_code(error: Exception) -> int:
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF


def _check_text(value: object, name: str) -> None:
    if not isinstance(value, str) or not value:
        raise InputError(f"{name}={value!r} must be a text that is not empty.")
    # SQLite's own functions stop at a NUL, and half of a surrogate pair has no UTF-8.
    if "\0" in value or value != value.encode(errors="ignore").decode():
        raise InputError(f"{name}={value!r} has a character that cannot be stored: a NUL or half of a surrogate pair.")


def _budget_of(value: Rational) -> Fraction:
    budget = rational(value, "budget")
    if budget <= 0:
        raise EpsilonError(f"budget={value} must be greater than 0.")
    return budget


def _pair(dataset: str, column: str) -> str:
    return f'data set "{dataset}", column "{column}"'


def _plain(amount: Fraction) -> str:
    """As a decimal where that is exact, otherwise as a fraction."""
    decimal = Decimal(amount.numerator) / Decimal(amount.denominator)
    return f"{decimal:f}" if Fraction(decimal) == amount else str(amount)
