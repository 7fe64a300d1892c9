"""State: what an adapter learnt, as tensors and plain values, in memory and as a safetensors file; never a pickle.

A state says which adapter and which model it belongs to, and is loaded whole or not at all.
"""

import copy
import json
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from haptera.errors import HapteraError
from haptera.files.atomic import whole
from haptera.files.safetensors import read_header

IDENTITY = "_identity"
"""The key of a state that says what it belongs to."""
EXTRA = "_extra_state"
"""The key, also torch's, of what is neither parameter nor buffer."""
_KEY = "haptera.adapter"
_TENSOR, _DICT, _FLOAT, _INTEGERS = "tensor", "dict", "float", "integers"


def snapshot(value: Any) -> Any:
    """A copy that shares nothing with what it was made of."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: snapshot(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(snapshot, value))
    return copy.deepcopy(value)


def write_state(state: Mapping[str, Any], path: Path) -> None:
    """Write a state whole: tensors as they are, all other values as JSON in the header."""
    tensors: dict[str, torch.Tensor] = {}
    facts = {key: _encode(value, key, tensors) for key, value in state.items()}
    plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    with whole(path) as file:
        file.write(save(plain, {_KEY: json.dumps(facts, allow_nan=False)}))


def read_state(path: Path) -> dict[str, Any]:
    """Read what `write_state` wrote."""
    header = read_header(path, _KEY, "state", "Adapter.save_state")
    try:
        tensors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise HapteraError(f"cannot read the state {path}: {error}") from error
    try:
        return {key: _decode(value, tensors) for key, value in header.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise HapteraError(f"the header of {path} is damaged: {error!r}") from error


def check_identity(state: Mapping[str, Any], identity: Mapping[str, str]) -> None:
    """Refuse a state that another adapter, or one around another model, left."""
    found = state.get(IDENTITY) if isinstance(state, Mapping) else None
    if not isinstance(found, Mapping):
        raise HapteraError("this is not the state of an adapter: it does not say which adapter and model it is of")
    for what, expected in identity.items():
        if found.get(what) != expected:
            raise HapteraError(
                "the state belongs to another model: weights or buffers differ from those this adapter was built with"
                if what == "model"
                else f"the state is of an adapter with {what} {found.get(what)!r}; this one has {expected!r}"
            )


def check_values(state: Mapping[str, Any], first: Mapping[str, Any]) -> None:
    """Refuse a state with other names, shapes or kinds of values than the first state of an adapter."""
    names = set(state) - {IDENTITY}
    if names != set(first):
        some, verb = min(names ^ set(first)), "lacks" if set(first) - names else "has"
        raise HapteraError(f"the state {verb} {some!r}, other than this adapter; it was saved with other settings")
    for name, expected in first.items():
        value = state[name]
        if not _fits(value, expected) or (isinstance(expected, torch.Tensor) and value.shape != expected.shape):
            raise HapteraError(f"{name!r} of the state is {_said(value)}; {_said(expected)} was expected")


def _fits(value: Any, first: Any) -> bool:
    """Say whether a value can stand in the place of another one; anything can where there was none yet."""
    if isinstance(first, torch.Tensor):
        return isinstance(value, torch.Tensor) and value.ndim == first.ndim
    if isinstance(first, Mapping):
        return isinstance(value, Mapping) and all(name in value and _fits(value[name], first[name]) for name in first)
    if isinstance(first, int | float):
        return isinstance(value, int | float)
    return first is None or isinstance(value, type(first))


def _said(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor {tuple(value.shape)}"
    return f"{value!r:.200}"


def _encode(value: Any, name: str, tensors: dict[str, torch.Tensor]) -> Any:
    """A value as JSON, its tensors by name."""
    if isinstance(value, torch.Tensor):
        while name in tensors:  # such as {"a.b": ...} beside {"a": {"b": ...}}
            name += "'"
        tensors[name] = value
        return {_TENSOR: name}
    if isinstance(value, Mapping):
        kind = _INTEGERS if value and all(isinstance(key, int) for key in value) else _DICT
        return {kind: {str(key): _encode(inner, f"{name}.{key}", tensors) for key, inner in value.items()}}
    if isinstance(value, list | tuple):
        return [_encode(inner, f"{name}.{index}", tensors) for index, inner in enumerate(value)]
    if isinstance(value, float) and not isfinite(value):
        return {_FLOAT: str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise HapteraError(
        f"{name!r} of the state is of type {type(value).__name__}; "
        "numbers, texts, tensors, and lists and dictionaries of them can be saved"
    )


def _decode(value: Any, tensors: dict[str, torch.Tensor]) -> Any:
    if isinstance(value, list):
        return [_decode(inner, tensors) for inner in value]
    if not isinstance(value, dict):
        return value
    ((kind, inside),) = value.items()
    if kind == _TENSOR:
        return tensors[inside]
    if kind == _FLOAT:
        return float(inside)
    pairs = inside.items()
    return {int(key) if kind == _INTEGERS else key: _decode(inner, tensors) for key, inner in pairs}
