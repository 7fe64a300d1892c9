"""VTE: predict the mean of the features of an image's surest views, with the classes as many templates describe them.

Source: Döbler et al. 2024, the ensemble over vision and text space that they compare with TPT: no gradients, no memory.
The templates are those of the model (`haptera.models.ZeroShot`); the surest tenth of the views is found by entropy.
The public code decides: the image and 63 random crops and mirror images of it; features of norm 1 are averaged, and the
mean is not scaled again.
Differs: any model that ends with a linear layer is taken; the mean of the features that reach it then stands for them.
Cost: per image, a forward pass of its views.
"""

from typing import Any

import torch
from torch import nn

from haptera.adapters.base import Adapter
from haptera.adapters.head import classify, ends_with_its_head
from haptera.adapters.imagetext import CROPS, check_views, surest_views, views_of
from haptera.adapters.passes import check_logits, run
from haptera.adapters.published import Views
from haptera.adapters.select import features, last_layer
from haptera.errors import NotApplicable


class VTE(Adapter):
    """Vision-text-space ensemble.

    Args:
        model: one that ends with a linear layer; made for image-text models with several templates.
        views: of an image, itself among them.
        share: of the views, whose features are averaged.
        augment: what the views look like.
        settings: `seed`, of the views, and `frozen`, to predict from images as they are.
    """

    def __init__(
        self,
        model: nn.Module,
        views: int = 64,
        share: float = 0.1,
        augment: Views = CROPS,
        frozen: bool = False,
        seed: int = 0,
    ) -> None:
        check_views(views, share)
        super().__init__(model, frozen=frozen, seed=seed)
        last_layer(self.model)
        self.views, self.share, self.augment = views, share, augment
        self._known = False

    @torch.no_grad()
    def step(self, inputs: torch.Tensor) -> torch.Tensor:
        """Every image on its own."""
        means, kinds = [], []
        for image in inputs.split(1):
            logits, seen = self._look(self._arrange(views_of(image, self.views, self.augment, self.random)))
            means.append(seen[surest_views(logits, self.share)].mean(0))
            kinds.append(logits.dtype)
        return classify(self.model, torch.stack(means)).to(kinds[0])

    def _look(self, views: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """Logits and features of views."""
        with features(self.model) as seen:
            logits = check_logits(run(self.model, views), type(self).__name__)
        if not self._known and not ends_with_its_head(self.model, seen[-1], logits):
            raise NotApplicable(
                "VTE averages what reaches the last layer, and the logits of the model are not what its last layer, "
                f"{type(last_layer(self.model)).__name__}, gives; a model that ends with a linear layer was expected"
            )
        self._known = True
        return logits, seen[-1].float()
