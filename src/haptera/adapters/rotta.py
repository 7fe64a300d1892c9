"""RoTTA: learn from a small bank of recent images, balanced over the predicted classes, for streams that come in runs.

Source: Yuan et al. 2023, with the constants of its public code. The teacher predicts with running BatchNorm
statistics. Each image is offered to the bank: a class that has less than its share of the bank takes a free place, or
else that of the worst image of the fullest classes; a class that has its share, that of its own worst image; none if
the new image is worse. Worse is older and less sure: timeliness / (1 + exp(−age / capacity)) + uncertainty H / ln C.
After every `frequency` images the student sees the bank in random views and learns the teacher's answers on it as it
is, with weight 1 / (1 + exp(age / capacity)); both move their statistics towards the bank's. Models without BatchNorm
learn likewise.
Differs: views as `augment.py` makes them, unless `augment="published"`.
Cost: a forward pass of the teacher; one more of it, and a forward and a backward pass of the student, per update.
Holds `capacity` images.
"""

from math import inf, log
from typing import Any

import torch
from torch import nn

from haptera.adapters.bank import put
from haptera.adapters.base import Adapter, NoAdaptation
from haptera.adapters.learning import Learning
from haptera.adapters.norm import blends_of
from haptera.adapters.published import CoTTAViews, Views, choose_views
from haptera.adapters.teacher import MeanTeacher
from haptera.checks import check_number, check_whole_number
from haptera.losses.self_learning import entropy, soft_pseudo_labels


class RoTTA(MeanTeacher):
    """Robust test-time adaptation.

    Args:
        model: one that takes images.
        lr: the learning rate.
        capacity: how many images the bank holds.
        frequency: after how many images there is an update.
        share: of the bank in the running statistics at an update.
        timeliness: how much age counts against an image.
        uncertainty: how much entropy counts against it.
        decay: the share of the old teacher in the new one.
        augment: what the views look like: an `Augment`, `own` or `published`.
        settings: `seed`, of the views; `parameters`; `optimiser`, by default `adam`; `predictions`, made `before` or
            `after` the updates of the same batch; `precision` and `frozen`, as every learner has them.
    """

    learning = Learning(optimiser="adam", prior=inf)  # statistics never come from one batch alone
    fixed = ("prior", "momentum", "nesterov", "accumulate", "window")

    def __init__(
        self,
        model: nn.Module,
        lr: float = 1e-3,
        capacity: int = 64,
        frequency: int = 64,
        share: float = 0.05,
        timeliness: float = 1.0,
        uncertainty: float = 1.0,
        decay: float = 0.999,
        augment: Views | str = "own",
        **settings: Any,
    ) -> None:
        for name, number in (("capacity", capacity), ("frequency", frequency)):
            check_whole_number(name, number, what="a number of images")
        check_number("share", share, least=0, most=1)
        check_number("timeliness", timeliness, least=0)
        check_number("uncertainty", uncertainty, least=0)
        super().__init__(model, lr=lr, decay=decay, **settings)
        for blend in (*blends_of(self.model), *blends_of(self.teacher)):
            blend.momentum = share
        self.capacity, self.frequency, self.share = capacity, frequency, share
        self.augment = choose_views(augment, CoTTAViews())
        self.timeliness, self.uncertainty = timeliness, uncertainty
        self.memory |= {"seen": 0, "images": None, "labels": torch.zeros(0, dtype=torch.int64)}
        self.memory |= {"entropies": torch.zeros(0), "ages": torch.zeros(0)}

    def step(self, inputs: torch.Tensor) -> torch.Tensor:
        """The teacher predicts; the images go to the bank, one after the other; updates happen where they are due."""
        outputs = self.meet(inputs)
        kept, losses = 0, []
        for image, label, uncertain in zip(inputs, outputs.argmax(1), entropy(outputs), strict=True):
            kept += self._offer(image, int(label), float(uncertain), outputs.shape[1])
            self.memory["seen"] += 1
            if self.memory["seen"] % self.frequency == 0 and len(self.memory["labels"]):
                for _ in range(self.learning.steps):
                    with torch.enable_grad():
                        loss = self.lesson(inputs)[1]
                    self.learn(loss)
                    losses.append(loss.detach())
        if self._after and losses:
            outputs = self.predict(inputs)
        self._note(outputs, torch.stack(losses).mean() if losses else None)
        self.record["kept"] = kept / len(inputs)
        return outputs

    def meet(self, inputs: torch.Tensor) -> torch.Tensor:
        """What the teacher says about images that are new."""
        return self.predict(inputs)

    def lesson(self, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """What the teacher says about the bank, and the student's loss on a view of it, the newest first."""
        bank = self.bank()
        answer = self.answer(bank, "running")
        view = self._arrange(self.augment(bank, self.random))
        weights = torch.sigmoid(-self.memory["ages"] / self.capacity).to(answer)
        return answer, (soft_pseudo_labels(self.logits(view, "running"), answer) * weights).mean()

    def bank(self) -> torch.Tensor:
        """The images that the bank holds."""
        return self._arrange(self.memory["images"][: len(self.memory["labels"])])

    def parent(self, model: nn.Module) -> Adapter:
        """This method at a rate of 0, which moves statistics; the unadapted model without BatchNorm."""
        if not self.norms:
            return NoAdaptation(model)
        names = ("capacity", "frequency", "share", "timeliness", "uncertainty", "decay", "augment")
        return RoTTA(model, lr=0.0, **{name: getattr(self, name) for name in names}, **self._settings)

    @property
    def parent_label(self) -> str:
        """`rotta:lr=0`, or `none` without BatchNorm."""
        return "rotta:lr=0" if self.norms else "none"

    def _offer(self, image: torch.Tensor, label: int, uncertain: float, classes: int) -> bool:
        """Take an image into the bank, or not; then all that is there is one older."""
        memory = self.memory
        scores = self._score(memory["ages"], memory["entropies"], classes)
        new = self._score(torch.zeros(()), torch.tensor(uncertain), classes)
        at = place(memory["labels"], scores, label, float(new), self.capacity, classes)
        if at is not None:
            put(memory, image, at, self.capacity, labels=label, entropies=uncertain, ages=0)
        memory["ages"] += 1
        return at is not None

    def _score(self, ages: torch.Tensor, entropies: torch.Tensor, classes: int) -> torch.Tensor:
        return self.timeliness * torch.sigmoid(ages / self.capacity) + self.uncertainty * entropies / log(classes)


def place(
    labels: torch.Tensor, scores: torch.Tensor, label: int, score: float, capacity: int, classes: int
) -> int | None:
    """Return where in the bank a new image goes: behind the others, in the place of the worst rival, or, None, nowhere.

    What is there has predicted classes, `labels`, and is as bad as `scores`, both `(n,)`; a score of NaN goes nowhere.

    >>> place(torch.tensor([0, 1, 1]), torch.tensor([0.9, 0.2, 0.8]), label=0, score=0.5, capacity=3, classes=2)
    2
    """
    if score != score:
        return None
    counts = torch.bincount(labels, minlength=classes)
    if counts[label] < capacity / classes:
        if len(labels) < capacity:
            return len(labels)
        rivals = (counts == counts.max())[labels]
    else:
        rivals = labels == label
    worst = int(torch.where(rivals, scores, -float("inf")).argmax())
    return worst if float(scores[worst]) > score else None
