"""Pseudo-labels: learn what a teacher, an earlier or the same state of the model, says about the batch.

Source: thesis (3.5) with a stopped gradient: hard labels with a threshold, soft ones with temperatures, and the robust
ones of (3.4), RPL, with generalised cross-entropy. The teacher is updated at every step (it is then the student before
its update), before every pass of `adapt`, or never.
Cost: as Tent; a teacher that is not updated at every step costs one more forward pass and a copy of what adapts.
"""

from typing import Any

import torch
from torch import nn

from haptera.adapters.learner import Learner
from haptera.adapters.skip import keep
from haptera.adapters.tent import check_temperatures
from haptera.checks import check_number
from haptera.errors import check_keys
from haptera.losses.self_learning import generalised_cross_entropy, hard_pseudo_labels, soft_pseudo_labels

TEACHERS = ("step", "epoch", "never")
LABELS = ("hard", "soft")


class Pupil(Learner):
    """A learner with a teacher; a method writes `loss_from`.

    Args:
        model: any.
        teacher: updated at every `step`, before every `epoch` of `adapt`, or `never`.
        settings: of every learner, with `lr`.
    """

    def __init__(self, model: nn.Module, *, lr: float, teacher: str = "step", **settings: Any) -> None:
        check_keys("teacher", [teacher], TEACHERS)
        super().__init__(model, lr=lr, **settings)
        self._updated = teacher
        self.teacher: nn.Module | None = None
        if teacher != "step":
            self.teacher = self.another(model, self._select(model).values())
            self._taught = self._select(self.teacher)

    def loss_from(self, logits: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor | None:
        """The loss of a batch, given what the teacher says about it."""
        raise NotImplementedError

    def loss(self, logits: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor | None:
        """Ask the teacher first."""
        if self.teacher is None:
            return self.loss_from(logits, logits.detach())
        with torch.no_grad():
            answer = self.logits(inputs, model=self.teacher)
        return self.loss_from(logits, answer)

    @torch.no_grad()
    def begin_epoch(self) -> None:
        """The student becomes the teacher, where that happens once an epoch."""
        if self.teacher is not None and self._updated == "epoch":
            for name, parameter in self._taught.items():
                parameter.copy_(self.adapted[name])


class PseudoLabels(Pupil):
    """Hard or soft pseudo-labels.

    Args:
        model: any.
        lr: the learning rate.
        labels: `hard` or `soft`.
        threshold: learn only where the teacher's largest probability is at least this.
        student_temperature: τ_s of (3.5).
        teacher_temperature: τ_t of (3.5); of no effect on hard labels but through the threshold.
        settings: of every learner, and `teacher`.
    """

    def __init__(
        self,
        model: nn.Module,
        lr: float = 1e-3,
        labels: str = "hard",
        threshold: float = 0.0,
        student_temperature: float = 1.0,
        teacher_temperature: float = 1.0,
        **settings: Any,
    ) -> None:
        check_temperatures(student_temperature, teacher_temperature)
        check_keys("labels", [labels], LABELS)
        check_number("threshold", threshold, least=0, most=1, what="a probability")
        super().__init__(model, lr=lr, **settings)
        self.labels, self.threshold = labels, threshold
        self.student_temperature, self.teacher_temperature = student_temperature, teacher_temperature

    def loss_from(self, logits: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor | None:
        """The mean over the samples of which the teacher is sure."""
        kept = (teacher / self.teacher_temperature).softmax(1).amax(1) >= self.threshold
        self.record["kept"] = float(kept.float().mean())
        if not bool(kept.any()):
            return None
        logits, teacher = keep(logits, kept), teacher[kept]
        if self.labels == "hard":
            return hard_pseudo_labels(logits, teacher, self.student_temperature).mean()
        return soft_pseudo_labels(logits, teacher, self.student_temperature, self.teacher_temperature).mean()


class RPL(Pupil):
    """Robust pseudo-labels: generalised cross-entropy, which forgives wrong labels.

    Args:
        model: any.
        lr: the learning rate.
        q: between cross-entropy (0) and absolute error (1).
        settings: of every learner, and `teacher`.
    """

    def __init__(self, model: nn.Module, lr: float = 5e-4, q: float = 0.8, **settings: Any) -> None:
        check_number("q", q, least=0, most=1)
        super().__init__(model, lr=lr, **settings)
        self.q = q

    def loss_from(self, logits: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
        """The mean over all samples, with the teacher's first class as the label."""
        return generalised_cross_entropy(logits, teacher.argmax(1), self.q).mean()
