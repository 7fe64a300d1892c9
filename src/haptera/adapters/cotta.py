"""CoTTA: learn what an averaged teacher says about a batch, and now and then give weights back to the source.

Source: Wang et al. 2022, with the settings of thesis chapter 4. Where the source model is unsure of a batch, the
teacher's answer is its mean over random views. After each update every weight returns to the source's with probability
`restore`.
Differs: views as `augment.py` makes them, unless `augment="published"`; they are averaged as logits, as in the public
code, where the paper writes probabilities; a weight that returns is found by drawing the gaps between such weights,
which are geometric, not a number for every weight.
Student and teacher begin equal, so only views teach anything: with a threshold that the confidence is never below,
such as .1 with ten classes, or without views, it stays its parent but for rounding.
Cost: a forward and a backward pass of the student, a forward pass of the teacher; with views one of the source's
weights on every batch, and one of the teacher for every view where the source is unsure.
"""

from math import log1p
from typing import Any

import torch
from torch import nn

from haptera.adapters.base import Adapter
from haptera.adapters.learning import Learning
from haptera.adapters.published import CoTTAViews, Views, choose_views
from haptera.adapters.teacher import MeanTeacher
from haptera.checks import check_number, check_whole_number
from haptera.losses.self_learning import soft_pseudo_labels


class CoTTA(MeanTeacher):
    """Continual test-time adaptation.

    Args:
        model: any; with views, one that takes images.
        lr: the learning rate.
        augmentations: how many views the teacher's answer is averaged over; 0 for none, and no pass of the source.
        threshold: views are made where the source's mean confidence is below this; by default as in the paper, .92 for
            ten classes as in CIFAR-10, .72 for up to a hundred as in CIFAR-100, .1 for more as in ImageNet.
        restore: the probability that a weight returns to the source's; .01 for CIFAR, .001 for ImageNet.
        decay: the share of the old teacher in the new one.
        augment: what the views look like: an `Augment`, `own` or `published`.
        settings: `seed`, of views and restored weights, and those of every learner; `parameters` is `all` by default.
    """

    learning = Learning(parameters="all")

    def __init__(
        self,
        model: nn.Module,
        lr: float = 0.01,
        augmentations: int = 32,
        threshold: float | None = None,
        restore: float = 0.001,
        decay: float = 0.999,
        augment: Views | str = "own",
        **settings: Any,
    ) -> None:
        check_whole_number("augmentations", augmentations, 0, what="a number of views")
        for name, value in (("threshold", threshold), ("restore", restore)):
            if value is not None:
                check_number(name, value, least=0, most=1, what="a probability")
        super().__init__(model, lr=lr, decay=decay, **settings)
        self.augmentations, self.threshold, self.restore = augmentations, threshold, restore
        self.augment = choose_views(augment, CoTTAViews())
        self.source = self.another(model) if augmentations else None  # all the caller's memory but statistics

    def lesson(self, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Cross-entropy of the student with the teacher's probabilities."""
        answer = self.answer(inputs)
        return answer, soft_pseudo_labels(self.logits(inputs), answer).mean()

    @torch.no_grad()
    def answer(self, inputs: torch.Tensor, use: str = "batch") -> torch.Tensor:
        """The teacher's logits, averaged over views where the source is unsure."""
        if use == "last" or not self._unsure(inputs):
            return super().answer(inputs, use)
        ask = super().answer
        answers = [ask(self._arrange(self.augment(inputs, self.random))) for _ in range(self.augmentations)]
        ask(inputs)  # so that the statistics found last are those of the batch itself
        return torch.stack(answers).mean(0)

    def learn(self, loss: torch.Tensor) -> None:
        """A step of the student and the teacher; then some of the student's weights return to the source."""
        super().learn(loss)
        if self.restore and not self.memory["pending"]:
            self._give_back()

    def parent(self, model: nn.Module) -> Adapter:
        """BatchNorm or the unadapted model; with views, which average predictions, this method at a rate of 0."""
        if not self.augmentations:
            return super().parent(model)
        names = ("augmentations", "threshold", "restore", "decay", "augment")  # with `restore`, the same random numbers
        return CoTTA(model, lr=0.0, **{name: getattr(self, name) for name in names}, **self._settings)

    @property
    def parent_label(self) -> str:
        """Return a label such as `batchnorm:prior=0`; `cotta:lr=0` with views."""
        return "cotta:lr=0" if self.augmentations else super().parent_label

    def _unsure(self, inputs: torch.Tensor) -> bool:
        """Say whether the source's mean confidence is below the threshold."""
        if not self.augmentations or self.threshold == 0:
            return False
        logits = self.logits(inputs, model=self.source)
        confidence = float(logits.softmax(1).amax(1).mean())
        threshold = published_threshold(logits.shape[1]) if self.threshold is None else self.threshold
        self.record["augmented"] = float(confidence < threshold)
        return confidence < threshold

    @torch.no_grad()
    def _give_back(self) -> None:
        ends = torch.tensor([value.numel() for value in self.masters.values]).cumsum(0)
        chosen = scatter(int(ends[-1]), self.restore, self.random)
        parts = torch.tensor_split(chosen, torch.searchsorted(chosen, ends)[:-1].tolist())
        for end, part, value, source in zip(ends.tolist(), parts, self.masters.values, self._source, strict=True):
            if len(part):
                index = (part - (end - value.numel())).to(value.device)
                value.put_(index, source.take(index).to(value))
        self.masters.give()


def published_threshold(classes: int) -> float:
    """Return the threshold of the paper's data set that is nearest in its number of classes, from above."""
    return 0.92 if classes <= 10 else 0.72 if classes <= 100 else 0.1


def scatter(size: int, rate: float, generator: torch.Generator) -> torch.Tensor:
    """Which of `size` places are chosen, in order, when each is with probability `rate` on its own."""
    if rate >= 1:
        return torch.arange(size)
    found, last = [torch.empty(0, dtype=torch.int64)], -1
    while rate > 0 and last < size:
        some = int(1.1 * (size - last) * rate) + 16
        uniform = torch.rand(some, generator=generator, dtype=torch.float64)
        gaps = (torch.log1p(-uniform) / log1p(-rate)).floor() + 1
        places = last + gaps.clamp_max(size + 1).cumsum(0).long()
        found.append(places)
        last = int(places[-1])
    together = torch.cat(found)
    return together[together < size]
