"""Mirrored: images with a margin in which they are mirrored at their edges, as often as it takes for small images."""

import torch
from torch.nn.functional import pad


def mirror(images: torch.Tensor, margins: tuple[int, int, int, int]) -> torch.Tensor:
    """Add margins to `(..., height, width)`: left, right, top, bottom; the pixel at an edge itself is not repeated.

    >>> mirror(torch.tensor([[[[1.0, 2.0]]]]), (2, 3, 0, 0)).tolist()
    [[[[1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0]]]]
    """
    height, width = images.shape[-2:]
    left, right, top, bottom = margins
    if max(left, right) < width and max(top, bottom) < height:
        return pad(images, margins, mode="reflect")
    rows, columns = _places(height, top, bottom, images.device), _places(width, left, right, images.device)
    return images.index_select(-2, rows).index_select(-1, columns)


def _places(side: int, before: int, after: int, device: torch.device) -> torch.Tensor:
    """Which pixel is at each place, from `before` places ahead of the first one on."""
    last = side - 1
    places = torch.arange(-before, side + after, device=device) % max(2 * last, 1)
    return torch.where(places > last, 2 * last - places, places)
