"""Targets: from keypoints to maps, and from maps to keypoints.

Source: thesis chapter 5 (after DeepLabCut): the score of a part is 1 in a disc around it and 0 elsewhere, and offsets
lead from every cell of the disc to the part. A prediction is the cell with the largest score, plus its offset; its
confidence is the sigmoid of the score. A part that is not labelled is nowhere: its scores are 0, so that a part that is
missing in all frames ends with a confidence near 0.
Differs: offsets are in units of the stride, not of 7.28 pixels.
Cost: parts x cells.
"""

import torch

from holdfast.errors import HoldfastError


def cell_centres(rows: int, columns: int, stride: int) -> tuple[torch.Tensor, torch.Tensor]:
    """x of every column and y of every row, in pixels."""
    return tuple((torch.arange(number) + 0.5) * stride - 0.5 for number in (columns, rows))  # type: ignore[return-value]


def make_targets(
    keypoints: torch.Tensor, rows: int, columns: int, stride: int, radius: float | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores `(batch, parts, rows, columns)`, 0 or 1, and offsets `(batch, parts, 2, rows, columns)`.

    Args:
        keypoints: `(batch, parts, 2)` in pixels, NaN where missing.
        rows: of the maps.
        columns: of the maps.
        stride: pixels of a cell.
        radius: of the disc, in pixels; the stride by default. At least 0.71 strides, so that it holds a cell.
    """
    radius = float(stride) if radius is None else radius
    if radius < 2**-0.5 * stride:
        raise HoldfastError(f"radius is {radius:g}; below {2**-0.5 * stride:.2f} pixels a disc may hold no cell")
    x, y = (centres.to(keypoints) for centres in cell_centres(rows, columns, stride))
    across = keypoints[:, :, 0, None] - x  # (batch, parts, columns)
    down = keypoints[:, :, 1, None] - y
    squares = across[:, :, None, :] ** 2 + down[:, :, :, None] ** 2
    scores = (squares <= radius**2).to(keypoints)  # NaN is never less
    shape = scores.shape
    offsets = torch.stack([across[:, :, None, :].expand(shape), down[:, :, :, None].expand(shape)], 2) / stride
    return scores, torch.nan_to_num(offsets)


def decode(maps: torch.Tensor, stride: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Keypoints `(batch, parts, 2)` in pixels and confidence `(batch, parts)` of the maps of a model.

    Args:
        maps: `(batch, 3 parts, rows, columns)`.
        stride: pixels of a cell.
    """
    batch, channels, rows, columns = maps.shape
    parts = channels // 3
    best, cell = maps[:, :parts].reshape(batch, parts, -1).max(2)
    offsets = maps[:, parts:].reshape(batch, parts, 2, -1)
    offset = offsets.gather(3, cell[:, :, None, None].expand(-1, -1, 2, 1))[..., 0]
    x, y = (centres.to(maps) for centres in cell_centres(rows, columns, stride))
    centre = torch.stack([x[cell % columns], y[cell // columns]], 2)
    return centre + offset * stride, best.sigmoid()


def split_maps(maps: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores `(batch, parts, rows, columns)` and offsets `(batch, parts, 2, rows, columns)` of the maps of a model."""
    parts = maps.shape[1] // 3
    return maps[:, :parts], maps[:, parts:].unflatten(1, (parts, 2))
