"""Mean teacher: a learner whose teacher is the moving average of the student; the teacher predicts.

Source: Tarvainen and Valpola 2017, as CoTTA, RoTTA and DINO have it. A method writes `lesson`, and little else.
Random numbers come from the seed and the step alone, so that a state that was saved goes on to the same ones.
Cost: one more copy of what adapts; the source's weights are the caller's, and there is no further copy of them.
"""

import copy
from typing import Any, Self, Unpack

import torch
from torch import nn

from haptera.adapters.augment import check_seed, fresh
from haptera.adapters.learner import Learner, Learning
from haptera.adapters.masters import Masters
from haptera.adapters.norm import blended, unblended
from haptera.adapters.sharing import share
from haptera.checks import check_number


class MeanTeacher(Learner):
    """A learner with an averaged teacher.

    Args:
        model: any.
        lr: the learning rate of the student.
        decay: the share of the old teacher in the new one.
        seed: of all random numbers.
        settings: of every learner.

    Attributes:
        teacher: what predicts; `model` is the student.
    """

    def __init__(
        self, model: nn.Module, *, lr: float, decay: float, seed: int = 0, **settings: Unpack[Learning]
    ) -> None:
        check_number("decay", decay, least=0, most=1, what="a share")
        super().__init__(model, lr=lr, **settings)
        self.decay, self.seed = decay, check_seed(seed)
        self.teacher = share(model, self._select(model).values()).eval()
        blended(self.teacher, self._prior)
        self.taught = Masters(self._select(self.teacher).values())
        self._source = [parameter.detach() for parameter in self._select(model).values()]
        self.memory["steps"] = 0

    def lesson(self, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """What the teacher says about a batch, and the student's loss, a scalar, or None where there is none."""
        raise NotImplementedError

    def step(self, inputs: torch.Tensor) -> torch.Tensor:
        """The teacher predicts, the student learns, the teacher follows."""
        self.begin_step(inputs)
        with torch.enable_grad():
            outputs, loss = self.lesson(inputs)
        if loss is not None:
            self.learn(loss)
        if self._after:
            outputs = self.answer(inputs)
        self.memory["steps"] += 1
        self._note(outputs, loss)
        return outputs

    def predict(self, inputs: torch.Tensor) -> torch.Tensor:
        """The teacher's prediction with the statistics found last."""
        return self.answer(inputs, "last")

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

    def random(self, purpose: int = 0) -> torch.Generator:
        """A new generator for this step, another one for each purpose."""
        return fresh(self.seed, self.memory["steps"], purpose)

    def release(self, source_statistics: bool = False) -> nn.Module:
        """A plain model with the teacher's weights, and the BatchNorm statistics found last or those of the source."""
        released = copy.deepcopy(self.teacher)
        for parameter in released.parameters():
            parameter.requires_grad_(True)
        unblended(released, source_statistics)
        return released

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        super()._apply(fn, recurse)
        self.taught = self.taught.moved()
        return self

    def get_extra_state(self) -> dict[str, Any]:
        """Return the state, with the teacher's weights in single precision where it has others."""
        return super().get_extra_state() | ({"taught": self.taught.state()} if self.taught.separate() else {})

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Take the teacher's part of a `state_dict`."""
        super().set_extra_state(state)
        self.taught.load(state.get("taught", []))

    def _remember(self) -> None:
        super()._remember()
        for name, source in zip(self.adapted, self._source, strict=True):
            self._first |= {f"model.{name}": source, f"teacher.{name}": source}
