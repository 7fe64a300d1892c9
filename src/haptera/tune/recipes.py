"""Recipes: searches by name, with the values and the streams that the sources used.

- `prior`: N of the BatchNorm statistics over 2⁰ … 2¹⁰, for batches of n (chapter 2, partial adaptation).
- `reset`: the interval between resets, with the hold-out corruptions at severity 5 one after the other in every order,
  each order repeated (chapter 4, table 4.4: 125 to 2,000 steps on 750,000 images, six times the longest interval).
- `lr`: a learning rate in proportion to the batch, lr n / 64 for batches of n (appendix B, table B.14).
- `leave-one-out`: any search, with the choice on all corruptions but one tested on that one (Gulrajani and Lopez-Paz
  2021). Every search does this on the way; the recipe shows it in full.

What a user gives for the same setting takes the place of what a recipe brings.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

from haptera import catalog
from haptera.adapters import (
    Adapter,
    BatchNorm,
    BatchPrior,
    MixtureAdapter,
    NoAdaptation,
    Offline,
    RDumb,
    Reset,
    SelectiveReset,
    TimeLimit,
    WeightEnsemble,
)
from haptera.adapters.reset import Every
from haptera.errors import HapteraError, unknown

RECIPES = {
    "prior": "N of BatchNorm over 1, 2, 4, ..., 1024",
    "reset": "the reset interval, on the corruptions in every order, repeated",
    "lr": "the learning rate in proportion to the batch size",
    "leave-one-out": "any search, and how its choice does on a corruption left out",
}
ADAPTERS: dict[str, type[Adapter]] = {"prior": BatchNorm, "reset": RDumb}
PRIORS = [2**power for power in range(11)]
INTERVALS = [125, 250, 500, 1000, 1500, 2000]
RATES = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1]
BATCHES = [16, 32, 64, 128]
REFERENCE_BATCH = 64
TIMES_THE_LONGEST = 6


def check_recipe(recipe: str | None) -> None:
    """Refuse a name that no recipe has."""
    if recipe is not None and recipe not in RECIPES:
        raise unknown("recipe", recipe, RECIPES)


def unwrap(adapter: Callable[..., Any] | None, recipe: str | None) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The class within partials, and settings as a study file says them, with those of what is around it."""
    if adapter is None:
        if recipe not in ADAPTERS:
            raise HapteraError("no adapter to tune: give --adapter")
        return ADAPTERS[recipe], {}
    if adapter is NoAdaptation:
        raise HapteraError("the unadapted model has no settings to tune; give another adapter")
    settings: dict[str, Any] = {}
    while isinstance(adapter, partial):
        settings = adapter.keywords | settings
        adapter = adapter.func
        if adapter is Reset and isinstance(settings.get("rule"), Every):
            settings["reset"] = settings.pop("rule").steps
            adapter = settings.pop("method")
        elif adapter in (MixtureAdapter, WeightEnsemble, TimeLimit):
            adapter = settings.pop("method")
        elif adapter is SelectiveReset:
            settings["asr"] = True
            adapter = settings.pop("method")
        elif adapter is BatchPrior:
            settings["prior_correction"] = settings.pop("scale")
            adapter = settings.pop("method")
        elif adapter is Offline:
            settings.setdefault("epochs", 1)
            adapter = settings.pop("method")
    return adapter, settings


def use(adapter: Callable[..., Any]) -> str:
    """What a study file calls an adapter."""
    script = getattr(sys.modules["__main__"], "__file__", None) if adapter.__module__ == "__main__" else None
    place = str(Path(script).resolve()) if script else adapter.__module__
    return catalog.name_of("adapters", adapter) or f"{place}:{adapter.__qualname__}"


def with_recipe(
    recipe: str | None,
    adapter: Callable[..., Any],
    grid: Mapping[str, Sequence[Any]] | None,
    ranges: Mapping[str, Any],
) -> dict[str, Sequence[Any]]:
    """The grid given, and before it what the recipe brings for settings that have neither values nor a range."""
    interval = "every" if "every" in signature(adapter).parameters else "reset"
    brings = {"prior": {"prior": PRIORS}, "reset": {interval: INTERVALS}, "lr": {"lr": RATES}}
    found = {key: values for key, values in brings.get(recipe or "", {}).items() if key not in ranges}
    return found | dict(grid or {})


def longest_interval(points: Sequence[Mapping[str, Any]]) -> int:
    """The longest reset interval that is tried."""
    found = [point[key] for point in points for key in ("every", "reset") if isinstance(point.get(key), int)]
    if not found:
        raise HapteraError("the recipe reset chooses an interval, a whole number of steps; the grid has none")
    return max(found)


def for_batch(settings: Mapping[str, Any], batch_size: int) -> dict[str, Any]:
    """The settings with the learning rate in proportion to the batch."""
    if not isinstance(settings.get("lr"), int | float):
        raise HapteraError(f"the recipe lr chooses a learning rate; lr is {settings.get('lr')!r}")
    return {**settings, "lr": float(f"{settings['lr'] * batch_size / REFERENCE_BATCH:.12g}")}
