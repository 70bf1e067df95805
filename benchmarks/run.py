"""Every claim of speed, in one run: a table on the screen, and benchmarks/results.json."""

from __future__ import annotations

import json
import platform
import sys
from dataclasses import asdict
from itertools import chain
from pathlib import Path

from rich.console import Console
from rich.table import Table

import labeldp
from benchmarks import design, draws

RESULTS = Path(__file__).with_name("results.json")


def main() -> int:
    console = Console()
    table = Table("", "claim", "value", "bar", "measured", title=f"labeldp {labeldp.__version__}, ratios in one run")
    claims = []
    with console.status("measuring") as status:
        for claim in chain(design.claims(), draws.claims()):
            claims.append(claim)
            status.update(f"measured: {claim.what}")
            sign = "≥" if claim.at_least else "≤"
            mark = "[green]✓" if claim.holds else "[red]✗"
            table.add_row(mark, claim.what, f"{claim.value:.4g}", f"{sign} {claim.bar:g}", claim.detail)
        status.update("measuring growth")
        curve = list(design.growth())
    console.print(table)
    console.print("\nGrowth of design_unbiased with the number of labels (ε = 1, uniform prior)")
    slowest = max(seconds for _, seconds in curve)
    for k, seconds in curve:
        console.print(f"{k:6d} labels {1e3 * seconds:9.1f} ms  {'█' * max(1, round(50 * seconds / slowest))}")
    RESULTS.write_text(
        json.dumps(
            {
                "version": labeldp.__version__,
                "python": platform.python_version(),
                "machine": platform.machine(),
                "claims": [{**asdict(claim), "holds": claim.holds} for claim in claims],
                "growth": [{"labels": k, "seconds": seconds} for k, seconds in curve],
            },
            indent=1,
            ensure_ascii=False,
        )
        + "\n"
    )
    console.print(f"\nwritten to {RESULTS.relative_to(Path.cwd()) if RESULTS.is_relative_to(Path.cwd()) else RESULTS}")
    return 0 if all(claim.holds for claim in claims) else 1


if __name__ == "__main__":
    sys.exit(main())
