"""Encoders, losses and devices from an estimator's settings."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import nn

from haptera.checks import check_number, check_whole_number
from haptera.contrastive.encoder import build_encoder, encode_windows
from haptera.contrastive.jacobian import JacobianTerm
from haptera.contrastive.loss import InfoNCE, Similarity, similarity
from haptera.errors import HapteraError, unknown
from haptera.recordings.windows import Offset

TEMPERATURE_MODES = ("constant", "auto")


def new_encoder(
    architecture: str | nn.Module | Callable[[int, int, int], nn.Module], channels: int, hidden: int, dimensions: int
) -> nn.Module:
    """An encoder for a signal.

    Args:
        architecture: a published name, a module, of which a copy is taken, or a function that builds one from
            channels, hidden units and dimensions.
        channels: of the signal.
        hidden: channels between layers.
        dimensions: of the embedding.
    """
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


def new_loss(
    distance: str | Similarity,
    dimensions: int,
    temperature: float,
    temperature_mode: str,
    min_temperature: float | None,
    positive_inside: bool,
) -> InfoNCE:
    """The loss of one objective, over so many dimensions of the embedding."""
    if temperature_mode not in TEMPERATURE_MODES:
        raise unknown("temperature_mode", temperature_mode, TEMPERATURE_MODES)
    learnable = temperature_mode == "auto"
    if min_temperature is not None and not learnable:
        raise HapteraError(f"min_temperature is {min_temperature}, which a constant temperature does not use")
    phi = similarity(distance, dimensions) if isinstance(distance, str) else deepcopy(distance)
    return InfoNCE(
        phi, temperature, learnable=learnable, min_temperature=min_temperature, positive_inside=positive_inside
    )


def hybrid_dimensions(hybrid: Any, dimensions: int) -> list[list[int] | None]:
    """Which dimensions behaviour shapes, and which time; None is all of them.

    Args:
        hybrid: True is all for both; a number or list for behaviour, time on all; or a mapping with both.
        dimensions: of the embedding.

    >>> hybrid_dimensions(3, 8)
    [[0, 1, 2], None]
    >>> hybrid_dimensions({"behaviour": 2, "time": [2, 3]}, 4)
    [[0, 1], [2, 3]]
    """
    if hybrid is True:
        return [None, None]
    parts = hybrid if isinstance(hybrid, dict) else {"behaviour": hybrid}
    if not set(parts) <= {"behaviour", "time"} or "behaviour" not in parts:
        raise HapteraError(f"hybrid has {sorted(parts)}; 'behaviour', and 'time' or nothing, was expected")
    chosen = []
    for name in ("behaviour", "time"):
        part = parts.get(name)
        some = list(range(part)) if isinstance(part, int) else None if part is None else [int(one) for one in part]
        if some is not None and (not some or len(set(some)) < len(some) or not all(0 <= k < dimensions for k in some)):
            raise HapteraError(
                f"hybrid has {part!r} for {name}; how many, or which of 0 to {dimensions - 1}, was expected"
            )
        chosen.append(some)
    return chosen


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings of an estimator that no other part checks."""
    for name in ("max_iterations", "max_adapt_iterations", "batch_size", "patience"):
        value = settings[name]
        if value is None and name in ("batch_size", "patience"):
            continue
        check_whole_number(name, int(value) if isinstance(value, np.integer) else value)
    ramp, name = settings["jacobian_ramp"], settings["model_architecture"]
    if ramp is not None and (np.ndim(ramp) != 1 or len(ramp) != 2):
        raise HapteraError(f"jacobian_ramp is {ramp!r}; (steps without, steps of the ramp) was expected")
    JacobianTerm.of(settings["jacobian_weight"], ramp, settings["jacobian_exact"], settings["max_iterations"])
    check_number("learning_rate", settings["learning_rate"], above=0)
    check_number("validation_fraction", settings["validation_fraction"], least=0, below=1, what="a share")
    if settings["patience"] is not None and not settings["validation_fraction"]:
        raise HapteraError(f"patience is {settings['patience']}, and nothing is held out; set validation_fraction")
    # An encoder whose outputs keep their length does not learn from angles, which forget it.
    if isinstance(name, str) and name.endswith("-mse") and settings["distance"] == "cosine":
        raise HapteraError(
            f"model_architecture is {name!r}, whose outputs are not of unit length, and distance is 'cosine'; "
            f"distance='euclidean' was expected, or {name.removesuffix('-mse')!r}"
        )
