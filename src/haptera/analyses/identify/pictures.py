"""Networks for pictures: an encoder that ends in a space of latents, a decoder, and principal components of pixels.

Source: none in particular; the text has a ResNet-18 for pictures of 224 pixels, ours are 32 wide.
Cost: some 15 ms for a batch of 512 forth and back on one core.
"""

import numpy as np
import torch
from sklearn.decomposition import PCA
from torch import nn

from haptera.analyses.identify.scenes import PIXELS

WIDTHS = (16, 32, 64)
LAST = PIXELS // 2 ** len(WIDTHS)
FITTED = 2000


class PictureEncoder(nn.Module):
    """Three convolutions and two dense layers.

    Args:
        channels: of the pictures.
        dimensions: of the embedding.
        output: what brings points into their space.
    """

    def __init__(self, channels: int, dimensions: int, output: nn.Module) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for before, after in zip((channels, *WIDTHS[:-1]), WIDTHS, strict=True):
            layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.GELU()]
        dense = [nn.Flatten(), nn.Linear(WIDTHS[-1] * LAST**2, 128), nn.GELU(), nn.Linear(128, dimensions)]
        self.layers = nn.Sequential(*layers, *dense)
        self.output = output

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Take `(batch, channels, 32, 32)` to `(batch, dimensions)`."""
        points: torch.Tensor = self.output(self.layers(pictures))
        return points


class PictureDecoder(nn.Module):
    """The encoder the other way round; logits of pixels."""

    def __init__(self, dimensions: int, channels: int) -> None:
        super().__init__()
        dense = [nn.Linear(dimensions, 128), nn.GELU(), nn.Linear(128, WIDTHS[-1] * LAST**2), nn.GELU()]
        layers: list[nn.Module] = [*dense, nn.Unflatten(1, (WIDTHS[-1], LAST, LAST))]
        for before, after in zip(WIDTHS[::-1], (*WIDTHS[-2::-1], channels), strict=True):
            layers += [nn.ConvTranspose2d(before, after, 4, stride=2, padding=1), nn.GELU()]
        self.layers = nn.Sequential(*layers[:-1])

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        """Take `(batch, dimensions)` to `(batch, channels, 32, 32)`."""
        logits: torch.Tensor = self.layers(points)
        return logits


def principal_components(pictures: np.ndarray, count: int) -> np.ndarray:
    """Return so many components of the pixels of each picture, found on the first `FITTED`."""
    pixels = pictures.reshape(len(pictures), -1)
    found: np.ndarray = PCA(count, svd_solver="randomized", random_state=0).fit(pixels[:FITTED]).transform(pixels)
    return found
