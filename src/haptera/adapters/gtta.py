"""GTTA: gradual adaptation, by intermediate domains that mix labelled images with those of the test stream.

Source: Marsden et al. 2024 (introducing intermediate domains). Pseudo-labels of a batch count where the confidence is
at least the root of its moving average. Each labelled image is mixed with the image of the batch whose prediction is
most like its own, and one step is taken on the mixed images with the labels; another one on the images of the batch
with their pseudo-labels.
The public code decides: a third of the mixture is the test image; the average of the confidence begins at .9 and moves
by .1; the prediction is the one made between the two steps.
Differs: its style transfer, which trains a network of its own on source data, is left out: this is the public
code's mixup variant. Without source data, the labelled images are those of the batch before that had a pseudo-label:
the intermediate domain then lies between the previous batch and this one.
Cost: two forward passes, and two forward and backward passes; one of each less while there are no labelled images.
"""

from math import sqrt
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from haptera.adapters.learner import Learner
from haptera.adapters.learning import Learning
from haptera.adapters.prototypes import Source, SourceData
from haptera.checks import check_number
from haptera.errors import HapteraError

FIRST_CONFIDENCE = 0.9


class GTTA(Learner):
    """Gradual test-time adaptation.

    Args:
        model: one that takes images.
        lr: the learning rate.
        source: labelled batches by position, a stream or a list of (inputs, targets); None reads no source data.
        mix: the share of the test image in a mixture.
        inertia: the share of the old average of the confidence in the new one.
        settings: those of every learner; `parameters` is `all` and `optimiser` `adam` by default.
    """

    learning = Learning(parameters="all", optimiser="adam")
    fixed = ("accumulate",)

    def __init__(
        self,
        model: nn.Module,
        lr: float = 1e-5,
        source: Source | None = None,
        mix: float = 1 / 3,
        inertia: float = 0.9,
        **settings: Any,
    ) -> None:
        check_number("mix", mix, least=0, most=1, what="a share")
        check_number("inertia", inertia, least=0, most=1, what="a share")
        super().__init__(model, lr=lr, **settings)
        self.source = None if source is None else SourceData(source)
        self.mix, self.inertia = mix, inertia
        self.memory |= {"replayed": 0, "images": None, "labels": None, "confidence": FIRST_CONFIDENCE}

    def step(self, inputs: torch.Tensor) -> torch.Tensor:
        """A step on mixtures and one on pseudo-labels, as often as there are steps."""
        self.begin_step(inputs)
        first = self.answer(inputs)
        labels, sure = self._pseudo_labels(first)
        losses: list[torch.Tensor] = []
        for _ in range(self.learning.steps):
            with torch.enable_grad():
                mixture = self._mixture(inputs, first)
                if mixture is not None:
                    losses.append(F.cross_entropy(self.logits(mixture[0]), mixture[1]))
                    self.learn(losses[-1])
                logits = self.logits(inputs)
                if bool(sure.any()):
                    losses.append(F.cross_entropy(logits[sure], labels[sure]))
                    self.learn(losses[-1])
        self._count_idle(not losses)
        if self.source is None and bool(sure.any()):
            self.memory |= {"images": inputs[sure], "labels": labels[sure]}
        outputs = self.answer(inputs) if self._after else logits.detach()
        self._note(outputs, torch.stack(losses).detach().mean() if losses else None)
        self.record["kept"] = float(sure.float().mean())
        return outputs

    def _pseudo_labels(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The first class of each image, and whether it is sure enough."""
        confidence, labels = logits.softmax(1).max(1)
        fine = torch.isfinite(confidence)
        if bool(fine.any()):
            mean = float(confidence[fine].mean())
            self.memory["confidence"] = self.inertia * self.memory["confidence"] + (1 - self.inertia) * mean
        return labels, fine & (confidence >= sqrt(self.memory["confidence"]))

    def _mixture(self, inputs: torch.Tensor, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Mixed images and their labels; None while there are no labelled images."""
        labelled = self._labelled(inputs)
        if labelled is None:
            return None
        images, labels = labelled
        likeness = self.answer(images).softmax(1) @ logits.softmax(1).T
        return self._arrange(torch.lerp(images, inputs[likeness.argmax(1)], self.mix)), labels

    def _labelled(self, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor] | None:
        """The next labelled images, at most as many as there are inputs, and of their kind."""
        if self.source is None:
            images, labels = self.memory["images"], self.memory["labels"]
            if images is None or images.shape[1:] != inputs.shape[1:]:
                return None
        else:
            images, labels = self.source[self.memory["replayed"]]
            self.memory["replayed"] += 1
            if images.shape[1:] != inputs.shape[1:]:
                raise HapteraError(
                    f"source has images of shape {tuple(images.shape[1:])}, the stream of {tuple(inputs.shape[1:])}; "
                    "images that are mixed have one shape"
                )
        n = len(inputs)
        return self._arrange(images[:n].to(inputs)), labels[:n].to(inputs.device)
