"""Plan: what an analysis of a recording fits and compares, checked before anything costs time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from haptera.analyses.embedding.baselines import BASELINES, available_baselines, evenly_spaced
from haptera.analyses.embedding.cutting import (
    block_label,
    check_lengths,
    cut_blocks,
    is_constant,
    unseen_note,
    varying_channels,
    without_single_trial,
)
from haptera.analyses.embedding.decoding import nested_folds
from haptera.errors import HapteraError, unknown
from haptera.files.fingerprint import fingerprint
from haptera.recordings.label import Label
from haptera.recordings.preparation import Scaling
from haptera.recordings.prepared import Preparation
from haptera.recordings.recording import Recording

MODES = ("label", "time", "hybrid")
TRIAL, TIME = "trial", "time"
DEFAULTS: Mapping[str, Any] = {
    "model_architecture": "offset10-model",
    "output_dimension": 3,
    "max_iterations": 300,
    "learning_rate": 1e-3,
}
"""Settings of the estimator where nobody gives others: three dimensions to look at, and so few steps that shuffled
labels are not learnt by heart."""
OFFSETS = {"label": 10, "hybrid": 10, "time": 3}
"""Samples between the two of a pair. Labels are compared after 10, as in the source. By time alone fewer are better to
decode from; but then windows overlap, which is enough to tell a pair, and shuffled samples fit better than chance."""
BLOCKS = "{0} is {1}, as in a block design; so every block of it is cut by itself, and its end is held out"


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
        baselines: `pca`, `factors`, `vae`, `tsne`, `umap`.
        baseline_samples: evenly spaced samples that t-SNE and UMAP, which have no map for new ones, embed at most, and
            at which they are scored; 0 is all of them.
        folds: decode a second time over so many folds of whole trials, at least 3, each with a fit of its own; `trial`
            holds out each trial by itself; 0 for none.
        topology: whether to count rings.
        smoothing: standard deviation of a Gaussian, in samples; 0 for none.
        causal: whether smoothing looks back only.
        zscore: whether channels are scaled by means and deviations of the training part.
        seed: the first one.
        settings: of the estimator, beside `DEFAULTS`.
        parts: a label or `time`, and the dimensions that its pairs shape (8.3); labels of no part are only decoded.
    """

    signal: str | None = None
    labels: tuple[str, ...] = ()
    mode: str | None = None
    held: float = 0.3
    chosen_on: float = 0.2
    seeds: int = 3
    shuffles: int = 3
    baselines: tuple[str, ...] = field(default_factory=available_baselines)
    baseline_samples: int = 3000
    topology: bool = True
    smoothing: float = 0.0
    causal: bool = False
    zscore: bool = False
    folds: int | str = 0
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[tuple[str, tuple[int, ...]], ...] = ()

    def __post_init__(self) -> None:
        if self.mode is not None and self.mode not in MODES:
            raise unknown("mode", self.mode, MODES)
        if self.mode in ("label", "hybrid") and not self.labels:
            raise HapteraError(f"mode is {self.mode!r}, and no label was named; name one, or embed by time")
        for name in self.baselines:
            if name not in BASELINES:
                raise unknown("baseline", name, BASELINES)
        for name, least in (("seeds", 1), ("shuffles", 0), ("baseline_samples", 0)):
            if getattr(self, name) < least:
                raise HapteraError(f"{name} is {getattr(self, name)}; at least {least} was expected")
        if 0 < self.baseline_samples < 100:
            raise HapteraError(f"baseline_samples is {self.baseline_samples}; 100 or more, or 0 for all, was expected")
        if isinstance(self.folds, str) and self.folds != TRIAL:
            raise unknown("folds", self.folds, [TRIAL, "a number of at least 3"])
        if isinstance(self.folds, int) and self.folds and self.folds < 3:
            raise HapteraError(f"folds is {self.folds}; at least 3, or 0 for none, was expected")
        self._check_parts()
        if self.smoothing < 0:
            raise HapteraError(f"smoothing is {self.smoothing}; 0 samples or more were expected")

    def _check_parts(self) -> None:
        names = [name for name, _ in self.parts]
        if not names:
            return
        if self.mode is not None:
            raise HapteraError(f"mode is {self.mode!r}, and parts say how each of them goes; leave one of them out")
        for name in names:
            if name != TIME and name not in self.labels:
                raise unknown("label of a part", name, (*self.labels, TIME))
        if len(set(names)) < len(names) or set(names) == {TIME}:
            raise HapteraError(f"the parts are {', '.join(names)}; every label once, and at least one, was expected")

    @property
    def by(self) -> str:
        """Return the mode, chosen if nobody did."""
        if self.parts:
            return "hybrid"
        return self.mode or ("label" if self.labels else "time")

    def baseline_rows(self, name: str, samples: int) -> np.ndarray:
        """Return the samples that a baseline embeds."""
        few = self.baseline_samples if BASELINES[name].sees_everything else 0
        return evenly_spaced(samples, few or samples)

    @property
    def facts(self) -> dict[str, Any]:
        """Return the parts of the embedding, if there are some, as JSON can hold them."""
        return {"parts": {name: list(some) for name, some in self.parts}} if self.parts else {}

    @property
    def training_labels(self) -> tuple[str, ...]:
        """Return the labels that encoders learn from; by time alone there is none."""
        if self.parts:
            return tuple(name for name, _ in self.parts if name != TIME)
        return () if self.by == "time" else self.labels

    def estimator_settings(self, recording: Recording, seed: int) -> dict[str, Any]:
        """Return all settings of the estimator for this recording."""
        settings = dict(DEFAULTS) | dict(self.settings) | {"random_state": seed}
        if "-mse" in str(settings["model_architecture"]):
            # Such an embedding has no length to compare angles by, and would grow without end by the other loss.
            settings = {"distance": "euclidean", "positive_in_denominator": True} | settings
        by_classes = all(recording.label(name).kind == "discrete" for name in self.labels)
        # By classes alone, or by a Gaussian around a label, no pair depends on time.
        if self.by != "label" or not (by_classes or settings.get("delta") is not None):
            settings.setdefault("time_offsets", OFFSETS[self.by])
        if self.parts:
            number = {name: str(place) for place, name in enumerate(self.training_labels)} | {TIME: TIME}
            settings["hybrid"] = {number[name]: list(dimensions) for name, dimensions in self.parts}
        elif self.by == "hybrid":
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
        preparation: what was done to the signal.
    """

    train: Recording
    validation: Recording
    test: Recording
    whole: Recording
    preparation: Preparation

    @classmethod
    def of(cls, recording: Recording, plan: Plan) -> "Parts":
        """Hold out the last part."""
        name = _signal_name(recording, plan)
        rest, test = recording.split(plan.held)
        train, validation = without_single_trial(rest).split(plan.chosen_on)
        if block := block_label(recording, {"first": train, "held-out": test}, plan.training_labels):
            rows = cut_blocks(recording.label(block[0]).values, plan.held, plan.chosen_on)
            whole = replace(recording, times=None)[np.concatenate(rows)]
            whole = replace(whole, notes=(*whole.notes, BLOCKS.format(*block)))
            return cls._prepare(tuple(recording[part] for part in rows), whole, name, plan)
        advice = "" if recording.trials is None else "; folds hold out whole trials instead"
        return cls._prepare((train, validation, test), recording, name, plan, advice)

    @classmethod
    def folds(cls, recording: Recording, plan: Plan) -> "Iterator[Parts]":
        """Hold out whole trials, each in one fold; the whole is in the order of the parts, without times."""
        name = _signal_name(recording, plan)
        if recording.trials is None:
            raise HapteraError(f"folds hold out whole trials, and {recording.source} has none; name the trials")
        count = len(np.unique(recording.trials)) if isinstance(plan.folds, str) else plan.folds
        for rows in nested_folds(recording.trials, count, plan.seed):
            whole = replace(recording, times=None)[np.concatenate(rows)]
            yield cls._prepare(tuple(recording[part] for part in rows), whole, name, plan)

    @classmethod
    def _prepare(
        cls, parts: tuple[Recording, ...], whole: Recording, name: str, plan: Plan, advice: str = ""
    ) -> "Parts":
        """Leave out what is silent, then smooth each part by itself, then scale by the training part."""
        for label in plan.training_labels:
            _check_varies(parts[0].label(label), label, " of the training part")
        check_lengths(parts, whole.source, str(plan.settings.get("model_architecture", DEFAULTS["model_architecture"])))
        kept, notes = varying_channels(parts[0], name)
        made = _preparation(whole, name, kept, plan)
        values = [made.values(part) for part in parts]
        if plan.zscore:
            made = replace(made, scaling=Scaling.of(values[0]))
            values = [made.values(part) for part in parts]
        notes += [note for label in plan.labels if (note := whole.label(label).note)]
        notes += [note + advice for label in plan.labels if (note := unseen_note(parts[0], parts[2], label))]
        train, validation, test, every = (
            replace(part.with_channels(name, kept), signals={name: signal}, notes=(*part.notes, *notes))
            for part, signal in zip((*parts, whole), (*values, np.concatenate(values)), strict=True)
        )
        return cls(train, validation, test, every, made)

    def fingerprint(self) -> str:
        """Return a fingerprint of everything that encoders and decoders see."""
        parts = (self.train, self.validation, self.test)
        return fingerprint([(part.signal(), dict(part.labels), part.blocks) for part in parts])

    @property
    def names(self) -> np.ndarray:
        """Return the part of every sample of the whole."""
        sizes = {"train": len(self.train), "validation": len(self.validation), "held out": len(self.test)}
        return np.repeat(list(sizes), list(sizes.values()))


def without_constant_labels(recording: Recording, plan: Plan) -> tuple[Recording, Plan]:
    """Return both without labels that are the same in every sample, with a note, as long as another one is left.

    A single trial is none, unless folds are asked for, which say so.
    """
    if not plan.folds and (apart := without_single_trial(recording)) is not recording:
        recording = replace(apart, notes=(*apart.notes, "all samples are of one trial; parts are cut in time"))
    parts = [name for name, _ in plan.parts]  # what shapes the embedding cannot be left out
    kept = tuple(name for name in plan.labels if name in parts or not is_constant(recording.label(name)))
    if not kept or len(kept) == len(plan.labels):
        return recording, plan
    left = ", ".join(name for name in plan.labels if name not in kept)
    note = f"{left} left out, the same in every sample"
    return replace(recording, notes=(*recording.notes, note)), replace(plan, labels=kept)


def _signal_name(recording: Recording, plan: Plan) -> str:
    """Return the name of the signal, after checking that everything that the plan names is there and changes."""
    recording.signal(plan.signal)  # says so if there is none, or more than one
    for label in plan.labels:
        _check_varies(recording.label(label), label)
    return next(iter(recording.signals)) if plan.signal is None else plan.signal


def _preparation(recording: Recording, name: str, kept: np.ndarray, plan: Plan) -> Preparation:
    """Return how channels are chosen and smoothed; they are not scaled yet."""
    places = tuple(np.flatnonzero(kept).tolist())
    names = recording.channel_names(name)
    title = Path(recording.source).stem
    of = (tuple(names[place] for place in places), places, len(kept), recording.step)
    labels = tuple((label, recording.label(label).kind) for label in plan.training_labels)
    classes = tuple(recording.label(label).classes for label in plan.training_labels)
    return Preparation(title, name, *of, plan.smoothing, plan.causal, labels=labels, classes=classes)


def _check_varies(label: Label, name: str, where: str = "") -> None:
    if is_constant(label):
        raise HapteraError(f"label {name!r} is the same in every sample{where}; there is nothing to learn from it")
