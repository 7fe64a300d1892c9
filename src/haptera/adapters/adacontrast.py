"""AdaContrast: pseudo-labels by a vote of neighbours, views that are contrasted with a queue, and varied predictions.

Source: Chen et al. 2022. The student sees a weak view of each image; its pseudo-label is the first class of the mean
prediction of the nearest images (by cosine) in a bank of features and predictions. The loss is on two strong views: the
cross-entropy of the first with the pseudo-label, the cosine of its features with the teacher's of the second one
against those of a queue of earlier ones with other pseudo-labels, and minus the entropy of the mean prediction. Bank
and queue hold what the teacher, an average of the student, says. The student predicts.
The public code decides: temperature .07, 10 neighbours, 16,384 places in bank and queue, all weights 1; labels are not
refined before the bank has 1,024 images; the prediction is made after the update; Nesterov's momentum and a weight
decay of 1e-4; the gradient flows through the strong view alone.
Differs: views as `augment.py` makes them, the weak ones mirrored and shifted only; the queue begins empty, where the
public code fills it with noise, and an entry keeps its own label until it is replaced; BatchNorm statistics as every
learner here has them, where the public code predicts with running ones.
Cost: two forward passes of the student and two of the teacher, a forward and a backward pass of the student, and the
product of the batch with bank and queue, which hold (features + classes) and features numbers for each place.
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from haptera.adapters.augment import STRONG, Augment
from haptera.adapters.learning import Learning
from haptera.adapters.published import Views
from haptera.adapters.select import last_layer
from haptera.adapters.teacher import MeanTeacher
from haptera.checks import check_number, check_whole_number
from haptera.losses.contrast import instance_contrast
from haptera.losses.self_learning import diversity

WEAK = Augment(rotation=0, scale=0, brightness=0, contrast=0, saturation=0, noise=0, blur=0)
"""Mirrored and shifted."""


class AdaContrast(MeanTeacher):
    """Contrastive test-time adaptation.

    Args:
        model: one that takes images and has a linear or convolutional layer at its end.
        lr: the learning rate.
        neighbours: how many vote for a pseudo-label.
        places: how many images bank and queue hold.
        patience: with fewer images in the bank, pseudo-labels are the student's own.
        contrast: the weight of the contrastive loss.
        diversity: the weight of the entropy of the mean prediction.
        temperature: of the contrastive loss.
        decay: the share of the old teacher in the new one.
        augment: what the strong views look like.
        settings: those of every learner; by default `parameters` is `all`, `predictions` `after`, and `optimiser` sgd
            with `nesterov` and a `weight_decay` of 1e-4.
    """

    learning = Learning(parameters="all", nesterov=True, weight_decay=1e-4, predictions="after")

    def __init__(
        self,
        model: nn.Module,
        lr: float = 2e-4,
        neighbours: int = 10,
        places: int = 16384,
        patience: int = 1024,
        contrast: float = 1.0,
        diversity: float = 1.0,
        temperature: float = 0.07,
        decay: float = 0.999,
        augment: Views = STRONG,
        **settings: Any,
    ) -> None:
        for name, number in (("neighbours", neighbours), ("places", places), ("patience", patience)):
            check_whole_number(name, number, what="a number of images")
        check_number("contrast", contrast, least=0, what="a weight")
        check_number("diversity", diversity, least=0, what="a weight")
        check_number("temperature", temperature, above=0)
        super().__init__(model, lr=lr, decay=decay, **settings)
        last_layer(self.model)
        self.neighbours, self.places, self.patience = neighbours, places, patience
        self.contrast, self.diversity, self.temperature, self.augment = contrast, diversity, temperature, augment
        self.memory |= {"keys": None, "labels": None, "bank": None, "probabilities": None}

    def lesson(self, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """What the student says, and the loss; bank and queue take the images in."""
        views = [self._arrange(draw(inputs, self.random)) for draw in (WEAK, self.augment, self.augment)]
        with torch.no_grad():
            seen, said = self.look(views[0])
            kept, told = self.look(views[0], model=self.teacher)
            keys = self.look(views[2], model=self.teacher)[0]
        labels = self._refine(seen, said)
        queries, logits = self.look(views[1])
        loss = F.cross_entropy(logits, labels) + self.diversity * diversity(logits.softmax(1).mean(0))
        if self.contrast and self.memory["keys"] is not None:
            rivals = self.memory["labels"].to(labels) != labels[:, None]
            queue = self.memory["keys"].to(queries)
            loss = loss + self.contrast * instance_contrast(queries, keys, queue, rivals, self.temperature).mean()
        fine = torch.isfinite(torch.cat([kept, told, keys], 1)).all(1)
        taken = {"keys": keys, "labels": labels, "bank": kept, "probabilities": told.softmax(1)}
        self.memory |= {name: self._append(self.memory[name], values[fine]) for name, values in taken.items()}
        return logits.detach() if self._after else self.answer(inputs), loss

    @torch.no_grad()
    def answer(self, inputs: torch.Tensor, use: str = "batch") -> torch.Tensor:
        """The student's logits."""
        return self.logits(inputs, use)

    @property
    def predicting(self) -> nn.Module:
        """The student."""
        return self.model

    def _refine(self, seen: torch.Tensor, said: torch.Tensor) -> torch.Tensor:
        """Pseudo-labels `(batch,)`."""
        bank = self.memory["bank"]
        if bank is None or len(bank) < self.patience:
            return said.argmax(1)
        labels = vote(seen, bank.to(seen), self.memory["probabilities"].to(said), self.neighbours)
        self.record["refined"] = float((labels != said.argmax(1)).float().mean())
        return labels

    def _append(self, held: torch.Tensor | None, new: torch.Tensor) -> torch.Tensor:
        """The newest entries, as many as there are places."""
        return new[-self.places :] if held is None else torch.cat([held.to(new), new])[-self.places :]


def vote(seen: torch.Tensor, bank: torch.Tensor, probabilities: torch.Tensor, neighbours: int) -> torch.Tensor:
    """First class of the mean prediction of the nearest entries of a bank.

    Args:
        seen: features `(batch, d)`.
        bank: features `(n, d)`.
        probabilities: `(n, classes)`.
        neighbours: how many count.
    """
    cosine = F.normalize(seen, dim=1) @ F.normalize(bank, dim=1).T
    nearest = cosine.topk(min(neighbours, len(bank))).indices
    return probabilities[nearest].mean(1).argmax(1)
