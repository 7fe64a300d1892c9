"""Plan: what an analysis of a recording fits and compares, checked before anything costs time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from haptera.analyses.embedding.baselines import BASELINES, available_baselines
from haptera.analyses.embedding.decoding import nested_folds
from haptera.errors import HapteraError, unknown
from haptera.files.fingerprint import fingerprint
from haptera.recordings.label import Label
from haptera.recordings.preparation import Scaling, varies
from haptera.recordings.prepared import Preparation
from haptera.recordings.recording import Recording

MODES = ("label", "time", "hybrid")
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
BLOCKS = (
    "{0} is the same in all of the first part, as in a block design; so every block of it is cut by itself, and its "
    "end is held out"
)
NAMED = 10
"""Units or classes that a note names; of more, the first."""


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
        folds: decode a second time over so many folds of whole trials, at least 3, each with a fit of its own; 0 for
            none.
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
    baselines: tuple[str, ...] = field(default_factory=available_baselines)
    topology: bool = True
    smoothing: float = 0.0
    causal: bool = False
    zscore: bool = False
    folds: int = 0
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.mode is not None and self.mode not in MODES:
            raise unknown("mode", self.mode, MODES)
        if self.mode in ("label", "hybrid") and not self.labels:
            raise HapteraError(f"mode is {self.mode!r}, and no label was named; name one, or embed by time")
        for name in self.baselines:
            if name not in BASELINES:
                raise unknown("baseline", name, BASELINES)
        for name, least in (("seeds", 1), ("shuffles", 0)):
            if getattr(self, name) < least:
                raise HapteraError(f"{name} is {getattr(self, name)}; at least {least} was expected")
        if self.folds and self.folds < 3:
            raise HapteraError(f"folds is {self.folds}; at least 3, or 0 for none, was expected")
        if self.smoothing < 0:
            raise HapteraError(f"smoothing is {self.smoothing}; 0 samples or more were expected")

    @property
    def by(self) -> str:
        """Return the mode, chosen if nobody did."""
        return self.mode or ("label" if self.labels else "time")

    @property
    def training_labels(self) -> tuple[str, ...]:
        """Return the labels that encoders learn from; by time alone there is none."""
        return () if self.by == "time" else self.labels

    def estimator_settings(self, recording: Recording, seed: int) -> dict[str, Any]:
        """Return all settings of the estimator for this recording."""
        settings = dict(DEFAULTS) | dict(self.settings) | {"random_state": seed}
        if str(settings["model_architecture"]).endswith("-mse"):
            # Such an embedding has no length to compare angles by, and would grow without end by the other loss.
            settings = {"distance": "euclidean", "positive_in_denominator": True} | settings
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
        train, validation = rest.split(plan.chosen_on)
        if block := _block_label(recording, train, plan):
            rows = cut_blocks(recording.label(block).values, plan.held, plan.chosen_on)
            whole = replace(recording, times=None)[np.concatenate(rows)]
            whole = replace(whole, notes=(*whole.notes, BLOCKS.format(block)))
            return cls._prepare(tuple(recording[part] for part in rows), whole, name, plan)
        advice = "" if recording.trials is None else "; folds hold out whole trials instead"
        return cls._prepare((train, validation, test), recording, name, plan, advice)

    @classmethod
    def folds(cls, recording: Recording, plan: Plan) -> "Iterator[Parts]":
        """Hold out whole trials, each in one fold; the whole is in the order of the parts, without times."""
        name = _signal_name(recording, plan)
        if recording.trials is None:
            raise HapteraError(f"folds hold out whole trials, and {recording.source} has none; name the trials")
        for rows in nested_folds(recording.trials, plan.folds, plan.seed):
            whole = replace(recording, times=None)[np.concatenate(rows)]
            yield cls._prepare(tuple(recording[part] for part in rows), whole, name, plan)

    @classmethod
    def _prepare(
        cls, parts: tuple[Recording, ...], whole: Recording, name: str, plan: Plan, advice: str = ""
    ) -> "Parts":
        """Leave out what is silent, then smooth each part by itself, then scale by the training part."""
        for label in plan.training_labels:
            _check_varies(parts[0].label(label), label, " of the training part")
        kept, notes = _varying_channels(parts[0], name)
        made = _preparation(whole, name, kept, plan)
        values = [made.values(part) for part in parts]
        if plan.zscore:
            made = replace(made, scaling=Scaling.of(values[0]))
            values = [made.values(part) for part in parts]
        notes += [note for label in plan.labels if (note := whole.label(label).note)]
        notes += [note + advice for label in plan.labels if (note := _unseen_note(parts[0], parts[2], label))]
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


def _block_label(recording: Recording, train: Recording, plan: Plan) -> str | None:
    """Return a label of classes that is always the same in the training part, though not in the recording."""
    for name in plan.training_labels:
        label = recording.label(name)
        if label.kind == "discrete" and len(np.unique(train.label(name).values)) < 2 <= len(np.unique(label.values)):
            return name
    return None


def cut_blocks(values: np.ndarray, held: float, chosen_on: float) -> tuple[np.ndarray, ...]:
    """Return rows of training, validation and held-out part, each the same share of every run of equal values.

    >>> [rows.tolist() for rows in cut_blocks(np.array([0] * 4 + [1] * 4), 0.25, 0.34)]
    [[0, 1, 4, 5], [2, 6], [3, 7]]
    """
    ends = [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1), len(values)]
    parts: tuple[list[np.ndarray], ...] = ([], [], [])
    for start, stop in pairwise(ends):
        last = start + round((stop - start) * (1 - held))
        middle = start + round((last - start) * (1 - chosen_on))
        for part, rows in zip(parts, np.split(np.arange(start, stop), [middle - start, last - start]), strict=True):
            part.append(rows)
    return tuple(np.concatenate(part) for part in parts)


def without_constant_labels(recording: Recording, plan: Plan) -> tuple[Recording, Plan]:
    """Return both without labels that are the same in every sample, with a note, as long as another one is left."""
    kept = tuple(name for name in plan.labels if not _is_constant(recording.label(name)))
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
    return Preparation(title, name, *of, plan.smoothing, plan.causal)


def _varying_channels(train: Recording, name: str) -> tuple[np.ndarray, list[str]]:
    """Return which channels change in the training part, and what is to be said about the others."""
    kept = varies(train.signal(name))
    if kept.all():
        return kept, []
    what = train.channel_noun(name)
    if not kept.any():
        raise HapteraError(f"{train.source}: none of the {len(kept)} {what} changes in the training part")
    silent = [one for one, stays in zip(train.channel_names(name), kept, strict=True) if not stays]
    some = ", ".join(silent[:NAMED]) + ", ..." * (len(silent) > NAMED)
    return kept, [f"{len(silent)} of {len(kept)} {what} left out, which never change in the training part: {some}"]


def _unseen_note(train: Recording, test: Recording, name: str) -> str:
    """Return what is to be said about held-out classes that no encoder and no decoder learns."""
    label, known = test.label(name), train.label(name).values
    if label.kind != "discrete" or not len(strange := np.setdiff1d(label.values, known)):
        return ""
    share = int(np.isin(label.values, strange).sum())
    some = ", ".join(label.classes[code] for code in strange[:NAMED]) + ", ..." * (len(strange) > NAMED)
    return (
        f"training never saw {len(strange)} of the held-out classes of {name} ({some}), which are {share:,} of "
        f"{len(label):,} held-out samples and cannot be read"
    )


def _is_constant(label: Label) -> bool:
    return bool((label.values == label.values[:1]).all())


def _check_varies(label: Label, name: str, where: str = "") -> None:
    if _is_constant(label):
        raise HapteraError(f"label {name!r} is the same in every sample{where}; there is nothing to learn from it")
