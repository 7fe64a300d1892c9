"""A fitted model as one safetensors file: tensors, and settings as JSON in its header; never a pickle."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from holdfast import __version__
from holdfast.embed.adapting import Anchors
from holdfast.embed.model import Model
from holdfast.embed.modes import Mode
from holdfast.errors import HoldfastError, check_keys
from holdfast.files import whole

_KEY = "holdfast.embedding"
_ANCHORS = "anchors."
_OWN = ("model_architecture", "distance")


def write_model(model: Model, mode: Mode, path: Path) -> None:
    """Write a model; an encoder or distance of the user's own is written as its weights only."""
    facts: dict[str, Any] = {
        "version": __version__,
        "settings": {name: _plain(name, value) for name, value in model.settings.items()},
        "mode": asdict(mode),
        "channels": model.channels,
        "paired_channels": model.paired_channels,
        "seed": model.seed,
        "loss_history": model.loss_history,
        "goodness_of_fit_history": model.goodness_of_fit_history,
        "jacobian_history": model.jacobian_history,
        "validation_history": model.validation_history,
        "anchors": {},
    }
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.modules.state_dict().items()}
    for session, anchors in enumerate(model.anchors):
        if anchors is not None:
            facts["anchors"][session] = None if anchors.classes is None else anchors.classes.tolist()
            tensors[f"{_ANCHORS}{session}.hidden"] = torch.from_numpy(anchors.hidden)
            if anchors.continuous is not None:
                tensors[f"{_ANCHORS}{session}.continuous"] = torch.from_numpy(anchors.continuous)
    with whole(path) as file:
        file.write(save(tensors, {_KEY: json.dumps(facts, default=_number)}))


def read_model(path: Path, settings: dict[str, Any]) -> tuple[Model, Mode]:
    """Read a model; `settings` replace those of the file."""
    try:
        with safe_open(path, "pt") as file:
            header = (file.metadata() or {}).get(_KEY)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise HoldfastError(f"there is no file {path}") from error
    except (OSError, SafetensorError) as error:
        raise HoldfastError(f"cannot read the model {path}: {error}") from error
    if header is None:
        raise HoldfastError(f"{path} is a safetensors file, and not one that ContrastiveEmbedding.save wrote")
    facts = json.loads(header)
    check_keys("setting", settings, facts["settings"])
    for name in _OWN:
        if facts["settings"][name] is None and name not in settings:
            raise HoldfastError(f"{path} was made with a {name} of your own; give it again, load(path, {name}=...)")
    model = Model(facts["settings"] | settings, facts["channels"], facts["paired_channels"], facts["seed"])
    model.loss_history, model.goodness_of_fit_history = facts["loss_history"], facts["goodness_of_fit_history"]
    model.jacobian_history = facts["jacobian_history"]
    model.validation_history = {int(step): value for step, value in facts["validation_history"].items()}
    for session, classes in facts["anchors"].items():
        continuous = tensors.pop(f"{_ANCHORS}{session}.continuous", None)
        model.anchors[int(session)] = Anchors(
            tensors.pop(f"{_ANCHORS}{session}.hidden").numpy(),
            None if continuous is None else continuous.numpy(),
            None if classes is None else np.array(classes),
        )
    try:
        model.modules.load_state_dict(tensors)
    except RuntimeError as error:
        raise HoldfastError(f"the weights of {path} do not fit the model: {error}") from error
    mode = facts["mode"] | {"time_offsets": tuple(facts["mode"]["time_offsets"])}
    return model, Mode(**mode)


def _plain(name: str, value: Any) -> Any:
    """A setting as JSON has it; None for an encoder, distance or generator of the user's own."""
    if name in (*_OWN, "random_state") and not isinstance(value, str | int | np.integer):
        return None
    return value


def _number(value: Any) -> Any:
    """What NumPy has instead of plain numbers and lists."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, range):
        return list(value)
    raise HoldfastError(f"cannot save {value!r} as JSON; plain numbers, texts and lists were expected")
