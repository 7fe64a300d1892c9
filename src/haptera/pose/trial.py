"""Trial: what a network makes of an image of zeros, and how many pixels a cell of its maps is.

A convolution with a stride of 8 makes 13 rows of 100 pixels, and a row is 8 pixels all the same, so the stride is the
whole number that fits rows and columns, if there is one. A network whose maps are as large whatever it is given has no
stride of its own: its cells are the image over the map, of images of one size.
Cost: two passes over an image, of which one is half as large.
"""

from contextlib import suppress
from math import ceil, floor
from typing import Any

import torch
from torch import nn

from haptera.errors import HapteraError, first_line

TRIAL = 128
STEP = 32
"""Sides that most networks take are multiples of it."""
SQUARE = 0.02
"""By which share cells may be wider than high."""


def try_network(network: nn.Module, height: int, width: int) -> Any:
    """Return what a network gives for one black image, in evaluation mode."""
    training = network.training
    network.eval()
    try:
        with torch.no_grad():
            return network(torch.zeros(1, 3, height, width))
    except HapteraError:
        raise
    except Exception as error:
        raise HapteraError(f"the pose network failed on an image of {height} x {width}: {first_line(error)}") from error
    finally:
        network.train(training)


def try_smaller(network: nn.Module, height: int, width: int) -> Any:
    """Return what a network gives for an image of half the size; None if it does not take one."""
    half = (max(STEP, side // 2 // STEP * STEP) for side in (height, width))
    with suppress(HapteraError):
        return try_network(network, *half)
    return None


def find_stride(image: tuple[int, int], maps: tuple[int, int]) -> float:
    """Return how many pixels a cell is high and wide.

    Args:
        image: its height and width.
        maps: their rows and columns.

    >>> find_stride((128, 128), (32, 32)), find_stride((100, 150), (13, 19)), find_stride((100, 150), (40, 60))
    (4.0, 8.0, 2.5)
    """
    down, across = (side / cells for side, cells in zip(image, maps, strict=True))
    fitting = [
        number
        for number in range(max(1, floor(min(down, across))), ceil(max(down, across)) + 1)
        if all(cells in (side // number, -(-side // number)) for side, cells in zip(image, maps, strict=True))
    ]
    if fitting:
        return float(min(fitting, key=lambda number: abs(number - down)))
    if abs(down / across - 1) > SQUARE:
        raise HapteraError(
            f"the network made maps of {maps[0]} x {maps[1]} of an image of {image[0]} x {image[1]} pixels (height x "
            f"width), cells of {down:.3g} x {across:.3g} pixels, and square ones were expected; say stride=, or a size="
            " of the proportions of the maps"
        )
    return down
