"""How a claim is measured: the median of repeated runs, and a ratio with the bar it has to pass."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """`value` against `bar`: at least it, or at most it."""

    what: str
    value: float
    bar: float
    at_least: bool
    detail: str

    @property
    def holds(self) -> bool:
        return self.value >= self.bar if self.at_least else self.value <= self.bar


def seconds(run: Callable[[], object], repeat: int = 5) -> float:
    """The median time of one call, after a call to warm up."""
    run()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def peak_megabytes(code: str) -> float:
    """The peak memory of a fresh interpreter that runs `code`."""
    # Not ru_maxrss: a child inherits its parent's peak there. VmHWM starts anew with the program.
    script = f"{code}\nprint(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    answer = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return int(answer.stdout.split()[-2]) / 2**10
