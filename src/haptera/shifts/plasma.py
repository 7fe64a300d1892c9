"""Plasma: clouds by the diamond-square method of Fournier, Fussell & Carpenter (1982), as the fog of ImageNet-C has it.

A torus whose side is a power of two; at each level the middle of every square and then of every diamond is the mean of
its four corners plus uniform noise, and the noise is divided by the square of the decay (the peer multiplies by its
amplitude twice, hence the square). Cost: some ten nanoseconds per pixel, or three where numbers come from kernels
(`kernels.plasma`).
"""

import numpy as np
import torch

from haptera.shifts.sample_random import SampleRandom


def plasma(random: SampleRandom, side: int, decay: float) -> torch.Tensor:
    """Return `(samples, size, size)` in [0, 1], both ends reached; the size is the next power of two from `side` on."""
    if random.compiled:
        heights, low, high = rough_plasma(random, side, decay)
        return heights.sub_(low).div_(high - low)
    levels = _levels(side)
    noise = random.uniform((4**levels - 1,)).mul_(2).sub_(1)
    return torch.cat([_grow(one, levels, decay) for one in noise.split(max(1, 2**20 // 4**levels))])


def rough_plasma(random: SampleRandom, side: int, decay: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The same by kernels, between other bounds, and these, `(samples, 1, 1)` each: the lowest and the highest."""
    from haptera.shifts.kernels.plasma import grow

    levels = _levels(side)
    noise = random.uniform((4**levels - 1,)).numpy()
    heights = np.empty((len(noise), 2**levels, 2**levels), np.float32)
    grow(noise, heights, float(decay))
    low, high = (torch.from_numpy(extreme((1, 2), keepdims=True)) for extreme in (heights.min, heights.max))
    return torch.from_numpy(heights), low, high


def _levels(side: int) -> int:
    """How often a point is halved until it has so many pixels."""
    return max(1, (side - 1).bit_length())


def _grow(noise: torch.Tensor, levels: int, decay: float) -> torch.Tensor:
    """Grow one point to the whole map; `noise` is `(samples, 4^levels - 1)`."""
    samples = len(noise)
    heights = noise.new_zeros(samples, 1, 1)
    used = 0
    for level in range(levels):
        side = heights.shape[-1]
        fresh = noise[:, used : used + 3 * side**2].view(samples, 3, side, side).mul_(4 * decay ** (-2 * level))
        used += 3 * side**2
        finer = noise.new_empty(samples, side, 2, side, 2)
        down, right = heights.roll(-1, 1) + heights, heights.roll(-1, 2) + heights
        squares = (right.roll(-1, 1) + right).add_(fresh[:, 0]).mul_(0.25)
        finer[:, :, 0, :, 0] = heights
        finer[:, :, 1, :, 1] = squares
        finer[:, :, 0, :, 1] = right.add_(squares).add_(squares.roll(1, 1)).add_(fresh[:, 1]).mul_(0.25)
        finer[:, :, 1, :, 0] = down.add_(squares).add_(squares.roll(1, 2)).add_(fresh[:, 2]).mul_(0.25)
        heights = finer.view(samples, 2 * side, 2 * side)
    low, high = heights.amin((1, 2), keepdim=True), heights.amax((1, 2), keepdim=True)
    return heights.sub_(low).div_(high - low)
