"""First and second moments of activations, for every layer in one pass, kept for groups of images.

At BatchNorm layers it is the input that counts, since the layer has its own statistics of it from training; at any
other layer the output. Images are pooled in groups, so that a test can divide them anew without the model.
Cost: about a tenth of a forward pass more (`benchmarks/diagnose.py`). Holds groups x channels x 16 bytes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from haptera.adapters import share
from haptera.adapters.norm import per_image
from haptera.adapters.passes import arrange, check_outputs, device_of, takes_channels_last, watch_layers
from haptera.adapters.quick import QuickPass
from haptera.batch import Batch
from haptera.correctness import check_classes, correct
from haptera.data import Classes
from haptera.errors import HapteraError
from haptera.statistics.moments import Moments

GROUPS = 200


@dataclass(frozen=True)
class Observation:
    """One pass over some images.

    Attributes:
        moments: of the activations.
        outputs: `(images, classes)`; empty where the model does not return a tensor.
        targets: `(images,)` or None.
        classes: how targets relate to the outputs; None if target i is output i.
    """

    moments: Moments
    outputs: np.ndarray
    targets: np.ndarray | None
    classes: Classes | None = None

    @property
    def error(self) -> float | None:
        """Share of wrong decisions, where there are labels."""
        return None if self.targets is None else float(1 - correct(self.outputs, self.targets, self.classes).mean())


def observe_moments(
    model: nn.Module, stream: Iterable[Batch], layers: Sequence[str] = (), *, covariance: bool = False
) -> Observation:
    """Return the moments of a stream of images in a model, and what the model says about them.

    Args:
        model: in evaluation mode afterwards as before; it is not changed.
        stream: read once; its `classes`, if it has any, say how targets relate to the model's.
        layers: names of modules, or patterns of names; all BatchNorm layers if left out.
        covariance: also the covariance of channels, from all positions; `(channels, channels)` for each layer.
    """
    own = share(model).eval()
    device = device_of(own)
    classes: Classes | None = getattr(stream, "classes", None)
    watched = chosen_layers(own, layers)
    record = _Record(watched, covariance)
    outputs: list[np.ndarray] = []
    targets: list[np.ndarray] = []
    channels_last, quick = None, QuickPass(own)
    with watch_layers(watched, record.take, inputs_of=(_BatchNorm,)), torch.no_grad():
        for batch in stream:
            if channels_last is None:
                channels_last = takes_channels_last(own, own, batch.inputs.to(device))
                record.clear()
            images = arrange(batch.inputs.to(device), channels_last)
            with quick:
                answer = own(images)
            if batch.targets is not None:
                answer = check_outputs(answer, len(batch))
                check_classes(classes, answer.shape[1], getattr(stream, "class_names", None))
                targets.append(batch.targets.numpy())
            if isinstance(answer, torch.Tensor):
                outputs.append(answer.float().cpu().numpy())
    return Observation(
        record.moments(),
        np.concatenate(outputs) if outputs else np.empty((0, 0)),
        np.concatenate(targets) if targets else None,
        classes,
    )


class _Record:
    """Means and mean squares of every image in some layers, and sums of products if wanted."""

    def __init__(self, names: Iterable[str], covariance: bool) -> None:
        self._covariance = covariance
        self._images: dict[str, list[np.ndarray]] = {name: [] for name in names}
        self._products: dict[str, np.ndarray] = {}

    def clear(self) -> None:
        """Forget what was taken so far."""
        for images in self._images.values():
            images.clear()
        self._products.clear()

    def moments(self) -> Moments:
        """Return the moments of everything that was taken."""
        layers = {name: np.concatenate(images) for name, images in self._images.items() if images}
        if not layers:
            raise HapteraError("no images, or none of the layers is used by the model")
        _check_finite(layers)
        count = min(map(len, layers.values()))
        covariances = {name: _centred(product / count, layers[name]) for name, product in self._products.items()}
        return Moments.of_images(layers, GROUPS, covariances or None)

    def take(self, name: str, values: torch.Tensor) -> None:
        if values.ndim < 2 or not values.is_floating_point():
            raise HapteraError(f"layer {name} gives shape {tuple(values.shape)}; (batch, channels, ...) was expected")
        self._images[name].append(per_image(values).cpu().numpy())
        if self._covariance:
            flat = values.transpose(0, 1).flatten(1).double()
            product = (flat @ flat.T / (flat.shape[1] // len(values))).cpu().numpy()
            self._products[name] = self._products.get(name, 0.0) + product


def batchnorm_statistics(model: nn.Module) -> Moments:
    """Return what the BatchNorm layers of a model know about their inputs from training."""
    found = {
        name: (layer.running_mean.double().cpu().numpy(), layer.running_var.double().cpu().numpy())
        for name, layer in model.named_modules()
        if isinstance(layer, _BatchNorm) and layer.running_mean is not None and layer.running_var is not None
    }
    if not found:
        raise HapteraError("the model has no BatchNorm statistics; give reference data and name layers")
    return Moments.of_statistics(found)


def chosen_layers(model: nn.Module, layers: Sequence[str]) -> dict[str, nn.Module]:
    """Name -> module: those that fit a pattern, or all BatchNorm layers."""
    modules = {name: layer for name, layer in model.named_modules() if name}
    found: dict[str, nn.Module] = {}
    if not layers:
        found = {name: layer for name, layer in modules.items() if isinstance(layer, _BatchNorm)}
        if not found:
            raise HapteraError(f"the model has no BatchNorm layer; name layers, such as {_examples(modules)}")
        return found
    for pattern in layers:
        fitting = {name: layer for name, layer in modules.items() if fnmatchcase(name, pattern)}
        if not fitting:
            raise HapteraError(f"no layer fits {pattern!r}; there are {_examples(modules)}")
        found |= fitting
    return found


def _check_finite(layers: dict[str, np.ndarray]) -> None:
    """Refuse activations that are not finite: no distance, and no verdict, follows from them."""
    for name, values in layers.items():
        wrong = ~np.isfinite(values).all((1, 2))
        if wrong.any():
            raise HapteraError(
                f"activations in layer {name} are not finite for {wrong.sum()} of {len(wrong)} images; nothing can be "
                "compared with them: look at these images, or at the precision of the model"
            )


def _centred(second: np.ndarray, images: np.ndarray) -> np.ndarray:
    mean = images[:, 0].mean(0, dtype=np.float64)
    return second - np.outer(mean, mean)


def _examples(modules: dict[str, nn.Module]) -> str:
    names = list(modules)
    return ", ".join(names[:3]) + (f", ... {names[-1]}" if len(names) > 3 else "")
