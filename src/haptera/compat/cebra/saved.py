"""Models that the package `cebra` saved, read without running their pickle.

Such a file (`CEBRA.save`, its default since 0.4) is a dictionary written by `torch.save`: arguments, state and weights.
It is read with torch's `weights_only`, which makes tensors, numbers, texts and containers, and beside them only what
stands in `_allowed`: types of NumPy, torch's version, and a stand-in for that package's pair of offsets. All else in
the file is refused, and so is a whole pickled object, which only runs as a program.
Weights are taken in the order of the layers, which is the same in both packages; the shapes must agree.
"""

import math
import pickle
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from haptera.compat.cebra.arguments import ARGUMENTS, Labels, translate
from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.contrastive.model import Model
from haptera.contrastive.modes import Context, Mode
from haptera.errors import HapteraError, check_keys
from haptera.files.atomic import check_plain_file

_SAMPLED = ("subsample", "resample")


class OffsetStandIn:
    """Takes the place of that package's pair of offsets; holds whatever it is given, and does nothing with it."""

    def __setstate__(self, state: Any) -> None:
        self.state = state


@dataclass(frozen=True)
class Saved:
    """A model from a file.

    Attributes:
        params: arguments of `CEBRA`.
        channels: of each session.
        embedding: haptera's estimator with the weights of the file.
    """

    params: dict[str, Any]
    channels: list[int]
    embedding: ContrastiveEmbedding


def is_saved_by_cebra(path: Path) -> bool:
    """Say whether a file is an archive, as `torch.save` writes it, and not a safetensors file."""
    check_plain_file(path)
    return zipfile.is_zipfile(path)


def read_saved(path: Path) -> Saved:
    """Read a file; HapteraError says what about it cannot be read."""
    content = _load(path)
    args, state, weights = (_table(content, name, path) for name in ("args", "state", "state_dict"))
    usual = _defaults()
    check_keys(f"argument in {path}", args, usual)
    params = usual | {name: args[name] for name in args}
    name, channels = params["model_architecture"], state.get("n_features_in_")
    if not isinstance(name, str) or any(word in name for word in _SAMPLED):
        raise HapteraError(
            f"{path} has the architecture {name!r}, which takes every other sample in another way than haptera does; "
            "fit it again"
        )
    channels = channels if isinstance(channels, list) else [channels]
    if not all(isinstance(count, int) and 0 < count < 10**7 for count in channels):
        raise HapteraError(f"{path}: n_features_in_ is {channels}; the number of channels of each session was expected")
    settings = ContrastiveEmbedding(**translate(params, _labels(state)).settings).get_params(deep=False)
    _check_size(settings, weights, path)
    try:
        model = Model(settings, channels, None, seed=0)
    except HapteraError as error:
        raise HapteraError(f"{path}: {error}") from error
    _take_weights(model, _table(weights, "model", path), path)
    _take_histories(model, weights, params, path)
    embedding = ContrastiveEmbedding(**settings)
    embedding.model_, embedding.n_features_in_ = model, channels[0]
    embedding.mode_ = Mode.choose(
        _context(state) if translate(params, _labels(state)).use_labels else Context(), settings
    )
    return Saved(params, channels, embedding)


def _load(path: Path) -> dict[str, Any]:
    allowed: list[Any] = [
        (OffsetStandIn, "cebra.data.datatypes.Offset"),
        torch.torch_version.TorchVersion,
        np.dtype,
        *(getattr(np.dtypes, f"{kind}DType") for kind in ("Float32", "Float64", "Int32", "Int64", "UInt8", "Bool")),
    ]
    try:
        with torch.serialization.safe_globals(allowed):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise HapteraError(
            f"{path} holds more than tensors and numbers ({_unread(error)}), which only running its pickle would read; "
            "open it with the package cebra, and save it with backend='sklearn'"
        ) from error
    except (OSError, ValueError, RuntimeError, EOFError, KeyError, TypeError) as error:
        raise HapteraError(f"cannot read the model {path}: {error}") from error
    if not isinstance(content, dict):
        raise HapteraError(f"{path} holds {type(content).__name__}; a dictionary that CEBRA.save wrote was expected")
    return content


def _unread(error: Exception) -> str:
    """Return the name that torch would not load, from its message."""
    name = re.search(r"GLOBAL (\S+)", str(error))
    return name.group(1) if name else "a form that torch does not read"


def _table(content: dict[str, Any], name: str, path: Path) -> dict[str, Any]:
    found = content.get(name)
    if not isinstance(found, dict):
        raise HapteraError(
            f"{path} has no table {name!r}; a model that CEBRA.save wrote has args, state and state_dict"
        )
    return found


def _defaults() -> dict[str, Any]:
    from haptera.compat.cebra.estimator import CEBRA  # which imports this file

    params = CEBRA().get_params(deep=False)
    return {one.name: params[one.name] for one in ARGUMENTS}


def _label_types(state: dict[str, Any]) -> list[tuple[Any, Any]]:
    """Return type and shape of every label, of the first session if there are several."""
    found = state.get("label_types_") or []
    return [label[0] if isinstance(label, list) else label for label in found]


def _labels(state: dict[str, Any]) -> Labels:
    floats = [np.dtype(kind).kind == "f" for kind, _ in _label_types(state)]
    return Labels(any(floats), not all(floats))


def _context(state: dict[str, Any]) -> Context:
    """Return labels of the kinds that the model was fitted to, in order to choose its mode."""
    columns = [math.prod(shape[1:]) for kind, shape in _label_types(state) if np.dtype(kind).kind == "f"]
    discrete = _labels(state).discrete
    return Context(
        np.zeros((2, sum(columns))) if columns else None,
        np.arange(2) if discrete else None,
        np.array(["0", "1"]) if discrete else None,
    )


def _check_size(settings: dict[str, Any], weights: dict[str, Any], path: Path) -> None:
    """Refuse a model that speaks of larger layers than its weights."""
    tensors = [one for one in _table(weights, "model", path).values() if isinstance(one, torch.Tensor)]
    largest = max((side for one in tensors for side in one.shape), default=0)
    if not all(isinstance(settings[name], int) for name in ("output_dimension", "num_hidden_units")):
        raise HapteraError(f"{path}: output_dimension and num_hidden_units are not whole numbers")
    wide = "-wide-" in settings["model_architecture"]
    asked = settings["output_dimension"] if wide else max(settings["output_dimension"], settings["num_hidden_units"])
    if asked > largest:
        raise HapteraError(f"{path} speaks of layers of {asked:,}; its weights are smaller")


def _take_weights(model: Model, weights: dict[str, Any], path: Path) -> None:
    wanted = [one for encoder in model.encoders for one in nn.Module.parameters(encoder)]
    found = list(weights.values())
    shapes = [[tuple(one.shape) for one in some] for some in (wanted, found)]
    if shapes[0] != shapes[1]:
        raise HapteraError(
            f"the weights of {path} do not fit {model.settings['model_architecture']!r}: {len(found)} tensors, "
            f"the first of shape {shapes[1][:1]}; {len(wanted)}, the first of {shapes[0][:1]}, were expected"
        )
    with torch.no_grad():
        for mine, theirs in zip(wanted, found, strict=True):
            mine.copy_(theirs)


def _take_histories(model: Model, weights: dict[str, Any], params: dict[str, Any], path: Path) -> None:
    learnt = _table(weights, "criterion", path).get("log_inverse_temperature")
    if isinstance(learnt, torch.Tensor):
        with torch.no_grad():
            for loss in model.losses:
                loss.log_inverse_temperature.copy_(learnt)
    model.history.loss = torch.as_tensor(weights.get("loss", ())).double().tolist()
    pairs = params["batch_size"]
    if isinstance(pairs, int):
        chance = math.log(pairs * len(model.encoders)) * len(model.losses)
        model.history.goodness_of_fit = [value - chance for value in model.history.loss]
