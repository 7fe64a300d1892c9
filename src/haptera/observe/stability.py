"""What deformations and noise of the same norm do to a network: squared distances of the output and of every layer.

Source: "Relative stability toward diffeomorphisms indicates performance in deep nets", equations (4) and (5).
A probe is made once, and serves any number of networks. An image, its deformation and itself with noise go through the
network in one batch, and hooks compare the three in every layer on the way; no activation is kept. Distances between
images are taken within batches for layers, and between all images for the output. A change that is rounding and nothing
else is none: images of one colour do not move, so they have no R.
Networks are in evaluation mode: BatchNorm has its running statistics, which before training are mean 0 and variance 1.
Cost: three forward passes; with layers, for each of them batch size x its activations. Holds the images twice.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import nn

from haptera.adapters import share
from haptera.adapters.passes import arrange, device_of, first_of, takes_channels_last, watch_layers
from haptera.adapters.quick import QuickPass
from haptera.errors import HapteraError, check_keys, first_line
from haptera.observe.moments import chosen_layers
from haptera.shifts import Diffeo, SineFields, sphere_noise, squared_changes
from haptera.statistics.stability import AGGREGATES, Distances, pair_distances

OUTPUT, PIXELS = "output", "pixels"


@dataclass(frozen=True, eq=False)
class Probe:
    """Images, each with a deformation of its own, and noise of the norm that deformations have.

    Args:
        images: `(images, channels, height, width)` in [0, 1]; in double precision, all that follows is.
        shift: the ensemble of deformations.
        ids: `(images,)`, which deformation and noise each gets.
        seed: of both.
        sphere: the norm of the noise: the `median`, or the `mean`, of that of the deformations.
        batch_size: images per forward pass, of which a third are as they are.
    """

    images: torch.Tensor
    shift: Diffeo
    ids: torch.Tensor
    seed: int = 0
    sphere: str = "median"
    batch_size: int = 32

    def __post_init__(self) -> None:
        check_keys("sphere", [self.sphere], AGGREGATES)
        if len(self.images) < 2:
            raise HapteraError(f"stability needs at least two images, found {len(self.images)}")
        if not self.radii["median"]:
            raise HapteraError(
                f"R is undefined: deformations of delta {self.shift.severity:g} leave most of the {len(self.images)} "
                "images as they are, but for rounding, as they do with images of one colour"
            )

    @cached_property
    def deformed(self) -> torch.Tensor:
        """τx, of the shape of the images."""
        parts = zip(self._cut(self.images), self._cut(self.ids), strict=True)
        return torch.cat([self.shift(images, ids, self.seed) for images, ids in parts])

    @cached_property
    def radii(self) -> dict[str, float]:
        """Return aggregate -> ⟨‖τx − x‖⟩."""
        norms = squared_changes(self.images, self.deformed).sqrt().numpy()
        return {"mean": float(norms.mean()), "median": float(np.median(norms))}

    @cached_property
    def folded(self) -> float:
        """The share of the fields that fold."""
        return float(self._fields.folded().float().mean())

    @property
    def delta(self) -> float:
        """δ in pixels: of the fields themselves where those that fold were drawn again, else of all there could be."""
        if not self.shift.resample:
            return self.shift.delta(*self.images.shape[-2:])
        return float(self._fields.centres.square().sum(1).mean().sqrt())

    @cached_property
    def _fields(self) -> SineFields:
        return self.shift.fields(self.ids, self.seed, *self.images.shape[-2:])

    @property
    def noise(self) -> dict[str, float]:
        """Return aggregate -> the square of its norm over that of the noise."""
        return {name: (self.radii[name] / self.radii[self.sphere]) ** 2 for name in AGGREGATES}

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        """Batches of x, τx and x + η."""
        parts = (self._cut(self.images), self._cut(self.deformed), self._cut(self.ids))
        for images, deformed, ids in zip(*parts, strict=True):
            yield images, deformed, images + sphere_noise(images, self.radii[self.sphere], ids, self.seed)

    def _cut(self, values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Batches of nearly one size, none of which is a single image."""
        return values.tensor_split(max(len(values) // max(self.batch_size // 3, 2), 1))


@dataclass(frozen=True)
class Response:
    """What one network made of a probe.

    Attributes:
        distances: of the output, and of layers in the order in which they were run, `pixels` first.
        outputs: `(images, ...)`, for the images as they are.
    """

    distances: dict[str, Distances]
    outputs: np.ndarray


def respond(model: nn.Module, probe: Probe, layers: Sequence[str] | bool = ()) -> Response:
    """The distances of a network on a probe.

    Args:
        model: in evaluation mode afterwards as before; it is not changed.
        probe: of images that the model takes.
        layers: names of modules, or patterns of names; True for all modules that have no modules inside.
    """
    own = share(model).eval()
    device, record = device_of(own), _Record()
    channels_last, quick = None, QuickPass(own)
    try:
        with watch_layers(_choose(own, layers), record.take), torch.no_grad():
            for batch in probe:
                images, size = torch.cat(batch).to(device), len(batch[0])
                if channels_last is None:
                    record.size = 0  # the trial pass is not watched
                    channels_last = takes_channels_last(own, own, images)
                record.size = size
                record.calls = {}
                if layers:
                    record.take(PIXELS, images)
                images = arrange(images, channels_last)
                with quick:
                    answer = own(images)
                record.finish(answer)
    except HapteraError:
        raise
    except Exception as error:  # what a network does with images that it was not made for
        shape = tuple(probe.images.shape[1:])
        raise HapteraError(f"the model fails on images of shape {shape}: {first_line(error)}") from error
    outputs = np.concatenate(record.outputs)
    found = {
        name: _join(*parts, probe)
        for name, parts in record.layers.items()
        if sum(map(len, parts[2])) == len(probe.images)  # a layer that saw some of the images only has none
    }
    output = _join(*record.output, pair_distances(outputs.reshape(len(outputs), -1)), probe)
    return Response(found | {OUTPUT: output}, outputs)


class _Record:
    """What hooks found, batch by batch."""

    def __init__(self) -> None:
        self.size = 0
        self.calls: dict[str, int] = {}
        self.layers: dict[str, tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]] = {}
        self.output: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
        self.outputs: list[np.ndarray] = []

    def take(self, name: str, values: Any) -> None:
        """Compare the three parts of what a layer gave; a layer that is run again gets a number."""
        if not self.size or not isinstance(values, torch.Tensor) or not values.is_floating_point():
            return
        if values.ndim < 2 or len(values) != 3 * self.size:
            return
        self.calls[name] = self.calls.get(name, 0) + 1
        name = name if self.calls[name] == 1 else f"{name} ({self.calls[name]})"
        plain, parts = _thirds(values)[0], self.layers.setdefault(name, ([], [], []))
        _compare(values, *parts[:2])
        centred = plain - plain.mean(0)
        squares = centred.square().sum(1)
        pairs = (squares[:, None] + squares - 2 * centred @ centred.T).clamp_(min=0).fill_diagonal_(0)
        parts[2].append(pairs.double().cpu().numpy())

    def finish(self, output: Any) -> None:
        """The output itself, of which the images as they are stay."""
        values = first_of(output)
        if not isinstance(values, torch.Tensor) or len(values) != 3 * self.size:
            found = tuple(values.shape) if isinstance(values, torch.Tensor) else type(values).__name__
            raise HapteraError(f"the model gives {found} for {3 * self.size} images; (images, ...) was expected")
        _compare(values, *self.output)
        self.outputs.append(values.detach()[: self.size].double().cpu().numpy())


def _join(
    deformed: Sequence[np.ndarray], noisy: Sequence[np.ndarray], pairs: Sequence[np.ndarray], probe: Probe
) -> Distances:
    """The distances of all batches."""
    return Distances(np.concatenate(deformed), np.concatenate(noisy), pairs, probe.noise)


def _thirds(values: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return values.detach().reshape(len(values), -1).chunk(3)


def _compare(values: torch.Tensor, *found: list[np.ndarray]) -> None:
    """Add the distances of the deformed and the noisy third from the plain one to a list each."""
    plain, *changed = _thirds(values)
    for part, own in zip(changed, found, strict=True):
        own.append(squared_changes(plain, part).cpu().numpy())


def _choose(model: nn.Module, layers: Sequence[str] | bool) -> dict[str, nn.Module]:
    if layers is True:
        return {name: layer for name, layer in model.named_modules() if name and not any(layer.children())}
    return chosen_layers(model, layers) if layers else {}
