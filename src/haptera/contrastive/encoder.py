"""Encoders: from a window of a recording to a point of the embedding; `architectures` has them by their names.

Source: thesis, chapter 7, "CEBRA models". A sequence longer than a window gives one point for each place of the window,
so all points of a recording cost one convolution. GELU after every layer but the last; the skip blocks add their input,
cropped. The text leaves open how the four-fold subsampling model takes every other sample of the signal: here it is the
mean of the two samples in the middle of the learnt kernel.
On a CPU one long sequence goes through `stack`, and through the last layers only where it is wanted.

Any other `nn.Module` with an `offset` is an encoder as well: it maps `(batch, channels, length)` to
`(batch, dimensions)`. If it says `convolutional = True`, it must map longer sequences to `(batch, dimensions, places)`.
"""

import torch
from torch import nn
from torch.nn import functional as F

from haptera.contrastive.stack import Pool, encode
from haptera.errors import HapteraError
from haptera.recordings.windows import Offset


class Encoder(nn.Module):
    """Base of the published architectures.

    Attributes:
        offset: the window.
        stride: samples between two places of the window in one pass.
        stem: the layers whose shape depends on the number of channels; adapting to a new session replaces them.
        bounded: whether the tanh of every coordinate is taken at the end.
    """

    convolutional = True
    bounded = False
    offset: Offset
    stride: int = 1
    stem: nn.Module

    def __init__(self, normalise: bool = True) -> None:
        super().__init__()
        self.normalise = normalise

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        """Take `(batch, channels, time)` to `(batch, dimensions, places)`."""
        return self.finish(self.features(signal))

    def features(self, signal: torch.Tensor) -> torch.Tensor:
        """The same before its length is made 1."""
        raise NotImplementedError

    def finish(self, outputs: torch.Tensor) -> torch.Tensor:
        """Unit length along dimension 1, if `normalise`; between −1 and 1, if `bounded`."""
        outputs = outputs.tanh() if self.bounded else outputs
        return F.normalize(outputs, dim=1) if self.normalise else outputs

    def points(self, sequence: torch.Tensor, rows: torch.Tensor | None = None) -> torch.Tensor:
        """Points of a sequence `(channels, time)`: all of them `(places, dimensions)`, or some `rows`."""
        places = sequence.shape[1] - len(self.offset) + 1
        phases = [self.features(sequence[None, :, phase:])[0].T for phase in range(min(self.stride, places))]
        found = phases[0]
        if len(phases) > 1:
            found = found.new_empty(places, found.shape[1])
            for phase, part in enumerate(phases):
                found[phase :: self.stride] = part
        return self.finish(found if rows is None else found.index_select(0, rows))


class ConvolutionalEncoder(Encoder):
    """`offset5` and longer: a convolution of 2, skip blocks with convolutions of 3, a last convolution.

    Args:
        channels: of the signal.
        hidden: channels between the layers.
        dimensions: of the embedding.
        normalise: outputs of unit length.
        blocks: how many skip blocks.
        last: kernel of the last convolution.
        subsample: begin with the stem that takes every fourth sample.
        dropout: share of hidden channels that a step of training leaves out after the stem.
        dropout_in_blocks: leave as many out before the convolution of every skip block, too.
    """

    def __init__(
        self,
        channels: int,
        hidden: int,
        dimensions: int,
        normalise: bool = True,
        *,
        blocks: int = 3,
        last: int = 3,
        subsample: bool = False,
        dropout: float = 0.0,
        dropout_in_blocks: bool = False,
    ) -> None:
        super().__init__(normalise)
        self.dropout, self.dropout_in_blocks = nn.Dropout1d(dropout), dropout_in_blocks
        if subsample:
            self.stride, first = 4, 8
            self.stem = nn.Sequential(Halve(channels, hidden), nn.Conv1d(channels + hidden, hidden, 3, stride=2))
        else:
            first = 2
            self.stem = nn.Conv1d(channels, hidden, 2)
        length = first + self.stride * (2 * blocks + last - 1)
        self.offset = Offset(length // 2, length - length // 2)
        self.blocks = nn.ModuleList(nn.Conv1d(hidden, hidden, 3) for _ in range(blocks))
        self.last = nn.Conv1d(hidden, dimensions, last)

    def features(self, signal: torch.Tensor) -> torch.Tensor:
        """Take `(batch, channels, time)` to `(batch, dimensions, places)`."""
        hidden = F.gelu(self.dropout(self.stem(signal)))
        for block in self.blocks:
            inner = self.dropout(hidden) if self.dropout_in_blocks else hidden
            hidden = hidden[..., 1:-1] + F.gelu(block(inner))
        return self.last(hidden)

    @property
    def convolutional(self) -> bool:  # type: ignore[override]
        """Say whether a sequence may be encoded at once: not while every window leaves out channels of its own."""
        return not (self.training and self.dropout.p)

    @property
    def by_products(self) -> bool:
        """Say whether a sequence is encoded by `stack`, the last layers only where they are wanted."""
        return isinstance(self.stem, nn.Conv1d) and self.convolutional

    def points(
        self,
        sequence: torch.Tensor,
        rows: torch.Tensor | None = None,
        *,
        chosen: torch.Tensor | None = None,
        pool: Pool | None = None,
    ) -> torch.Tensor:
        """Points of a sequence `(channels, time)`: all of them, or some `rows`.

        Args:
            sequence: the samples, or a signal of which some are chosen.
            rows: which points.
            chosen: samples of the signal that make up the sequence.
            pool: lends the memory of a step.
        """
        layers = [layer for layer in (self.stem, *self.blocks, self.last) if isinstance(layer, nn.Conv1d)]
        if self.by_products and sequence.device.type == "cpu":
            return self.finish(encode(sequence.T, layers, chosen=chosen, rows=rows, pool=pool))
        return super().points(sequence if chosen is None else sequence[:, chosen], rows)


class Halve(nn.Module):
    """Half the rate: a convolution of 4 beside the means of its two middle samples."""

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.learnt = nn.Conv1d(channels, hidden, 4, stride=2)

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        """Take `(batch, channels, time)` to `(batch, hidden + channels, places)`."""
        return torch.cat([self.learnt(signal), F.avg_pool1d(signal[..., 1:-1], 2)], 1)


def encode_windows(encoder: nn.Module, windows: torch.Tensor) -> torch.Tensor:
    """The points `(batch, dimensions)` of windows `(batch, channels, length)`."""
    points = encoder(windows)
    if points.ndim == 3 and points.shape[2] == 1:
        points = points[..., 0]
    if points.ndim != 2 or len(points) != len(windows):
        raise HapteraError(
            f"the encoder maps windows of shape {tuple(windows.shape)} to {tuple(points.shape)}; "
            "(batch, dimensions) was expected"
        )
    return points


def encode_sequence(encoder: nn.Module, sequence: torch.Tensor, rows: torch.Tensor | None = None) -> torch.Tensor:
    """The points `(time − length + 1, dimensions)` of a sequence `(channels, time)`, or some rows of them."""
    if isinstance(encoder, Encoder):
        return encoder.points(sequence, rows)
    if getattr(encoder, "convolutional", False):
        found = encoder(sequence[None])[0].T
    else:
        length = len(encoder.offset)  # type: ignore[arg-type]
        found = encode_windows(encoder, sequence.unfold(1, length, 1).transpose(0, 1))
    return found if rows is None else found.index_select(0, rows)
