"""Weighted soft likelihood ratio: the loss of ROID and CMF, for predictions that are sure and unlike the earlier ones.

Source: Marsden et al. 2024 (ROID), sections "certainty and diversity weighting" and "consistency". Diversity is
1 − cos(running mean prediction, p), certainty is −H; both are scaled to [0, 1] within the batch. Samples of less than
the mean diversity are dropped, the others weigh exp(diversity · certainty / τ), without gradient. The loss is the
weighted sum over the kept samples of the soft likelihood ratio and of the symmetric cross-entropy between the
prediction and that of a random view, divided by the size of the batch.
The public code decides: gradients flow through both sides of the symmetric cross-entropy; only kept images get a view,
and BatchNorm statistics of that pass are those of the views; the running mean, .9 old and .1 new, begins even.
Differs: the sum is divided by the images at hand, not by a configured number; a batch in which all are equally diverse
or sure, such as a single image, gets 0 for that; a single view is normalised by the statistics of its batch; views as
`augment.py` makes them, without noise and blur, unless `augment="published"`.
Cost: a forward and a backward pass of the batch, and of a view of its kept part, about a half; where layers treat
samples apart, the backward pass is one of the kept part alone (`skip.py`).
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from haptera.adapters.augment import Augment
from haptera.adapters.base import all_finite
from haptera.adapters.learner import Learner
from haptera.adapters.published import CoTTAViews, Views, choose_views
from haptera.adapters.skip import keep
from haptera.checks import check_number
from haptera.losses.self_learning import entropy, mutual_cross_entropy, soft_likelihood_ratio

PLAIN = Augment(noise=0.0, blur=0.0)
"""ROID's views: CoTTA's without noise and blur."""


class WeightedSLR(Learner):
    """Soft likelihood ratio of sure and diverse samples, and consistency with a view.

    Args:
        model: with normalisation layers, unless `parameters` says otherwise.
        lr: the learning rate; the public code has 2.5e-4 with SGD for ImageNet and 1e-3 with Adam for CIFAR.
        temperature: τ of the weights.
        decay: the share of earlier batches in the running mean prediction.
        consistency: the weight of the symmetric cross-entropy with a view; 0 for no views, for inputs of any kind.
        augment: what the views look like: an `Augment`, `own` or `published`.
        settings: of every learner; `seed` is of the views.
    """

    def __init__(
        self,
        model: nn.Module,
        lr: float = 2.5e-4,
        temperature: float = 1 / 3,
        decay: float = 0.9,
        consistency: float = 1.0,
        augment: Views | str = "own",
        **settings: Any,
    ) -> None:
        check_number("temperature", temperature, above=0)
        check_number("decay", decay, least=0, most=1, what="a share")
        check_number("consistency", consistency, least=0, what="a weight")
        super().__init__(model, lr=lr, **settings)
        self.temperature, self.decay, self.consistency = temperature, decay, consistency
        self.augment = choose_views(augment, CoTTAViews(blur=0.0, noise=0.0, edge="reflect"), PLAIN)
        self.memory["mean"] = None

    def loss(self, logits: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor | None:
        """The weighted sum over kept samples, divided by the size of the batch; None where logits are not finite."""
        if not all_finite(logits.detach()):
            self.record["skipped"] = 1.0
            return None
        weights = self.weights(logits.detach())
        kept = weights > 0
        self.record["kept"] = float(kept.float().mean())
        own = keep(logits, kept)
        losses = soft_likelihood_ratio(own)
        if self.consistency:
            view = self._arrange(self.augment(inputs[kept], self.random))
            losses = losses + self.consistency * mutual_cross_entropy(self.logits_aside(view), own)
        return (losses * weights[kept]).sum() / len(logits)

    @torch.no_grad()
    def weights(self, logits: torch.Tensor) -> torch.Tensor:
        """`(batch,)`, how much each sample counts; 0 for those that are dropped."""
        p, mean = logits.softmax(1), self.memory["mean"]
        mean = torch.full_like(p[0], 1 / p.shape[1]) if mean is None else mean.to(p)
        diversity = stretch(1 - F.cosine_similarity(mean[None], p))
        certainty = stretch(-entropy(logits))
        self.memory["mean"] = self.decay * mean + (1 - self.decay) * p.mean(0)
        return torch.where(diversity < diversity.mean(), 0.0, torch.exp(diversity * certainty / self.temperature))


def stretch(values: torch.Tensor) -> torch.Tensor:
    """Values moved and scaled to [0, 1]; 0 where all are equal.

    >>> stretch(torch.tensor([1.0, 2.0, 5.0])), stretch(torch.tensor([3.0]))
    (tensor([0.0000, 0.2500, 1.0000]), tensor([0.]))
    """
    low, high = values.aminmax()
    return (values - low) / (high - low) if bool(high > low) else torch.zeros_like(values)
