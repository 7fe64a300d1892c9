"""λ of the Jacobian term by the rule of the text: the largest that leaves the contrastive fit at its minimum.

Source: thesis, below (8.3). "At its minimum" is made precise here: the goodness of fit loses no more than a share of
what the best fit has.
Cost: a fit for each value.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from sklearn.base import clone

from haptera.checks import check_number
from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.progress import Progress

WEIGHTS = (0.0, 0.001, 0.01, 0.1, 1.0)


@dataclass(frozen=True, eq=False)
class JacobianWeight:
    """What was tried and what was chosen.

    Attributes:
        weight: λ.
        model: fitted with it.
        table: `weight`, `nats` (goodness of fit, lower is better), `jacobian` (mean squared norm, NaN without the
            term) and `kept`, whether the fit stayed at its minimum.
    """

    weight: float
    model: ContrastiveEmbedding
    table: pd.DataFrame


def choose_jacobian_weight(
    model: ContrastiveEmbedding,
    X: Any,
    *y: Any,
    weights: Sequence[float] = WEIGHTS,
    loss: float = 0.02,
    progress: bool | None = False,
    **fit_params: Any,
) -> JacobianWeight:
    """Fit with every λ, and take the largest that keeps the fit.

    Args:
        model: its settings are used; it is not changed.
        X: as in `fit`.
        *y: as in `fit`.
        weights: to try; 0 is added if it is missing.
        loss: the share of the best goodness of fit that may be lost.
        progress: show a bar; None does on a terminal.
        **fit_params: such as `trials`.
    """
    check_number("loss", loss, least=0, below=1, what="a share")
    tried = sorted({0.0, *map(float, weights)})
    fitted, rows = [], []
    with Progress("jacobian weight", len(tried), progress, unit="fits") as bar:
        for weight in tried:
            one = clone(model).set_params(jacobian_weight=weight).fit(X, *y, **fit_params)
            last = one.jacobian_history_[-100:]
            fit = one.goodness_of_fit(X, *y, **fit_params)
            rows.append({"weight": weight, "nats": fit, "jacobian": last.mean() if len(last) else float("nan")})
            fitted.append(one)
            bar.advance(f"{weight:g}: {fit:.3f} nats")
    table = pd.DataFrame(rows)
    best = table["nats"].min()
    table["kept"] = table["nats"] <= best + loss * abs(best)
    # Up to the first that loses too much: one beyond it that does not is luck.
    stays = int(table["kept"].cumprod().sum())
    chosen = max(stays - 1, 0)
    return JacobianWeight(tried[chosen], fitted[chosen], table)
