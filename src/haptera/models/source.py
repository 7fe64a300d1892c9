"""Where a model comes from: a function that builds it, by name, and a file of weights.

Names are those of the catalog (`resnet`), `module:function`, or `file.py:function`. Weights are safetensors; a pickle
is read only where the user says so, and then without running code from it (torch's `weights_only`).
"""

import inspect
import logging
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from haptera.catalog import find_module, find_or_import
from haptera.errors import HapteraError
from haptera.files.fingerprint import of_file

log = logging.getLogger("haptera")

PLAIN = (None, bool, int, float, str, bytes, list, tuple, dict, set)


@dataclass(frozen=True)
class ModelSource:
    """A recipe for a model; calling it builds the model, in evaluation mode.

    Args:
        build: a name of the catalog, `module:function` or `file.py:function`.
        weights: a safetensors file, or a pickled state dict if `allow_pickle`.
        arguments: keyword arguments of the function.
        allow_pickle: read `.pt`, `.pth` and `.bin` files.
    """

    build: str
    weights: Path | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    allow_pickle: bool = False

    def __call__(self) -> nn.Module:
        """Build the model and load its weights."""
        maker = find_or_import("models", self.build)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)  # a model without weights is the same in every process
            model = build_module(maker, f"model {self.build}", self.arguments)
        if self.weights is not None:
            load_weights(model, self.weights, self.allow_pickle)
        return model.eval()

    def code(self) -> str:
        """Return the fingerprint of the file with the building function; a change there may change the model."""
        if ":" not in self.build:
            return self.build
        place = self.build.rpartition(":")[0]
        path = Path(place) if place.endswith(".py") else Path(find_module(place, "model").__file__ or "")
        return of_file(path) if path.is_file() else place


def build_module(maker: Any, what: str, arguments: Mapping[str, Any]) -> nn.Module:
    """Return the module that a function makes, or a module as it is.

    What cannot be a function that returns a module (a function of the standard library, another class) is not called.

    Args:
        maker: what a person named.
        what: it is called in messages, such as `model net.py:build`.
        arguments: of the function.
    """
    if isinstance(maker, nn.Module):
        return maker
    if why := _no_builder(maker):
        raise HapteraError(f"{what} is {why}; a function that returns an nn.Module was expected")
    try:
        made = maker(**arguments)
    except HapteraError:
        raise
    except Exception as error:
        log.debug("building %s failed", what, exc_info=True)
        raise HapteraError(f"{what}: building it failed: {type(error).__name__}: {error}") from error
    if not isinstance(made, nn.Module):
        raise HapteraError(f"{what}: it gave a {type(made).__name__}, an nn.Module was expected")
    return made


def _no_builder(maker: Any) -> str:
    """Return why an object cannot be a function that returns a module, or nothing."""
    inner = inspect.unwrap(maker.func if isinstance(maker, partial) else maker)
    if isinstance(inner, type):
        return "" if issubclass(inner, nn.Module) else f"the class {inner.__name__}"
    if not callable(inner):
        return f"a {type(inner).__name__}"
    home = str(getattr(inner, "__module__", "")).partition(".")[0]
    if home in sys.stdlib_module_names:
        return f"a function of Python's own {home}"
    returns = getattr(inner, "__annotations__", {}).get("return", nn.Module)
    return f"a function that says it returns {inspect.formatannotation(returns)}" if returns in PLAIN else ""


def load_weights(model: nn.Module, path: Path, allow_pickle: bool = False) -> None:
    """Load a state dict that fits exactly, or say where it does not."""
    if not path.is_file():
        raise HapteraError(f"there is no file of weights {path}")
    state = _read_state(path, allow_pickle)
    own = model.state_dict()
    missing, extra = sorted(set(own) - set(state)), sorted(set(state) - set(own))
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
    model.load_state_dict(state)


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
        if not isinstance(state, dict) or not all(isinstance(value, torch.Tensor) for value in state.values()):
            raise HapteraError(f"{path} does not hold a state dict; save model.state_dict()")
        return state
    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise HapteraError(f"cannot read the weights {path}: {error}") from error
