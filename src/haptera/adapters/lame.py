"""LAME: change no parameter; move the predictions of a batch until similar images have similar ones.

Source: Boudiaf et al. 2022. With q the model's probabilities and w the affinity of features, minimise Σ KL(z_i ‖ q_i)
− ½ Σ w_ij z_iᵀ z_j over probabilities z by z_i ∝ q_i exp(Σ_j w_ij z_j), from z = q, again and again. For a positive
semi-definite w (`rbf`, `linear`) no iteration makes it larger; for `knn`, as published, w is not even symmetric, and
iterations are bounded. Features are what reaches the last layer, scaled to norm 1.
Differs: where the layers of a model cannot be seen (ONNX, TorchScript, a function), its logits, less their mean, stand
in for the features. An image is never its own neighbour; the public code counts it for the width of `rbf`, and for
`knn` where another one is identical. It ends when no probability moves by more than 1e-6; the public code looks at the
bound.
Cost: a forward pass and, for n images, a few products of (n, n) with (n, classes).
"""

import logging
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from haptera.adapters.base import Adapter
from haptera.adapters.passes import check_logits, run
from haptera.adapters.select import features, last_layer
from haptera.checks import check_whole_number
from haptera.errors import check_keys
from haptera.modules import hides_layers

AFFINITIES = ("knn", "rbf", "linear")


log = logging.getLogger("haptera")


class LAME(Adapter):
    """Laplacian-adjusted maximum likelihood.

    Args:
        model: any with a linear or convolutional layer at its end, or one whose layers cannot be seen.
        affinity: `knn`, 1 for the nearest neighbours of an image and else 0; `rbf`, exp(−d²/2σ²) with σ the mean
            distance to the farthest of them; `linear`, the cosine.
        neighbours: how many.
        iterations: at most.
        settings: `window`, to look at the last inputs together, up to so many; `frozen`, without the window.
    """

    outputs_only = True

    def __init__(
        self,
        model: nn.Module,
        affinity: str = "knn",
        neighbours: int = 5,
        iterations: int = 100,
        **settings: Any,
    ) -> None:
        check_keys("affinity", [affinity], AFFINITIES)
        for name, value in (("neighbours", neighbours), ("iterations", iterations)):
            check_whole_number(name, value)
        super().__init__(model, **settings)
        self._hidden = hides_layers(self.model)
        if self._hidden:
            log.info("lame: the layers of the model cannot be seen; images are compared by their logits")
        else:
            last_layer(self.model)
        self.affinity, self.neighbours, self.iterations = affinity, neighbours, iterations

    @torch.no_grad()
    def predict(self, inputs: torch.Tensor) -> torch.Tensor:
        """`(batch, classes)`, log z; the model's own log-probabilities where they or the features are not finite."""
        logits, seen = self._look(inputs)
        log_q, found = logits.log_softmax(1), F.normalize(seen.to(logits), dim=1)
        fine = torch.isfinite(log_q).all(1) & torch.isfinite(found).all(1)
        weights = affinities(found[fine], self.affinity, self.neighbours)
        log_q[fine], steps = adjust(log_q[fine], weights, self.iterations)
        self.record["iterations"] = float(steps)
        return log_q

    def _look(self, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits `(batch, classes)`, and features `(batch, d)`."""
        if self._hidden:
            logits = check_logits(run(self.model, inputs), type(self).__name__)
            return logits, logits - logits.mean(1, keepdim=True)
        with features(self.model) as seen:
            logits = check_logits(run(self.model, inputs), type(self).__name__)
        return logits, seen[-1]


def affinities(found: torch.Tensor, kind: str, neighbours: int) -> torch.Tensor:
    """`(n, n)` from features `(n, d)` of norm 1."""
    if kind == "linear":
        return found @ found.T
    distances = torch.cdist(found, found, compute_mode="donot_use_mm_for_euclid_dist")
    if kind == "rbf":
        rank = min(neighbours + 1, len(found))  # the first is the image itself
        sigma = distances.topk(rank, largest=False).values[:, -1:].mean().clamp_min(1e-6)
        return torch.exp(-0.5 * (distances / sigma) ** 2)
    nearest = distances.fill_diagonal_(float("inf")).topk(min(neighbours, max(len(found) - 1, 0)), largest=False)
    return torch.zeros_like(distances).scatter_(1, nearest.indices, 1.0)


def adjust(log_q: torch.Tensor, weights: torch.Tensor, iterations: int) -> tuple[torch.Tensor, int]:
    """log z `(n, classes)`, and after how many iterations."""
    log_z = log_q
    for step in range(1, iterations + 1):
        before, log_z = log_z, (log_q + weights @ log_z.exp()).log_softmax(1)
        if not len(log_z) or float((log_z.exp() - before.exp()).abs().max()) <= 1e-6:
            return log_z, step
    return log_z, iterations
