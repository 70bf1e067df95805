"""Rivals that live outside the package."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from labeldp import Prior, feasible_outputs


def printed_program(prior: Prior, epsilon: float, mesh: int) -> float:
    """The paper's linear program with t_i ≤ M(y→i) ≤ e^ε·t_i, given to HiGHS as it stands; its optimal loss."""
    z, y, p = feasible_outputs(prior.space, epsilon, mesh), prior.space.values, prior.probabilities
    k, n = len(y), len(z)
    entry, column = sparse.identity(k * n), sparse.vstack([sparse.identity(n)] * k)
    private = sparse.vstack((sparse.hstack((entry, -np.exp(epsilon) * column)), sparse.hstack((-entry, column))))
    rows = [sparse.kron(sparse.identity(k), row) for row in (np.ones((1, n)), z[None, :])]
    equal = sparse.vstack([sparse.hstack((row, sparse.csr_matrix((k, n)))) for row in rows])
    cost = (p[:, None] * 0.5 * (z - y[:, None]) ** 2).ravel()
    result = linprog(
        np.concatenate((cost, np.zeros(n))),
        A_ub=private.tocsr(),
        b_ub=np.zeros(2 * k * n),
        A_eq=equal.tocsr(),
        b_eq=np.concatenate((np.ones(k), y)),
        bounds=(0, None),
        method="highs",
    )
    return float(result.fun)
