"""MEMO: for every image alone, make the mean prediction over random views of it surer, predict, and forget.

Source: Zhang et al. 2022: one step on the entropy of the marginal −Σ p̄ log p̄, p̄ the mean prediction over the views,
then a prediction, then back to the source. BatchNorm statistics are the source's with weight N = 16 and the image's
with weight 1, however many views there are. Differs: views as `augment.py` makes them where the paper has AugMix; the
gradient flows through the image's share of the statistics.
Which views an image gets depends on its place in the stream, not on how the stream is cut into batches.
Cost: per image, a forward and a backward pass of all its views, and one forward pass.
"""

from math import log

import torch
from torch import nn

from haptera.adapters.augment import STRONG, Augment, check_seed, fresh
from haptera.adapters.base import Adapter, NoAdaptation
from haptera.adapters.learner import Learner
from haptera.adapters.select import Select
from haptera.checks import check_whole_number


class MEMO(Learner):
    """Marginal entropy minimisation with one image.

    Args:
        model: one that takes images.
        lr: the learning rate; the paper has 2.5e-4 for ImageNet and 5e-3 for CIFAR-10.
        augmentations: how many views of an image.
        seed: of the views.
        augment: what the views look like.
        parameters: which of them adapt.
        prior: N of the BatchNorm statistics, if there are any; the image counts as one.
        optimiser: `sgd` or `adam`.
        precision: `float32` or `bfloat16` (mixed).
        frozen: predict without learning, with the source's statistics.
    """

    def __init__(
        self,
        model: nn.Module,
        lr: float = 2.5e-4,
        augmentations: int = 32,
        seed: int = 0,
        augment: Augment = STRONG,
        *,
        parameters: str | Select = "all",
        prior: float = 16.0,
        optimiser: str = "sgd",
        precision: str = "float32",
        frozen: bool = False,
    ) -> None:
        check_whole_number("augmentations", augmentations, what="a number of views")
        super().__init__(
            model,
            lr=lr,
            parameters=parameters,
            prior=prior,
            optimiser=optimiser,
            momentum=0.0,
            precision=precision,
            frozen=frozen,
        )
        self.augmentations, self.seed, self.augment = augmentations, check_seed(seed), augment
        self.memory["images"] = 0
        self._settings = {"parameters": parameters, "optimiser": optimiser, "precision": precision}

    def step(self, inputs: torch.Tensor) -> torch.Tensor:
        """Every image on its own."""
        outputs, losses, changes = [], [], []
        for image in inputs.split(1):
            with torch.enable_grad():
                loss = self.loss(self._of_views(image), image)
            self.learn(loss)
            outputs.append(self._of_one(image))
            losses.append(loss.detach())
            changes.append(self.change())
            self._forget()
            self.memory["images"] += 1
        together = torch.cat(outputs)
        self._note(together, torch.stack(losses).mean())
        self.record["change"] = sum(changes) / len(changes)
        return together

    def loss(self, logits: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        """Entropy of the mean prediction over views `(views, classes)`."""
        mean = logits.log_softmax(1).logsumexp(0) - log(len(logits))
        return -(mean.exp() * mean).sum()

    def parent(self, model: nn.Module) -> Adapter:
        """This method at a rate of 0, which is BatchNorm on single images; the unadapted model without such layers."""
        if self.parent_label == "none":
            return NoAdaptation(model)
        return MEMO(
            model,
            lr=0.0,
            augmentations=self.augmentations,
            seed=self.seed,
            augment=self.augment,
            prior=self._prior,
            **self._settings,  # type: ignore[arg-type]
        )

    @property
    def parent_label(self) -> str:
        """`memo:lr=0`, or `none` where no BatchNorm statistics are blended."""
        return "memo:lr=0" if self.norms and self._prior < float("inf") else "none"

    def _of_views(self, image: torch.Tensor) -> torch.Tensor:
        n = self.augmentations
        views = self.augment(image.expand(n, *image.shape[1:]), fresh(self.seed, self.memory["images"]))
        for layer in self.norms:
            layer.prior = self._prior * n  # n views at N n images have the share of one at N
        return self.logits(self._arranged(views))

    @torch.no_grad()
    def _of_one(self, image: torch.Tensor) -> torch.Tensor:
        for layer in self.norms:
            layer.prior = self._prior
        return self.logits(image)

    @torch.no_grad()
    def _forget(self) -> None:
        torch._foreach_copy_(list(self.adapted.values()), self._source)
        self.masters.read()
        self.optimiser.state.clear()
        for layer in self.norms:
            layer.forget()
