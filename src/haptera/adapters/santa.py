"""SANTA: agree with the source model, and draw features to the prototype of the nearest class.

Source: Chakrabarty et al. 2023. Source anchoring: cross-entropy of the source's answer about an image, seen from the
adapted model's answers about the image and about a view of it, −½ Σ p log q − ½ Σ p' log q. Target alignment: features
of the image and of its view, and the nearest prototype (by cosine), are projected and contrasted with those of all
other images.
The public code decides: the source model normalises by the statistics of the batch; both losses have weight 1; the
projector has two layers of 128 and learns at the same rate.
Differs: prototypes are the mean features of labelled data that is passed by `source=`; without it they are the rows of
the last layer, and no source data is read. Features of the source are found with the statistics of training. Views as
`augment.py` makes them, unless `augment="published"`.
Cost: two forward and two backward passes, and a forward pass of the source's weights.
"""

from typing import Any

import torch
from torch import nn

from haptera.adapters.learner import Learner
from haptera.adapters.norm import keep_statistics
from haptera.adapters.prototypes import Projector, Source, nearest, prototypes_of
from haptera.adapters.published import CoTTAViews, Views, choose_views
from haptera.checks import check_number
from haptera.losses.contrast import view_contrast
from haptera.losses.self_learning import symmetric_cross_entropy

WIDTH = 128


class SANTA(Learner):
    """Source anchoring network and target alignment.

    Args:
        model: one that takes images and has a linear layer at its end, with normalisation layers unless `parameters`
            says otherwise.
        lr: the learning rate; the public code has 1e-2 with SGD for ImageNet and 1e-3 with Adam for CIFAR.
        source: labelled batches by position, a stream or a list of (inputs, targets); None reads no source data.
        anchor: the weight of the cross-entropy with the source model's answers.
        contrast: the weight of the contrastive loss; 0 needs neither prototypes nor features.
        temperature: of the contrastive loss.
        augment: what the views look like: an `Augment`, `own` or `published`.
        settings: of every learner; `seed` is of the views and of the projector.
    """

    prototypes: torch.Tensor

    def __init__(
        self,
        model: nn.Module,
        lr: float = 1e-2,
        source: Source | None = None,
        anchor: float = 1.0,
        contrast: float = 1.0,
        temperature: float = 0.1,
        augment: Views | str = "own",
        **settings: Any,
    ) -> None:
        check_number("anchor", anchor, least=0, what="a weight")
        check_number("contrast", contrast, least=0, what="a weight")
        check_number("temperature", temperature, above=0)
        super().__init__(model, lr=lr, **settings)
        self.anchor, self.contrast, self.temperature = anchor, contrast, temperature
        self.augment = choose_views(augment, CoTTAViews())
        self.source = self.another(model)  # all the caller's memory but statistics
        if contrast:
            self.register_buffer("prototypes", prototypes_of(self, source))
            self.projector = Projector(self.prototypes.shape[1], WIDTH, self.optimiser, self.seed)

    def lesson(self, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """What the adapted model says, and the two losses; statistics found last are those of the images."""
        view = self._arrange(self.augment(inputs, self.random))
        look = self.look if self.contrast else self._say
        seen, said = look(inputs)
        with keep_statistics(self.model):
            seen_in_view, said_of_view = look(view)
        with torch.no_grad():
            source = self.logits(inputs, model=self.source)
        both = symmetric_cross_entropy(said, source, 1.0) + symmetric_cross_entropy(said_of_view, source, 1.0)
        loss = self.anchor * both.mean() / 2
        if self.contrast:
            three = torch.stack([nearest(seen, self.prototypes), seen, seen_in_view], 1)
            loss = loss + self.contrast * view_contrast(self.projector(three), self.temperature).mean()
        return said.detach(), loss

    def learn(self, loss: torch.Tensor) -> None:
        """A step of the weights and of the projector."""
        super().learn(loss)
        if self.contrast and not self.memory["pending"]:
            self.projector.step()

    def _say(self, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits = self.logits(inputs)
        return logits, logits
