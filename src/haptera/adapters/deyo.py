"""DeYO: minimise the entropy of samples that are sure, and sure because of the shape of the object.

Source: Lee et al. 2024, "Entropy is not enough". A sample is kept where its entropy is below `margin` ln C and the
probability of its own class falls by more than `threshold` when the object is destroyed, by default by shuffling 4 x 4
patches of the image: that fall is the pseudo-label probability difference. It weighs exp(scale ln C − H) + exp(fall),
without gradient.
The public code decides: only images that pass the first test are destroyed and seen again, without gradient, and
BatchNorm statistics of that pass are theirs; one permutation of pixels serves the whole batch, each image has its own
of patches; an occlusion is the middle half of both sides, in the mean colour; the last stage of a network is left alone
(`parameters="early"`).
Differs: patches of images whose sides the number of patches does not divide are cut from the image scaled down, and the
result is scaled back, for each side on its own; the public code takes them for squares. A single image that is sure is
normalised by the statistics of the batch.
Cost: a forward and a backward pass, and a forward pass of the images that are sure. A batch of which nothing is kept
costs its forward passes.
"""

from math import log
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from haptera.adapters.learner import Learner
from haptera.adapters.learning import Learning
from haptera.adapters.skip import keep
from haptera.checks import check_number, check_whole_number
from haptera.errors import HapteraError, check_keys
from haptera.losses.self_learning import entropy

DESTRUCTIONS = ("patches", "pixels", "occlusion")


class DeYO(Learner):
    """Destroy your object.

    Args:
        model: one that takes images, with normalisation layers unless `parameters` says otherwise.
        lr: the learning rate; the public code has 2.5e-4 with SGD for ImageNet and 1e-3 with Adam for CIFAR.
        margin: the largest entropy that is kept, in units of ln C.
        threshold: the least fall of the probability that is kept; the paper has .2 to .3, and .5 for spurious colours.
        scale: the entropy, in units of ln C, at which its weight is 1.
        destroy: `patches` or `pixels` to shuffle, or `occlusion`.
        patches: how many patches there are along each side.
        settings: of every learner; `parameters` is `early` by default, `seed` is of the shuffling.
    """

    learning = Learning(parameters="early")

    def __init__(
        self,
        model: nn.Module,
        lr: float = 2.5e-4,
        margin: float = 0.5,
        threshold: float = 0.2,
        scale: float = 0.4,
        destroy: str = "patches",
        patches: int = 4,
        **settings: Any,
    ) -> None:
        check_number("margin", margin, above=0)
        check_number("threshold", threshold, least=-1, most=1, what="a difference of probabilities")
        check_number("scale", scale, least=0)
        check_keys("destroy", [str(destroy)], DESTRUCTIONS)
        check_whole_number("patches", patches, what="a number of patches")
        super().__init__(model, lr=lr, **settings)
        self.margin, self.threshold, self.scale = margin, threshold, scale
        self.destroy, self.patches = destroy, patches

    def loss(self, logits: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor | None:
        """The weighted mean entropy of the samples that are kept; None where none is."""
        weights = self.weights(logits.detach(), inputs)
        kept = weights > 0
        share = float(kept.float().mean())
        self.record["kept"] = share
        return (entropy(keep(logits, kept)) * weights[kept]).mean() if share else None

    @torch.no_grad()
    def weights(self, logits: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        """`(batch,)`, how much each sample counts; 0 for those that are dropped."""
        h, weights = entropy(logits), logits.new_zeros(len(logits))
        sure = (h < self.margin * log(logits.shape[1])).nonzero()[:, 0]
        if len(sure):
            destroyed = self.logits_aside(self._arrange(self._without_object(inputs[sure])))
            labels = logits[sure].argmax(1, keepdim=True)
            fall = (logits[sure].softmax(1).gather(1, labels) - destroyed.softmax(1).gather(1, labels))[:, 0]
            both = torch.exp(self.scale * log(logits.shape[1]) - h[sure]) + torch.exp(fall)
            weights[sure] = torch.where(fall > self.threshold, both, 0.0)
        return weights

    def _without_object(self, images: torch.Tensor) -> torch.Tensor:
        if images.ndim != 4 or not images.is_floating_point():
            raise HapteraError(
                f"DeYO destroys the objects of images (batch, channels, height, width) of floats, found "
                f"{tuple(images.shape)} of {str(images.dtype).removeprefix('torch.')}"
            )
        if self.destroy == "patches":
            return shuffle_patches(images, self.patches, self.random)
        return shuffle_pixels(images, self.random) if self.destroy == "pixels" else occlude(images)


def shuffle_patches(images: torch.Tensor, patches: int, generator: torch.Generator) -> torch.Tensor:
    """Cut each image `(batch, channels, height, width)` into patches x patches pieces and lay them in another order."""
    n, channels, height, width = images.shape
    if min(height, width) < patches:
        raise HapteraError(f"patches is {patches}; images of {height} x {width} pixels have fewer along a side")
    whole = (height // patches * patches, width // patches * patches)
    cut = images if whole == (height, width) else scale_to(images, whole)
    pieces = cut.reshape(n, channels, patches, whole[0] // patches, patches, whole[1] // patches)
    pieces = pieces.permute(0, 2, 4, 1, 3, 5).flatten(1, 2)
    order = torch.rand(n, patches**2, generator=generator).argsort(1).to(images.device)
    pieces = pieces[torch.arange(n, device=images.device)[:, None], order]
    laid = pieces.unflatten(1, (patches, patches)).permute(0, 3, 1, 4, 2, 5).reshape(n, channels, *whole)
    return laid if whole == (height, width) else scale_to(laid, (height, width))


def shuffle_pixels(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Lay the pixels of all images in one other order."""
    pixels = images.flatten(2)
    order = torch.randperm(pixels.shape[2], generator=generator).to(images.device)
    return pixels[:, :, order].reshape(images.shape)


def occlude(images: torch.Tensor) -> torch.Tensor:
    """Fill the middle half of both sides with the mean of each channel."""
    height, width = images.shape[2:]
    occluded = images.clone()
    rows, columns = slice(height // 4, height // 4 + height // 2), slice(width // 4, width // 4 + width // 2)
    occluded[:, :, rows, columns] = images.mean((2, 3), keepdim=True)
    return occluded


def scale_to(images: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
    """Scale images bilinearly, smoothed where they become smaller."""
    scaled = F.interpolate(images.float(), size, mode="bilinear", antialias=True, align_corners=False)
    return scaled.to(images.dtype)
