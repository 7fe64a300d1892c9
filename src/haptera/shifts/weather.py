"""Weather: what falls on the lens or lies between it and the scene.

Source: the corruptions of ImageNet-C. Layers are in shades of grey, one per sample; lengths in pixels scale with the
shorter side. Clouds are those of `plasma.py`. Differs, besides being repeatable per sample:

- Frost: ImageNet-C lays photographs of frozen windows over the image; ours is made here, see `frost_texture`.
- Snow: the size of a flake (the zoom of its noise) is a length, and at least a pixel. No rounding to 8 bits.
- Spatter: a smaller image has less room to blur the noise, so its contrast is set to what the blur leaves at the
  published side, which keeps the wet area the same. For water see `_shine`. ImageNet-C has no severity 0: ours has the
  drops of severity 1, invisible (mix 0). Between severities 3 (water) and 4 (mud) both results are blended.

Cost: some passes over the image, and 2 to 10 ns per pixel for noise or plasma.
"""

from math import ceil

import numpy as np
import torch
from torch.nn.functional import pad

from haptera.shifts.base import SampleRandom, Shift, knots
from haptera.shifts.blur import (
    at_least_single,
    gaussian_filter,
    gaussian_kernel,
    mix_columns,
    mix_rows,
    motion_filter,
    motion_planes,
    zoom_band,
)
from haptera.shifts.layers import lay_on_bytes
from haptera.shifts.mirrored import mirror
from haptera.shifts.pixels import Pixels
from haptera.shifts.plasma import plasma, rough_plasma

_GREY = (0.299, 0.587, 0.114)
_ICE = ((0.27, 0.39, 0.45), (0.93, 0.97, 1.0))  # glass behind the frost, crystals
_WATER = (175 / 255, 238 / 255, 238 / 255)
_MUD = (63 / 255, 42 / 255, 20 / 255)
_DEPTH = 20  # pixels from its edge at which a drop is as deep as it gets
_STEPS = 20  # in which the distance is counted


class Snow(Shift):
    """Whitens the scene and adds falling flakes, smeared by their motion.

    Constants: mean and standard deviation of the noise, its zoom, threshold, radius and width of the motion, and the
    share of the scene that is not whitened.
    """

    name = "snow"
    tables = knots(
        imagenet=(
            (0.1, 0.3, 3, 1, 10, 4, 1),
            (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
            (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
            (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
            (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
            (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
        ),
        cifar=(
            (0.1, 0.2, 1, 1, 8, 3, 1),
            (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
            (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
        ),
    )

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """mix · x + (1 − mix) · max(x, 1.5 grey + .5) + flakes + flakes turned by half a circle."""
        radius, sigma, mix = self.constants()[-3:]
        work, scale = at_least_single(images), self.scale(images)
        flakes, angles = self._flakes(random, work)
        flakes = motion_filter(flakes, angles, radius * scale, sigma * scale)
        whitened = torch.maximum(work, grey(work).mul_(1.5).add_(0.5))
        return torch.lerp(whitened, work, mix).add_(flakes + flakes.flip(-2, -1))

    def _flakes(self, random: SampleRandom, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return `(batch, 1, height, width)`, flakes at rest, and the angles of their motion in degrees."""
        mean, width, size, threshold, *_ = self.constants()
        angles = random.uniform().mul(90).sub(135)
        zoom = max(1.0, size * self.scale(images))
        rows, columns = (zoom_band(side, zoom) for side in images.shape[-2:])
        seen = (ceil(side / zoom) for side in images.shape[-2:])
        noise = random.normal((1, *seen)).to(images).mul_(width).add_(mean)
        flakes = mix_columns(columns, mix_rows(rows, noise)).clamp_(max=1)
        return flakes.masked_fill_(flakes < threshold, 0), angles

    def apply_bytes(self, pixels: Pixels, random: SampleRandom) -> Pixels:
        """The same flakes, laid on bytes."""
        from haptera.shifts.kernels.snow import lay_grey_snow, lay_snow

        radius, sigma, mix = self.constants()[-3:]
        batch, channels, height, width = pixels.shape
        scale = self.scale(pixels)
        still, angles = self._flakes(random, torch.empty(1, 1, 1).expand(1, height, width))
        flakes = motion_planes(still[:, 0].numpy(), 1, angles, radius * scale, sigma * scale).reshape(batch, -1)
        source = pixels.array.reshape(batch, -1)
        out = np.empty_like(source)
        if channels == 3:
            lay_snow(source, out, pixels.last, flakes, mix)
        else:
            lay_grey_snow(source, out, flakes, mix)
        return pixels.like(out)


class Frost(Shift):
    """Covers the image with ice crystals; constants: weight of the image, weight of the frost."""

    name = "frost"
    tables = knots(
        imagenet=((1, 0), (1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)),
        cifar=((1, 0), (1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45)),
    )

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """w0 · x + w1 · frost."""
        kept, laid = self.constants()
        height, width = images.shape[-2:]
        ice = frost_texture(random, height, width).to(images)
        dark, bright = (colour(shade, images) for shade in _ICE)
        return (images * kept).add_(dark * laid).add_(ice * ((bright - dark) * laid))

    def apply_bytes(self, pixels: Pixels, random: SampleRandom) -> Pixels:
        """The same frost, laid on bytes."""
        kept, laid = self.constants()
        dark, bright = (colour(shade, torch.empty(1, pixels.shape[1], 1, 1)).flatten() for shade in _ICE)
        ice = frost_texture(random, *pixels.shape[-2:])
        return lay_on_bytes(pixels, ice, kept, (bright - dark) * laid, dark * laid)


class Fog(Shift):
    """Adds a cloud and dims the rest; constants: strength, decay of the cloud's detail."""

    name = "fog"
    tables = knots(
        imagenet=((0, 2), (1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)),
        cifar=((0, 3), (0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
    )

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """(x + c · plasma) · m / (m + c), m the image's largest value."""
        strength, decay = self.constants()
        height, width = images.shape[-2:]
        cloud = plasma(random, max(height, width), decay)[:, None, :height, :width].to(images)
        largest = images.amax((1, 2, 3), keepdim=True)
        return (images + cloud.mul(strength)).mul_(largest / (largest + strength))

    def apply_bytes(self, pixels: Pixels, random: SampleRandom) -> Pixels:
        """The same cloud, laid on bytes."""
        strength, decay = self.constants()
        height, width = pixels.shape[-2:]
        largest = torch.from_numpy(pixels.array.reshape(len(pixels.array), -1).max(1)).float().div_(255)[:, None]
        kept = largest / (largest + strength)
        heights, low, high = (part[:, :height, :width] for part in rough_plasma(random, max(height, width), decay))
        slope = kept * strength / (high - low)[:, 0]
        return lay_on_bytes(pixels, heights, kept, slope, -slope * low[:, 0])


class Spatter(Shift):
    """Drops of water that shine, or of mud that hide what is behind them.

    Constants: mean and standard deviation of the noise, width of its blur, threshold, strength of the water or
    softening of the mud's edges, and 0 for water or 1 for mud.
    """

    name = "spatter"
    tables = knots(
        imagenet=(
            (0.65, 0.3, 4, 0.69, 0, 0),
            (0.65, 0.3, 4, 0.69, 0.6, 0),
            (0.65, 0.3, 3, 0.68, 0.6, 0),
            (0.65, 0.3, 2, 0.68, 0.5, 0),
            (0.65, 0.3, 1, 0.65, 1.5, 1),
            (0.67, 0.4, 1, 0.65, 1.5, 1),
        ),
        cifar=(
            (0.62, 0.1, 0.7, 0.7, 0, 0),
            (0.62, 0.1, 0.7, 0.7, 0.5, 0),
            (0.65, 0.1, 0.8, 0.7, 0.5, 0),
            (0.65, 0.3, 1, 0.69, 0.5, 0),
            (0.65, 0.1, 0.7, 0.69, 0.6, 1),
            (0.65, 0.1, 0.5, 0.68, 0.6, 1),
        ),
    )

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """Water is added, mud is laid over."""
        mean, width, sigma, threshold, mix, muddy = self.constants()
        work = at_least_single(images)
        scale = self.scale(images)
        noise = random.normal((1, *images.shape[-2:])).to(work)
        contrast = width * _left_by_blur(sigma) / _left_by_blur(sigma * scale)
        liquid = gaussian_filter(noise, sigma * scale).mul_(contrast).add_(mean)

        def add_water() -> torch.Tensor:
            return work + _shine(liquid, mean, sigma * scale, threshold, scale).mul_(mix) * colour(_WATER, work)

        if muddy == 0:
            return add_water()
        mud = gaussian_filter((liquid > threshold).to(work), mix * scale)
        mud.masked_fill_(mud < 0.8, 0)
        hidden = torch.lerp(work, colour(_MUD, work).expand_as(work), mud)
        return hidden if muddy == 1 else torch.lerp(add_water().clamp_(0, 1), hidden, muddy)


def grey(images: torch.Tensor) -> torch.Tensor:
    """Return `(batch, 1, height, width)`, the luma of colour images."""
    if images.shape[1] == 1:
        return images.clone()
    red, green, blue = images.split(1, 1)
    return (red * _GREY[0]).add_(green, alpha=_GREY[1]).add_(blue, alpha=_GREY[2])


def colour(shade: tuple[float, float, float], images: torch.Tensor) -> torch.Tensor:
    """Return `(1, channels, 1, 1)`, a colour, or its luma for grey images."""
    channels = shade if images.shape[1] == 3 else (sum(s * g for s, g in zip(shade, _GREY, strict=True)),)
    return torch.tensor(channels).to(images).view(1, -1, 1, 1)


def frost_texture(random: SampleRandom, height: int, width: int) -> torch.Tensor:
    """Return `(samples, 1, height, width)` in [0, 1], how much ice lies where.

    A rough plasma is cut along contour lines, whose ridges branch as crystals do; the same plasma, moved by half its
    side on its torus and mirrored at the diagonal, thickens them here and leaves clear glass there. Mean colour and
    spectrum are near those of the photographs of ImageNet-C.
    """
    rough = plasma(random, max(height, width), 1.25)
    half = rough.shape[-1] // 2
    cover = rough.roll((half, half), (1, 2)).mT[:, None, :height, :width]
    ridges = rough[:, None, :height, :width].mul(5).frac_().mul_(2).sub_(1).abs_()
    return ridges.mul_(cover.mul(1.4).add_(0.2)).add_(cover, alpha=0.6).sub_(0.3).clamp_(0, 1)


def _left_by_blur(sigma: float) -> float:
    """The standard deviation that white noise of unit width keeps under a normal blur in two dimensions."""
    return float(gaussian_kernel(sigma, int(4 * sigma + 0.5)).square().sum())


def _shine(liquid: torch.Tensor, mean: float, blur: float, threshold: float, scale: float) -> torch.Tensor:
    """Return how much each drop of water adds, `(batch, 1, height, width)`, at most 1.

    The peer finds edges (Canny), measures the distance to them up to 20 pixels, smooths, equalises the histogram,
    lights it from one side with a 3 x 3 relief filter, smooths and multiplies with the drops. Here the distance
    is that of a parabola with the liquid's gradient and with the curvature to be expected of blurred noise at its
    height, (liquid − mean) / 2σ², in 20 steps; the rest is as there, without 8 bits.
    """
    drops = liquid.masked_fill(liquid < threshold, 0)
    wide = pad(liquid, (1, 1, 1, 1), mode="replicate")
    down = wide[..., 2:, 1:-1] - wide[..., :-2, 1:-1]
    across = wide[..., 1:-1, 2:] - wide[..., 1:-1, :-2]
    slope = torch.hypot(down, across).mul_(0.5)
    over = liquid - threshold
    bend = ((liquid - mean) * over).abs_().div_(max(blur, 0.5) ** 2)  # twice curvature times height
    slope.add_(slope.square().add_(bend).sqrt_()).clamp_(min=1e-9)
    pixels = over.mul_(2).div_(slope).sub_(0.5).abs_()  # an edge is a pixel of the drop, on average half a pixel inside
    distance = pixels.mul_(_STEPS / (_DEPTH * scale)).clamp_(max=_STEPS)
    relief = mirror(_equalise(_box(distance)), (1, 1, 1, 1))
    lit = relief[..., 1:-1, 1:-1] + relief[..., 1:-1, 2:]
    lit.sub_(relief[..., 1:-1, :-2]).add_(relief[..., 2:, 1:-1]).sub_(relief[..., :-2, 1:-1])
    lit.add_(relief[..., 2:, 2:], alpha=2).sub_(relief[..., :-2, :-2], alpha=2).clamp_(0, 1)
    drops.mul_(_box(lit))
    return drops.div_(drops.amax((1, 2, 3), keepdim=True).clamp_(min=1e-9))


def _box(layer: torch.Tensor) -> torch.Tensor:
    """The mean of 3 x 3 pixels, the layer mirrored at its edges."""
    wide = mirror(layer, (1, 1, 1, 1))
    rows = (wide[..., :-2, :] + wide[..., 1:-1, :]).add_(wide[..., 2:, :])
    return (rows[..., :-2] + rows[..., 1:-1]).add_(rows[..., 2:]).div_(9)


def _equalise(distance: torch.Tensor) -> torch.Tensor:
    """Whole steps of distance to the share of the image's pixels at most that far, from 0 to 1."""
    samples, bins = len(distance), _STEPS + 1
    steps = distance.long().add_(torch.arange(0, samples * bins, bins, device=distance.device).view(-1, 1, 1, 1))
    counts = torch.bincount(steps.flatten(), minlength=samples * bins).view(samples, bins)
    below = counts.cumsum(1)
    lowest = torch.where(below > 0, below, below[:, -1:]).amin(1, keepdim=True)
    shares = (below - lowest).clamp_(min=0) / (below[:, -1:] - lowest).clamp_(min=1)
    return shares.to(distance).flatten()[steps]
