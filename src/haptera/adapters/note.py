"""NOTE: correct BatchNorm for images unlike its statistics, and learn from a balanced sample of the stream so far.

Source: Gong et al. 2022. Instance-aware BatchNorm: a layer normalises an image by its statistics µ, σ², moved towards
those of the image, m, s², where they are further away than chance explains: µ + ψ(m − µ; k √(σ²/L)) and
σ² + ψ(s² − σ²; k σ² √(2/(L−1))), L positions, ψ soft shrinkage. Prediction-balanced reservoir sampling: with the bank
full, an image of a predicted class that has not the most images takes the place of a random one of those that have; of
one that has, with probability (images of the class in the bank) / (in the stream), that of a random one of its own.
After every `frequency` images the entropy of the bank is minimised in one step, normalised by its own statistics
(corrected too), towards which those of the layers move by `share`.
The public code decides: k = 4, 64 images in the bank and between updates, Adam at 1e-4, a share of .01; s² is unbiased;
layers with one value per channel are not corrected. Every image is predicted before the update that it brings about.
Differs: the paper trains or fine-tunes networks with such layers; here they take the place of BatchNorm in a finished
network. The variance of the bank is the biased one. Models without BatchNorm learn likewise. A released model has
plain layers, with the statistics found last and no correction.
Cost: a forward pass, with a few more passes over the input of each layer (`instance.py`); a forward and a backward pass
of the bank for each update. Holds `capacity` images.
"""

from functools import partial
from math import inf, sqrt
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from haptera.adapters.bank import put
from haptera.adapters.base import Adapter, NoAdaptation
from haptera.adapters.blend import Blend
from haptera.adapters.instance import normalise_each
from haptera.adapters.learner import Learner
from haptera.adapters.learning import Learning
from haptera.adapters.norm import put_blends
from haptera.checks import check_number, check_whole_number
from haptera.losses.self_learning import entropy


class NOTE(Learner):
    """Non-i.i.d. test-time adaptation.

    Args:
        model: any; of images, where it has BatchNorm layers.
        lr: the learning rate.
        capacity: how many images the bank holds.
        frequency: after how many images there is an update.
        width: k, how many standard errors an image may be away from the statistics; infinity corrects nothing.
        share: of the bank in the running statistics at an update.
        settings: `seed`, of the bank; `parameters`; `optimiser`, by default `adam`; `precision`, `steps` per update and
            `frozen`, as every learner has them.
    """

    learning = Learning(optimiser="adam", prior=inf)  # statistics never come from one batch alone
    fixed = ("prior", "predictions", "accumulate", "window")

    def __init__(
        self,
        model: nn.Module,
        lr: float = 1e-4,
        capacity: int = 64,
        frequency: int = 64,
        width: float = 4.0,
        share: float = 0.01,
        **settings: Any,
    ) -> None:
        for name, number in (("capacity", capacity), ("frequency", frequency)):
            check_whole_number(name, number, what="a number of images")
        check_number("width", width, least=0)
        check_number("share", share, least=0, most=1)
        super().__init__(model, lr=lr, **settings)
        self.norms = put_blends(self.model, lambda layer: InstanceBlend(layer, width, share))
        self.capacity, self.frequency, self.width, self.share = capacity, frequency, width, share
        none = torch.zeros(0, dtype=torch.int64)
        self.memory |= {"seen": 0, "images": None, "labels": none, "counts": none.clone()}

    def step(self, inputs: torch.Tensor) -> torch.Tensor:
        """Predict images and offer them to the bank, up to an update, and go on; however the stream is cut."""
        outputs, losses, kept = [], [], 0
        while len(inputs):
            some = self.frequency - self.memory["seen"] % self.frequency
            said = self.predict(inputs[:some])
            fine, labels = torch.isfinite(said).all(1).tolist(), said.argmax(1).tolist()
            for image, sound, label in zip(inputs, fine, labels, strict=False):
                kept += sound and self._offer(image, label, said.shape[1])
            self.memory["seen"] += len(said)
            if self.memory["seen"] % self.frequency == 0 and len(self.memory["labels"]):
                losses += [self._update() for _ in range(self.learning.steps)]
            outputs.append(said)
            inputs = inputs[some:]
        together = torch.cat(outputs)
        self._note(together, torch.stack(losses).mean() if losses else None)
        self.record["kept"] = kept / len(together)
        return together

    def parent(self, model: nn.Module) -> Adapter:
        """This method at a rate of 0, which moves statistics; the unadapted model without BatchNorm."""
        if not self.norms:
            return NoAdaptation(model)
        names = ("capacity", "frequency", "width", "share")
        return NOTE(model, lr=0.0, **{name: getattr(self, name) for name in names}, **self._settings)

    @property
    def parent_label(self) -> str:
        """`note:lr=0`, or `none` without BatchNorm."""
        return "note:lr=0" if self.norms else "none"

    def _offer(self, image: torch.Tensor, label: int, classes: int) -> bool:
        """Take an image into the bank, or not."""
        memory = self.memory
        if not len(memory["counts"]):
            memory["counts"] = torch.zeros(classes, dtype=torch.int64)
        memory["counts"][label] += 1
        at = place(memory["labels"], memory["counts"], label, self.capacity, self.random)
        if at is not None:
            put(memory, image, at, self.capacity, labels=label)
        return at is not None

    def _update(self) -> torch.Tensor:
        bank = self._arrange(self.memory["images"][: len(self.memory["labels"])])
        with torch.enable_grad():
            loss = entropy(self.logits(bank, "running")).mean()
        self.learn(loss)
        return loss.detach()


def place(
    labels: torch.Tensor, counts: torch.Tensor, label: int, capacity: int, generator: torch.Generator
) -> int | None:
    """Return where in the bank a new image goes: behind the others, in the place of one of them, or, None, nowhere.

    Args:
        labels: predicted classes `(n,)` of what is there.
        counts: `(classes,)`, how many images of each class came so far, this one included.
        label: the class of the new image.
        capacity: how many images there may be.
        generator: of the choice.
    """
    if len(labels) < capacity:
        return len(labels)
    held = torch.bincount(labels, minlength=len(counts))
    largest = (held == held.max()).nonzero().flatten()
    if label in largest.tolist():
        if float(torch.rand((), generator=generator)) > int(held[label]) / int(counts[label]):
            return None
        rival = label
    else:
        rival = int(largest[torch.randint(len(largest), (), generator=generator)])
    rivals = (labels == rival).nonzero().flatten()
    return int(rivals[torch.randint(len(rivals), (), generator=generator)])


class InstanceBlend(Blend):
    """The statistics of one layer, corrected for each image.

    Args:
        layer: a BatchNorm layer.
        width: k.
        share: of a batch in the running statistics.
    """

    def __init__(self, layer: _BatchNorm, width: float, share: float) -> None:
        super().__init__(layer, prior=0.0, momentum=share)
        self.width, self.share = width, share

    def normalise(
        self,
        inputs: torch.Tensor,
        weight: torch.Tensor | None,
        bias: torch.Tensor | None,
        eps: float,
        use: str,
        earlier: int = 0,
    ) -> torch.Tensor:
        """Normalise by the running statistics where `use` is `last`; else by the batch's, to which they move."""
        rule = partial(self._statistics, n=inputs[0, 0].numel(), eps=eps, use=use)
        return normalise_each(inputs, weight, bias, eps, self.mean.dtype, rule)

    def _statistics(
        self, own_mean: torch.Tensor, own_var: torch.Tensor, n: int, eps: float, use: str
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Those of images with these moments over n positions."""
        mean, var = self.mean, self.var
        if use != "last":
            mean, var = own_mean.mean(0), own_var.mean(0) + own_mean.var(0, correction=0)
            self.mean.lerp_(mean.detach(), self.share)
            self.var.lerp_(var.detach(), self.share)
        if n == 1 or self.width == inf:
            return mean.expand_as(own_mean), var.expand_as(own_var)
        unbiased = own_var * (n / (n - 1))
        mean = mean + shrink(own_mean - mean, self.width * ((var + eps) / n).sqrt())
        var = var + shrink(unbiased - var, self.width * (var + eps) * sqrt(2 / (n - 1)))
        return mean, F.relu(var)


def shrink(values: torch.Tensor, width: torch.Tensor) -> torch.Tensor:
    """Soft shrinkage: values move towards 0 by the width, those within it to 0.

    >>> shrink(torch.tensor([-3.0, 0.5, 2.0]), torch.tensor(1.0))
    tensor([-2.,  0.,  1.])
    """
    return values - values.clamp(-width, width)
