"""Stability: how networks take smooth deformations, relative to noise of the same norm, and whether errors follow.

    measured = haptera.stability(net, data)
    measured.value("R"), measured.indices

Source: "Relative stability toward diffeomorphisms indicates performance in deep nets", sections 3 to 5. R far below 1
is what good networks have after training; before it, R is about 1. Any number of networks, deformations and layers in
one frame; with labels the error of each network, and with three networks the power law of error against R, D and G.
Cost: for each deformation of the images, three forward passes of each network.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
import torch

from haptera.analyses.stability import SETTING, StabilitySettings
from haptera.analyses.stability.findings import DEFINITIONS, findings
from haptera.analyses.stability.measurement import Measurement, Model, Subject
from haptera.analyses.stability.page import sections
from haptera.analyses.stability.phase_diagram import SMALLEST, PhaseDiagram, phase_diagram
from haptera.analysis import Analysis
from haptera.data import Data
from haptera.errors import HapteraError, check_keys
from haptera.observe.stability import OUTPUT
from haptera.report.section import Finding, Section
from haptera.run.tasks import finish
from haptera.statistics.power_law import INDICES, PowerLaw, power_laws


@dataclass(frozen=True, eq=False)
class Stability(Analysis):
    """How networks respond to deformations, relative to noise of the same norm.

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
        data: the name of the data.
        image: the first of the data, `(channels, height, width)`, for the phase diagram.
        asked: the settings.
    """

    kind: ClassVar[str] = "stability"
    definitions: ClassVar[Mapping[str, str]] = DEFINITIONS
    indices: pd.DataFrame
    deformations: pd.DataFrame
    errors: pd.DataFrame
    size: tuple[int, int]
    images: int
    initial: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    data: str = "the data"
    image: torch.Tensor | None = None
    asked: StabilitySettings = field(default_factory=StabilitySettings)

    @property
    def title(self) -> str:
        """Return what it was measured on."""
        return f"Stability on {Path(self.data).name}"

    @property
    def settings(self) -> dict[str, Any]:
        """Return what was asked."""
        return {"data": self.data, "images": self.images, "models": self.models, **vars(self.asked)}

    def findings(self) -> list[Finding]:
        """Return a line for each network, then the deformations and the law of the error."""
        return findings(self)

    def sections(self) -> list[Section]:
        """Return every section for which something is known."""
        return sections(self)

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

    def error(self, model: str) -> float | None:
        """Return the error of a network; None without labels."""
        rows = self.errors[self.errors["model"] == model] if len(self.errors) else self.errors
        return float(rows["error"].iloc[0]) if len(rows) else None

    @cached_property
    def phases(self) -> PhaseDiagram | None:
        """Which deformations of the first image are diffeomorphisms; None for an image that is too small."""
        if self.image is None or min(self.image.shape[-2:]) < SMALLEST:
            return None
        return phase_diagram(self.image, rule=self.asked.rule, seed=self.asked.seed)

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
    layers: bool | Sequence[str] = (),
    out: Path | str | None = None,
    progress: bool | None = None,
    **settings: Annotated[Any, StabilitySettings],
) -> Stability:
    """Measure R, D and G.

    Args:
        models: a network, or name -> network, or a function that builds it.
        data: images of the kind that the networks were made for; labels are read only for errors.
        initial: name -> network before training, measured for comparison.
        layers: also of these layers: True for all innermost modules, or names and patterns of names.
        out: a folder where every finished measurement is kept; the same call goes on from there.
        progress: show a bar; by default on a terminal.
        settings: `delta`, `cutoff`, `interpolation`, `rule`, `resample`, `samples`, `batch_size`, `sphere`, `draws` and
            `seed`, as `StabilitySettings`; one value will do where several are possible.
    """
    check_keys("setting of stability", settings, StabilitySettings.__match_args__)
    asked = StabilitySettings(**settings | {key: _several(settings[key]) for key in SETTING if key in settings})
    named = dict(models) if isinstance(models, Mapping) else {_name(models): models}
    if not named:
        raise HapteraError("stability needs at least one model, found none")
    before = dict(initial or {})
    subject = Subject(data, asked, layers)
    kinds = [dict(zip(SETTING, each, strict=True)) for each in product(asked.delta, asked.cutoff, asked.interpolation)]
    tasks = [Measurement(*each, subject, kind, out) for kind in kinds for each in (named | before).items()]
    measured = finish(tasks, out, "stability", noun="measurement", progress=progress).finished
    frames = [_frame(task, result) for task, result in zip(tasks, measured, strict=True)]
    of_kinds, of_models = measured[:: len(named | before)], dict(zip(named | before, measured, strict=False))
    errors = [{"model": name} | result["error"] for name, result in of_models.items() if result["error"]]
    return Stability(
        pd.concat(frames, ignore_index=True),
        pd.DataFrame([kind | result["deformation"] for kind, result in zip(kinds, of_kinds, strict=True)]),
        pd.DataFrame(errors),
        (subject.images.shape[-2], subject.images.shape[-1]),
        len(subject.images),
        tuple(before),
        tuple(result["note"] for result in of_models.values() if result["note"]),
        data.name,
        data.images(np.array([0]))[0],
        asked,
    )


def _frame(task: Measurement, result: Mapping[str, Any]) -> pd.DataFrame:
    order = ["model", *SETTING, "layer", "depth", "index", "aggregate", "value", "low", "high", "n"]
    frame = pd.DataFrame(result["indices"]).assign(model=task.name, **task.kind)[order]
    return frame.astype(dict.fromkeys(["value", "low", "high"], float))


def _several(values: Any) -> tuple[Any, ...]:
    several = list(values) if isinstance(values, Sequence) and not isinstance(values, str) else [values]
    if not several:
        raise HapteraError("delta, cutoff and interpolation need at least one value each")
    return tuple(dict.fromkeys(several))


def _name(model: Any) -> str:
    return str(getattr(model, "__name__", type(model).__name__)).lower()
