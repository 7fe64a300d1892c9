"""ETA: minimise the entropy of predictions that are sure and unlike the earlier ones; EATA: and stay near the source.

Source: thesis (4.1) and Niu et al. 2022. A sample is kept where its entropy is below `margin` ln C and the cosine
between its prediction and the running mean of kept ones is below `redundancy`; it weighs exp(margin ln C − H), without
gradient. The running mean is that of the public code, .9 old and .1 new; (4.1) prints the plain mean of all predictions
so far: `average="plain"`. The largest cosine that is kept follows the number of classes, as the public code's settings
do (`published_redundancy`): .05, the one of ImageNet, keeps nothing of ten classes after the first batch.
EATA adds `strength` Σ F (θ − θ₀)²; its F are squared gradients of the loss on argmax labels over the first
`fisher_samples` of the stream itself, during which it learns as ETA does: no source data is read.
Cost: as Tent; a batch of which nothing is kept costs its forward pass. EATA: two backward passes while it collects F.
"""

from math import log
from typing import Any, Unpack

import torch
from torch import nn
from torch.nn import functional as F

from haptera.adapters.learner import Learner, Learning
from haptera.checks import check_number
from haptera.errors import unknown
from haptera.losses.self_learning import entropy

AVERAGES = ("exponential", "plain")


class ETA(Learner):
    """Entropy of reliable, non-redundant samples.

    Args:
        model: with normalisation layers, unless `parameters` says otherwise.
        lr: the learning rate.
        margin: the largest entropy that is kept, in units of ln C.
        redundancy: the largest cosine with the mean prediction that is kept; by default that of the public code for the
            number of classes, .05 for 1,000 and .4 for ten.
        average: how the mean prediction goes on, `exponential` or `plain`.
        settings: of every learner.
    """

    def __init__(
        self,
        model: nn.Module,
        lr: float = 2.5e-4,
        margin: float = 0.4,
        redundancy: float | None = None,
        average: str = "exponential",
        **settings: Unpack[Learning],
    ) -> None:
        if average not in AVERAGES:
            raise unknown("average", average, AVERAGES)
        check_number("margin", margin, above=0)
        if redundancy is not None:
            check_number("redundancy", redundancy, above=0)
        super().__init__(model, lr=lr, **settings)
        self.margin, self.redundancy, self.average = margin, redundancy, average
        self.memory |= {"mean": None, "count": 0}

    def loss(self, logits: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor | None:
        """The weighted mean entropy of the samples that are kept; None where none is."""
        weights = self.weights(logits.detach())
        kept = weights > 0
        share = float(kept.float().mean())
        self.record["kept"] = share
        return (entropy(logits[kept]) * weights[kept]).mean() if share else None

    @torch.no_grad()
    def weights(self, logits: torch.Tensor) -> torch.Tensor:
        """`(batch,)`, how much each sample counts; 0 for those that are dropped."""
        limit = self.margin * log(logits.shape[1])
        p, h = logits.softmax(1), entropy(logits)
        kept = h < limit
        mean = self.memory["mean"]
        if mean is not None:
            largest = published_redundancy(logits.shape[1]) if self.redundancy is None else self.redundancy
            kept &= F.cosine_similarity(mean.to(p)[None], p).abs() < largest
        self._average(p, kept)
        return torch.where(kept, torch.exp(limit - h), 0.0)

    def _average(self, p: torch.Tensor, kept: torch.Tensor) -> None:
        mean = self.memory["mean"]
        if self.average == "plain":
            seen, self.memory["count"] = self.memory["count"], self.memory["count"] + len(p)
            share = len(p) / (seen + len(p))
            self.memory["mean"] = p.mean(0) if mean is None else mean.to(p).lerp(p.mean(0), share)
        elif bool(kept.any()):
            new = p[kept].mean(0)
            self.memory["mean"] = new if mean is None else 0.9 * mean.to(p) + 0.1 * new


def published_redundancy(classes: int) -> float:
    """Return the largest cosine that is kept in the public settings for so many classes.

    They are .4 for CIFAR-10 (and for RDumb on CIFAR-100), .1 for the 126 classes of DomainNet, .05 for ImageNet. Every
    prediction has a cosine of at least 1/√C with a mean prediction that is even; for fewer than ten classes, where
    nothing was published, the default is as many times that as for ten.

    >>> [round(published_redundancy(classes), 2) for classes in (2, 10, 100, 126, 1000)]
    [0.89, 0.4, 0.4, 0.1, 0.05]
    """
    if classes >= 1000:
        return 0.05
    return 0.1 if classes > 100 else 0.4 * max(10 / classes, 1.0) ** 0.5


class EATA(ETA):
    """ETA with an anchor: parameters that matter to the source's predictions stay near the source.

    Args:
        model: with normalisation layers, unless `parameters` says otherwise.
        lr: the learning rate.
        strength: of the anchor.
        fisher_samples: how many samples of the stream say which parameters matter.
        settings: of ETA and of every learner.
    """

    def __init__(
        self,
        model: nn.Module,
        lr: float = 2.5e-4,
        strength: float = 2000.0,
        fisher_samples: int = 2000,
        *,
        margin: float = 0.4,
        redundancy: float | None = None,
        average: str = "exponential",
        **settings: Unpack[Learning],
    ) -> None:
        super().__init__(model, lr, margin, redundancy, average, **settings)
        check_number("strength", strength, least=0)
        check_number("fisher_samples", fisher_samples, least=1)
        self.strength, self.fisher_samples = strength, fisher_samples
        self.memory |= {"fisher": None, "fisher_seen": 0, "fisher_batches": 0}

    def loss(self, logits: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor | None:
        """ETA's, and the anchor once F is known."""
        loss = super().loss(logits, inputs)
        if self.memory["fisher_seen"] < self.fisher_samples:
            self._collect(logits)
            return loss
        return loss if loss is None else loss + self.anchor()

    def anchor(self) -> torch.Tensor:
        """strength Σ F (θ − θ₀)²."""
        batches = self.memory["fisher_batches"]
        terms: list[Any] = [
            (fisher.to(now) * (now - first) ** 2).sum()
            for fisher, now, first in zip(self.memory["fisher"], self.adapted.values(), self._source, strict=True)
        ]
        return torch.stack(terms).sum() * (self.strength / batches)

    def _collect(self, logits: torch.Tensor) -> None:
        """Add the squared gradient of this batch, as the public code does, batch by batch."""
        own = F.cross_entropy(logits, logits.argmax(1))
        gradients = torch.autograd.grad(own, list(self.adapted.values()), retain_graph=True, allow_unused=True)
        squares = [
            torch.zeros_like(p) if g is None else g**2 for g, p in zip(gradients, self.adapted.values(), strict=True)
        ]
        before = self.memory["fisher"]
        self.memory["fisher"] = (
            squares if before is None else [a.to(b) + b for a, b in zip(before, squares, strict=True)]
        )
        self.memory["fisher_seen"] += len(logits)
        self.memory["fisher_batches"] += 1
