"""Stability: how networks take smooth deformations, relative to noise of the same norm, and whether errors follow.

    found = stability(net, data)
    found.value("R"), found.indices

Source: "Relative stability toward diffeomorphisms indicates performance in deep nets", sections 3 to 5. R far below 1
is what good networks have after training; before it, R is about 1. Any number of networks, deformations and layers in
one frame; with labels the error of each network, and with three networks the power law of error against R, D and G.
Cost: for each deformation of the images, three forward passes of each network.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from haptera.correctness import check_classes, correct
from haptera.data import Data
from haptera.errors import HapteraError
from haptera.observe import Probe, respond
from haptera.observe.stability import OUTPUT, Response
from haptera.progress import Progress
from haptera.shifts import Diffeo
from haptera.statistics.intervals import wilson
from haptera.statistics.power_law import INDICES, PowerLaw, power_laws
from haptera.statistics.stability import DRAWS, stability_indices

SETTING = ["delta", "cutoff", "interpolation"]
Model = nn.Module | Callable[[], nn.Module]


@dataclass(frozen=True)
class Stability:
    """What was found.

    Attributes:
        indices: one row for each network, setting, layer, index (`R`, `D`, `G`) and aggregate (`mean`, `median`):
            `model`, `delta`, `cutoff`, `interpolation`, `layer`, `depth`, `index`, `aggregate`, `value`, `low`, `high`,
            `n`. The layer `output` is the network itself; `pixels` are the images.
        deformations: one row for each setting: `delta` as it was asked for, `cutoff`, `interpolation`, `delta_used`
            (smaller where fields that fold are drawn again), `temperature`, `folded` (share of fields that are no
            bijection), `norm_mean` and `norm_median` of τx − x.
        errors: `model`, `error`, `low`, `high`, `n`; empty without labels.
        size: height and width of the images.
        images: how many were used.
        initial: networks before training, which laws of the error leave out.
        notes: which networks have no error though there are labels, and why.
    """

    indices: pd.DataFrame
    deformations: pd.DataFrame
    errors: pd.DataFrame
    size: tuple[int, int]
    images: int
    initial: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def models(self) -> list[str]:
        """The names of the networks, in the order given, but for those before training."""
        return [name for name in self.indices["model"].unique() if name not in self.initial]

    def rows(self, model: str | None = None, **setting: float | str) -> pd.DataFrame:
        """The rows of the output of one network, the first one by default, at one setting, the first one by default."""
        chosen = self.indices[self.indices["layer"] == OUTPUT]
        chosen = chosen[chosen["model"] == (self.models[0] if model is None else model)]
        for key in SETTING:
            chosen = chosen[chosen[key] == setting.get(key, self.deformations[key].iloc[0])]
        return chosen

    def value(
        self, index: str = "R", aggregate: str = "median", model: str | None = None, **setting: float | str
    ) -> float:
        """One number, such as the median R."""
        rows = self.rows(model, **setting)
        rows = rows[(rows["index"] == index) & (rows["aggregate"] == aggregate)]
        if rows.empty:
            raise HapteraError(
                f"there is no {aggregate} {index} of {model or self.models[0]} at {setting or 'any setting'}"
            )
        return float(rows["value"].iloc[0])

    @cached_property
    def against_error(self) -> pd.DataFrame:
        """`model`, `error` and the indices of its output, medians at the first setting; empty without labels."""
        if self.errors.empty:
            return pd.DataFrame(columns=["model", "error", *INDICES])
        rows = [{"model": name} | {index: self.value(index, model=name) for index in INDICES} for name in self.models]
        return self.errors[["model", "error"]].merge(pd.DataFrame(rows), on="model")

    @cached_property
    def laws(self) -> dict[str, PowerLaw]:
        """Index -> the power law of error against it; empty where fewer than three networks have both."""
        return power_laws(self.against_error)


def stability(
    models: Model | Mapping[str, Model],
    data: Data,
    *,
    initial: Mapping[str, Model] | None = None,
    delta: float | Sequence[float] = 1.0,
    cutoff: float | Sequence[float] = 3.0,
    interpolation: str | Sequence[str] = "bilinear",
    rule: str = "printed",
    resample: bool = False,
    layers: bool | Sequence[str] = (),
    samples: int = 500,
    batch_size: int = 32,
    sphere: str = "median",
    draws: int = DRAWS,
    seed: int = 0,
    progress: bool | None = None,
) -> Stability:
    """Measure R, D and G.

    Args:
        models: a network, or name -> network, or a function that builds it.
        data: images of the kind that the networks were made for; labels are read only for errors.
        initial: name -> network before training, measured for comparison.
        delta: displacements of the centre in pixels; several give a curve.
        cutoff: of the modes; several give a curve each.
        interpolation: `bilinear`, `gaussian`, or both.
        rule: of the cutoff, `printed` or `reference`.
        resample: draw fields that fold again.
        layers: also of these layers: True for all innermost modules, or names and patterns of names.
        samples: how many images, at most; drawn by the seed.
        batch_size: images per forward pass, of which a third are as they are.
        sphere: which aggregate's norm the noise has; what the other sees is scaled, see `haptera.statistics.stability`.
        draws: of images, for the intervals.
        seed: of the choice of images, the deformations, the noise and the draws.
        progress: show a bar; by default on a terminal.
    """
    named = dict(models) if isinstance(models, Mapping) else {_name(models): models}
    if not named:
        raise HapteraError("stability needs at least one model, found none")
    before = dict(initial or {})
    images, ids, targets = _chosen(data, samples, seed)
    settings = list(product(_several(delta), _several(cutoff), _several(interpolation)))
    indices, deformations = [], []
    errors: dict[str, dict[str, Any]] = {}
    notes: dict[str, str] = {}
    with Progress("stability", len(settings) * len(named | before), progress, unit="measurements") as bar:
        for values in settings:
            shift = Diffeo(values[0], values[1], rule=rule, interpolation=values[2], resample=resample)
            probe = Probe(images, shift, ids, seed, sphere, batch_size)
            setting = dict(zip(SETTING, values, strict=True))
            deformations.append(setting | _described(probe))
            for name, model in (named | before).items():
                found = _responded(name, model, probe, layers)
                for depth, (layer, distances) in enumerate(found.distances.items()):
                    frame = stability_indices(distances, draws=draws, seed=seed)
                    indices.append(frame.assign(model=name, **setting, layer=layer, depth=depth))
                if targets is not None and name not in errors | notes:
                    logits = _logits(found.outputs, targets)
                    if logits is not None:
                        errors[name] = {"model": name} | _error(logits, targets, data)
                    else:
                        shape = ", ".join(map(str, ("images", *found.outputs.shape[1:])))
                        notes[name] = f"{name} has no error: its outputs, ({shape}), are no decisions for these labels"
                bar.advance(f"{name}, delta {values[0]:g}, cutoff {values[1]:g}")
    order = ["model", *SETTING, "layer", "depth", "index", "aggregate", "value", "low", "high", "n"]
    return Stability(
        pd.concat(indices, ignore_index=True)[order],
        pd.DataFrame(deformations),
        pd.DataFrame(errors.values()),
        (images.shape[-2], images.shape[-1]),
        len(images),
        tuple(before),
        tuple(notes.values()),
    )


def _responded(name: str, model: Model, probe: Probe, layers: bool | Sequence[str]) -> Response:
    try:
        return respond(model if isinstance(model, nn.Module) else model(), probe, layers)
    except HapteraError as error:
        raise HapteraError(f"{name}: {error}") from error


def _chosen(data: Data, samples: int, seed: int) -> tuple[torch.Tensor, torch.Tensor, np.ndarray | None]:
    """Images, ids and targets of a random part of the data, in its order."""
    if samples < 2:
        raise HapteraError(f"samples is {samples}; at least 2 were expected")
    places = np.sort(np.random.default_rng(seed).permutation(len(data))[:samples])
    targets = None if data.targets is None else data.targets[places]
    return data.images(places), torch.from_numpy(data.rows[places]), targets


def _described(probe: Probe) -> dict[str, float]:
    norms = {f"norm_{name}": radius for name, radius in probe.radii.items()}
    heat = probe.shift.heat(*probe.images.shape[-2:])
    return {"delta_used": probe.delta, "temperature": heat, "folded": probe.folded} | norms


def _logits(outputs: np.ndarray, targets: np.ndarray) -> np.ndarray | None:
    """`(images, classes)`, or None where the outputs are none; one logit is that of the second of two classes."""
    if outputs.ndim > 1 and outputs.shape[1] > 1:
        return outputs if outputs.ndim == 2 else None
    one = outputs.reshape(len(outputs), -1)
    return np.concatenate([np.zeros_like(one), one], 1) if one.shape[1] == 1 and targets.max() < 2 else None


def _error(outputs: np.ndarray, targets: np.ndarray, data: Data) -> dict[str, Any]:
    """Share of wrong decisions; with a mapping of classes, of decisions that it does not accept."""
    check_classes(data.classes, outputs.shape[1], data.names)
    wrong = ~correct(outputs, targets, data.classes)
    low, high = wilson(float(wrong.sum()), len(wrong))
    return {"error": float(wrong.mean()), "low": low, "high": high, "n": len(wrong)}


def _several(values: Any) -> Iterator[Any]:
    found = list(values) if isinstance(values, Sequence) and not isinstance(values, str) else [values]
    if not found:
        raise HapteraError("delta, cutoff and interpolation need at least one value each")
    return iter(dict.fromkeys(found))


def _name(model: Any) -> str:
    return str(getattr(model, "__name__", type(model).__name__)).lower()
