"""The command `labeldp`: the same words as the API."""

from __future__ import annotations

import math
import sys
from dataclasses import asdict
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer

from labeldp.audit import audit as audit_mechanism
from labeldp.certificate import Certificate
from labeldp.certificate import certify as certify_mechanism
from labeldp.channel import Channel
from labeldp.compare import compare as compare_mechanisms
from labeldp.design import MECHANISMS, design_mechanism
from labeldp.entropy import ReleaseKey
from labeldp.errors import KeyFormatError, NotPrivateError
from labeldp.exact import epsilon_of
from labeldp.labels import LabelSpace
from labeldp.release.ledger import Ledger
from labeldp.terminal import (
    NOT_PRIVATE,
    exact,
    exit_code_of,
    print_facts,
    print_json,
    print_table,
    prior_of,
    progress,
    read_mechanism,
    refuse_existing,
    space_of,
    waiting,
    write_new,
    write_whole,
)
from labeldp.version import __version__

__all__ = ["audit", "certify", "compare", "design", "keygen", "labeldp", "ledger", "main"]

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,  # one plain help text for terminals, pipes and docs/command-line.md
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": 100, "help_option_names": ["-h", "--help"]},
)

NAMES = ", ".join(MECHANISMS)
Integers = Annotated[str | None, typer.Option(metavar="LOW:HIGH", help="Labels are the integers LOW … HIGH.")]
Grid = Annotated[
    str | None,
    typer.Option(metavar="LOW:HIGH:POINTS", help="Labels are real, rounded onto POINTS equally spaced values."),
]
Values = Annotated[str | None, typer.Option(metavar="A,B,…", help="Labels are exactly these values.")]
PriorFile = Annotated[
    Path | None,
    typer.Option(
        "--prior",
        metavar="CSV",
        help="A public prior: rows under the header label,probability, or one probability per line in label order. "
        "Uniform where left out.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
MechanismFile = Annotated[Path, typer.Argument(metavar="CHANNEL", help="What labeldp design wrote.")]


def main() -> None:
    sys.exit(exit_code_of(lambda: app(prog_name="labeldp", standalone_mode=False)))


@app.callback(invoke_without_command=True)
def labeldp(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Label differential privacy for regression, by optimal unbiased randomizers.

    Design a randomizer from public knowledge, prove it private with exact arithmetic, compare it with others.

    \b
    Example:
      labeldp design --integers 0:52 --epsilon 1 -o channel.json
      labeldp certify channel.json

    \b
    Exit codes:
        0  done
        1  unexpected: a fault in labeldp
        2  a mistake that you can mend: a bad option, a file that cannot be read, a refused input
        3  not private: a certificate was refused, or an audit refuted the claim
      130  interrupted
    """
    if version:
        print(f"labeldp {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
def design(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The JSON file to write.")],
    epsilon: Annotated[str, typer.Option(metavar="E", help="The privacy budget, exact: 1, 0.5 or 1/3.")],
    integers: Integers = None,
    grid: Grid = None,
    values: Values = None,
    prior: PriorFile = None,
    mechanism: Annotated[str, typer.Option(metavar="NAME", help=f"One of {NAMES}.")] = "unbiased",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace FILE where it exists.")] = False,
    as_json: Json = False,
) -> None:
    """Design a randomizer for a label set and certify it.

    The labels, the prior and the resulting file are public; no data is read. The file appears whole or not at all.

    \b
    Examples:
      labeldp design --integers 0:52 --epsilon 1 -o channel.json
      labeldp design --grid 0:400:401 --epsilon 0.5 --prior prior.csv -o channel.json
      labeldp design --values 1,2,5 --epsilon 1/3 --mechanism laplace -o noise.json
    """
    refuse_existing(output, overwrite)
    believed = prior_of(space_of(integers, grid, values), prior)
    with waiting("designing", quiet=as_json):
        made = design_mechanism(mechanism, believed, epsilon)
        certificate = certify_mechanism(made)
        [row] = compare_mechanisms([made], believed)
    write_whole(output, made.to_json(), overwrite=overwrite)

    outputs = len(made.outputs) if isinstance(made, Channel) else None
    gap = made.optimality_gap if isinstance(made, Channel) else None
    if as_json:
        print_json(
            {
                "file": str(output),
                "mechanism": made.name,
                "labels": {"count": len(made.space), "low": made.space.low, "high": made.space.high},
                "epsilon": exact(made.epsilon),
                "outputs": {"count": outputs, "lowest": row.lowest, "highest": row.highest},
                "noisy_loss": row.noisy_loss,
                "worst_bias": row.worst_bias,
                "optimality_gap": gap,
                "certificate": _certificate_record(certificate),
            }
        )
        return
    print_facts(
        {
            "mechanism": made.name,
            "labels": _labels(made.space),
            "epsilon": exact(made.epsilon),
            "prior": "uniform" if prior is None else str(prior),
            "outputs": f"{f'{outputs} values' if outputs else 'noise'} in {row.lowest:.6g} … {row.highest:.6g}",
            "noisy loss": f"{row.noisy_loss:.6g}",
            "worst bias": f"{row.worst_bias:.3g}",
            "gap": "not stated" if gap is None else f"at most {gap:.2g} above the least loss",
            "certificate": f"ratio {float(certificate.ratio):.12g} ≤ e^epsilon, exact",
            "written": str(output),
        }
    )


@app.command()
def certify(
    file: MechanismFile,
    epsilon: Annotated[
        str | None, typer.Option(metavar="E", help="Prove this budget instead of the one that the file claims.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Prove from the exact law that a mechanism is private, or refuse.

    Whoever receives a mechanism can run this: nothing is taken on trust but the file. Exit code 3 means refused.

    \b
    Examples:
      labeldp certify channel.json
      labeldp certify channel.json --epsilon 1/2
    """
    mechanism = read_mechanism(file)
    try:
        certificate = certify_mechanism(mechanism, epsilon)
    except NotPrivateError as error:
        if not as_json:
            raise
        print_json({"private": False, "mechanism": mechanism.name, "reason": str(error)})
        raise typer.Exit(NOT_PRIVATE) from None
    if as_json:
        print_json({"private": True, "mechanism": mechanism.name, **_certificate_record(certificate)})
        return
    print_facts(
        {
            "mechanism": mechanism.name,
            "labels": _labels(mechanism.space),
            "epsilon": exact(certificate.epsilon),
            "ratio": f"{float(certificate.ratio):.15g}",
            "e^epsilon": f"{float(certificate.bound):.15g}",
            "below by": f"{float((certificate.bound - certificate.ratio) / certificate.bound):.2g}, relative",
            "digest": certificate.mechanism,
            "verdict": "private",
        }
    )


@app.command()
def compare(
    epsilon: Annotated[list[str], typer.Option(metavar="E", help="A privacy budget; may be given several times.")],
    integers: Integers = None,
    grid: Grid = None,
    values: Values = None,
    prior: PriorFile = None,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"May be given several times; all where left out. One of {NAMES}."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Put mechanisms side by side, from their laws, not from simulation.

    "times examples" is how many times more examples a mechanism needs than the best unbiased one in the table for the
    same variance of a mean; no number of examples averages a bias away.

    \b
    Examples:
      labeldp compare --integers 0:52 --epsilon 0.5 --epsilon 1
      labeldp compare --integers 0:52 --prior prior.csv --epsilon 1 --mechanism laplace
    """
    believed = prior_of(space_of(integers, grid, values), prior)
    budgets = list(dict.fromkeys(epsilon_of(each) for each in epsilon))
    with waiting("comparing", quiet=as_json):
        rows = compare_mechanisms(mechanism or MECHANISMS, believed, budgets)
    if as_json:
        records = [{**asdict(row), "epsilon": exact(row.epsilon)} for row in rows]
        print_json({"comparisons": [{name: _or_null(value) for name, value in each.items()} for each in records]})
        return
    columns = ("mechanism", "noisy loss", "worst bias", "deviation", "lowest", "highest", "times examples")
    for budget, group in groupby(rows, key=lambda row: row.epsilon):
        cells = [
            (
                row.mechanism,
                f"{row.noisy_loss:.5g}",
                f"{row.worst_bias:.2g}",
                f"{row.standard_deviation:.5g}",
                f"{row.lowest:.5g}",
                f"{row.highest:.5g}",
                "biased" if math.isnan(row.times_examples) else f"{row.times_examples:.2f}",
            )
            for row in group
        ]
        print_table(f"epsilon {exact(budget)}", columns, cells, words=("mechanism",))


@app.command()
def keygen(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The key file to make.")],
    as_json: Json = False,
) -> None:
    """Make a release key: 32 random bytes in a new file that only you can read.

    With a key a release can be run again and gives the same labels. Whoever has it and the released labels may learn
    the true ones: keep it secret, and keep a copy. The key is never printed; its fingerprint tells keys apart.

    \b
    Example:
      labeldp keygen release.key
    """
    key = ReleaseKey.new()
    try:
        write_new(file, key.secret, mode=0o600)
    except FileExistsError:
        raise KeyFormatError(f"{file} exists already, and a key is never overwritten; give another name.") from None
    if as_json:
        print_json({"file": str(file), "fingerprint": key.fingerprint})
    else:
        print_facts({"key file": str(file), "fingerprint": key.fingerprint})


@app.command()
def ledger(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The ledger of your releases.")],
    as_json: Json = False,
) -> None:
    """Show what was spent of each privacy budget, and on what.

    Amounts are exact. A ledger that was changed by hand is refused.

    \b
    Example:
      labeldp ledger ledger.db
    """
    book = Ledger(file)
    entries, budgets = book.entries(), book.budgets()
    columns = []
    for (dataset, column), budget in budgets.items():
        ours = [entry for entry in entries if (entry.dataset, entry.column) == (dataset, column)]
        spent = sum((entry.epsilon for entry in ours), Fraction(0))
        amounts = {"budget": exact(budget), "spent": exact(spent), "remaining": exact(budget - spent)}
        columns.append({"dataset": dataset, "column": column, **amounts, "releases": len(ours)})
    shown = ("number", "at", "dataset", "column", "epsilon", "labels", "name", "key_fingerprint")
    records = [
        {name: exact(entry.epsilon) if name == "epsilon" else getattr(entry, name) for name in shown}
        for entry in entries
    ]
    if as_json:
        print_json({"file": str(file), "budgets": columns, "entries": records})
        return
    if not entries:
        print_facts({"ledger": str(file), "entries": "none yet"})
        return
    plain = [{**row, "at": str(row["at"]).replace("T", " ").removesuffix("+00:00")} for row in records]
    words = ("data set", "column", "at (UTC)", "name", "key")
    heads = {"dataset": "data set", "at": "at (UTC)", "key_fingerprint": "key"}
    for title, rows in (("budgets", columns), ("entries", plain)):
        cells = [["" if value is None else str(value) for value in row.values()] for row in rows]
        print_table(title, [heads.get(name, name) for name in rows[0]], cells, words=words)


@app.command()
def audit(
    file: MechanismFile,
    draws: Annotated[int, typer.Option(metavar="N", help="How many labels to draw.")] = 4_000_000,
    confidence: Annotated[float, typer.Option(metavar="C", help="How sure the bound is, between 0 and 1.")] = 0.99,
    as_json: Json = False,
) -> None:
    """Attack a mechanism with draws: a lower bound on its epsilon, at a stated confidence.

    An audit can refute a claim, with exit code 3, and never prove one; that is what labeldp certify does.

    \b
    Examples:
      labeldp audit channel.json
      labeldp audit channel.json --draws 400000 --confidence 0.999
    """
    mechanism = read_mechanism(file)
    with progress("drawing", quiet=as_json) as report:
        found = audit_mechanism(mechanism, draws=draws, confidence=confidence, progress=report)
    if as_json:
        print_json({**asdict(found), "claimed": exact(mechanism.epsilon), "refuted": found.violation})
    else:
        print_facts(
            {
                "mechanism": mechanism.name,
                "claimed epsilon": exact(mechanism.epsilon),
                "measured": f"epsilon ≥ {found.lower:.4g} at {100 * found.confidence:g} % confidence",
                "draws": str(found.draws),
                "event": f"{found.event}, under label {found.label:g} against label {found.other:g}",
                "verdict": "REFUTED" if found.violation else "not refuted",
            }
        )
    if found.violation:
        raise typer.Exit(NOT_PRIVATE)


def _certificate_record(certificate: Certificate) -> dict[str, Any]:
    return {
        "epsilon": exact(certificate.epsilon),
        "ratio": float(certificate.ratio),
        "e_to_epsilon": float(certificate.bound),
        "exact": {"ratio": str(certificate.ratio), "bound": str(certificate.bound)},
        "digest": certificate.mechanism,
    }


def _labels(space: LabelSpace) -> str:
    return f"{len(space)}, {space.low:g} … {space.high:g}"


def _or_null(value: Any) -> Any:
    """JSON has no NaN."""
    return None if isinstance(value, float) and math.isnan(value) else value
