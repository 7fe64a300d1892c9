"""Layers of one shade on images of bytes: what `kernels.layers` does, for numbers in [0, 1]."""

import numpy as np
import torch

from haptera.shifts.pixels import Pixels

Factor = torch.Tensor | float
"""Of all images, of each, or of each and its channels."""


def lay_on_bytes(pixels: Pixels, layer: torch.Tensor, kept: Factor, slope: Factor, constant: Factor = 0.0) -> Pixels:
    """kept · x + slope · layer + constant, rounded to bytes.

    Args:
        pixels: the images x.
        layer: `(batch, ..., height, width)`, one shade for each pixel.
        kept: a number, or a tensor that goes with `(batch, channels)`.
        slope: likewise.
        constant: likewise.
    """
    from haptera.shifts.kernels.layers import lay_layer

    shape = pixels.shape[:2]
    scales = zip((kept, slope, constant), (1, 255, 255), strict=True)
    factors = torch.stack([(torch.as_tensor(each).float() * scale).expand(shape) for each, scale in scales], 2)
    source = pixels.array.reshape(shape[0], -1)
    out = np.empty_like(source)
    shades = np.ascontiguousarray(layer.reshape(shape[0], -1).numpy(), np.float32)
    lay_layer(source, out, pixels.last, shades, factors.contiguous().numpy())
    return pixels.like(out)
