"""Encoders: from a window of a recording to a point of the embedding; the published architectures by their names.

Source: thesis, chapter 7, "CEBRA models". A sequence longer than a window gives one point for each place of the window,
so all points of a recording cost one convolution. GELU after every layer but the last; the skip blocks add their input,
cropped. The text leaves open how the four-fold subsampling model takes every other sample of the signal: here it is the
mean of the two samples in the middle of the learnt kernel.
On a CPU one long sequence is convolved by `convolution`, and the last layers only where it is wanted.

Any other `nn.Module` with an `offset` is an encoder as well: it maps `(batch, channels, length)` to
`(batch, dimensions)`. If it says `convolutional = True`, it must map longer sequences to `(batch, dimensions, places)`.
"""

from collections.abc import Callable
from copy import deepcopy

import torch
from torch import nn
from torch.nn import functional as F

from haptera.contrastive.convolution import convolve, skip_block
from haptera.errors import HapteraError, unknown
from haptera.recordings.windows import Offset


class Encoder(nn.Module):
    """Base of the published architectures.

    Attributes:
        offset: the window.
        stride: samples between two places of the window in one pass.
        stem: the layers whose shape depends on the number of channels; adapting to a new session replaces them.
    """

    convolutional = True
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
        """Unit length along dimension 1, if `normalise`."""
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


class PointEncoder(Encoder):
    """`offset1`: four linear layers on single samples, the third half as wide."""

    def __init__(self, channels: int, hidden: int, dimensions: int, normalise: bool = True) -> None:
        super().__init__(normalise)
        self.offset = Offset(0, 1)
        half = max(hidden // 2, 1)
        self.stem = nn.Linear(channels, hidden)
        self.rest = nn.Sequential(
            nn.GELU(),
            nn.Linear(hidden, hidden),
            nn.GELU(),
            nn.Linear(hidden, half),
            nn.GELU(),
            nn.Linear(half, dimensions),
        )

    def features(self, signal: torch.Tensor) -> torch.Tensor:
        """Take `(batch, channels, time)` to `(batch, dimensions, time)`."""
        return self.rest(self.stem(signal.transpose(1, 2))).transpose(1, 2)


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
    ) -> None:
        super().__init__(normalise)
        if subsample:
            self.stride, first = 4, 8
            self.stem = nn.Sequential(_Halve(channels, hidden), nn.Conv1d(channels + hidden, hidden, 3, stride=2))
        else:
            first = 2
            self.stem = nn.Conv1d(channels, hidden, 2)
        length = first + self.stride * (2 * blocks + last - 1)
        self.offset = Offset(length // 2, length - length // 2)
        self.blocks = nn.ModuleList(nn.Conv1d(hidden, hidden, 3) for _ in range(blocks))
        self.last = nn.Conv1d(hidden, dimensions, last)

    def features(self, signal: torch.Tensor) -> torch.Tensor:
        """Take `(batch, channels, time)` to `(batch, dimensions, places)`."""
        hidden = F.gelu(self.stem(signal))
        for block in self.blocks:
            hidden = hidden[..., 1:-1] + F.gelu(block(hidden))
        return self.last(hidden)

    def points(self, sequence: torch.Tensor, rows: torch.Tensor | None = None) -> torch.Tensor:
        """Points of a sequence `(channels, time)`: all of them, or some `rows`."""
        if not isinstance(self.stem, nn.Conv1d) or sequence.device.type != "cpu":
            return super().points(sequence, rows)
        hidden = F.gelu(convolve(sequence.T, self.stem))
        reach = self.last.kernel_size[0]  # places of a layer's output that a point sees
        blocks = [block for block in self.blocks if isinstance(block, nn.Conv1d)]
        alone = 0
        if rows is not None:
            # The last layers run only where a point sees them, if that is less than everywhere.
            alone = sum((reach + 2 * place) * len(rows) < len(hidden) for place in range(len(blocks)))
        for block in blocks[: len(blocks) - alone]:
            hidden = skip_block(hidden, block)
        if rows is not None:
            places = rows[:, None] + torch.arange(reach + 2 * alone)
            hidden = hidden.index_select(0, places.flatten()).unflatten(0, places.shape)
        for block in blocks[len(blocks) - alone :]:
            hidden = skip_block(hidden, block)
        found = convolve(hidden, self.last)
        return self.finish(found if rows is None else found[:, 0])


class _Halve(nn.Module):
    """Half the rate: a convolution of 4 beside the means of its two middle samples."""

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.learnt = nn.Conv1d(channels, hidden, 4, stride=2)

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.learnt(signal), F.avg_pool1d(signal[..., 1:-1], 2)], 1)


def _convolutional(**shape: int) -> Callable[..., Encoder]:
    def build(channels: int, hidden: int, dimensions: int, normalise: bool) -> Encoder:
        return ConvolutionalEncoder(channels, hidden, dimensions, normalise, **shape)  # type: ignore[arg-type]

    return build


_BUILD: dict[str, Callable[..., Encoder]] = {
    "offset1-model": PointEncoder,
    "offset5-model": _convolutional(blocks=1, last=2),
    "offset10-model": _convolutional(blocks=3, last=3),
    "offset15-model": _convolutional(blocks=6, last=2),
    "offset36-model": _convolutional(blocks=16, last=3),
    "offset40-model-4x-subsample": _convolutional(blocks=3, last=3, subsample=True),
}
ARCHITECTURES = (*_BUILD, *(f"{name}-mse" for name in _BUILD))
"""Names that `build_encoder` knows; with `-mse` the outputs are not normalised, as Euclidean distances want it."""


def build_encoder(name: str, channels: int, hidden: int, dimensions: int) -> Encoder:
    """A published architecture.

    Args:
        name: one of `ARCHITECTURES`.
        channels: of the signal.
        hidden: channels between the layers.
        dimensions: of the embedding.

    >>> encoder = build_encoder("offset10-model", channels=20, hidden=32, dimensions=3)
    >>> encoder.offset, tuple(encoder(torch.zeros(1, 20, 100)).shape)
    (Offset(left=5, right=5), (1, 3, 91))
    """
    if name not in ARCHITECTURES:
        raise unknown("model_architecture", name, ARCHITECTURES)
    return _BUILD[name.removesuffix("-mse")](channels, hidden, dimensions, normalise=not name.endswith("-mse"))


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


def new_encoder(
    architecture: str | nn.Module | Callable[[int, int, int], nn.Module], channels: int, hidden: int, dimensions: int
) -> nn.Module:
    """Return an encoder: a published one by its name, a copy of a module, or what a function builds for a signal."""
    if min(hidden, dimensions) < 1:
        raise HapteraError(f"num_hidden_units is {hidden}, output_dimension {dimensions}; at least 1 was expected")
    if isinstance(architecture, str):
        return build_encoder(architecture, channels, hidden, dimensions)
    encoder = (
        deepcopy(architecture) if isinstance(architecture, nn.Module) else architecture(channels, hidden, dimensions)
    )
    offset = getattr(encoder, "offset", None)
    if not isinstance(encoder, nn.Module) or offset is None:
        raise HapteraError(
            f"model_architecture gives {type(encoder).__name__}; an nn.Module with an offset (left, right) was expected"
        )
    window = offset if isinstance(offset, Offset) else Offset(*offset)
    encoder.offset = window  # type: ignore[assignment]
    try:
        with torch.no_grad():
            found = encode_windows(encoder.eval(), torch.zeros(2, channels, len(window))).shape[1]
    except RuntimeError as error:
        raise HapteraError(
            f"model_architecture does not take windows of {channels} channels and {len(window)} samples: {error}. "
            "A function of (channels, hidden, dimensions) can build one for every session"
        ) from error
    if found != dimensions:
        raise HapteraError(f"model_architecture has {found} outputs, and output_dimension is {dimensions}")
    return encoder
