"""Random views of images: turned, shifted, scaled, mirrored, with other colours, blurred and with a little noise.

Source: the transforms of CoTTA's public code, which RoTTA's uses too, with its ranges as defaults. Differs: hue and
gamma stay; what comes in at the edge repeats the edge; values are limited once, at the end.
Every image gets a view of its own. All randomness comes from the generator that is handed over.
Cost: one resampling, one blur and a few passes over the images; `benchmarks/adapters.py` prints what it adds.
"""

from dataclasses import dataclass, fields
from math import ceil

import torch
from torch.nn import functional as F

from haptera.checks import check_number
from haptera.errors import HapteraError

_GREY = (0.299, 0.587, 0.114)


@dataclass(frozen=True)
class Augment:
    """Draws views; 0 switches a part off, and all parts off is the identity.

    Args:
        rotation: the largest angle, in degrees.
        shift: the largest way, as a share of the side.
        scale: the largest enlargement or shrinking, as a share.
        flip: the probability of a mirror image; 0 where left and right differ, as in text.
        brightness: the largest change of the factor on all values.
        contrast: the largest change of the factor around the image's mean.
        saturation: the largest change of the factor around each pixel's grey; for images of three channels.
        noise: standard deviation of the noise.
        blur: the largest standard deviation of the blur, in pixels.
    """

    rotation: float = 15.0
    shift: float = 0.0625
    scale: float = 0.1
    flip: float = 0.5
    brightness: float = 0.4
    contrast: float = 0.3
    saturation: float = 0.5
    noise: float = 0.005
    blur: float = 0.5

    def __post_init__(self) -> None:
        most = {"rotation": 180.0, "noise": float("inf"), "blur": float("inf")}
        for name in (field.name for field in fields(self)):
            check_number(f"{name} of the views", getattr(self, name), least=0, most=most.get(name, 1.0))

    def __call__(self, images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """One view of each image `(batch, channels, height, width)`; in [0, 1] where the images are."""
        check_images(images)
        n, values = len(images), images.float()
        uniform = torch.rand(9, n, generator=generator).to(values.device)  # the same numbers on every device
        turn, right, down, size, light, contrast, colour = 2 * uniform[:7] - 1
        mirrored, width = uniform[7] < self.flip, self.blur * uniform[8]
        values = recolour(
            values, 1 + self.brightness * light, 1 + self.contrast * contrast, 1 + self.saturation * colour
        )
        if self.rotation or self.shift or self.scale or self.flip:
            values = move(
                values, self.rotation * turn, self.shift * right, self.shift * down, 1 + self.scale * size, mirrored
            )
        if self.blur:
            values = blur(values, width, radius=ceil(3 * self.blur))
        if self.noise:
            values = values + self.noise * torch.randn(values.shape, generator=generator).to(values.device)
        low, high = (float(bound) for bound in images.aminmax())
        return values.clamp(min(low, 0.0), max(high, 1.0)).to(images.dtype)


def check_images(images: torch.Tensor) -> None:
    """Refuse anything but images of floats."""
    if images.ndim != 4 or not images.is_floating_point():
        raise HapteraError(
            f"views need images (batch, channels, height, width) of floats, found {tuple(images.shape)} of "
            f"{str(images.dtype).removeprefix('torch.')}; switch augmentations off for other inputs"
        )


STRONG = Augment()
"""CoTTA's."""


def recolour(
    images: torch.Tensor, brightness: torch.Tensor, contrast: torch.Tensor, saturation: torch.Tensor
) -> torch.Tensor:
    """Multiply values by the brightness, their distance to the mean grey by the contrast, colours by the saturation.

    Factors are `(batch,)`, 1 changes nothing; the saturation matters on three channels only.
    """
    brightness, contrast, saturation = (factor[:, None, None, None] for factor in (brightness, contrast, saturation))
    mean = grey(images).mean((1, 2, 3), keepdim=True)
    images = images * (brightness * contrast) + mean * (brightness * (1 - contrast))
    return torch.lerp(grey(images), images, saturation) if images.shape[1] == 3 else images


def move(
    images: torch.Tensor,
    degrees: torch.Tensor,
    right: torch.Tensor,
    down: torch.Tensor,
    scale: torch.Tensor,
    mirrored: torch.Tensor,
) -> torch.Tensor:
    """Mirror, scale and turn around the middle, then shift; bilinear, the edge repeated outside.

    All are `(batch,)`: degrees clockwise as seen with the first row on top, right and down as shares of the side; a
    scale above 1 enlarges.
    """
    height, width = images.shape[2:]
    cosine, sine = degrees.deg2rad().cos() / scale, degrees.deg2rad().sin() / scale
    side = 1 - 2 * mirrored.to(images.dtype)
    # where each pixel of the result comes from, in coordinates from -1 to 1 that know nothing of the aspect ratio
    rows = [
        torch.stack([cosine, sine * (height / width), -2 * (right * cosine + down * sine * (height / width))], 1),
        torch.stack([-sine * (width / height), cosine, -2 * (down * cosine - right * sine * (width / height))], 1),
    ]
    theta = torch.stack([rows[0] * side[:, None], rows[1]], 1)
    grid = F.affine_grid(theta, [len(images), 1, height, width], align_corners=False)
    return F.grid_sample(images, grid, mode="bilinear", padding_mode="border", align_corners=False)


def blur(images: torch.Tensor, sigma: torch.Tensor, radius: int) -> torch.Tensor:
    """Blur with a normal kernel of each image's own width in pixels, cut at a radius, the edge repeated outside."""
    n, channels, height, width = images.shape
    steps = torch.arange(-radius, radius + 1, dtype=images.dtype, device=images.device)
    kernel = torch.exp(-0.5 * (steps / sigma.clamp_min(1e-3)[:, None]) ** 2)
    kernel = (kernel / kernel.sum(1, keepdim=True)).repeat_interleave(channels, 0)[:, None]
    rows = images.reshape(1, n * channels, height, width)
    rows = F.conv2d(F.pad(rows, (0, 0, radius, radius), "replicate"), kernel[..., None], groups=n * channels)
    rows = F.conv2d(F.pad(rows, (radius, radius, 0, 0), "replicate"), kernel[:, :, None], groups=n * channels)
    return rows.reshape(images.shape)


def grey(images: torch.Tensor) -> torch.Tensor:
    """The light of each pixel, `(batch, 1, height, width)`."""
    if images.shape[1] != 3:
        return images.mean(1, keepdim=True)
    red, green, blue = (weight * images[:, i : i + 1] for i, weight in enumerate(_GREY))
    return red + green + blue
