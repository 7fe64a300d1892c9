"""Presets: the published settings of each method, by data and architecture, from the table in `presets.toml`.

    adapted = with_preset(Tent, "imagenet-resnet")(model)
    haptera run ... --adapter tent:preset=auto

Settings that are given win over those of a preset. `auto` takes the nearest preset that has the method: by the number
of classes, the kind of normalisation layers and, where the model says what it takes, the size of images.
"""

import logging
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from math import log2, log10
from typing import Any

from torch import nn

from haptera import catalog
from haptera.adapters.base import Adapter
from haptera.adapters.norm import once
from haptera.adapters.select import last_layer
from haptera.errors import HapteraError, check_keys, unknown
from haptera.modules import unwrap

log = logging.getLogger("haptera")

AUTO = "auto"
NORMS = {"batch": nn.modules.batchnorm._BatchNorm, "group": nn.GroupNorm, "layer": nn.LayerNorm}
OTHER_NORM = 0.75
"""How much another kind of normalisation counts, where ten times as many classes count as 1."""
OTHER_SIZE = 0.25
"""How much images of twice the side count."""


@dataclass(frozen=True)
class Preset:
    """The published settings for one kind of data and architecture.

    Attributes:
        name: as a person writes it.
        about: data and network in a few words.
        classes: how many the data has.
        size: the side of its images, in pixels.
        norm: the kinds of normalisation layers of the network.
        batch_size: of the streams that the settings are for.
        settings: adapter of the catalog -> its settings.
        sources: adapter of the catalog -> where they were read.
    """

    name: str
    about: str
    classes: int
    size: int
    norm: tuple[str, ...]
    batch_size: int
    settings: Mapping[str, Mapping[str, Any]]
    sources: Mapping[str, str]

    def distance(self, norms: set[str], classes: int | None, size: int | None) -> float:
        """How far a network with these layers, so many classes and images of this side is from the preset's."""
        away = 0.0 if norms & set(self.norm) else OTHER_NORM
        away += abs(log10(classes / self.classes)) if classes else 0.0
        return away + (OTHER_SIZE * abs(log2(size / self.size)) if size else 0.0)


@cache
def presets() -> dict[str, Preset]:
    """Every preset by name, as the table has them."""
    table = tomllib.loads(files("haptera.adapters").joinpath("presets.toml").read_text("utf-8"))
    return {name: _preset(name, dict(content)) for name, content in table.items()}


def _preset(name: str, content: dict[str, Any]) -> Preset:
    rows = content.pop("adapters")
    settings = {adapter: {key: row[key] for key in row if key != "source"} for adapter, row in rows.items()}
    sources = {adapter: row["source"] for adapter, row in rows.items()}
    return Preset(name=name, settings=settings, sources=sources, **content | {"norm": tuple(content["norm"])})


def with_preset(method: Any, preset: str, **settings: Any) -> Callable[..., Adapter]:
    """Return a method with the settings of a preset; what comes back takes a model, as the method does.

    Args:
        method: an adapter of the catalog, the class.
        preset: a name of the table, or `auto`.
        settings: these win.
    """
    name, rows = _rows(method)
    check_keys("preset", [preset], [AUTO, *presets()])
    if preset == AUTO:
        return partial(build_nearest, method=method, rows=rows, **settings)
    if preset not in rows:
        raise unknown(f"preset of {name}", preset, [*rows, AUTO])
    return partial(method, **rows[preset] | settings)


def build_nearest(model: nn.Module, method: Any, rows: Mapping[str, Mapping[str, Any]], **settings: Any) -> Adapter:
    """Build a method with the settings of the nearest of several presets, and log which one that is."""
    facts = norms_of(model), classes_of(model), size_of(model)
    name = min(rows, key=lambda each: presets()[each].distance(*facts))
    known = [f"{facts[1]} classes"] if facts[1] else []
    known += [f"{facts[2]} pixels"] if facts[2] else []
    known += [f"{' and '.join(sorted(facts[0]))} normalisation" if facts[0] else "no normalisation"]
    once().info(
        f"{method.__name__} takes the settings of preset {name} ({presets()[name].about}), the nearest to a network of "
        f"{', '.join(known)}: {', '.join(f'{key}={value}' for key, value in rows[name].items())}"
    )
    return method(model, **dict(rows[name]) | settings)


def norms_of(model: nn.Module) -> set[str]:
    """The kinds of normalisation layers in a model."""
    layers = list(model.modules())
    return {name for name, kind in NORMS.items() if any(isinstance(layer, kind) for layer in layers)}


def classes_of(model: nn.Module) -> int | None:
    """How many outputs the last linear or convolutional layer of a model has; None where there is no such layer."""
    try:
        weight = last_layer(unwrap(model)).weight
    except HapteraError:
        return None
    return len(weight) if isinstance(weight, nn.Parameter) else None


def size_of(model: nn.Module) -> int | None:
    """The side of images that a model says it takes, in pixels."""
    size = getattr(getattr(model, "preprocessing", None), "size", None)
    return int(size) if isinstance(size, int) and size > 0 else None


def _rows(method: Any) -> tuple[str, dict[str, dict[str, Any]]]:
    """The catalog's name of a method, and its settings in every preset that has it."""
    name = catalog.name_of("adapters", method)
    every = presets().values()
    rows = {preset.name: dict(preset.settings[name]) for preset in every if name and name in preset.settings}
    if name is None or not rows:
        known = sorted({each for preset in every for each in preset.settings})
        called = getattr(method, "__name__", str(method))
        raise HapteraError(f"there is no preset for {called!r}; there are some for {', '.join(known)}")
    return name, rows
