"""Where a model comes from: a function that builds it, by name, and a file of weights.

Names are those of the catalog (`resnet`), `module:function`, or `file.py:function`. Weights are safetensors; a pickle
is read only where the user says so, and then without running code from it (torch's `weights_only`).
"""

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from holdfast.catalog import find
from holdfast.errors import HoldfastError
from holdfast.fingerprint import of_file
from holdfast.objects import find_module

log = logging.getLogger("holdfast")


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
        maker = find("models", self.build)
        try:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)  # a model without weights is the same in every process
                model = maker if isinstance(maker, nn.Module) else maker(**self.arguments)
        except HoldfastError:
            raise
        except Exception as error:
            log.debug("building %s failed", self.build, exc_info=True)
            raise HoldfastError(f"model {self.build}: building it failed: {type(error).__name__}: {error}") from error
        if not isinstance(model, nn.Module):
            raise HoldfastError(f"model {self.build}: it gave a {type(model).__name__}, an nn.Module was expected")
        if self.weights is not None:
            load_weights(model, self.weights, self.allow_pickle)
        return model.eval()

    def code(self) -> str:
        """Of the file in which the building function is written; a change there may change the model."""
        if ":" not in self.build:
            return self.build
        place = self.build.rpartition(":")[0]
        path = Path(place) if place.endswith(".py") else Path(find_module(place, "model").__file__ or "")
        return of_file(path) if path.is_file() else place


def load_weights(model: nn.Module, path: Path, allow_pickle: bool = False) -> None:
    """Load a state dict that fits exactly, or say where it does not."""
    if not path.is_file():
        raise HoldfastError(f"there is no file of weights {path}")
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
        raise HoldfastError(f"the weights {path} do not fit the model: {'; '.join(problems)}")
    model.load_state_dict(state)


def _read_state(path: Path, allow_pickle: bool) -> dict[str, torch.Tensor]:
    if path.suffix != ".safetensors":
        if not allow_pickle:
            raise HoldfastError(
                f"{path} is no .safetensors file; a pickle is only read with --allow-pickle (allow_pickle = true)"
            )
        try:
            state = torch.load(path, map_location="cpu", weights_only=True)
        except Exception as error:
            raise HoldfastError(f"cannot read the weights {path}: {str(error).splitlines()[0]}") from error
        if not isinstance(state, dict) or not all(isinstance(value, torch.Tensor) for value in state.values()):
            raise HoldfastError(f"{path} holds no state dict; save model.state_dict()")
        return state
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise HoldfastError(f"cannot read the weights {path}: {error}") from error
