"""A fitted model as one safetensors file: tensors, and settings as JSON in its header; never a pickle."""

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import inf
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from haptera import __version__
from haptera.contrastive.adapting import Anchors
from haptera.contrastive.jacobian import MEANING
from haptera.contrastive.model import SIDES, Model
from haptera.contrastive.modes import Mode
from haptera.contrastive.training import History
from haptera.errors import HapteraError, check_keys
from haptera.files.atomic import whole
from haptera.files.fingerprint import of_model
from haptera.files.safetensors import read_header
from haptera.files.schema import (
    ANYTHING,
    TABLE,
    TEXT,
    Kind,
    check,
    kind_of,
    kinds_of,
    list_of,
    number,
    optional,
    table_of,
    whole_number,
)
from haptera.recordings.prepared import Preparation

_KEY = "haptera.embedding"
_PREPARED = "preparations"
_ANCHORS = "anchors."
_HISTORIES = {
    "loss_history": "loss",
    "goodness_of_fit_history": "goodness_of_fit",
    "jacobian_history": "jacobian",
    "temperature_history": "temperature",
}
_LATER: dict[str, Any] = {"temperature_history": [], "constants": {}}
"""What files of earlier versions do not have."""
OWN = ("model_architecture", "distance")
_FACTS = {
    "settings": TABLE,
    "mode": TABLE,
    "channels": list_of(whole_number(1)),
    "paired_channels": optional(list_of(whole_number(1))),
    "seed": whole_number(),
    **dict.fromkeys(_HISTORIES, list_of(ANYTHING)),
    "validation_history": table_of(ANYTHING),
    "anchors": table_of(optional(list_of(ANYTHING))),
    "constants": table_of(list_of(table_of(number()))),
}
_GIVEN = ("channels", "paired_channels", "seed", "constants")


def known_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings that a fingerprint can tell apart, an encoder or distance of the user's own by its weights."""
    known = {name: of_model(value) if hasattr(value, "state_dict") else value for name, value in settings.items()}
    tempered = settings.get("temperature", 1.0) != 1 or settings.get("temperature_mode", "constant") != "constant"
    # At a temperature of 1 the Jacobian term never changed its meaning, so that fits made with it are still good.
    return known | ({"jacobian_term": MEANING} if settings.get("jacobian_weight") and tempered else {})


def own_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that a file does not hold: an encoder or distance of the user's own."""
    return {name: settings[name] for name in OWN if not isinstance(settings.get(name, ""), str)}


def write_model(model: Model, mode: Mode, path: Path, sessions: Sequence[Preparation] = ()) -> None:
    """Write a model; an encoder or distance of the user's own is written as its weights only.

    Args:
        model: encoders and losses.
        mode: how pairs were drawn.
        path: of the file.
        sessions: how the signal of each session was prepared, if that is known.
    """
    if sessions and len(sessions) != len(model.encoders):
        raise HapteraError(f"{len(sessions)} preparations were given for {len(model.encoders)} sessions")
    facts: dict[str, Any] = {
        "version": __version__,
        "settings": {name: _plain(name, value) for name, value in model.settings.items()},
        "mode": asdict(mode),
        **{name: getattr(model, name) for name in _GIVEN},
        **{name: getattr(model.history, field) for name, field in _HISTORIES.items()},
        "validation_history": model.history.held_out,
        "anchors": {},
    }
    tensors = {
        name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, tensor in model.modules.state_dict().items()
    }
    for session, anchors in enumerate(model.anchors):
        if anchors is not None:
            facts["anchors"][session] = None if anchors.classes is None else anchors.classes.tolist()
            tensors[f"{_ANCHORS}{session}.hidden"] = torch.from_numpy(anchors.hidden)
            if anchors.continuous is not None:
                tensors[f"{_ANCHORS}{session}.continuous"] = torch.from_numpy(anchors.continuous)
    if sessions:
        facts[_PREPARED] = [one.facts() for one in sessions]
    with whole(path) as file:  # one key, for safetensors writes several in any order
        file.write(save(tensors, {_KEY: json.dumps(facts, default=_number)}))


def read_preparations(path: Path) -> list[Preparation]:
    """Return how the signal of each session of a saved model was prepared, without reading its weights."""
    writer, where = "`haptera embed`", f"the header of {path}"
    header = read_header(path, _KEY, "model", writer)
    if _PREPARED not in header:
        raise HapteraError(f"{path} does not say how its signals were prepared; models that {writer} wrote do")
    sessions = check(header, {_PREPARED: list_of(TABLE)}, where)[_PREPARED]
    return [Preparation.of_facts(one, where) for one in sessions]


def read_model(path: Path, settings: dict[str, Any]) -> tuple[Model, Mode]:
    """Read a model; `settings` replace those of the file."""
    header = read_header(path, _KEY, "model", "ContrastiveEmbedding.save")
    try:
        tensors = load_file(path)
    except (OSError, ValueError, SafetensorError) as error:
        raise HapteraError(f"cannot read the model {path}: {error}") from error
    facts = _facts(header, tensors, path)
    check_keys("setting", settings, facts["settings"])
    for name in OWN:
        if facts["settings"][name] is None and name not in settings:
            raise HapteraError(f"{path} was made with a {name} of your own; give it again, load(path, {name}=...)")
    try:
        model = Model(facts["settings"] | settings, facts["channels"], facts["paired_channels"], facts["seed"])
    except HapteraError as error:
        raise HapteraError(f"{path}: {error}") from error
    held_out = {int(step): value for step, value in facts["validation_history"].items()}
    model.history = History(held_out=held_out, **{field: facts[name] for name, field in _HISTORIES.items()})
    for side, sessions in facts["constants"].items():
        model.constants[side] = [{int(channel): value for channel, value in one.items()} for one in sessions]
    for session, classes in facts["anchors"].items():
        model.anchors[int(session)] = _anchors(tensors, session, classes, path)
    try:
        model.modules.load_state_dict(tensors)
    except RuntimeError as error:
        raise HapteraError(f"the weights of {path} do not fit the model: {error}") from error
    mode = facts["mode"] | {name: tuple(facts["mode"][name]) for name in ("time_offsets", "parts")}
    return model, Mode(**mode)


def _facts(header: dict[str, Any], tensors: dict[str, torch.Tensor], path: Path) -> dict[str, Any]:
    """Return a header after checking it; a model is no larger than its weights."""
    where = f"the header of {path}"
    facts = check(_LATER | header, _FACTS, where)
    for name, kinds in (("settings", _setting_kinds()), ("mode", kinds_of(Mode))):
        check_keys(f"key of {name} in {where}", check(facts[name], kinds, f"{name} in {where}"), kinds)
    settings, sessions = facts["settings"], len(facts["channels"])
    sides = [side for tensor in tensors.values() for side in tensor.shape]
    sizes = [settings["output_dimension"], *facts["channels"]]
    if isinstance(settings["model_architecture"], str):  # an encoder of somebody's own has layers of its own
        sizes.append(settings["num_hidden_units"])
    if max(sizes) > max(sides, default=0) or sessions > len(tensors):
        raise HapteraError(f"{path}: the header speaks of layers of {max(sizes):,}, the weights are smaller")
    for name, most in (("anchors", sessions), ("validation_history", inf)):
        for key in facts[name]:
            if not (key.isascii() and key.isdigit() and int(key) < most):
                raise HapteraError(f"{where}: {name} has {key!r}; the number of a session or step was expected")
    for side, each in facts["constants"].items():
        keys = [key for one in each for key in one]
        known = all(key.isascii() and key.isdigit() and int(key) < max(sizes) for key in keys)
        if side not in SIDES or len(each) != sessions or not known:
            raise HapteraError(f"{where}: constants has {side!r}; channels of {sessions} sessions were expected")
    return facts


def _setting_kinds() -> dict[str, Kind]:
    """Return what each setting of the estimator must be; what is a user's own is null in a file."""
    from haptera.contrastive.estimator import ContrastiveEmbedding  # which imports this file

    hints = get_type_hints(ContrastiveEmbedding.__init__)
    kinds = {name: kind_of(hints[name]) for name in inspect.signature(ContrastiveEmbedding).parameters}
    return kinds | dict.fromkeys(OWN, optional(TEXT)) | {"random_state": optional(whole_number())}


def _anchors(tensors: dict[str, torch.Tensor], session: str, classes: list[Any] | None, path: Path) -> Anchors:
    name = f"{_ANCHORS}{session}"
    if f"{name}.hidden" not in tensors:
        raise HapteraError(f"{path} speaks of the tensor {name}.hidden and does not have it")
    hidden, continuous = tensors.pop(f"{name}.hidden"), tensors.pop(f"{name}.continuous", None)
    return Anchors(
        hidden.float().numpy(),
        None if continuous is None else continuous.double().numpy(),
        None if classes is None else np.array([str(each) for each in classes]),
    )


def _plain(name: str, value: Any) -> Any:
    """Return a setting as JSON has it; None for an encoder, distance or generator of the user's own."""
    if name in (*OWN, "random_state") and not isinstance(value, str | int | np.integer):
        return None
    return value


def _number(value: Any) -> Any:
    """Return NumPy's numbers and arrays as plain ones."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, range):
        return list(value)
    raise HapteraError(f"cannot save {value!r} as JSON; plain numbers, texts and lists were expected")
