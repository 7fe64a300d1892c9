"""TTAug: the mean prediction over random views of each image; nothing is learnt.

Source: test-time augmentation, as Krizhevsky et al. 2012 and many after them predict; here as a baseline of adaptation.
The public code decides: the image itself is among the views, logits are averaged, every image is on its own, and
its views have a share of .1 in the BatchNorm statistics, those of training the rest.
Differs: views as `augment.py` makes them where the public code has AugMix, unless `augment="published"`.
Cost: a forward pass for each view and for the image itself, in passes of about 64 of them: on CPUs larger ones take up
to a third longer, for the memory that they need afresh (`benchmarks/adapters.py`).
"""

from math import inf
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from haptera.adapters.base import Adapter, all_finite
from haptera.adapters.blend import Blend
from haptera.adapters.instance import normalise_each
from haptera.adapters.norm import blending, put_blends
from haptera.adapters.passes import arrange, check_logits, run
from haptera.adapters.published import AugMix, Views, choose_views
from haptera.checks import check_number, check_whole_number
from haptera.errors import check_keys

MEANS = ("logits", "probabilities")
DRAWN = 256
"""About how many views are drawn at a time; random numbers depend on it."""
TOGETHER = 64
"""About how many views go through a model in one pass."""


class TTAug(Adapter):
    """Test-time augmentation.

    Args:
        model: one that takes images.
        augmentations: how many random views of an image, beside itself.
        share: of the views of an image in the BatchNorm statistics, if there are any.
        mean: over `logits`, or over `probabilities`; predictions are then their logarithms.
        augment: what the views look like: an `Augment`, `own` or `published`.
        settings: `seed`, of the views; `window` and `frozen`, as every adapter has them.
    """

    outputs_only = True

    def __init__(
        self,
        model: nn.Module,
        augmentations: int = 32,
        share: float = 0.1,
        mean: str = "logits",
        augment: Views | str = "own",
        **settings: Any,
    ) -> None:
        check_whole_number("augmentations", augmentations, 0, what="a number of views")
        check_number("share", share, least=0, most=1)
        check_keys("mean", [mean], MEANS)
        super().__init__(model, **settings)
        self.augmentations, self.share, self.mean = augmentations, share, mean
        self.augment = choose_views(augment, AugMix())
        self.layers = put_blends(self.model, lambda layer: ViewBlend(layer, augmentations + 1, share))

    @torch.no_grad()
    def predict(self, inputs: torch.Tensor) -> torch.Tensor:
        """Every image by its own views; as the model does where there are none or some are not finite."""
        if not len(inputs) or not all_finite(inputs):
            return super().predict(inputs)
        several = max(1, DRAWN // (self.augmentations + 1))
        return torch.cat([self._over_views(self._views(some)) for some in inputs.split(several)])

    def _views(self, images: torch.Tensor) -> torch.Tensor:
        """A few images `(images, 1 + augmentations, channels, height, width)`, each before its views."""
        if not self.augmentations:
            return images[:, None]
        random = self.augment(images.repeat_interleave(self.augmentations, 0), self.random)
        return torch.cat([images[:, None], random.unflatten(0, (len(images), self.augmentations))], 1)

    def _over_views(self, views: torch.Tensor) -> torch.Tensor:
        """The mean prediction `(images, classes)` over the views of each image."""
        several = max(1, round(TOGETHER / views.shape[1]))
        apart = torch.cat([self._logits(some) for some in views.split(several)])
        return apart.mean(1) if self.mean == "logits" else apart.softmax(2).mean(1).log()

    def _logits(self, views: torch.Tensor) -> torch.Tensor:
        """Those of all views of a few images, in one pass: `(images, views, classes)`."""
        together = arrange(views.flatten(0, 1), bool(self._channels_last))
        with blending(self.model, "batch"):
            logits = check_logits(run(self.model, together), type(self).__name__)
        return logits.unflatten(0, views.shape[:2])


class ViewBlend(Blend):
    """The statistics of one layer for views that come together, those of an image behind each other.

    Args:
        layer: a BatchNorm layer.
        views: how many of each image.
        share: of the views of an image in its statistics; those of training have the rest.
    """

    def __init__(self, layer: _BatchNorm, views: int, share: float) -> None:
        super().__init__(layer, prior=0.0 if share else inf)
        self.views, self.share = views, share

    def normalise(
        self,
        inputs: torch.Tensor,
        weight: torch.Tensor | None,
        bias: torch.Tensor | None,
        eps: float,
        use: str,
        earlier: int = 0,
    ) -> torch.Tensor:
        """Normalise the views of each image by its own statistics; nothing is kept."""
        return normalise_each(inputs, weight, bias, eps, self.mean.dtype, self._statistics)

    def _statistics(self, mean: torch.Tensor, var: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Those of views with these moments: of all views of the image, and of training."""
        means, variances = (each.unflatten(0, (-1, self.views)) for each in (mean, var))
        mean, var = means.mean(1), variances.mean(1) + means.var(1, correction=0)
        mean, var = self.source_mean.lerp(mean, self.share), self.source_var.lerp(var, self.share)
        return mean.repeat_interleave(self.views, 0), var.repeat_interleave(self.views, 0)
