"""design_rr_on_bins: the randomizer of least noisy loss when bias is allowed (Ghazi et al. 2022).

Cut the labels into bins, run randomized response over the bins, release each bin's posterior mean:

    noisy loss = Σ_bins ½V(bin) / (growth + number of bins)          (V in arcs.py)

so the best of all partitions is a cheapest path (paths.py). On the strip, labels of one bin share a window.
"""

from __future__ import annotations

import numpy as np

from labeldp.certificate import certify
from labeldp.channel import Channel, smallest_coin
from labeldp.design.arcs import ArcCosts, Instance
from labeldp.design.paths import cheapest_path, cost_table
from labeldp.exact import Rational, epsilon_of
from labeldp.prior import Prior

__all__ = ["design_rr_on_bins"]


def design_rr_on_bins(prior: Prior, epsilon: Rational) -> Channel:
    """The exact optimum over all partitions of the labels into consecutive bins."""
    exact = epsilon_of(epsilon)
    problem = Instance.of(prior, exact)
    _, path = cheapest_path(cost_table(problem), problem.growth)
    bins = len(path) - 1
    coin = smallest_coin(exact, bins, 1)
    _, means, _ = ArcCosts.of(problem)(path[:-1], path[1:])
    channel = Channel(
        space=prior.space,
        epsilon=exact,
        strip=bins,
        window=1,
        offsets=np.repeat(np.arange(bins), np.diff(path)),
        cuts=np.arange(bins + 1),
        coin=coin,
        cell_outputs=problem.to_labels(means),
        name="rr-on-bins",
        prior=prior.probabilities,
    )
    certify(channel)
    return channel
