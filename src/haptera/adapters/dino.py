"""DINO: a student sees random views of the batch and learns what an averaged teacher says about other views of it.

Source: Caron et al. 2021, at test time as in thesis chapter 3, table 3.6, for vision transformers: cross-entropy
between σ((teacher − centre)/τ_t) and σ(student/τ_s) over all pairs of different views; the centre is a running mean of
what the teacher says, and with the temperatures keeps it from saying the same of everything.
Differs: a model that was trained with DINO brings a projection head, `head`, which stays as it is; without one, the
class logits take its place, at temperatures that keep the paper's ratio (.04 to .1, which are for prototypes of norm
1). Views are of one size, since a model need not take others; the teacher sees the first two, the student all. The
teacher predicts, as in the paper, from the images as they are; the thesis does not say who does.
Which weights adapt, in the words of the table and of `Select`: all weights `all`; affine layers `norm`; linear layers
by their names, `*linear*+*proj*` in torch's encoder layers and `*attn*+*mlp*` in timm's; bottleneck layers, which the
thesis has from Houlsby et al. 2019, by the name of those modules in the model, such as `*adapter*`.
Cost: three forward passes of the teacher, and a forward and a backward pass of the student per view.
"""

from itertools import product
from typing import Any

import torch
from torch import nn

from haptera.adapters.augment import STRONG, Augment
from haptera.adapters.learning import Learning
from haptera.adapters.select import last_layer
from haptera.adapters.sharing import share
from haptera.adapters.teacher import MeanTeacher
from haptera.adapters.tent import check_temperatures
from haptera.checks import check_number, check_whole_number
from haptera.losses.self_learning import soft_pseudo_labels


class DINO(MeanTeacher):
    """Self-distillation without labels.

    Args:
        model: one that takes images.
        lr: the learning rate; the paper has 5e-4 for 256 images, this is for 64.
        views: how many the student sees; at least two.
        student_temperature: τ_s.
        teacher_temperature: τ_t.
        centring: the share of the old centre in the new one.
        decay: the share of the old teacher in the new one; the paper's, at which the teacher, which predicts, needs
            hundreds of steps to follow.
        head: from the features that reach the model's last layer to prototypes; by default the last layer itself.
        augment: what the views look like.
        settings: `seed`, of the views, and those of every learner; `parameters` is `all` and `optimiser` `adam` by
            default.
    """

    learning = Learning(parameters="all", optimiser="adam")

    def __init__(
        self,
        model: nn.Module,
        lr: float = 1.25e-4,
        views: int = 2,
        student_temperature: float = 1.0,
        teacher_temperature: float = 0.4,
        centring: float = 0.9,
        decay: float = 0.996,
        head: nn.Module | None = None,
        augment: Augment = STRONG,
        **settings: Any,
    ) -> None:
        check_temperatures(student_temperature, teacher_temperature)
        check_whole_number("views", views, 2)
        check_number("centring", centring, least=0, most=1, what="a share")
        super().__init__(model, lr=lr, decay=decay, **settings)
        self.temperatures = student_temperature, teacher_temperature
        self.views, self.centring, self.augment = views, centring, augment
        self.head: nn.Module | None = None
        if head is not None:
            last_layer(model)
            self.head = share(head).eval()
        self.memory["centre"] = None

    def lesson(self, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The mean cross-entropy over the pairs of different views."""
        views = [self._arrange(self.augment(inputs, self.random)) for _ in range(self.views)]
        with torch.no_grad():
            taught = [self._project(view, self.teacher) for view in views[:2]]
        answer = self.answer(inputs)  # after the views: the statistics found last are those of the batch itself
        said = [self._project(view, self.model) for view in views]
        centre = self._centre(torch.cat(taught))
        losses = [
            soft_pseudo_labels(said[b], taught[a] - centre, *self.temperatures).mean()
            for a, b in product(range(2), range(self.views))
            if a != b
        ]
        return answer, torch.stack(losses).mean()

    def _project(self, view: torch.Tensor, model: nn.Module) -> torch.Tensor:
        if self.head is None:
            return self.logits(view, model=model)
        return self.head(self.look(view, model=model)[0].float())

    def _centre(self, taught: torch.Tensor) -> torch.Tensor:
        """The centre so far; this batch moves it for the next one."""
        new = taught.mean(0)
        before = torch.zeros_like(new) if self.memory["centre"] is None else self.memory["centre"].to(new)
        self.memory["centre"] = self.centring * before + (1 - self.centring) * new
        return before
