"""Colour: more light, and more or less of its colour.

Both are defined in HSV, where value v is the largest of red, green and blue, and saturation s = (v − smallest) / v.
Neither needs the way there and back: at a fixed hue and saturation a colour is in proportion to its value, and at a
fixed hue and value each channel keeps its place between v and v (1 − s).

Source: the corruptions of ImageNet-C and CIFAR-C. Differs: the same functions in closed form; an image of one channel
gets brighter by the constant, and has no saturation to change. Cost: a few passes over the images, no random numbers.
"""

import numpy as np
import torch

from haptera.shifts.base import SampleRandom, Shift, knots
from haptera.shifts.pixels import Pixels


class Brightness(Shift):
    """Adds to the value of every pixel, at most up to 1; black becomes grey.

    >>> Brightness(severity=2)(torch.tensor([0.4, 0.2, 0.0]).reshape(1, 3, 1, 1)).flatten()
    tensor([0.6000, 0.3000, 0.0000])
    """

    name = "brightness"
    tables = knots(imagenet=(0, 0.1, 0.2, 0.3, 0.4, 0.5), cifar=(0, 0.05, 0.1, 0.15, 0.2, 0.3))

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """x v' / v with v' = min(v + c, 1)."""
        (added,) = self.constants()
        if images.shape[1] != 3:
            return images + added
        value = _largest(images)
        colour = (images / value).nan_to_num_(nan=1)  # 0 / 0 is black
        return colour.mul_(value.add_(added).clamp_(max=1))

    def apply_bytes(self, pixels: Pixels, random: SampleRandom) -> Pixels:
        """The same, in one pass."""
        from haptera.shifts.kernels.points import add_everywhere, brighten

        (added,) = self.constants()
        source = pixels.array.reshape(len(pixels.array), -1)
        out = np.empty_like(source)
        if pixels.shape[1] == 3:
            brighten(source, out, pixels.last, 255 * added)
        else:
            add_everywhere(source, out, 255 * added)
        return pixels.like(out)


class Saturate(Shift):
    """Scales and raises the saturation of every pixel. Grey has hue 0: where saturation is added it turns reddish."""

    name = "saturate"
    tables = knots(
        imagenet=((1, 0), (0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)),
        cifar=((1, 0), (0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)),
    )

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """v − (v − x) s' / s with s' = min(s c0 + c1, 1); s v is the range over the channels."""
        factor, added = self.constants()
        if images.shape[1] != 3:
            return images.clone()
        value = _largest(images)
        spread = value - torch.minimum(torch.minimum(images[:, 0:1], images[:, 1:2]), images[:, 2:3])
        depth = (value - images).div_(spread)  # 0 for the largest channel, 1 for the smallest; 0 / 0 is grey
        depth[:, 0].nan_to_num_(nan=0)
        depth[:, 1:].nan_to_num_(nan=1)
        wanted = torch.minimum(spread.mul_(factor).add_(value, alpha=added), value)
        return torch.addcmul(value, depth, wanted, value=-1)

    def apply_bytes(self, pixels: Pixels, random: SampleRandom) -> Pixels:
        """The same, in one pass."""
        from haptera.shifts.kernels.points import saturate

        source = pixels.array.reshape(len(pixels.array), -1)
        if pixels.shape[1] != 3:
            return pixels.like(source.copy())
        out = np.empty_like(source)
        saturate(source, out, pixels.last, *self.constants())
        return pixels.like(out)


def _largest(images: torch.Tensor) -> torch.Tensor:
    """Return `(batch, 1, height, width)`, HSV's value; several times faster than `amax` over three channels."""
    return torch.maximum(torch.maximum(images[:, 0:1], images[:, 1:2]), images[:, 2:3])
