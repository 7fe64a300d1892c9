"""The Jacobian term: among encoders that fit as well, prefer the one that changes least with its inputs.

    L = Σ InfoNCE + λ/τ E‖J_f(x)‖_F²

Source: thesis (8.3); λ is 0 for 2,500 of 20,000 steps, then rises for 2,500 to .1. With it the encoder's Jacobian is
the pseudo-inverse of that of the process that made the data, which is what makes attribution maps identifiable
(theorem 2). The exact norm needs a backward pass for each output. Here one random projection is the default: for signs
v, E‖vᵀJ‖² = ‖J‖_F², so that the gradient is unbiased for the cost of one backward pass (after Hoffman et al., 2019).
J is that of a reference with respect to its whole window.
The text has no temperature τ. With one, the embedding that fits best is √τ times as large, since similarities are
−‖x − y‖²/τ, and so is its Jacobian: at τ = .18 the same λ would be too weak by a factor of 5.6. So the term is divided
by τ, and λ means the same at every temperature: it is λ‖J‖² of f/√τ, whose similarities need no temperature (also of
dot products and cosines). A learnt τ gets the gradient of the term, so that the whole loss depends on f/√τ alone.
Without it nothing would hold the size of f: the term shrinks f, τ follows, and both go on for ever.
λ by the rule of the text, below (8.3), is the largest that leaves the contrastive fit at its minimum; here the goodness
of fit may lose no more than a share of what the best fit has. That costs a fit for each value.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd
import torch
from sklearn.base import clone
from torch import nn
from torch.nn import functional as F

from haptera.checks import check_number
from haptera.contrastive.encoder import encode_windows
from haptera.errors import HapteraError
from haptera.progress import Progress

if TYPE_CHECKING:
    from haptera.contrastive.estimator import ContrastiveEmbedding

WEIGHTS = (0.0, 0.001, 0.01, 0.1, 1.0)
MEANING = "over the temperature, which follows it"
"""What the term was when a fit was made, changed when that changes; fits that were kept are then made again."""
SHARE = 8
"""The part of all steps for which λ is 0 by default; it then rises for as many, as in the text."""


@dataclass(frozen=True)
class JacobianTerm:
    """λ over the steps, and how the norm is found.

    Attributes:
        weight: λ in the end.
        wait: steps without it.
        ramp: steps over which it rises.
        exact: the norm itself instead of a random projection.
    """

    weight: float
    wait: int = 0
    ramp: int = 0
    exact: bool = False

    def __post_init__(self) -> None:
        check_number("jacobian_weight", self.weight, least=0)
        if min(self.wait, self.ramp) < 0:
            raise HapteraError(f"jacobian_ramp is ({self.wait}, {self.ramp}); no negative number was expected")

    @classmethod
    def of(cls, weight: float, ramp: tuple[int, int] | None, exact: bool, steps: int) -> "JacobianTerm":
        """Return the term for the settings of an estimator that goes for so many steps."""
        wait, rise = (steps // SHARE, steps // SHARE) if ramp is None else ramp
        return cls(weight, int(wait), int(rise), exact)

    def at(self, step: int) -> float:
        """λ at a step, counted from 1.

        >>> term = JacobianTerm(0.5, wait=10, ramp=4)
        >>> term.at(10), term.at(12), term.at(15)
        (0.0, 0.25, 0.5)
        """
        if step <= self.wait:
            return 0.0
        return self.weight * min((step - self.wait) / self.ramp, 1.0) if self.ramp else self.weight


def squared_norms(
    encoder: nn.Module, windows: torch.Tensor, exact: bool = False, on_sphere: bool = False
) -> torch.Tensor:
    """‖J‖_F² of each window, or with random signs an unbiased estimate of it; with gradients.

    Args:
        encoder: from `(batch, channels, length)` to `(batch, dimensions)`.
        windows: `(batch, channels, length)`.
        exact: one backward pass for each dimension instead of one for all.
        on_sphere: take the Jacobian of points of unit length, where the similarity is of these. Else an encoder that
            does not normalise could escape the term by growing smaller.
    """
    windows = windows.detach().requires_grad_()
    points = encode_windows(encoder, windows)
    points = F.normalize(points, dim=1) if on_sphere else points
    if exact:
        directions = list(points.sum(0))
    else:
        signs = torch.randint(0, 2, points.shape, device=points.device).to(points.dtype) * 2 - 1
        directions = [(signs * points).sum()]
    found = torch.zeros(len(windows), device=points.device)
    for one in directions:
        found = found + torch.autograd.grad(one, windows, create_graph=True)[0].square().flatten(1).sum(1)
    return found


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
    model: "ContrastiveEmbedding"
    table: pd.DataFrame


def choose_jacobian_weight(
    model: "ContrastiveEmbedding",
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
