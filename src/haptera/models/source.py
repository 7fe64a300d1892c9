"""Where a model comes from, a function or a loader, by name, and a file of weights; and the device it runs on.

Names are those of the catalog (`resnet`), `module:function`, `file.py:function`, or what a loader reads: `timm:NAME`,
`hf:FOLDER`, `net.onnx` and the like (`haptera list loaders`).
"""

import inspect
import logging
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from haptera import catalog
from haptera.catalog import find_or_import
from haptera.errors import HapteraError, check_keys, first_line, hint
from haptera.files.fingerprint import of_file
from haptera.models.classifier import Classifier, classifier
from haptera.models.loaders.finding import split_name
from haptera.models.preprocessing import Preprocessing, read_normalisation
from haptera.models.weights import load_weights
from haptera.own_code import find_module

log = logging.getLogger("haptera")

PLAIN = (None, bool, int, float, str, bytes, list, tuple, dict, set)


@dataclass(frozen=True)
class ModelSource:
    """A recipe for a model; calling it builds the model, in evaluation mode.

    Args:
        build: a name of the catalog, `module:function`, `file.py:function`, or what a loader reads.
        weights: a safetensors file, or a pickled state dict if `allow_pickle`.
        arguments: keyword arguments of the function.
        allow_pickle: read `.pt`, `.pth` and `.bin` files.
        normalise: `imagenet`, `half`, `MEAN/STD` or `none`; what the model's configuration says by default.
        logits: which of its outputs are the logits; found by itself where possible.
    """

    build: str
    weights: Path | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    allow_pickle: bool = False
    normalise: str | None = None
    logits: str | None = None

    def __post_init__(self) -> None:
        if self.normalise is not None:
            read_normalisation(self.normalise)

    def __call__(self) -> nn.Module:
        """Build the model and load its weights."""
        loader, text = split_name(self.build)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)  # a model without weights is the same in every process
            if loader:
                model = self._load(catalog.find("loaders", loader), text)
            else:
                maker = self._find()
                model = build_module(maker, f"model {self.build}", self.arguments)
        if self.weights is not None:
            load_weights(model, self.weights, self.allow_pickle)
        return self._complete(model).eval()

    def _find(self) -> Any:
        """Return what a person named; a prefix that is no loader's looks like a module."""
        try:
            return find_or_import("models", self.build)
        except HapteraError as error:
            prefixes, prefix = catalog.entries("loaders"), self.build.partition(":")[0]
            if "there is no module" not in str(error) or not (near := hint(prefix, prefixes, cutoff=0.7)):
                raise
            raise HapteraError(f"{error};{near} known prefixes: {', '.join(prefixes)}") from error

    def _load(self, load: Any, text: str) -> nn.Module:
        """Return what a loader makes; it is handed those of our settings that it has parameters for."""
        ours = {"normalise": self.normalise, "allow_pickle": self.allow_pickle}
        ours |= {} if self.weights is None else {"pretrained": False}
        parameters = inspect.signature(load).parameters
        given = {key: value for key, value in ours.items() if key in parameters} | self.arguments
        if all(each.kind != each.VAR_KEYWORD for each in parameters.values()):
            check_keys(f"setting of model {self.build}", given, [*parameters][1:])
        return load(text, **given)

    def _complete(self, model: nn.Module) -> nn.Module:
        """Return the model with what was said about its inputs and outputs."""
        network, preprocessing, logits = model, Preprocessing(), self.logits
        if isinstance(model, Classifier):
            network, preprocessing, logits = model.network, model.preprocessing, self.logits or model.logits
        if self.normalise is not None:
            mean, std = read_normalisation(self.normalise)
            preprocessing = replace(preprocessing, mean=mean, std=std)
        if isinstance(model, Classifier):
            return Classifier(network, preprocessing, logits)
        return classifier(network, preprocessing, logits)

    def preprocessing(self) -> Preprocessing:
        """Return what the configuration of the model says; nothing for a function, which is not called for it."""
        if not split_name(self.build)[0]:
            return Preprocessing()
        return getattr(self(), "preprocessing", Preprocessing())

    def code(self) -> str:
        """Return the fingerprint of the file with the building function; a change there may change the model."""
        if ":" not in self.build or split_name(self.build)[0]:
            return self.build
        place = self.build.rpartition(":")[0]
        path = Path(place) if place.endswith(".py") else Path(find_module(place, "model").__file__ or "")
        return of_file(path) if path.is_file() else place


def build_module(maker: Any, what: str, arguments: Mapping[str, Any]) -> nn.Module:
    """Return the module that a function makes, or a module as it is; `what` names it in messages.

    What cannot be a function that returns a module (a function of the standard library, another class) is not called.
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


def choose_device(name: str | None = None) -> torch.device:
    """Return the device of a name; without one, or for `cuda_if_available`, a GPU if there is one.

    >>> choose_device("cpu")
    device(type='cpu')
    """
    if name in (None, "", "cuda_if_available"):
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        raise HapteraError(
            f"device is {name!r}, which cannot be used ({first_line(error)}); cpu, cuda, cuda:1, mps or "
            "cuda_if_available was expected"
        ) from error
    return torch.device(str(name))
