"""Theorems on the data: how tight theorem 2 is, what theorem 3 and conjecture 1 screen, and whether they are right.

Source: "Neural Dependencies Emerging from Learning Massive Categories", (9), (13) and (14). Every class is solved at
some shares of its own λ_max, and what the theorems say beforehand is compared with the solutions.
Cost: a solution for each share, begun from the one before, and one eigendecomposition.
"""

import numpy as np
import pandas as pd

from haptera.analyses.dependencies.lasso import gradient, solve
from haptera.analyses.dependencies.screening import Screening

SHARES = (0.95, 0.9, 0.7, 0.5, 0.3, 0.1)
"""λ as a share of each class's λ_max."""


def theorems_table(screening: Screening) -> pd.DataFrame:
    """Return one row for each share of λ_max.

    Returns:
        Columns `share`; `dependencies` (for each class); `screened` (the share of pairs for which theorem 3 says that
        there is no dependency) and `screened_wrongly` (pairs, 0 if the theorem holds); `excluded` and
        `excluded_wrongly` (the same for conjecture 1, the second as a share of the dependencies); `slope` (theorem 2:
        the change of a derivative over λ since λ_max as a share of its bound, the largest; at most 1 if it holds) and
        `median_slope`.
    """
    matrix, right, left_out = screening.matrix, screening.right, screening.left_out
    top = np.maximum(screening.lambda_max, np.finfo(np.float64).tiny)
    pairs = right.size - int((left_out >= 0).sum())
    others = np.ones(right.shape, bool)
    kept = np.flatnonzero(left_out >= 0)
    others[kept, left_out[kept]] = False
    theta, rows = None, []
    for share in SHARES:
        lam = share * top
        theta = solve(matrix, right, lam, left_out, theta)
        dependent = theta.toarray() != 0
        screened, excluded = screening.screen(lam), screening.exclude(lam)
        slope = gradient(matrix, right, left_out, theta) / lam[:, None] + right / top[:, None]
        bound = screening.product * np.abs(1 / lam - 1 / top)[:, None]
        ratio = np.divide(np.abs(slope), bound, out=np.zeros_like(bound), where=bound > 0)[others]
        rows.append(
            {
                "share": share,
                "dependencies": dependent.sum() / len(right),
                "screened": screened.sum() / pairs,
                "screened_wrongly": int((screened & dependent).sum()),
                "excluded": excluded.sum() / pairs,
                "excluded_wrongly": (excluded & dependent).sum() / max(int(dependent.sum()), 1),
                "slope": ratio.max(initial=0.0),
                "median_slope": float(np.median(ratio)),
            }
        )
    return pd.DataFrame(rows)
