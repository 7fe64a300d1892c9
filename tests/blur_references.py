"""Slow, obvious versions of blurs, shared by tests of blurs and of weather."""

import math

import numpy as np
import torch
from scipy import ndimage


def random_images(*shape, seed=0):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def motion_reference(image, degrees, radius, sigma):
    """Shifted copies, one by one, as the peer adds them."""
    taps = np.exp(-0.5 * (np.arange(2 * radius + 1) / sigma) ** 2)
    rows, columns = np.arange(image.shape[0]), np.arange(image.shape[1])
    total = np.zeros_like(image)
    for i, tap in enumerate(taps / taps.sum()):
        dy = -math.ceil(i * math.sin(math.radians(degrees)) - 0.5)
        dx = -math.ceil(i * math.cos(math.radians(degrees)) - 0.5)
        seen = np.ix_((rows - dy).clip(0, len(rows) - 1), (columns - dx).clip(0, len(columns) - 1))
        total += tap * image[seen]
    return total


def zoomed_reference(image, factor):
    """Crop the middle, enlarge with scipy, cut evenly, as ImageNet-C does."""
    seen = [math.ceil(side / factor) for side in image.shape]
    tops = [(side - part) // 2 for side, part in zip(image.shape, seen, strict=True)]
    part = image[tops[0] : tops[0] + seen[0], tops[1] : tops[1] + seen[1]]
    large = ndimage.zoom(part, factor, order=1, mode="nearest")
    cuts = [(big - side) // 2 for big, side in zip(large.shape, image.shape, strict=True)]
    return large[cuts[0] : cuts[0] + image.shape[0], cuts[1] : cuts[1] + image.shape[1]]
