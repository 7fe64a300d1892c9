"""MEMO: for every image alone, make the mean prediction over random views of it surer, predict, and forget.

Source: Zhang et al. 2022: one step on the entropy of the marginal −Σ p̄ log p̄, p̄ the mean prediction over the views,
then a prediction, then back to the source. BatchNorm statistics are the source's with weight N = 16 and the image's
with weight 1, however many views there are. Differs: views as `augment.py` makes them where the paper has AugMix,
which is `augment="published"`; the gradient flows through the image's share of the statistics.
Which views an image gets depends on its place in the stream, not on how the stream is cut into batches.
Cost: per image, a forward and a backward pass of all its views, and one forward pass.
"""

from typing import Any

import torch
from torch import nn

from haptera.adapters.base import Adapter, NoAdaptation
from haptera.adapters.learner import Learner
from haptera.adapters.learning import Learning
from haptera.adapters.published import AugMix, Views, choose_views
from haptera.checks import check_whole_number
from haptera.losses.self_learning import marginal_entropy


class MEMO(Learner):
    """Marginal entropy minimisation with one image.

    Args:
        model: one that takes images.
        lr: the learning rate; the paper has 2.5e-4 for ImageNet and 5e-3 for CIFAR-10.
        augmentations: how many views of an image.
        augment: what the views look like: an `Augment`, `own` or `published`.
        settings: `seed`, of the views; `parameters`, by default `all`; `prior`, by default 16 and the image counts as
            one; `optimiser`, `steps`, `precision` and `frozen`, as every learner has them.
    """

    learning = Learning(parameters="all", prior=16.0, momentum=0.0)
    fixed = ("momentum", "nesterov", "predictions", "accumulate", "window")

    def __init__(
        self,
        model: nn.Module,
        lr: float = 2.5e-4,
        augmentations: int = 32,
        augment: Views | str = "own",
        **settings: Any,
    ) -> None:
        check_whole_number("augmentations", augmentations, what="a number of views")
        super().__init__(model, lr=lr, **settings)
        self.augmentations, self.augment = augmentations, choose_views(augment, AugMix())

    def step(self, inputs: torch.Tensor) -> torch.Tensor:
        """Every image on its own."""
        outputs, losses, changes = [], [], []
        for image in inputs.split(1):
            for _ in range(self.learning.steps):
                with torch.enable_grad():
                    loss = self.loss(self._of_views(image), image)
                self.learn(loss)
            for layer in self.norms:
                layer.prior = self._prior
            with torch.no_grad():
                outputs.append(self.logits(image))
            losses.append(loss.detach())
            changes.append(self.change())
            self._forget()
        together = torch.cat(outputs)
        self._note(together, torch.stack(losses).mean())
        self.record["change"] = sum(changes) / len(changes)
        return together

    def loss(self, logits: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        """Entropy of the mean prediction over views `(views, classes)`."""
        return marginal_entropy(logits)

    def parent(self, model: nn.Module) -> Adapter:
        """This method at a rate of 0, which is BatchNorm on single images; the unadapted model without such layers."""
        if self.parent_label == "none":
            return NoAdaptation(model)
        return MEMO(model, 0.0, self.augmentations, self.augment, **self._settings)

    @property
    def parent_label(self) -> str:
        """`memo:lr=0`, or `none` where no BatchNorm statistics are blended."""
        return "memo:lr=0" if self.norms and self._prior < float("inf") else "none"

    def _of_views(self, image: torch.Tensor) -> torch.Tensor:
        n = self.augmentations
        views = self.augment(image.expand(n, *image.shape[1:]), self.random)
        for layer in self.norms:
            layer.prior = self._prior * n  # n views at N n images have the share of one at N
        return self.logits(self._arrange(views))

    @torch.no_grad()
    def _forget(self) -> None:
        torch._foreach_copy_(list(self.adapted.values()), self._source)
        self.masters.read()
        self.optimiser.state.clear()
        for layer in self.norms:
            layer.forget()
