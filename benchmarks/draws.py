"""Draws of an unbiased channel against NumPy's Laplace, which is neither exact nor secure, and OpenDP's, which is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

import numpy as np
import opendp.prelude as dp

from benchmarks.timing import Claim, peak_megabytes, seconds
from labeldp import LabelSpace, Prior, ReleaseKey, SystemEntropy, design_unbiased
from labeldp.sampler import draw

ROWS = 10_000_000


def claims() -> Iterator[Claim]:
    channel = design_unbiased(Prior.uniform(LabelSpace.integers(0, 400)), 1)
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 401, ROWS)
    key = ReleaseKey.new()
    ids = key.ids(np.arange(ROWS))
    fresh, keyed = SystemEntropy().stream("draw"), key.stream("draw", ids, "bench")
    numpy_time = seconds(lambda: generator.laplace(0.0, 400.0, ROWS))
    cores = os.cpu_count() or 1
    times = {
        (kind, threads): seconds(partial(draw, channel, labels, stream, threads=threads))
        for kind, stream in (("fresh", fresh), ("keyed", keyed))
        for threads in (1, cores)
    }

    def rate(time: float) -> str:
        return f"{ROWS / time / 1e6:.0f} and {ROWS / numpy_time / 1e6:.0f} million/s"

    all_cores, one = times["fresh", cores], times["fresh", 1]
    yield Claim(
        f"k=401 channel, {cores} threads: speed over NumPy's Laplace", numpy_time / all_cores, 1, True, rate(all_cores)
    )
    yield Claim("k=401 channel, 1 thread: speed over NumPy's Laplace", numpy_time / one, 0.8, True, rate(one))
    exact_rate = _opendp_rate()
    yield Claim(
        "k=401 channel: speed over OpenDP's exact vector Laplace",
        ROWS / all_cores / exact_rate,
        200,
        True,
        f"{ROWS / all_cores / 1e6:.0f} and {exact_rate / 1e6:.3f} million/s",
    )
    for threads in (cores, 1):
        time = times["keyed", threads]
        bar = 0.5 if threads > 1 else 0.4
        what = f"keyed by integer id, {threads} threads: speed over NumPy's Laplace"
        yield Claim(what, numpy_time / time, bar, True, rate(time))
    yield Claim(
        "memory beyond input and output, 10 million draws, MB", _extra_megabytes(), 64, False, "a fresh process"
    )


def _opendp_rate() -> float:
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    laplace = dp.m.make_laplace(*space, scale=400.0)
    values = [0.0] * 20_000
    return len(values) / seconds(lambda: laplace(values), repeat=3)


def _extra_megabytes() -> float:
    """Peak memory of drawing ten million labels, less that of holding labels and outputs."""
    made = (
        "import numpy as np\nfrom labeldp import *\nfrom labeldp.sampler import draw\n"
        "channel = design_unbiased(Prior.uniform(LabelSpace.integers(0, 400)), 1)\n"
        f"labels = np.zeros({ROWS}, dtype=np.int64) + 3\n"
    )
    drawn = peak_megabytes(made + "draw(channel, labels, SystemEntropy().stream('draw'))")
    held = peak_megabytes(made + f"released = np.zeros({ROWS}) + 1.0")
    return drawn - held
