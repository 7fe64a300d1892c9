"""Architectures: the published encoders by their names, and one network that reads the units of several sessions.

    offset10-model                a window of ten samples, points of unit length
    offset10-model-mse            the same for Euclidean distances: points keep their length
    offset10-model-mse-tanh       each coordinate between −1 and 1
    offset10-model-unified        several sessions share all but the layer that reads their units

Names are those of the published package (0.6.1), with one exception: its `offset1-model-mse` has layers of 30, 30 and
10 times the dimensions, whatever the number of hidden units; that one is `offset1-wide-model-mse` here, and
`offset1-model-mse` has the hidden units that were asked for.

`-unified`: units of all sessions are the channels of one network, and a session shows its own, with all others at zero.
What a linear first layer makes of zeros is its bias, so this is the same as one network whose first layer has weights
for each session and one bias, which is how it is built: no channel of zeros is ever multiplied. The published package
fills the units of the other sessions with those of samples alike in their labels instead, so that its embedding of a
sample needs labels; here it needs none.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from difflib import get_close_matches
from functools import partial

import torch
from torch import nn

from haptera.contrastive.encoder import ConvolutionalEncoder, Encoder, encode_windows
from haptera.contrastive.point_encoder import AROUND, PointEncoder, ResidualPointEncoder
from haptera.errors import HapteraError, unknown
from haptera.recordings.windows import Offset

LONG, TANH, UNIFIED = "-mse", "-tanh", "-unified"
DROPOUT = 0.1
LAYERS = range(1, 11)
_Build = Callable[..., Encoder]


def _wide(channels: int, hidden: int, dimensions: int, normalise: bool = True) -> Encoder:
    """Widths by the dimensions of the embedding; `hidden` is not used."""
    widths = (30 * dimensions, 10 * dimensions)
    return PointEncoder(channels, 30 * dimensions, dimensions, normalise, widths=widths)


def _deep(channels: int, hidden: int, dimensions: int, normalise: bool = True, *, layers: int) -> Encoder:
    return PointEncoder(channels, hidden, dimensions, normalise, widths=[hidden] * layers + [max(hidden // 2, 1)])


def _even(channels: int, hidden: int, dimensions: int, normalise: bool = True) -> Encoder:
    return PointEncoder(channels, hidden, dimensions, normalise, widths=[hidden, hidden])


_BUILD: dict[str, _Build] = {
    "offset1-model": PointEncoder,
    "offset1-model-v2": _even,
    "offset1-model-v3": partial(ResidualPointEncoder, layers=2),
    "offset1-model-v4": partial(ResidualPointEncoder, layers=4, join=AROUND),
    "offset1-model-v5": partial(ResidualPointEncoder, layers=4),
    "offset1-wide-model": _wide,
    "offset4-model-2x-subsample": partial(PointEncoder, subsample=True),
    "offset5-model": partial(ConvolutionalEncoder, blocks=1, last=2),
    "offset10-model": partial(ConvolutionalEncoder, blocks=3),
    "offset15-model": partial(ConvolutionalEncoder, blocks=6, last=2),
    "offset20-model": partial(ConvolutionalEncoder, blocks=8),
    "offset20-model-4x-subsample": partial(ConvolutionalEncoder, blocks=1, last=2, subsample=True),
    "offset36-model": partial(ConvolutionalEncoder, blocks=16),
    "offset36-model-dropout": partial(ConvolutionalEncoder, blocks=16, dropout=DROPOUT),
    "offset36-model-more-dropout": partial(ConvolutionalEncoder, blocks=16, dropout=DROPOUT, dropout_in_blocks=True),
    "offset40-model": partial(ConvolutionalEncoder, blocks=18),
    "offset40-model-4x-subsample": partial(ConvolutionalEncoder, blocks=3, subsample=True),
    "offset50-model": partial(ConvolutionalEncoder, blocks=23),
}
_LONG: dict[str, _Build] = {
    **{f"offset1-model-mse-v2-{n}layers": partial(_deep, layers=n) for n in LAYERS},
    **{f"offset1-model-mse-resnet-{n}layers": partial(ResidualPointEncoder, layers=n, everywhere=True) for n in LAYERS},
}
ALIASES = {
    "resample-model": "offset40-model-4x-subsample",
    "resample5-model": "offset20-model-4x-subsample",
    "resample1-model": "offset4-model-2x-subsample",
}
"""Older names of the published package."""
ARCHITECTURES = (*_BUILD, *(f"{name}{LONG}" for name in _BUILD), *_LONG, *ALIASES)
"""Names that `build_encoder` knows; those with `-mse` may end in `-tanh`, and all of them in `-unified`."""


def keeps_length(name: object) -> bool:
    """Say whether points of an architecture keep their length, as Euclidean distances want it."""
    return isinstance(name, str) and LONG in name


def build_encoder(name: str, channels: int, hidden: int, dimensions: int) -> Encoder:
    """Build a published architecture.

    Args:
        name: one of `ARCHITECTURES`.
        channels: of the signal.
        hidden: channels between the layers.
        dimensions: of the embedding.

    >>> encoder = build_encoder("offset10-model", channels=20, hidden=32, dimensions=3)
    >>> encoder.offset, tuple(encoder(torch.zeros(1, 20, 100)).shape)
    (Offset(left=5, right=5), (1, 3, 91))
    """
    plain = name.removesuffix(UNIFIED)
    bounded = plain.endswith(TANH) and keeps_length(plain)
    plain = plain.removesuffix(TANH) if bounded else plain
    if plain not in ARCHITECTURES:
        near = get_close_matches(name, ARCHITECTURES, 2)
        raise unknown("model_architecture", name, tuple(dict.fromkeys([*_BUILD, *near])))  # not all of them
    plain = ALIASES.get(plain, plain)
    build = _LONG.get(plain) or _BUILD[plain.removesuffix(LONG)]
    encoder = build(channels, hidden, dimensions, normalise=not keeps_length(plain))
    encoder.bounded = bounded
    return encoder


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


def unify(encoders: Sequence[nn.Module], name: str) -> None:
    """Make encoders of several sessions one network: the first one's layers for all, but for what reads the units."""
    first = encoders[0]
    plain = isinstance(first, Encoder) and isinstance(first.stem, nn.Linear | nn.Conv1d)
    if not plain or getattr(first, "everywhere", False):
        raise HapteraError(
            f"model_architecture is {name!r}, whose first layer is not a single linear one, so units of other sessions "
            f"at zero would not leave it alone; give another architecture, or leave {UNIFIED!r} out"
        )
    for encoder in encoders[1:]:
        for part, module in first.named_children():
            if part != "stem":
                setattr(encoder, part, module)
        encoder.stem.bias = first.stem.bias  # type: ignore[union-attr]
