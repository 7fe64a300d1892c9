"""Weights: a state dict from a file into a network that it fits exactly.

Weights are safetensors; a pickle is read only where the user says so, and then without running code from it (torch's
`weights_only`). What wrappers add to names (`module.` of `DataParallel`, `_orig_mod.` of `torch.compile`) is taken off,
a state dict inside a checkpoint (`state_dict`, `model`) is found, and of tied weights one name is enough.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from haptera.errors import HapteraError
from haptera.models.classifier import Classifier
from haptera.modules import unwrap, why_opaque

PREFIXES = ("module.", "_orig_mod.")
CHECKPOINTS = ("state_dict", "model_state_dict", "model")
"""Where checkpoints of training programs keep the state dict."""


def load_weights(model: nn.Module, path: Path, allow_pickle: bool = False) -> None:
    """Load a state dict that fits exactly, or say where it does not."""
    if not path.is_file():
        raise HapteraError(f"there is no file of weights {path}")
    if why := why_opaque(model):
        raise HapteraError(f"the weights {path} cannot be loaded: {why}, so leave them out")
    network = unwrap(model.network if isinstance(model, Classifier) else model)
    own = network.state_dict()
    state = _without_prefixes(_read_state(path, allow_pickle), own)
    missing, extra = sorted(set(own) - set(state) - _tied(network, state)), sorted(set(state) - set(own))
    wrong = [key for key in own if key in state and own[key].shape != state[key].shape]
    problems = []
    if missing:
        problems.append(f"{len(missing)} tensors of the model are not in the file (first {missing[0]!r})")
    if extra:
        problems.append(f"{len(extra)} in the file are not in the model (first {extra[0]!r})")
    if wrong:
        key = wrong[0]
        shapes = f"{tuple(state[key].shape)} in the file, {tuple(own[key].shape)} in the model"
        problems.append(f"{len(wrong)} have another shape (first {key!r}: {shapes})")
    if problems:
        raise HapteraError(f"the weights {path} do not fit the model: {'; '.join(problems)}")
    network.load_state_dict(state, strict=False)


def _without_prefixes(state: Mapping[str, torch.Tensor], own: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Return the state without what wrappers put before every name, where the network has no such names."""
    named = dict(state)
    while prefix := next((each for each in PREFIXES if named and all(key.startswith(each) for key in named)), ""):
        if any(key.startswith(prefix) for key in own):
            break
        named = {key.removeprefix(prefix): value for key, value in named.items()}
    return named


def _tied(network: nn.Module, state: Mapping[str, torch.Tensor]) -> set[str]:
    """Return the names of tensors that are, under another name, in the state."""
    names: dict[int, list[str]] = {}
    for name, parameter in network.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    return {name for group in names.values() if any(each in state for each in group) for name in group}


def _read_state(path: Path, allow_pickle: bool) -> dict[str, torch.Tensor]:
    if path.suffix != ".safetensors":
        if not allow_pickle:
            raise HapteraError(
                f"{path} is not a .safetensors file; a pickle is only read with --allow-pickle (allow_pickle = true)"
            )
        try:
            state = torch.load(path, map_location="cpu", weights_only=True)
        except Exception as error:
            why = str(error).strip().partition("\n")[0] or type(error).__name__
            raise HapteraError(f"cannot read the weights {path}: {why}") from error
        inside = [state[key] for key in CHECKPOINTS if isinstance(state, dict) and isinstance(state.get(key), dict)]
        state = inside[0] if inside else state
        if not isinstance(state, dict) or not all(isinstance(value, torch.Tensor) for value in state.values()):
            raise HapteraError(f"{path} does not hold a state dict; save model.state_dict()")
        return state
    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise HapteraError(f"cannot read the weights {path}: {error}") from error
