"""Defocus: every point becomes a disk.

Source: defocus blur of ImageNet-C. The peer takes all pixels of the grid within the radius, equally, and softens this
disk with a normal kernel of 3 x 3 (up to radius 8) or 5 x 5 pixels; images are mirrored at their edges.
Differs: the peer's disk jumps wherever the radius meets another pixel. Ours is the same at these radii, whole numbers
among them, and linear between them; below radius 1, where the peer has a single pixel, the four neighbours come in with
the fourth power of the radius. The peer cuts the softened disk at its window, which moves less than .001 of the weight.
Cost: a Fourier transform and back, or a pass over the image for each pixel of a small disk.
"""

from functools import lru_cache
from math import ceil, isqrt, sqrt

import numpy as np
import torch
from scipy.fft import next_fast_len
from torch.nn.functional import conv2d

from haptera.shifts.base import SampleRandom, Shift, knots
from haptera.shifts.blur import SMALLEST_TAP, at_least_single, gaussian_kernel, portions
from haptera.shifts.mirrored import mirror
from haptera.shifts.pixels import Pixels

MOST_COLUMN = 128  # pixels whose sum, and twice that, fits into 16 bits
_MOST_TAPS = 30  # added one by one; a Fourier transform costs about as much as so many


class DefocusBlur(Shift):
    """Spreads every point to a disk, as a lens out of focus does; constants: radius, softening of the disk's edge."""

    name = "defocus_blur"
    tables = knots(
        imagenet=((0, 0), (3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
        cifar=((0, 0), (0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
    )

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """Convolve with the softened disk, the image mirrored at its edges."""
        radius, softening = self.constants()
        scale = self.scale(images)
        reach = ceil((1 if radius <= 8 else 2) * scale)
        return disk_filter(images, radius * scale, softening * scale, reach)

    def apply_bytes(self, pixels: Pixels, random: SampleRandom) -> Pixels | None:
        """The same disk, in whole numbers; its edge is softened in single precision."""
        from haptera.shifts.kernels.disk import blur_disks

        radius, softening = self.constants()
        scale = self.scale(pixels)
        reach = ceil((1 if radius <= 8 else 2) * scale)
        heights, weights = _disk_heights(radius * scale)
        if heights.shape[1] + 2 * reach > min(MOST_COLUMN, *pixels.shape[2:]):
            return None
        planes = pixels.planes()
        out = np.empty_like(planes)
        line = gaussian_kernel(softening * scale, reach)[reach:].float().numpy()
        blur_disks(planes, out, pixels.step, heights, weights, line)
        return pixels.like(out)


def disk_filter(images: torch.Tensor, radius: float, softening: float, reach: int) -> torch.Tensor:
    """Convolve with a disk, softened by a normal kernel cut at `reach` pixels; images are mirrored at their edges.

    Few taps are added one by one, many by Fourier transform; of one image at a time, since the last bit of
    a transform depends on how many are made together.
    """
    kernel = _soft_disk(radius, softening, reach)
    margin = len(kernel) // 2
    height, width = images.shape[-2:]
    work = at_least_single(images)
    blurred = torch.zeros_like(work)
    kept = torch.where(kernel > SMALLEST_TAP, kernel, 0)
    taps = [(i, j, float(kernel[i, j] / kept.sum())) for i, j in kept.nonzero().tolist()]
    if len(taps) <= _MOST_TAPS:
        for some, out in zip(portions(work), portions(blurred), strict=True):
            wide = mirror(some, (margin,) * 4)
            for i, j, tap in taps:
                out.add_(wide[..., i : i + height, j : j + width], alpha=tap)
        return blurred
    rows, columns = (next_fast_len(side + 2 * margin, real=True) for side in (height, width))
    border = (margin, columns - width - margin, margin, rows - height - margin)
    transfer = _transfer(rows, columns, radius, softening, reach).to(work)
    for image, out in zip(work.split(1), blurred.split(1), strict=True):
        spectrum = torch.fft.rfft2(mirror(image, border)).mul_(transfer)
        whole = torch.fft.irfft2(spectrum, s=(rows, columns))
        out.copy_(whole[..., margin : margin + height, margin : margin + width])
    return blurred


def disk(radius: float) -> torch.Tensor:
    """The pixels within the radius, as weights of sum 1, continuous in the radius."""
    squares, inner, outer, share = _edges(radius)
    smaller, larger = ((squares <= edge).double() for edge in (inner, outer))
    return torch.lerp(smaller / smaller.sum(), larger / larger.sum(), share)


def _edges(radius: float) -> tuple[torch.Tensor, int, int, float]:
    """Squared distances of pixels, those of the edges of a smaller and a larger disk, and the share of the larger."""
    reach = max(1, ceil(radius))
    across = torch.arange(-reach, reach + 1) ** 2
    squares = across[:, None] + across
    inner = int(squares[squares <= radius**2].max())
    outer = int(squares[squares > radius**2].min())
    return squares, inner, outer, (radius - sqrt(inner)) / (sqrt(outer) - sqrt(inner)) if inner else radius**4


@lru_cache(maxsize=64)
def _disk_heights(radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Return `(disks, reach + 1)`, how far each reaches up and down, and `(disks,)`, the weight of a pixel of it."""
    squares, inner, outer, share = _edges(radius)
    disks = [(inner, 1 - share), (outer, share)] if share else [(inner, 1.0)]
    heights = np.full((len(disks), len(squares) // 2 + 1), -1)
    for disk, (edge, _) in zip(heights, disks, strict=True):
        away = np.arange(isqrt(edge) + 1)
        disk[: len(away)] = [isqrt(edge - int(x) ** 2) for x in away]
    weights = [part / int((squares <= edge).sum()) for edge, part in disks]
    return heights, np.array(weights, np.float32)


@lru_cache(maxsize=64)
def _soft_disk(radius: float, softening: float, reach: int) -> torch.Tensor:
    line = gaussian_kernel(softening, reach)
    return conv2d(disk(radius)[None, None], torch.outer(line, line)[None, None], padding=2 * reach)[0, 0]


@lru_cache(maxsize=64)
def _transfer(rows: int, columns: int, radius: float, softening: float, reach: int) -> torch.Tensor:
    """The Fourier transform of the softened disk, real because the disk is symmetric."""
    kernel = _soft_disk(radius, softening, reach)
    margin = len(kernel) // 2
    centred = torch.zeros(rows, columns, dtype=torch.float64)
    centred[: len(kernel), : len(kernel)] = kernel
    return torch.fft.rfft2(centred.roll((-margin, -margin), (0, 1))).real.float()
