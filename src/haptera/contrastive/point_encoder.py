"""Encoders without convolutions between samples: linear layers on single samples, plain and with shortcuts.

Source: thesis, chapter 7, "CEBRA models", for the plain one; the others are those that the published package
registers for windows of one sample (0.6.1). Where that package repeats one layer object, and so ties its weights, every
layer here has weights of its own.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F

from haptera.contrastive.encoder import Encoder, Halve
from haptera.recordings.windows import Offset

INSIDE, AROUND = "inside", "around"
"""Where a shortcut joins: before the GELU, or after it."""


class PointEncoder(Encoder):
    """`offset1`: linear layers on single samples, a GELU after each but the last.

    Args:
        channels: of the signal.
        hidden: outputs of the first layer.
        dimensions: of the embedding.
        normalise: outputs of unit length.
        widths: outputs of the layers between; None is `hidden`, and half of it.
        subsample: begin with the stem that takes every other sample; the window is then of four samples.
    """

    def __init__(
        self,
        channels: int,
        hidden: int,
        dimensions: int,
        normalise: bool = True,
        *,
        widths: Sequence[int] | None = None,
        subsample: bool = False,
    ) -> None:
        super().__init__(normalise)
        self.offset = Offset(2, 2) if subsample else Offset(0, 1)
        self.stem: nn.Module = nn.Linear(channels, hidden)
        if subsample:
            self.stride = 2
            self.stem = nn.Sequential(Halve(channels, hidden), nn.Conv1d(channels + hidden, hidden, 1))
        sizes = [hidden, *([hidden, max(hidden // 2, 1)] if widths is None else widths), dimensions]
        layers = (nn.Linear(*pair) for pair in pairwise(sizes))
        self.rest = nn.Sequential(*(module for layer in layers for module in (nn.GELU(), layer)))

    def features(self, signal: torch.Tensor) -> torch.Tensor:
        """Take `(batch, channels, time)` to `(batch, dimensions, places)`."""
        if isinstance(self.stem, nn.Linear):
            return self.rest(self.stem(signal.transpose(1, 2))).transpose(1, 2)
        return self.rest(self.stem(signal).transpose(1, 2)).transpose(1, 2)


class ResidualPointEncoder(Encoder):
    """Linear layers on single samples, with shortcuts around those between the first and the last.

    Args:
        channels: of the signal.
        hidden: width of the layers.
        dimensions: of the embedding.
        normalise: outputs of unit length.
        layers: how many with a shortcut.
        join: `inside`, GELU(x + Ax), or `around`, x + GELU(Ax).
        everywhere: shortcuts around the first layer, and around one more of half the width, as well; what does not fit
            is cut off or filled with zeros.
    """

    def __init__(
        self,
        channels: int,
        hidden: int,
        dimensions: int,
        normalise: bool = True,
        *,
        layers: int = 2,
        join: str = INSIDE,
        everywhere: bool = False,
    ) -> None:
        super().__init__(normalise)
        self.offset, self.join, self.everywhere = Offset(0, 1), join, everywhere
        widths = [hidden] * layers + [max(hidden // 2, 1)] * everywhere
        self.stem = nn.Linear(channels, hidden)
        self.blocks = nn.ModuleList(nn.Linear(*pair) for pair in pairwise([hidden, *widths]))
        self.last = nn.Linear(widths[-1], dimensions)

    def features(self, signal: torch.Tensor) -> torch.Tensor:
        """Take `(batch, channels, time)` to `(batch, dimensions, time)`."""
        samples = signal.transpose(1, 2)
        hidden = self.stem(samples)
        hidden = F.gelu(hidden + _fit(samples, hidden) if self.everywhere else hidden)
        for block in self.blocks:
            found = block(hidden)
            shortcut = _fit(hidden, found)
            hidden = F.gelu(shortcut + found) if self.join == INSIDE else shortcut + F.gelu(found)
        return self.last(hidden).transpose(1, 2)


def _fit(shortcut: torch.Tensor, onto: torch.Tensor) -> torch.Tensor:
    """Cut off columns, or add some of zeros."""
    return F.pad(shortcut, (0, onto.shape[-1] - shortcut.shape[-1]))
