"""PeTTA: RoTTA that senses how far it has gone from the source, and then stays nearer to it and learns more slowly.

Source: Hoang et al. 2024, algorithm 1. The bank, the teacher and its running statistics are RoTTA's. The features of
each predicted class, averaged along the stream (μ̂, .05 new), are compared with those of the source (μ, σ²):
γ = 1 − exp(−mean (μ̂ − μ)² / σ²) over the classes predicted in the batch. The loss on the bank is the self-training
loss, plus γ · strength · R, R = −mean cos(θ, θ₀) over the tensors that adapt, plus the cross-entropy with the source
model's answers (anchor). The teacher takes (1 − γ)(1 − decay) of the student.
The public code decides: the exponent is a mean over features and classes, where the paper has a sum over features and
the mean of γ over classes; γ is found before μ̂ takes this batch; the self-training loss is RMT's symmetric one
for CIFAR and RoTTA's, without its weights by age, for ImageNet and DomainNet; strength 10, for DomainNet 1; the
source model moves its statistics towards the bank as the teacher does.
Differs: μ and σ² are those of data that is passed by `source=`, by predicted class; without it, no source data is read,
and they are the source model's features of the same images of the stream, with one σ² for all classes, so that γ is 0
until weights have moved: it tells how far the model has gone, not how far the data has. The paper does not try this.
With RoTTA's loss the student does not see the bank as it is, whose pass the public code makes for the statistics alone.
Cost: RoTTA's; per update a forward pass of the source's weights over the bank, and with the symmetric loss one more
forward and backward pass of the student; without source data a forward pass of the source's weights per batch.
"""

from collections.abc import Iterable
from typing import Annotated, Any

import torch
from torch import nn
from torch.nn import functional as F

from haptera.adapters.norm import blends_of
from haptera.adapters.prototypes import look_at_source
from haptera.adapters.rotta import RoTTA
from haptera.batch import Batch
from haptera.checks import check_number
from haptera.errors import HapteraError, check_keys
from haptera.losses.self_learning import soft_pseudo_labels, symmetric_cross_entropy

LOSSES = ("symmetric", "cross_entropy")


class PeTTA(RoTTA):
    """Persistent test-time adaptation.

    Args:
        model: one that takes images and has a linear or convolutional layer at its end.
        lr: the learning rate.
        source: batches of images of the source, whose labels are not read; None reads no source data.
        strength: the weight of the regulariser where the divergence γ is 1.
        anchor: the weight of the cross-entropy with the source model's answers.
        labels: how the teacher's answers are learnt: `symmetric` or `cross_entropy`.
        trace: the share of a batch in the mean features of its classes.
        settings: of RoTTA.
    """

    def __init__(
        self,
        model: nn.Module,
        lr: float = 1e-3,
        source: Iterable[Any] | None = None,
        strength: float = 10.0,
        anchor: float = 1.0,
        labels: str = "symmetric",
        trace: float = 0.05,
        **settings: Annotated[Any, RoTTA],
    ) -> None:
        check_number("strength", strength, least=0, what="a weight")
        check_number("anchor", anchor, least=0, what="a weight")
        check_keys("labels", [str(labels)], LOSSES)
        check_number("trace", trace, least=0, most=1, what="a share")
        super().__init__(model, lr, **settings)
        self.strength, self.anchor, self.labels, self.trace = strength, anchor, labels, trace
        self.source = self.another(model)  # all the caller's memory but statistics
        for blend in blends_of(self.source):
            blend.momentum = self.share
        self.given = source is not None
        self.memory |= {"divergence": 0.0, "means": None, "origin": None, "squares": None, "count": 0}
        if source is not None:
            self._read(source)

    @torch.no_grad()
    def meet(self, inputs: torch.Tensor) -> torch.Tensor:
        """What the teacher says about images that are new; its features tell how far it has gone."""
        seen, outputs = self.look(inputs, "last", self.teacher)
        labels, memory = outputs.argmax(1), self.memory
        memory["divergence"] = self.divergence(labels)
        if not self.given:
            self._refer(self.look(inputs, "last", self.source)[0], labels, outputs.shape[1])
        memory["means"] = follow_means(memory["means"], seen, labels, self.trace)
        self.record["divergence"] = memory["divergence"]
        return outputs

    def divergence(self, labels: torch.Tensor) -> float:
        """γ over these classes; 0 while nothing is known of them."""
        if self.memory["means"] is None or self.memory["squares"] is None:
            return 0.0
        means, origin, squares = (self.memory[name].to(labels.device) for name in ("means", "origin", "squares"))
        classes = labels.unique()
        away = (means[classes] - origin[classes]) ** 2 / (squares[classes if self.given else slice(1)] + 1e-6)
        away = away[away.isfinite().all(1)]
        return 1 - float(torch.exp(-away.mean())) if len(away) else 0.0

    def lesson(self, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """What the teacher says about the bank, and the three parts of the student's loss."""
        bank = self.bank()
        answer = self.answer(bank, "running")
        with torch.no_grad():
            source = self.logits(bank, "running", self.source)
        view = self._arrange(self.augment(bank, self.random))
        if self.labels == "symmetric":
            said, said_of_view = self.logits(bank, "running"), self.logits(view, "running")
            both = symmetric_cross_entropy(said, answer) + symmetric_cross_entropy(said_of_view, answer)
            loss = both.mean() / 2
        else:
            said_of_view = self.logits(view, "running")
            loss = soft_pseudo_labels(said_of_view, answer).mean()
        loss = loss + self.anchor * soft_pseudo_labels(said_of_view, source).mean()
        return answer, loss + self.strength * self.memory["divergence"] * self.regulariser()

    def regulariser(self) -> torch.Tensor:
        """−1 where all weights point the way of the source's, more where they do not."""
        pairs = zip(self.adapted.values(), self._source, strict=True)
        cosines = [F.cosine_similarity(now.float().flatten(), first.float().flatten(), dim=0) for now, first in pairs]
        return -torch.stack(cosines).mean()

    @torch.no_grad()
    def follow(self) -> None:
        """The teacher moves towards the student, less so the further it has gone."""
        share = (1 - self.memory["divergence"]) * (1 - self.decay)
        torch._foreach_lerp_(self.taught.values, self.masters.values, share)
        self.taught.give()

    @torch.no_grad()
    def _read(self, source: Iterable[Any]) -> None:
        """Mean and variance of the features of each predicted class."""
        looks = []
        for batch in source:
            inputs = (
                batch.inputs if isinstance(batch, Batch) else batch[0] if isinstance(batch, tuple | list) else batch
            )
            if not isinstance(inputs, torch.Tensor) or inputs.ndim < 2:
                raise HapteraError(f"source holds a {type(batch).__name__}; batches of images were expected")
            looks.append(look_at_source(self, inputs))
        if not looks:
            raise HapteraError("source has no batch to find the features of classes on")
        seen, labels = torch.cat([look[0] for look in looks]), torch.cat([look[1].argmax(1) for look in looks])
        groups = [seen[labels == label] for label in range(looks[0][1].shape[1])]
        unknown = seen.new_full(seen.shape[1:], torch.nan)
        means = torch.stack([group.mean(0) if len(group) else unknown for group in groups])
        squares = torch.stack([group.var(0) if len(group) > 1 else unknown for group in groups])
        self.memory |= {"means": means.clone(), "origin": means, "squares": squares}

    def _refer(self, seen: torch.Tensor, labels: torch.Tensor, classes: int) -> None:
        """Take the source model's features of images, and their squared distance from the mean of their class."""
        memory = self.memory
        if memory["means"] is None:
            memory["means"], memory["origin"] = (torch.full((classes, seen.shape[1]), torch.nan).to(seen) for _ in "12")
        away = (seen - memory["origin"].to(seen)[labels]) ** 2
        away = away[away.isfinite().all(1)]
        if len(away):
            count, before = memory["count"], memory["squares"]
            total = away.sum(0, keepdim=True) + (0.0 if before is None else before.to(away) * count)
            memory |= {"squares": total / (count + len(away)), "count": count + len(away)}
        memory["origin"] = follow_means(memory["origin"], seen, labels, self.trace)


def follow_means(means: torch.Tensor, seen: torch.Tensor, labels: torch.Tensor, share: float) -> torch.Tensor:
    """Mean features `(classes, d)` moved towards those of a batch, by class; what is not known (NaN) takes theirs.

    >>> means = torch.tensor([[0.0], [torch.nan], [1.0]])
    >>> follow_means(means, torch.tensor([[2.0], [4.0], [6.0]]), torch.tensor([0, 0, 1]), 0.5).tolist()
    [[1.5], [6.0], [1.0]]
    """
    counts = torch.bincount(labels, minlength=len(means))[:, None]
    new = torch.zeros_like(means, device=seen.device).index_add_(0, labels, seen.to(means.dtype)) / counts
    means = means.to(seen.device)
    moved = torch.where(means.isfinite(), means.lerp(new, share), new)
    return torch.where(counts > 0, moved, means)
