"""Views as public code makes them, where ours in `augment.py` differ: CoTTA's transforms, and AugMix, which MEMO has.

Source: the transforms of CoTTA's public code, which RoTTA's uses too: all images of a batch get the same view, in
brightness, contrast, saturation, hue and gamma, in a random order with values limited after each, then turned, scaled
and moved by whole pixels inside a wide frame that repeats the edge, blurred, mirrored and with noise. And AugMix
(Hendrycks et al. 2020) as in MEMO's: a random crop and mirror image, and three chains of one to three operations of
Pillow on it, mixed with random weights, and with it.
Values are taken to be in [0, 1]; AugMix rounds images to 256 values, as files have them.
Cost: CoTTA's, as ours; AugMix works image by image, about a millisecond for each view of 32 x 32 pixels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np
import torch
from PIL import Image, ImageOps
from torch.nn import functional as F

from haptera.adapters.augment import STRONG, blur, check_images, grey, move
from haptera.checks import check_number
from haptera.errors import HapteraError, check_keys

PUBLISHED = "published"
Views = Callable[[torch.Tensor, torch.Generator], torch.Tensor]
Operation = Callable[[Image.Image, torch.Generator], Image.Image]


def choose_views(augment: Views | str, published: Views, own: Views = STRONG) -> Views:
    """Return what makes views: what was given, or for the word `published` those of the public code."""
    if isinstance(augment, str):
        check_keys("augment", [augment], [PUBLISHED, "own"])
        return published if augment == PUBLISHED else own
    return augment


@dataclass(frozen=True)
class CoTTAViews:
    """One view for all images of a batch, as CoTTA's and RoTTA's public code draws it, and ROID's with other settings.

    Args:
        blur: the largest standard deviation of the blur, in pixels; 0 for none.
        noise: standard deviation of the noise.
        edge: what comes in at the edge: `replicate` or `reflect`.
    """

    blur: float = 0.5
    noise: float = 0.005
    edge: str = "replicate"

    def __post_init__(self) -> None:
        check_number("blur of the views", self.blur, least=0)
        check_number("noise of the views", self.noise, least=0)
        check_keys("edge of the views", [self.edge], ("replicate", "reflect"))

    def __call__(self, images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """A view of each image `(batch, channels, height, width)`, in [0, 1]."""
        check_images(images)
        values = images.float().clamp(0, 1)
        height, width = values.shape[2:]
        for change in torch.randperm(5, generator=generator).tolist():
            values = _recolour(values, change, generator)
        edges = (width // 2, width // 2, height // 2, height // 2)
        values = F.pad(values, edges, self.edge)
        same = torch.ones(len(values), device=values.device)
        shifts = [round(_uniform(generator, -side / 8, side / 8)) for side in (width, height)]
        right, down = shifts[0] / values.shape[3] * same, shifts[1] / values.shape[2] * same
        degrees, scale = _uniform(generator, -15, 15) * same, _uniform(generator, 0.9, 1.1) * same
        values = move(values, degrees, right, down, scale, same < 0)
        if self.blur:
            values = blur(values, _uniform(generator, 0.001, self.blur) * same, radius=2)
        values = values[:, :, edges[2] : edges[2] + height, edges[0] : edges[0] + width]
        if _uniform(generator, 0, 1) < 0.5:
            values = values.flip(3)
        if self.noise:
            values = values + self.noise * torch.randn(values.shape, generator=generator).to(values.device)
        return values.clamp(0, 1).to(images.dtype)


def _recolour(images: torch.Tensor, change: int, generator: torch.Generator) -> torch.Tensor:
    """Change brightness (0), contrast (1), saturation (2), hue (3) or gamma (4)."""
    factor = _uniform(generator, *((0.6, 1.4), (0.7, 1.3), (0.5, 1.5), (-0.06, 0.06), (0.7, 1.3))[change])
    if change == 4:
        return images.clamp(1e-8, 1.0) ** factor
    if change == 3:
        return turn_hue(images, factor) if images.shape[1] == 3 else images
    around = (torch.zeros_like(images), grey(images).mean((1, 2, 3), keepdim=True), grey(images))[change]
    return torch.lerp(around, images, factor).clamp(0, 1)


def turn_hue(images: torch.Tensor, share: float) -> torch.Tensor:
    """Turn the hue of images `(batch, 3, ...)` by a share of the circle; saturation and value stay.

    >>> turn_hue(torch.tensor([1.0, 0.0, 0.0]).view(1, 3, 1, 1), 1 / 3).flatten().tolist()  # red becomes green
    [0.0, 1.0, 0.0]
    """
    value, least = images.amax(1), images.amin(1)
    chroma = value - least
    red, green, blue = (images / chroma.clamp_min(1e-12)[:, None]).unbind(1)
    sector = torch.where(
        value == images[:, 0],
        green - blue,
        torch.where(value == images[:, 1], 2 + blue - red, 4 + red - green),
    )
    sector = torch.where(chroma > 0, sector, 0.0) + 6 * share
    steps = [torch.remainder(sector + start, 6) for start in (5, 3, 1)]
    return torch.stack([value - chroma * torch.minimum(k, 4 - k).clamp(0, 1) for k in steps], 1)


def _uniform(generator: torch.Generator, low: float, high: float) -> float:
    return low + (high - low) * float(torch.rand(1, generator=generator))


def _level(generator: torch.Generator, most: float) -> float:
    """Return the strength of an operation at AugMix's severity 1, up to a tenth of its range, with a random sign."""
    return _uniform(generator, 0.1, 1) * most / 10


def _signed(generator: torch.Generator, level: float) -> float:
    return level if _uniform(generator, 0, 1) < 0.5 else -level


def _affine(image: Image.Image, matrix: Sequence[float]) -> Image.Image:
    return image.transform(image.size, Image.Transform.AFFINE, tuple(matrix), resample=Image.Resampling.BILINEAR)


def _rotate(image: Image.Image, generator: torch.Generator) -> Image.Image:
    return image.rotate(_signed(generator, int(_level(generator, 30))), resample=Image.Resampling.BILINEAR)


OPERATIONS: dict[str, Operation] = {
    "autocontrast": lambda image, _: ImageOps.autocontrast(image),
    "equalize": lambda image, _: ImageOps.equalize(image),
    "posterize": lambda image, random: ImageOps.posterize(image, 4 - int(_level(random, 4))),
    "rotate": _rotate,
    "solarize": lambda image, random: ImageOps.solarize(image, 256 - int(_level(random, 256))),
    "shear_x": lambda image, random: _affine(image, (1, _signed(random, _level(random, 0.3)), 0, 0, 1, 0)),
    "shear_y": lambda image, random: _affine(image, (1, 0, 0, _signed(random, _level(random, 0.3)), 1, 0)),
    "translate_x": lambda image, random: _affine(
        image, (1, 0, _signed(random, int(_level(random, image.width / 3))), 0, 1, 0)
    ),
    "translate_y": lambda image, random: _affine(
        image, (1, 0, 0, 0, 1, _signed(random, int(_level(random, image.height / 3))))
    ),
}
"""Those of AugMix that have no counterpart among the corruptions of ImageNet-C."""


@dataclass(frozen=True)
class AugMix:
    """A view of its own for each image, as MEMO's public code draws it.

    Args:
        operations: what chains are made of, by name.
        small: images of up to this side are cropped after a frame of 4 black pixels, larger ones at random sizes.
    """

    operations: tuple[str, ...] = tuple(OPERATIONS)
    small: int = 64

    def __post_init__(self) -> None:
        check_keys("operation of AugMix", self.operations, OPERATIONS)

    def __call__(self, images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """A view of each image `(batch, 1 or 3, height, width)`, in [0, 1]."""
        check_images(images)
        if images.shape[1] not in (1, 3):
            raise HapteraError(f"AugMix is for images of one or three channels, found {images.shape[1]}")
        rows = (images.float().clamp(0, 1) * 255).round().byte().permute(0, 2, 3, 1).cpu().numpy()
        views = [self._view(Image.fromarray(row.squeeze(-1) if row.shape[-1] == 1 else row), generator) for row in rows]
        return torch.stack(views).to(images)

    def _view(self, image: Image.Image, generator: torch.Generator) -> torch.Tensor:
        image = self._crop(image, generator)
        if _uniform(generator, 0, 1) < 0.5:
            image = ImageOps.mirror(image)
        weights = -torch.log1p(-torch.rand(3, generator=generator))  # over their sum: uniform over all mixtures
        share, first = _uniform(generator, 0, 1), _to_tensor(image)
        mixture = torch.zeros_like(first)
        for weight in weights / weights.sum():
            chain = image
            for _ in range(int(torch.randint(1, 4, (), generator=generator)) if self.operations else 0):
                name = self.operations[int(torch.randint(len(self.operations), (), generator=generator))]
                chain = OPERATIONS[name](chain, generator)
            mixture += weight * _to_tensor(chain)
        return torch.lerp(mixture, first, share)

    def _crop(self, image: Image.Image, generator: torch.Generator) -> Image.Image:
        width, height = image.size
        if max(width, height) <= self.small:
            left, top = torch.randint(9, (2,), generator=generator).tolist()
            return ImageOps.expand(image, 4).crop((left, top, left + width, top + height))
        for _ in range(10):
            area, ratio = _uniform(generator, 0.08, 1), exp(_uniform(generator, log(3 / 4), log(4 / 3)))
            w, h = round((area * width * height * ratio) ** 0.5), round((area * width * height / ratio) ** 0.5)
            if 0 < w <= width and 0 < h <= height:
                left, top = int(_uniform(generator, 0, width - w + 1)), int(_uniform(generator, 0, height - h + 1))
                return image.resize(image.size, Image.Resampling.BILINEAR, (left, top, left + w, top + h))
        return image


def _to_tensor(image: Image.Image) -> torch.Tensor:
    values = torch.from_numpy(np.array(image, dtype=np.float32) / 255)
    return values[None] if values.ndim == 2 else values.permute(2, 0, 1)
