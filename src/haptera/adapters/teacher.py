"""Mean teacher: a learner whose teacher is the moving average of the student; the teacher predicts.

Source: Tarvainen and Valpola 2017, as CoTTA, RoTTA and DINO have it. A method writes `lesson`, and little else.
Cost: one more copy of what adapts; the source's weights are the caller's, and there is no further copy of them.
"""

from typing import Any

import torch
from torch import nn

from haptera.adapters.learner import Learner
from haptera.adapters.select import Masters
from haptera.checks import check_number


class MeanTeacher(Learner):
    """A learner with an averaged teacher.

    Args:
        model: any.
        lr: the learning rate of the student.
        decay: the share of the old teacher in the new one.
        settings: of every learner.

    Attributes:
        teacher: what predicts; `model` is the student.
    """

    copies = ("masters", "taught")

    def __init__(self, model: nn.Module, *, lr: float, decay: float, **settings: Any) -> None:
        check_number("decay", decay, least=0, most=1, what="a share")
        super().__init__(model, lr=lr, **settings)
        self.decay = decay
        self.teacher = self.another(model, self._select(model).values())
        self.taught = Masters(self._select(self.teacher).values())
        self._source = [parameter.detach() for parameter in self._select(model).values()]

    def lesson(self, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """What the teacher says about a batch, and the student's loss, a scalar, or None where there is none."""
        raise NotImplementedError

    @torch.no_grad()
    def answer(self, inputs: torch.Tensor, use: str = "batch") -> torch.Tensor:
        """The teacher's logits."""
        return self.logits(inputs, use, self.teacher)

    def learn(self, loss: torch.Tensor) -> None:
        """A step of the student; after an update, one of the teacher."""
        super().learn(loss)
        if not self.memory["pending"]:
            self.follow()

    @torch.no_grad()
    def follow(self) -> None:
        """The teacher moves towards the student."""
        torch._foreach_lerp_(self.taught.values, self.masters.values, 1 - self.decay)
        self.taught.give()

    @property
    def predicting(self) -> nn.Module:
        """The teacher."""
        return self.teacher

    def _remember(self) -> None:
        super()._remember()
        for name, source in zip(self.adapted, self._source, strict=True):
            self._first |= {f"model.{name}": source, f"teacher.{name}": source}
