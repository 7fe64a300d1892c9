"""Plan: what an analysis of a recording fits and compares, checked before anything costs time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from holdfast.embed.baselines import BASELINES, installed
from holdfast.embed.label import Label
from holdfast.embed.preparation import Scaling, smooth
from holdfast.embed.recording import Recording
from holdfast.errors import HoldfastError, unknown

MODES = ("label", "time", "hybrid")
DEFAULTS: Mapping[str, Any] = {
    "model_architecture": "offset10-model",
    "output_dimension": 3,
    "max_iterations": 300,
    "learning_rate": 1e-3,
}
"""Of the estimator, where nobody says anything: three dimensions to look at, and so few steps that shuffled labels are
not learnt by heart."""
OFFSETS = {"label": 10, "hybrid": 10, "time": 3}
"""Samples between the two of a pair. Labels are compared after 10, as in the source. By time alone fewer are better to
decode from; but then windows overlap, which is enough to tell a pair, and shuffled samples fit better than chance."""


@dataclass(frozen=True)
class Plan:
    """What to fit and what to compare it with.

    Attributes:
        signal: its name; the only one if None.
        labels: names; all of them are used for training, and each is decoded.
        mode: `label`, `time` (labels are only decoded), or `hybrid`; None is `label` if there is one.
        held: share of the samples, at the end, on which everything is scored.
        chosen_on: share of the others, at their end, on which settings of decoders are chosen; no encoder sees it.
        seeds: fits that differ in nothing but their seed.
        shuffles: fits of shuffled labels (or, by time alone, of shuffled samples); 0 for none.
        baselines: `pca`, `tsne`, `umap`.
        topology: whether to count rings.
        smoothing: standard deviation of a Gaussian, in samples; 0 for none.
        causal: whether smoothing looks back only.
        zscore: whether channels are scaled by means and deviations of the training part.
        seed: the first one.
        settings: of the estimator, beside `DEFAULTS`.
    """

    signal: str | None = None
    labels: tuple[str, ...] = ()
    mode: str | None = None
    held: float = 0.3
    chosen_on: float = 0.2
    seeds: int = 3
    shuffles: int = 3
    baselines: tuple[str, ...] = field(default_factory=installed)
    topology: bool = True
    smoothing: float = 0.0
    causal: bool = False
    zscore: bool = False
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.mode is not None and self.mode not in MODES:
            raise unknown("mode", self.mode, MODES)
        if self.mode in ("label", "hybrid") and not self.labels:
            raise HoldfastError(f"mode is {self.mode!r}, and no label was named; name one, or embed by time")
        for name in self.baselines:
            if name not in BASELINES:
                raise unknown("baseline", name, BASELINES)
        for name, least in (("seeds", 1), ("shuffles", 0)):
            if getattr(self, name) < least:
                raise HoldfastError(f"{name} is {getattr(self, name)}; at least {least} was expected")
        if self.smoothing < 0:
            raise HoldfastError(f"smoothing is {self.smoothing}; 0 samples or more were expected")

    @property
    def by(self) -> str:
        """The mode, chosen if nobody did."""
        return self.mode or ("label" if self.labels else "time")

    def estimator_settings(self, recording: Recording, seed: int) -> dict[str, Any]:
        """All settings of the estimator for this recording."""
        settings = dict(DEFAULTS) | dict(self.settings) | {"random_state": seed}
        by_classes = all(recording.label(name).kind == "discrete" for name in self.labels)
        # By classes alone, or by a Gaussian around a label, no pair depends on time.
        if self.by != "label" or not (by_classes or settings.get("delta") is not None):
            settings.setdefault("time_offsets", OFFSETS[self.by])
        if self.by == "hybrid":
            settings.setdefault("hybrid", True)
        return settings


@dataclass(frozen=True, eq=False)
class Parts:
    """A prepared recording, cut into what encoders learn from, what decoders are chosen on, and what is scored.

    Attributes:
        train: for encoders and decoders.
        validation: for the settings of decoders.
        test: held out.
        whole: all of it, as one, in the order of time.
    """

    train: Recording
    validation: Recording
    test: Recording
    whole: Recording

    @classmethod
    def of(cls, recording: Recording, plan: Plan) -> "Parts":
        """Cut, then smooth each part by itself, then scale by the training part."""
        name = next(iter(recording.signals)) if plan.signal is None else plan.signal
        recording.signal(plan.signal)  # says so if there is none, or more than one
        for label in plan.labels:
            _check_varies(recording.label(label), label)
        rest, test = recording.split(plan.held)
        train, validation = rest.split(plan.chosen_on)
        parts = [train, validation, test]
        values = [part.signal(name) for part in parts]
        if plan.smoothing:
            values = [
                smooth(signal, plan.smoothing, part.blocks, causal=plan.causal)
                for signal, part in zip(values, parts, strict=True)
            ]
        if plan.zscore:
            scaling = Scaling.of(values[0])
            values = [scaling(signal) for signal in values]
        train, validation, test = (_with_signal(part, name, signal) for part, signal in zip(parts, values, strict=True))
        return cls(train, validation, test, _with_signal(recording, name, np.concatenate(values)))

    @property
    def names(self) -> np.ndarray:
        """Of every sample of the whole, the part that it is in."""
        sizes = {"train": len(self.train), "validation": len(self.validation), "held out": len(self.test)}
        return np.repeat(list(sizes), list(sizes.values()))


def _with_signal(recording: Recording, name: str, values: np.ndarray) -> Recording:
    return Recording(
        {name: values},
        recording.labels,
        recording.trials,
        recording.times,
        recording.channels,
        recording.source,
        recording.notes,
    )


def _check_varies(label: Label, name: str) -> None:
    if (label.values == label.values[:1]).all():
        raise HoldfastError(f"label {name!r} is the same in every sample; there is nothing to learn from it")
