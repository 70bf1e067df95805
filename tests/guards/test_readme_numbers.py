"""The figures in the README are those that `make bench` wrote, and those that the laws give."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from labeldp import (
    LabelSpace,
    Laplace,
    Prior,
    Staircase,
    design_debiased_rr,
    design_on_grid,
    design_rr_on_bins,
    design_unbiased,
)

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CLAIMS = json.loads((ROOT / "benchmarks" / "results.json").read_text(encoding="utf-8"))["claims"]


@pytest.mark.parametrize(
    ("row", "claim", "shown"),
    [
        ("against the paper's program on HiGHS", "as the paper prints it", "{:.0f} times faster, lower loss"),
        ("our own faster form", "faster than design_on_grid with mesh 416", "{:.0f} times faster"),
        ("k = 2001 against k = 401", "k=2001, ε=1:", "{:.1f} times the time"),
        ("one thread, against NumPy's", "1 thread: speed over NumPy", "{:.1f} times its speed"),
        ("repeatable under a key", "keyed by integer id, 1 ", "{:.1f} times its speed"),
        ("OpenDP's exact vector Laplace", "OpenDP", "{:.0f} times its speed"),
    ],
)
def test_speeds_are_those_of_the_last_bench(row: str, claim: str, shown: str) -> None:
    (value,) = (c["value"] for c in CLAIMS if claim in c["what"])
    (line,) = (line for line in README.splitlines() if row in line and line.startswith("|"))
    assert shown.format(value) in line


def test_every_claim_of_the_last_bench_holds() -> None:
    assert [c["what"] for c in CLAIMS if not c["holds"]] == []


def test_losses_are_those_of_the_laws() -> None:
    space = LabelSpace.integers(0, 2)
    prior = Prior(space, [0.6, 0.25, 0.15])
    for row, mechanism in {
        "`design_unbiased`": design_unbiased(prior, 0.5),
        "`design_on_grid`": design_on_grid(prior, 0.5, mesh=52),
        "`design_debiased_rr`": design_debiased_rr(space, 0.5),
        "`Staircase`": Staircase(space, 0.5),
        "`Laplace`": Laplace(space, 0.5),
        "`design_rr_on_bins`": design_rr_on_bins(prior, 0.5),
    }.items():
        (line,) = (line for line in README.splitlines() if line.startswith(f"| {row}"))
        assert f"| {mechanism.noisy_loss(prior):.4f} |" in line
