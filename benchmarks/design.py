"""design_unbiased against the paper's linear program on HiGHS, and how it grows with the number of labels."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.rivals import printed_program
from benchmarks.timing import Claim, peak_megabytes, seconds
from labeldp import LabelSpace, Prior, design_on_grid, design_unbiased


def claims() -> Iterator[Claim]:
    prior = _uniform(52)
    on_grid, exact = design_on_grid(prior, 1, mesh=416), design_unbiased(prior, 1)
    grid_time = seconds(lambda: design_on_grid(prior, 1, mesh=416))
    exact_time = seconds(lambda: design_unbiased(prior, 1), repeat=25)
    yield Claim(
        "k=52, ε=1: design_unbiased, times faster than design_on_grid with mesh 416",
        grid_time / exact_time,
        50,
        True,
        f"{1e3 * exact_time:.0f} ms and {1e3 * grid_time:.0f} ms",
    )
    printed_time = seconds(lambda: printed_program(prior, 1, 416), repeat=1)
    yield Claim(
        "k=52, ε=1: times faster than the program as the paper prints it, on HiGHS",
        printed_time / exact_time,
        50,
        True,
        f"{1e3 * exact_time:.0f} ms and {1e3 * printed_time:.0f} ms",
    )
    yield Claim(
        "k=52, ε=1: its loss over the program's",
        exact.noisy_loss(prior) / on_grid.noisy_loss(prior),
        1,
        False,
        f"{exact.noisy_loss(prior):.6g} and {on_grid.noisy_loss(prior):.6g}",
    )
    medium = {}
    for epsilon in (0.5, 1, 2, 4, 8):
        medium[epsilon] = seconds(partial(design_unbiased, _uniform(401), epsilon), repeat=3)
        yield Claim(
            f"k=401, ε={epsilon}: time over that linear program's at k=52",
            medium[epsilon] / grid_time,
            1,
            False,
            f"{1e3 * medium[epsilon]:.0f} ms",
        )
    for epsilon in (0.5, 1, 2, 4):
        large = seconds(partial(design_unbiased, _uniform(2001), epsilon), repeat=1)
        yield Claim(f"k=2001, ε={epsilon}: time over k=401", large / medium[epsilon], 15, False, f"{large:.2f} s")
    memory = peak_megabytes(
        "from labeldp import *\ndesign_unbiased(Prior.uniform(LabelSpace.integers(0, 2000)), 4)",
    )
    yield Claim("k=2001, ε=4: peak memory of the process, MB", memory, 1000, False, "a fresh interpreter")


def growth() -> Iterator[tuple[int, float]]:
    """Seconds for k labels, ε = 1."""
    for k in (13, 26, 52, 101, 201, 401, 801, 1601, 2001):
        yield k, seconds(partial(design_unbiased, _uniform(k), 1), repeat=3 if k < 1000 else 1)


def _uniform(k: int) -> Prior:
    return Prior.uniform(LabelSpace.integers(0, k - 1))
