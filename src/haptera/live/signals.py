"""Signals: a few numbers for each image that adaptation cannot change, seen by hooks while a model predicts.

Pixels: brightness, contrast, how much neighbours differ for that contrast (sharpness), how much these differences
differ (roughness: noise raises it, blur lowers it), and how far colours are apart. First layer: energy of what goes
into the first normalisation layer, and the distance of its channel statistics from those of the reference. Weights
before that layer are the caller's own for every method that adapts normalisation layers; where an adapter does change
them, the first layer is left aside. So these numbers are exchangeable while the data is, whatever the adapter does.
Outputs (entropy, confidence, margin) tell more about errors, and are information only while an adapter learns.
Cost: `benchmarks/guard.py` has it; every second row and column of the first layer is looked at, and `sample` images at
the other layers.
"""

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.special import log_softmax
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from haptera.adapters.base import Adapter
from haptera.adapters.norm import per_image
from haptera.adapters.passes import first_of
from haptera.adapters.wrapper import Wrapper

if TYPE_CHECKING:
    from haptera.live.profile import Profile

PIXELS = ("brightness", "contrast", "sharpness", "roughness", "colour")
EARLY = ("early_energy", "early_distance")
OUTPUTS = ("entropy", "confidence", "margin")
NORMS = (_BatchNorm, nn.GroupNorm, nn.LayerNorm)
WEIGHTED = (nn.modules.conv._ConvNd, nn.Linear)
SMALL = 1e-8
"""What is added within logarithms, in squared units of pixels."""


class Signals:
    """Hooks that take signals of every image that goes through a model; each thread has its own.

        signals = Signals(adapter, profile)
        logits = adapter(batch)
        scores = signals.take(len(batch))     # name -> (images,)
        moments = signals.take_moments()      # layer -> (at most `sample`, 2, channels), for ShiftWindow

    Args:
        model: what is called with the images: an adapter, or a model.
        profile: whose statistics the first layer is compared with; without one, those of BatchNorm, if there are any.
        changed: parameters that are changed in place; by default those that an adapter learns.
        sample: images of each pass whose moments are taken at every BatchNorm layer; 0 for none.

    Attributes:
        early: the name of the first layer; "" before it is known, or where there is none.
    """

    def __init__(
        self,
        model: nn.Module,
        profile: "Profile | None" = None,
        *,
        changed: Iterable[torch.Tensor] | None = None,
        sample: int = 8,
    ) -> None:
        root = network_of(model)
        if changed is None:
            changed = [p for p in root.parameters() if p.requires_grad] if isinstance(model, Adapter) else ()
        self.sample, self._own = sample, threading.local()
        self.early = "" if profile is None else profile.early
        self._centre, self._spread = (None, None) if profile is None else (profile.centre, profile.spread)
        layers = _first_layers(root, {id(each) for each in changed})
        inner = {name: layer for name, layer in root.named_modules() if sample and isinstance(layer, _BatchNorm)}
        self._handles = [model.register_forward_pre_hook(self._begin)]
        for name, layer in (inner | layers).items():
            take = self._taker(name, name in layers, name in inner)
            if isinstance(layer, NORMS):
                self._handles.append(layer.register_forward_pre_hook(lambda own, given, take=take: take(own, given[0])))
            else:
                self._handles.append(layer.register_forward_hook(lambda own, _, made, take=take: take(own, made)))

    def take(self, images: int | None = None) -> dict[str, np.ndarray]:
        """Return the signals of the first pass in this thread since the last call, and forget them.

        Args:
            images: how many the batch has; a pass of another number of images gives nothing.
        """
        inputs, early = (self._own.__dict__.pop(name, None) for name in ("inputs", "early"))
        self._own.__dict__["images"] = None
        if inputs is None or (images is not None and len(inputs) != images):
            return {}
        found = pixel_signals(inputs)
        if early is not None:
            found |= self._first_layer(early)
        return found

    def take_moments(self) -> dict[str, np.ndarray]:
        """Return layer -> `(images, 2, channels)`, mean and mean square of some images, and forget them."""
        found: dict[str, torch.Tensor] = self._own.__dict__.pop("moments", {})
        return {name: values.cpu().numpy() for name, values in found.items()}

    def take_statistics(self) -> np.ndarray | None:
        """Return the channel statistics of the first layer, `(images, 2 x channels)`, before `take` forgets them."""
        early = getattr(self._own, "early", None)
        return None if early is None else _statistics(early[1].double().cpu().numpy())

    def close(self) -> None:
        """Remove the hooks."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def __enter__(self) -> "Signals":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _begin(self, model: nn.Module, given: tuple[Any, ...]) -> None:
        """Remember the images of the outermost pass; their signals are found when they are taken."""
        if given and isinstance(given[0], torch.Tensor) and given[0].ndim and len(given[0]):
            inputs = given[0].detach()
            self._own.__dict__.update(inputs=inputs, images=len(inputs), moments={}, early=None)

    def _taker(self, name: str, first: bool, inner: bool) -> Callable[[nn.Module, Any], None]:
        """Return what a hook of one layer calls with what the layer takes, or gives."""

        def take(layer: nn.Module, values: Any) -> None:
            own = self._own.__dict__
            if (images := own.get("images")) is None:
                return
            early = first and own["early"] is None and self.early in ("", name)
            some = inner and self.sample and name not in own["moments"]
            if not (early or some):  # most calls end here
                return
            values = first_of(values)
            if not isinstance(values, torch.Tensor) or values.ndim < 2 or values.shape[0] < images:
                return
            with torch.no_grad():
                values = values.detach().as_subclass(torch.Tensor)  # whatever functions mean for a subclass
                start = values.shape[0] - images  # what is before are earlier images of a window
                if early:
                    self.early = name
                    own["early"] = layer, _early_moments(values[start:])
                if some:
                    own["moments"][name] = per_image(values[start : start + min(self.sample, images)].float())

        return take

    def _first_layer(self, early: tuple[nn.Module, torch.Tensor]) -> dict[str, np.ndarray]:
        """Return the signals of the first layer from its moments `(images, 2, channels)`."""
        layer, moments = early[0], early[1].double().cpu().numpy()
        found = {"early_energy": np.log(moments[:, 1].mean(1) + SMALL)}
        centre, spread = self._centre, self._spread
        if centre is None and isinstance(layer, _BatchNorm) and layer.running_mean is not None:
            both = (torch.as_tensor(each) for each in (layer.running_mean, layer.running_var))
            mean, var = (each.detach().double().cpu().numpy() for each in both)
            centre, spread = np.concatenate([mean, np.sqrt(var + mean**2)]), np.tile(np.sqrt(var + SMALL), 2)
        if centre is not None and spread is not None and len(centre) == 2 * moments.shape[2]:
            statistics = (_statistics(moments) - centre) / spread
            found["early_distance"] = np.sqrt(np.square(statistics).mean(1))
        return found


def pixel_signals(inputs: torch.Tensor) -> dict[str, np.ndarray]:
    """Return the signals of images `(batch, channels, height, width)`; of other inputs, brightness and contrast."""
    with torch.no_grad():
        values = inputs.detach().float()
        grey = values.mean(1) if values.ndim == 4 else values.flatten(1)
        mean = grey.flatten(1).mean(1)
        away = grey - mean.view(-1, *[1] * (grey.ndim - 1))
        powers = {"contrast": _power(away)}
        if grey.ndim == 3 and min(grey.shape[1:]) > 2:
            across, down = away[:, :, 1:] - away[:, :, :-1], away[:, 1:] - away[:, :-1]
            bends = _power(across[:, :, 1:] - across[:, :, :-1]) + _power(down[:, 1:] - down[:, :-1])
            powers |= {"edges": _power(across) + _power(down), "bends": bends}
        if values.ndim == 4 and values.shape[1] > 1:
            powers["colour"] = (_power(values) - _power(grey)).clamp_min(0)
        numbers = torch.stack([mean, *powers.values()]).double().cpu().numpy()
    logs = dict(zip(powers, np.log(numbers[1:] + SMALL), strict=True))
    found = {"brightness": numbers[0], "contrast": logs["contrast"]}
    if "edges" in logs:
        found["sharpness"] = logs["edges"] - logs["contrast"]
        found["roughness"] = logs["bends"] - logs["edges"]
    return found | ({"colour": logs["colour"]} if "colour" in logs else {})


def output_signals(logits: np.ndarray) -> dict[str, np.ndarray]:
    """Return entropy, confidence and margin of each answer; they are information while an adapter learns."""
    logs = log_softmax(np.asarray(logits, float), axis=1)
    best = np.sort(np.partition(logs, -2, axis=1)[:, -2:], axis=1)
    chances = np.exp(logs)
    return {
        "entropy": -(chances * np.where(chances > 0, logs, 0)).sum(1),
        "confidence": np.exp(best[:, 1]),
        "margin": best[:, 1] - best[:, 0],
    }


def network_of(model: nn.Module) -> nn.Module:
    """Return the network inside an adapter, or the model itself."""
    adapter = model.innermost if isinstance(model, Wrapper) else model
    return adapter.model if isinstance(adapter, Adapter) else adapter


def _first_layers(root: nn.Module, changed: set[int]) -> dict[str, nn.Module]:
    """Return the layers of which the first that is called counts: before any weight that changes, in order."""
    named = [(name, layer) for name, layer in root.named_modules() if name]
    kinds = NORMS if any(isinstance(layer, NORMS) for _, layer in named) else WEIGHTED
    found: dict[str, nn.Module] = {}
    for name, layer in named:
        own = any(id(parameter) in changed for parameter in layer.parameters(recurse=False))
        if isinstance(layer, kinds) and not (own and kinds is WEIGHTED):
            found[name] = layer
        if own or len(found) == 1:
            break
    return found


def _early_moments(values: torch.Tensor) -> torch.Tensor:
    """Return `(images, 2, channels)` of every second row and column; tokens have their channels last."""
    if values.ndim == 3:
        values = values.transpose(1, 2)
    elif values.ndim == 4 and min(values.shape[2:]) >= 8:
        values = values[:, :, ::2, ::2]
        if values.stride(1) != 1:  # channels are not last: two passes over a copy are quicker than over gaps
            values = values.contiguous()
    return per_image(values.float())


def _statistics(moments: np.ndarray) -> np.ndarray:
    """Return mean and root of the mean square of every channel, `(images, 2 x channels)`."""
    return np.concatenate([moments[:, 0], np.sqrt(np.maximum(moments[:, 1], 0.0))], 1)


def _power(values: torch.Tensor) -> torch.Tensor:
    """Return the mean square of each image; a norm needs no copy of the squares."""
    return torch.linalg.vector_norm(values, dim=tuple(range(1, values.ndim))) ** 2 / values[0].numel()
