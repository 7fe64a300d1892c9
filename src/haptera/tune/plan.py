"""Plan: what is tried and on which streams, with everything that can be refused refused before anything runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from haptera import catalog
from haptera.batch import Stream, check_batch_size
from haptera.data import CorruptedImages, Data
from haptera.errors import HapteraError
from haptera.run.around import configured
from haptera.run.parts import check_adapter
from haptera.streams.condition import SEVERITIES
from haptera.tune import recipes
from haptera.tune.holdout import check_holdout, check_labels, each_alone, holdout_shifts, in_every_order, only_holdout
from haptera.tune.search import Point, Search, points, words

WORST = 5.0


@dataclass(frozen=True)
class Plan:
    """A search that can run.

    Attributes:
        use: what a study file calls the adapter.
        make: the adapter.
        fixed: settings that stay.
        tried: the points.
        recipe: a name, or None.
        streams: batch size -> stream.
        shifts: the names of the corruptions.
        severities: their severities.
    """

    use: str
    make: Callable[..., Any]
    fixed: dict[str, Any]
    tried: list[Point]
    recipe: str | None
    streams: dict[int, Stream]
    shifts: list[str]
    severities: list[float]

    @property
    def name(self) -> str:
        """The name of the adapter in the table."""
        return self.use.rpartition(":")[2]

    @property
    def batch(self) -> int:
        """The batch size for which the choice is written down."""
        return recipes.REFERENCE_BATCH if recipes.REFERENCE_BATCH in self.streams else next(iter(self.streams))

    def settings(self, number: int, batch: int) -> dict[str, Any]:
        """All settings of the adapter at one of the points, for a batch size."""
        whole = self.fixed | self.tried[number]
        return recipes.for_batch(whole, batch) if self.recipe == "lr" else whole

    def adapters(self, batch: int) -> dict[str, Callable[..., Any]]:
        """One adapter for each point, by the name it has in the table."""
        every = [self.settings(number, batch) for number in range(len(self.tried))]
        return {catalog.label(self.name, settings): configured(self.make, settings) for settings in every}

    def study_file(self, number: int, seeds: Sequence[int], more: Mapping[str, Any]) -> dict[str, Any]:
        """What the study file says if this point is chosen: the test of it, on corruptions that were not seen."""
        test = ["directory"] if _on_disk(self.streams[self.batch]) else ["clean", "corruptions"]
        streams = ["continual"] if self.recipe == "reset" else test
        adapters = [{"use": "none"}, {"use": self.use, **self.settings(number, self.batch)}]
        tables = {"streams": [{"use": stream} for stream in streams], "adapters": adapters}
        return {"batch_size": self.batch, "seeds": list(seeds), **more, **tables}

    def described(self) -> dict[str, Any]:
        """Return what the settings of the study say about the search."""
        named = {"adapter": catalog.label(self.name, self.fixed), "recipe": self.recipe or "none"}
        return {"tune": named | {"tried": [words(point) for point in self.tried]}}

    def title(self, seeds: Sequence[int]) -> str:
        """What is tuned, on what."""
        levels = ", ".join(f"{severity:g}" for severity in self.severities)
        severities = f"{'severities' if len(self.severities) > 1 else 'severity'} {levels}"
        orders = " in every order, repeated" if self.recipe == "reset" else ""
        several = f"{'seeds' if len(seeds) > 1 else 'seed'} {', '.join(map(str, seeds))}"
        batches = ", ".join(map(str, self.streams))
        where = f"{', '.join(self.shifts)} at {severities}{orders}"
        return f"{catalog.label(self.name, self.fixed)} on {where}; {several}, batches of {batches}"


def make_plan(
    data: Data | CorruptedImages, adapter: Callable[..., Any] | None, search: Search, use: str | None
) -> Plan:
    """Return the plan of a search.

    Args:
        data: what the hold-out corruptions are of.
        adapter: as `tune` takes it.
        search: what to try, and on what.
        use: what a study file calls the adapter, if known.
    """
    recipe, steps = search.recipe, search.steps
    recipes.check_recipe(recipe)
    if steps is not None and recipe != "reset":
        raise HapteraError("steps is the length of the streams of the recipe reset; it is for nothing else")
    make, fixed = recipes.unwrap(adapter, recipe)
    use, limits = use or recipes.use(make), search.limits
    tried = points(recipes.with_recipe(recipe, make, search.grid, limits), limits, search.random, search.search_seed)
    for point in tried:
        check_adapter(make, use.rpartition(":")[2], fixed | point)
    kinds = list(holdout_shifts() if search.shifts is None else search.shifts)
    names = check_holdout(kinds)
    check_labels(data)
    levels, batches = _severities(search.severities, recipe), _batches(search.batch_size, recipe)
    if isinstance(data, CorruptedImages):
        data = only_holdout(data, names, levels)
        names = list(dict.fromkeys(part.shift for part in data.parts))
    if recipe == "reset":
        steps = steps or recipes.TIMES_THE_LONGEST * recipes.longest_interval(tried)
        streams: dict[int, Stream] = {batches[0]: in_every_order(data, kinds, levels[0], batches[0], steps)}
    else:
        titles = {batch: "holdout" if len(batches) == 1 else f"holdout, batches of {batch}" for batch in batches}
        streams = {batch: each_alone(data, kinds, levels, batch, titles[batch]) for batch in batches}
    return Plan(use, make, fixed, tried, recipe, streams, names, levels)


def _severities(given: Sequence[float] | None, recipe: str | None) -> list[float]:
    found = list(given) if given is not None else [WORST] if recipe == "reset" else list(SEVERITIES)
    if recipe == "reset" and len(found) != 1:
        raise HapteraError(f"the recipe reset takes one severity, found {len(found)}")
    return found


def _batches(given: int | Sequence[int] | None, recipe: str | None) -> list[int]:
    if given is None:
        return recipes.BATCHES if recipe == "lr" else [recipes.REFERENCE_BATCH]
    found = [given] if isinstance(given, int) else list(dict.fromkeys(given))
    for batch in found:
        check_batch_size(batch)
    if len(found) > 1 and recipe != "lr":
        raise HapteraError(f"{len(found)} batch sizes are given; only the recipe lr takes several")
    return found


def _on_disk(stream: Stream) -> bool:
    return isinstance(getattr(stream, "data", None), CorruptedImages)
