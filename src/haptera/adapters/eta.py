"""ETA: minimise the entropy of predictions that are sure and unlike the earlier ones; EATA: and stay near the source.

Source: thesis (4.1) and Niu et al. 2022. A sample is kept where its entropy is below `margin` ln C and the cosine
between its prediction and the running mean of kept ones is below `redundancy`; it weighs exp(margin ln C − H), without
gradient. The running mean is that of the public code, .9 old and .1 new; (4.1) prints the plain mean of all predictions
so far: `average="plain"`. The largest cosine that is kept follows the number of classes, as the public code's settings
do (`published_redundancy`): .05, the one of ImageNet, keeps nothing of ten classes after the first batch.
EATA adds `strength` Σ F (θ − θ₀)²; its F are squared gradients of the loss on argmax labels over the first
`fisher_samples` of the stream itself, during which it learns as ETA does: no source data is read. The public code finds
F before the first step, on clean test images: so it does here on `source`, images that you pass, and, with
`fisher="before"`, on the first of the stream, which it predicts and does not learn from.
Cost: as Tent; where layers treat samples apart, the backward pass is one of the kept samples alone (`skip.py`), and a
batch of which nothing is kept costs its forward pass. EATA: two backward passes while it collects F.
"""

from collections.abc import Iterable
from math import log
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from haptera.adapters.learner import Learner
from haptera.adapters.norm import keep_statistics, once
from haptera.adapters.skip import keep
from haptera.batch import Batch
from haptera.checks import check_number
from haptera.errors import HapteraError, check_keys
from haptera.losses.self_learning import entropy

AVERAGES = ("exponential", "plain")
FISHER = ("during", "before")


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
        **settings: Any,
    ) -> None:
        check_keys("average", [average], AVERAGES)
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
        return (entropy(keep(logits, kept)) * weights[kept]).mean() if share else None

    @torch.no_grad()
    def weights(self, logits: torch.Tensor) -> torch.Tensor:
        """`(batch,)`, how much each sample counts; 0 for those that are dropped."""
        limit = self.margin * log(logits.shape[1])
        p, h = logits.softmax(1), entropy(logits)
        kept = h < limit
        mean = self.memory["mean"]
        if mean is not None:
            largest = self._largest_cosine(logits.shape[1])
            kept &= F.cosine_similarity(mean.to(p)[None], p).abs() < largest
        self._average(p, kept)
        return torch.where(kept, torch.exp(limit - h), 0.0)

    def _largest_cosine(self, classes: int) -> float:
        if self.redundancy is None:
            return published_redundancy(classes)
        if self.redundancy < classes**-0.5:
            once().warning(
                "redundancy is %g, and no cosine with an even mean of %d classes is below %.2g: almost nothing will be "
                "kept; the published one for so many classes is %.2g",
                self.redundancy,
                classes,
                classes**-0.5,
                published_redundancy(classes),
            )
        return self.redundancy

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
        fisher_samples: how many samples say which parameters matter.
        fisher: found on the stream `during` the first updates, or `before` the first one.
        source: batches of images that say so in place of the stream, before the first step; read once.
        settings: of ETA and of every learner.
    """

    def __init__(
        self,
        model: nn.Module,
        lr: float = 2.5e-4,
        strength: float = 2000.0,
        fisher_samples: int = 2000,
        fisher: str = "during",
        source: Iterable[Batch] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(model, lr, **settings)
        check_number("strength", strength, least=0)
        check_number("fisher_samples", fisher_samples, least=1)
        check_keys("fisher", [fisher], FISHER)
        self.strength, self.fisher_samples = strength, fisher_samples
        self._before, self._known = fisher == "before", source is not None
        self.memory |= {"fisher": None, "fisher_seen": 0, "fisher_batches": 0}
        if source is not None:
            self._collect_from(source)

    def loss(self, logits: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor | None:
        """ETA's, and the anchor once F is known."""
        collects = self._collects()
        if collects:
            self._collect(logits)
        if collects and self._before:
            return None
        loss = super().loss(logits, inputs)
        return loss if loss is None or collects else loss + self.anchor()

    def anchor(self) -> torch.Tensor:
        """strength Σ F (θ − θ₀)²."""
        batches = self.memory["fisher_batches"]
        terms: list[Any] = [
            (fisher.to(now) * (now - first) ** 2).sum()
            for fisher, now, first in zip(self.memory["fisher"], self.adapted.values(), self._source, strict=True)
        ]
        return torch.stack(terms).sum() * (self.strength / batches)

    def _collects(self) -> bool:
        """Say whether samples of the stream are still missing to F."""
        return not self._known and self.memory["fisher_seen"] < self.fisher_samples

    def _count_idle(self, idle: bool) -> None:
        super()._count_idle(idle and not (self._before and self._collects()))

    def _collect_from(self, source: Iterable[Batch]) -> None:
        """Find F on images that are not the stream's."""
        for batch in source:
            inputs = self._arrange(batch.inputs[: self.fisher_samples - self.memory["fisher_seen"]])
            self.begin_step(inputs)
            with torch.enable_grad(), keep_statistics(self.model):
                self._collect(self.logits(inputs))
            if self.memory["fisher_seen"] >= self.fisher_samples:
                break
        if self.memory["fisher"] is None:
            raise HapteraError("source has no batch to find EATA's Fisher matrix on")
        self._small, self._largest = False, 0  # no batch of the stream has come yet

    def _collect(self, logits: torch.Tensor) -> None:
        """Add the squared gradient of this batch, as the public code does, batch by batch."""
        own = F.cross_entropy(logits, logits.argmax(1))
        parameters, before = list(self.adapted.values()), self.memory["fisher"]
        squares = [g**2 for g in torch.autograd.grad(own, parameters, retain_graph=True, materialize_grads=True)]
        together = squares if before is None else [a.to(b) + b for a, b in zip(before, squares, strict=True)]
        self.memory["fisher"] = together
        self.memory["fisher_seen"] += len(logits)
        self.memory["fisher_batches"] += 1
