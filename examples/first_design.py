"""A first design: the paper's toy example, from a prior to a certified channel."""

import numpy as np
from rich.console import Console
from rich.table import Table

import labeldp

console = Console()
space = labeldp.LabelSpace.integers(0, 2)
prior = labeldp.Prior(space, [0.6, 0.25, 0.15])
channel = labeldp.design_unbiased(prior, epsilon=0.5)

console.print("[bold]The optimal unbiased randomizer for labels 0, 1, 2 with shares 60 %, 25 %, 15 %, at ε = 0.5")
law = Table("label", *(f"→ {z:.3f}" for z in channel.outputs), "mean", "deviation")
for y, row in enumerate(channel.matrix()):
    law.add_row(
        f"{space.values[y]:g}",
        *(f"{p:.1%}" for p in row),
        f"{round(channel.mean()[y], 9) + 0.0:.6f}",
        f"{np.sqrt(channel.variance()[y]):.3f}",
    )
console.print(law)
console.print(labeldp.certify(channel))

console.print("\n[bold]What other choices cost")
others = Table("mechanism", "noisy loss", "worst bias")
for other in (
    channel,
    labeldp.design_on_grid(prior, 0.5, mesh=52),
    labeldp.design_debiased_rr(space, 0.5),
    labeldp.Staircase(space, 0.5),
    labeldp.Laplace(space, 0.5),
    labeldp.design_rr_on_bins(prior, 0.5),
    labeldp.design_randomized_response(space, 0.5),
):
    others.add_row(other.name, f"{other.noisy_loss(prior):.4f}", f"{np.abs(other.bias()).max():.2g}")
console.print(others)
console.print(
    "\nThe biased ones have the smaller loss and teach a model the wrong mean;\n"
    f"of the unbiased ones none can be better than the first, up to {channel.optimality_gap:.0e} of its loss."
)
