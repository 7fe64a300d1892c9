"""RMT: a mean teacher with a symmetric loss, and features drawn to the prototype of the nearest class.

Source: Döbler et al. 2023. The student sees each image and a random view of it; the loss on both is the symmetric
cross-entropy with the teacher's prediction of the image. Features of the image and of its view, and the nearest
prototype (by cosine), are projected and contrasted with those of all other images. With labelled source data, a batch
of it is replayed in every step (cross-entropy), and the method may warm up on it before the first batch: steps on the
symmetric loss alone, at a rate that grows linearly.
The public code decides: both terms of the symmetric cross-entropy have weight ½; the projector has two layers of 128
and learns at the same rate; prototypes are neither projected beforehand nor updated.
Differs: without source data, prototypes are the rows of the last layer, and there is no replay; features of the source
are found with the statistics of training, where the public code has those of each batch; predictions are the mean of
the student's and the teacher's logits, where the public code has the sum; views as `augment.py` makes them, unless
`augment="published"`. A released model is the teacher.
Cost: two forward and two backward passes of the student, one forward pass of the teacher; with replay, one more forward
and backward pass.
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from haptera.adapters.learning import Learning
from haptera.adapters.norm import blends_of
from haptera.adapters.prototypes import Projector, Source, SourceData, nearest, prototypes_of
from haptera.adapters.published import CoTTAViews, Views, choose_views
from haptera.adapters.teacher import MeanTeacher
from haptera.checks import check_number, check_whole_number
from haptera.errors import HapteraError
from haptera.losses.contrast import view_contrast
from haptera.losses.self_learning import symmetric_cross_entropy

WIDTH = 128


class RMT(MeanTeacher):
    """Robust mean teacher.

    Args:
        model: one that takes images and has a linear layer at its end.
        lr: the learning rate.
        source: labelled batches by position, a stream or a list of (inputs, targets); None reads no source data.
        contrast: the weight of the contrastive loss; 0 needs neither prototypes nor features.
        replay: the weight of the loss on source data, where there is some.
        warm_up: how many steps on source data before the first batch; the paper has 50,000 images.
        temperature: of the contrastive loss.
        decay: the share of the old teacher in the new one.
        augment: what the views look like: an `Augment`, `own` or `published`.
        settings: those of every learner; `parameters` is `all` and `optimiser` `adam` by default.
    """

    learning = Learning(parameters="all", optimiser="adam")
    prototypes: torch.Tensor

    def __init__(
        self,
        model: nn.Module,
        lr: float = 1e-3,
        source: Source | None = None,
        contrast: float = 1.0,
        replay: float = 1.0,
        warm_up: int = 0,
        temperature: float = 0.1,
        decay: float = 0.999,
        augment: Views | str = "own",
        **settings: Any,
    ) -> None:
        check_number("contrast", contrast, least=0, what="a weight")
        check_number("replay", replay, least=0, what="a weight")
        check_number("temperature", temperature, above=0)
        check_whole_number("warm_up", warm_up, 0, what="a number of steps")
        if warm_up and source is None:
            raise HapteraError(f"warm_up is {warm_up}; it needs labelled source data, passed by source=")
        super().__init__(model, lr=lr, decay=decay, **settings)
        self.source = None if source is None else SourceData(source)
        self.contrast, self.replay, self.temperature = contrast, replay, temperature
        self.augment = choose_views(augment, CoTTAViews())
        self.warm_up = warm_up
        if contrast:
            means = prototypes_of(self, source)
            self.register_buffer("prototypes", means)
            self.projector = Projector(means.shape[1], WIDTH, self.optimiser, self.seed)
        self._warm_up()
        self.memory["replayed"] = warm_up

    def lesson(self, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The mean of what student and teacher say, and the loss; statistics found last are those of the images."""
        loss = self._replay()
        view = self._arrange(self.augment(inputs, self.random))
        if self.contrast:
            (seen_in_view, said_of_view), (seen, said) = self.look(view), self.look(inputs)
            three = torch.stack([nearest(seen, self.prototypes), seen, seen_in_view], 1)
            loss = loss + self.contrast * view_contrast(self.projector(three), self.temperature).mean()
        else:
            said_of_view, said = self.logits(view), self.logits(inputs)
        with torch.no_grad():
            taught = self.logits(inputs, model=self.teacher)
        both = symmetric_cross_entropy(said, taught) + symmetric_cross_entropy(said_of_view, taught)
        return (said.detach() + taught) / 2, loss + both.mean() / 2

    @torch.no_grad()
    def answer(self, inputs: torch.Tensor, use: str = "batch") -> torch.Tensor:
        """The mean of the student's and the teacher's logits."""
        return (self.logits(inputs, use) + self.logits(inputs, use, self.teacher)) / 2

    def learn(self, loss: torch.Tensor) -> None:
        """A step of the student, the projector and the teacher."""
        super().learn(loss)
        if self.contrast and not self.memory["pending"]:
            self.projector.step()

    def _replay(self) -> torch.Tensor:
        """The loss on the next batch of source data."""
        if self.source is None or not self.replay:
            return torch.zeros((), device=self.device)
        inputs, targets = self.source[self.memory["replayed"]]
        self.memory["replayed"] += 1
        return self.replay * F.cross_entropy(self.logits(self._ready(inputs)), targets.to(self.device))

    def _ready(self, inputs: torch.Tensor) -> torch.Tensor:
        """Source inputs in the type of the model's weights, in the place and memory layout of its inputs."""
        return self._arrange(inputs.to(self._source[0].dtype))

    def _warm_up(self) -> None:
        """Learn from source images alone, at a growing rate."""
        rate = self.optimiser.param_groups[0]["lr"]
        for step in range(self.warm_up):
            assert self.source is not None
            inputs = self._ready(self.source[step][0])
            self.optimiser.param_groups[0]["lr"] = rate * (step + 1) / self.warm_up
            self.begin_step(inputs)
            with torch.no_grad():
                taught = self.logits(inputs, model=self.teacher)
            with torch.enable_grad():
                loss = symmetric_cross_entropy(self.logits(inputs), taught).mean()
            super().learn(loss)
        self.optimiser.param_groups[0]["lr"] = rate
        for blend in (*blends_of(self.model), *blends_of(self.teacher)):
            blend.forget()

    def _remember(self) -> None:
        if self.warm_up:
            super(MeanTeacher, self)._remember()  # a reset returns to where the warm-up ended
        else:
            super()._remember()
