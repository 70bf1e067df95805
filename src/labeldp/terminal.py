"""Between a terminal and the API: options and files in; tables, JSON, files and an exit code out.

Answers go to standard output; errors, bars and spinners to standard error. Into a pipe there are no colours, no lines
around tables and no folded cells, whatever the width.
"""

from __future__ import annotations

import csv
import json
import os
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from labeldp.additive import Additive, mechanism_from_json
from labeldp.channel import Channel
from labeldp.errors import FileFormatError, InputError, LabelDPError, NotPrivateError, PriorError
from labeldp.exact import rational
from labeldp.labels import LabelSpace
from labeldp.prior import Prior

__all__ = [
    "INTERRUPTED",
    "MISTAKE",
    "NOT_PRIVATE",
    "exact",
    "exit_code_of",
    "one_line",
    "print_facts",
    "print_json",
    "print_table",
    "prior_of",
    "progress",
    "read_mechanism",
    "refuse_existing",
    "space_of",
    "waiting",
    "write_new",
    "write_whole",
]

MISTAKE, NOT_PRIVATE, INTERRUPTED = 2, 3, 130

# Typer raises its usage errors from a click of its own or from the real one, by version; this is their common root.
UsageError: type[Exception] = typer.BadParameter.__bases__[0]

WIDE = 10_000
"""The width of a pipe: a machine's line may be as long as it needs."""


def exit_code_of(command: Callable[[], object]) -> int:
    """Run the command; print what a user can mend as one line, and let anything else through with its traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = command()
        sys.stdout.flush()
    except UsageError as error:
        context = getattr(error, "ctx", None)
        hint = f" See {context.command_path} --help." if context else ""
        return _fail(f"{error.format_message()}{hint}", MISTAKE)  # type: ignore[attr-defined]
    except NotPrivateError as error:
        return _fail(str(error), NOT_PRIVATE)
    except LabelDPError as error:
        return _fail(str(error), MISTAKE)
    except BrokenPipeError:  # the reader has seen enough, as head has
        _forget_unwritten(sys.stdout)
        return 1
    except OSError as error:
        _forget_unwritten(sys.stdout)
        where = f"{os.fsdecode(error.filename)}: " if error.filename else ""
        return _fail(f"{where}{error.strerror or error}", MISTAKE)
    except (typer.Abort, KeyboardInterrupt):
        return _fail("interrupted", INTERRUPTED)
    return code if isinstance(code, int) else 0


def space_of(integers: str | None, grid: str | None, values: str | None) -> LabelSpace:
    """The label set that one of the three options writes."""
    given = [value for value in (integers, grid, values) if value is not None]
    if len(given) != 1:
        raise InputError(f"give one of --integers, --grid and --values to say what a label may be; got {len(given)}.")
    if integers is not None:
        low, high = (_whole(part, "--integers") for part in _parts(integers, "--integers", "0:52"))
        return LabelSpace.integers(low, high)
    if grid is not None:
        first, last, points = _parts(grid, "--grid", "0:400:401")
        return LabelSpace.grid(rational(first, "low"), rational(last, "high"), _whole(points, "--grid"))
    return LabelSpace.of([part.strip() for part in given[0].split(",")])


def prior_of(space: LabelSpace, path: Path | None) -> Prior:
    """The prior in a CSV file, uniform where there is none."""
    if path is None:
        return Prior.uniform(space)
    try:
        return Prior(space, _probabilities(space, path))
    except (csv.Error, UnicodeDecodeError) as error:
        raise PriorError(f"{path} is no CSV text in UTF-8: {error}.") from None
    except InputError as error:
        raise PriorError(f"{path}: {error}") from None


def read_mechanism(path: Path) -> Channel | Additive:
    """The Channel or additive mechanism in a file, by the "format" that it names."""
    try:
        return mechanism_from_json(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise FileFormatError(f"{path} is no JSON; give what labeldp design wrote.") from None
    except LabelDPError as error:
        raise FileFormatError(f"{path}: {error}") from None


def print_json(record: Mapping[str, Any]) -> None:
    print(json.dumps(record, allow_nan=False))


def print_facts(facts: Mapping[str, str]) -> None:
    """Names on the left, values on the right."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts.items():
        grid.add_row(name, one_line(value))
    _console(sys.stdout).print(grid)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, words: Sequence[str]) -> None:
    """A table under its title; the columns named in `words` hold words, the others numbers."""
    console = _console(sys.stdout)
    lines = box.SIMPLE_HEAD if console.is_terminal else None
    table = Table(box=lines, padding=(0, 1 if lines else 2, 0, 0), pad_edge=False, show_edge=False, header_style="bold")
    for column in columns:
        # On a terminal headers are narrow, and only words may be folded: half a number is another number.
        header = column.replace(" ", "\n") if console.is_terminal else column
        is_word = column in words
        table.add_column(header, justify="left" if is_word else "right", overflow="fold", no_wrap=not is_word)
    for row in rows:
        table.add_row(*(one_line(cell) for cell in row))
    console.print(title, style="bold")
    console.print(table)
    console.print()


@contextmanager
def progress(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal, nothing elsewhere; the callback takes what is done and what there is in all."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(show_speed=True),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f}"),
        TimeRemainingColumn(),
    )
    silent = quiet or not sys.stderr.isatty()
    with Progress(*columns, console=_console(sys.stderr), transient=True, disable=silent) as bar:
        task = bar.add_task(what, total=1)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def waiting(what: str, *, quiet: bool) -> Iterator[None]:
    """A spinner on a terminal, for work whose length is not known."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    with _console(sys.stderr).status(what):
        yield


def exact(amount: Fraction) -> str:
    """As a decimal where that is exact, otherwise as a fraction; `--epsilon` reads both."""
    decimal = Decimal(amount.numerator) / Decimal(amount.denominator)
    return f"{decimal:f}" if Fraction(decimal) == amount else str(amount)


def one_line(text: str) -> str:
    """The text with what would break a line, or steer a terminal, written out."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def refuse_existing(path: Path, overwrite: bool) -> None:
    """An existing file is replaced only where the user says so."""
    if not overwrite and os.path.lexists(path):
        raise InputError(f"{path} exists already; pass --overwrite to replace it, or give another name.")


def write_whole(path: Path, text: str, *, overwrite: bool) -> None:
    """The file appears under its name when all of it is on the disk, or not at all."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        write_new(temporary, text.encode(), mode=0o666)
        refuse_existing(path, overwrite)
        temporary.replace(path)
    except OSError as error:
        # The name that the user gave, not the temporary one.
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        temporary.unlink(missing_ok=True)
    _sync_directory(path)


def write_new(path: Path, content: bytes, *, mode: int) -> None:
    """Write a file that must not exist yet, through to the disk; one that fails half-way is removed again."""
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        path.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from None
    _sync_directory(path)


def _parts(text: str, option: str, example: str) -> list[str]:
    parts = [part.strip() for part in text.split(":")]
    if len(parts) != len(example.split(":")):
        raise InputError(f"{option} {text} is not written as {option} {example} is.")
    return parts


def _whole(text: str, option: str) -> int:
    number = rational(text, option)
    if number.denominator != 1:
        raise InputError(f"{option} has {text}, which must be a whole number.")
    return int(number)


def _probabilities(space: LabelSpace, path: Path) -> list[float]:
    """One probability per label, from rows label,probability in any order, or from one column in label order."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True, skipinitialspace=True)
        lines = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(map(str.strip, row))]
    named = bool(lines) and len(lines[0][1]) == 2
    header = ["label", "probability"] if named else ["probability"]
    if lines and [cell.lower() for cell in lines[0][1]] == header:
        lines = lines[1:]
    elif named:
        raise PriorError("two columns need the header label,probability.")

    found: dict[int, float] = {}
    index_of = {value: index for index, value in enumerate(space.values.tolist())}
    for place, (line, cells) in enumerate(lines):
        if len(cells) != len(header):
            raise PriorError(f"line {line} has {len(cells)} columns; write {','.join(header)} in each.")
        index = index_of.get(float(rational(cells[0], f"line {line}: label"))) if named else place
        if index is None:
            raise PriorError(f"line {line}: label {cells[0]} is not one of the labels, {space!r}.")
        if index in found:
            raise PriorError(f"line {line}: label {cells[0]} is there twice; each label has one row.")
        found[index] = float(rational(cells[-1], f"line {line}: probability"))
    if len(found) != len(space):
        raise PriorError(
            f"{len(found)} probabilities for {len(space)} labels; each label needs one, 0 where it does not happen."
        )
    return [found[index] for index in range(len(space))]


def _sync_directory(path: Path) -> None:
    """A new name is on the disk only when its directory is."""
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _console(stream: TextIO) -> Console:
    # Data set names and file names are shown as they are: no markup, no emoji codes, no guessed highlights.
    width = None if stream.isatty() else WIDE
    return Console(file=stream, width=width, markup=False, emoji=False, highlight=False)


def _fail(message: str, code: int) -> int:
    print(f"error: {one_line(message)}", file=sys.stderr)
    return code


def _forget_unwritten(stream: TextIO) -> None:
    """Where standard output itself is broken, what is left in its buffer must not raise again at exit."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
