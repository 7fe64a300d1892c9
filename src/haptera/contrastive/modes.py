"""Modes: from the labels of a recording, and the settings of an estimator, to samplers; in words, and strictly.

Floating-point labels are continuous, all others discrete. Several continuous labels are columns of one, several
discrete labels form their combinations. A setting or label that the mode would not use is an error.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from haptera.contrastive.neighbours import LabelSpace
from haptera.contrastive.parts import part_names
from haptera.contrastive.sampling import (
    ContinuousSampler,
    DiscreteSampler,
    Gaussian,
    Marginal,
    Sampler,
    TimeDelta,
    TimeSampler,
)
from haptera.contrastive.signals import Timeline
from haptera.errors import HapteraError, unknown

CONDITIONALS = ("time", "time_delta", "delta", "discrete")


@dataclass(frozen=True)
class Context:
    """What is known about every sample of a timeline.

    Attributes:
        continuous: `(samples, columns)` or None.
        classes: `(samples,)`, codes from 0 on, or None.
        names: of the classes, one text for each code.
        each: the same of every label by itself, for objectives that see one of them.
    """

    continuous: np.ndarray | None = None
    classes: np.ndarray | None = None
    names: np.ndarray | None = None
    each: "tuple[Context, ...]" = ()

    @classmethod
    def of(cls, labels: Sequence[Any], lengths: Sequence[int], several: bool) -> "Context":
        """Read labels as `fit` takes them: an array each, or of several sessions a list of arrays each."""
        continuous: list[np.ndarray] = []
        discrete: list[np.ndarray] = []
        each: list[Context] = []
        for number, label in enumerate(labels):
            values = _join(label, f"label {number}", lengths, several)
            if (values == values[:1]).all():
                raise HapteraError(f"label {number} is the same for every sample; it says nothing about them")
            if values.dtype.kind == "f":
                continuous.append(values.astype(np.float64))
                each.append(cls(continuous[-1]))
            else:
                discrete += list(values.T)
                each.append(cls(None, *_combine(list(values.T))))
        classes, names = _combine(discrete) if discrete else (None, None)
        return cls(np.hstack(continuous) if continuous else None, classes, names, tuple(each))

    def part(self, start: int, stop: int) -> "Context":
        """Return the context of some samples in a row."""
        continuous = None if self.continuous is None else self.continuous[start:stop]
        classes = None if self.classes is None else self.classes[start:stop]
        return Context(continuous, classes, self.names)


@dataclass(frozen=True)
class Mode:
    """How pairs are drawn.

    Attributes:
        conditional: `time`, `time_delta`, `delta`, `discrete`; or `mixed`, `mixed_delta` with both kinds of labels; or
            `parts`, where every label has an objective of its own.
        hybrid: also pairs in time.
        time_offsets: Δ.
        delta: δ.
        period: of the continuous label.
        prior: of a discrete label.
        differences_per_label: D(k) instead of D.
        parts: numbers of labels, as text, and `time`: an objective each, in that order.
    """

    conditional: str
    hybrid: bool = False
    time_offsets: tuple[int, ...] = (1,)
    delta: float | None = None
    period: Any = None
    prior: str = "empirical"
    differences_per_label: bool = False
    parts: tuple[str, ...] = ()

    @classmethod
    def choose(cls, context: Context, settings: dict[str, Any]) -> "Mode":
        """Return the mode that labels, and the settings of an estimator, ask for."""
        wanted, delta = settings["conditional"], settings["delta"]
        if wanted is not None and wanted not in CONDITIONALS:
            raise unknown("conditional", wanted, CONDITIONALS)
        parts = part_names(settings["hybrid"])
        hybrid = settings["hybrid"] is not False and not parts
        found = _check_parts(parts, context, wanted) if parts else _conditional(context, wanted, hybrid)
        steps = settings["time_offsets"]
        offsets = (steps,) if np.ndim(steps) == 0 else tuple(steps)
        if not offsets or not all(isinstance(step, int | np.integer) and step > 0 for step in offsets):
            raise HapteraError(f"time_offsets is {steps!r}; whole numbers of at least 1 were expected")
        numbers = bool(parts) and context.continuous is not None
        by_difference = found in ("time_delta", "mixed") or (numbers and wanted != "delta")
        gaussian = found in ("delta", "mixed_delta") or (numbers and wanted == "delta")
        if gaussian and delta is None:
            raise HapteraError(
                "conditional is 'delta', and delta is not given: it is the spread of the label in a pair"
            )
        unused = {
            "delta": delta is not None and not gaussian,
            "time_offsets": offsets != (1,) and not (hybrid or found == "time" or by_difference or "time" in parts),
            "period": settings["period"] is not None and (bool(parts) or not (by_difference or gaussian)),
            "prior": settings["prior"] != "empirical" and context.classes is None,
            "differences_per_label": settings["differences_per_label"] and found != "mixed",
        }
        for name, is_unused in unused.items():
            if is_unused:
                raise HapteraError(f"{name} is {settings[name]!r}, and pairs drawn by {found!r} do not use it")
        return cls(
            found,
            hybrid,
            tuple(int(step) for step in offsets),
            delta,
            settings["period"],
            settings["prior"],
            settings["differences_per_label"],
            parts,
        )

    def describe(self, context: Context) -> str:
        """The mode in words."""
        if self.parts:
            told = [(name, one.describe(part)) for name, one, part in self._each(context)]
            said = [text if name == "time" else f"label {name}, {text}" for name, text in told]
            return "parts: " + "; ".join(said)
        steps = " or ".join(map(str, self.time_offsets)) + (" sample" if self.time_offsets == (1,) else " samples")
        columns = 0 if context.continuous is None else context.continuous.shape[1]
        label = f"a continuous label of {columns} column{'s' * (columns != 1)}"
        repeats = "" if self.period is None else f", which repeats after {self.period}"
        classes = 0 if context.classes is None else int(context.classes.max()) + 1
        same = f", within each of {classes} classes" if classes and columns else ""
        words = {
            "time": f"time: positives are {steps} later",
            "time_delta": f"continuous: positives by {label}{repeats}, as far apart as after {steps}",
            "delta": f"continuous: positives by {label}{repeats}, {self.delta} apart (Gaussian)",
            "discrete": f"discrete: positives have the same of {classes} classes, {self.prior} prior",
            "mixed": f"mixed: positives by {label}{repeats}, as far apart as after {steps}{same}",
            "mixed_delta": f"mixed: positives by {label}{repeats}, {self.delta} apart (Gaussian){same}",
        }[self.conditional]
        return f"hybrid: {words}; and in time, {steps} later" if self.hybrid else words

    def samplers(self, context: Context, timeline: Timeline) -> list[Sampler]:
        """The sampler of behaviour or time; with `hybrid` that of time after it; or one for each part."""
        if self.parts:
            return [one.samplers(part, timeline)[0] for _, one, part in self._each(context)]
        if self.conditional == "time":
            return [TimeSampler(timeline, self.time_offsets)]
        marginal = Marginal(timeline, context.classes, self.prior)
        behaviour: Sampler
        if self.conditional == "discrete":
            behaviour = DiscreteSampler(marginal)
        else:
            labels = context.continuous
            assert labels is not None
            space = LabelSpace(labels.shape[1], self.period)
            if self.delta is not None:
                change: Gaussian | TimeDelta = Gaussian(labels.shape[1], self.delta)
            else:
                per_label = context.classes if self.differences_per_label else None
                change = TimeDelta(timeline, labels, space, self.time_offsets, per_label)
            behaviour = ContinuousSampler(marginal, labels, space, change)
        return [behaviour, TimeSampler(timeline, self.time_offsets)] if self.hybrid else [behaviour]

    def _each(self, context: Context) -> "Iterator[tuple[str, Mode, Context]]":
        """Yield name, mode and context of each part."""
        for name in self.parts:
            if name == "time":
                yield name, Mode("time", time_offsets=self.time_offsets), Context()
                continue
            part = context.each[int(name)]
            if part.continuous is None:
                yield name, Mode("discrete", prior=self.prior), part
            else:
                found = "time_delta" if self.delta is None else "delta"
                yield name, Mode(found, time_offsets=self.time_offsets, delta=self.delta), part


def _check_parts(parts: Sequence[str], context: Context, wanted: str | None) -> str:
    """Refuse parts that leave a label out, or name one that is not there."""
    numbers = sorted(int(name) for name in parts if name != "time")
    if numbers != list(range(len(context.each))):
        raise HapteraError(
            f"hybrid has the parts {', '.join(parts)}, and {len(context.each)} labels were given; one part for each, "
            "by its number from 0 on, was expected"
        )
    if wanted in ("time", "discrete"):
        raise HapteraError(f"conditional is {wanted!r}, and every part of hybrid goes by its own label; leave it out")
    return "parts"


def _conditional(context: Context, wanted: str | None, hybrid: bool) -> str:
    """Which pairs, from the kinds of labels there are."""
    continuous, discrete = context.continuous is not None, context.classes is not None
    if not continuous and not discrete:
        if hybrid:
            raise HapteraError("hybrid needs a label beside time; none was given")
        if wanted not in (None, "time"):
            raise HapteraError(f"conditional is {wanted!r}, and no label was given; fit(X, label)")
        return "time"
    if wanted == "time" and not hybrid:
        raise HapteraError("conditional is 'time', and a label was given that it would not use; leave one of them out")
    if wanted in ("time_delta", "delta") and not continuous:
        raise HapteraError(
            f"conditional is {wanted!r}, and the label is discrete (its type is not a floating-point number); "
            "give it as float if it is continuous"
        )
    if wanted == "discrete" and continuous:
        raise HapteraError("conditional is 'discrete', and a label is continuous (float); give it as int")
    if not continuous:
        return "discrete"
    if discrete:
        return "mixed_delta" if wanted == "delta" else "mixed"
    return "delta" if wanted == "delta" else "time_delta"


def _join(label: Any, name: str, lengths: Sequence[int], several: bool) -> np.ndarray:
    """One label over all sessions, `(samples, columns)`."""
    if several and (not isinstance(label, list | tuple) or len(label) != len(lengths)):
        raise HapteraError(f"{name} is not a list of {len(lengths)} arrays, one for each session")
    parts = [np.asarray(part) for part in (label if several else [label])]
    for session, (part, length) in enumerate(zip(parts, lengths, strict=True)):
        where = f"{name} of session {session}" if several else name
        if part.ndim not in (1, 2) or len(part) != length:
            raise HapteraError(f"{where} has shape {part.shape}; {length} samples were expected, as in the signal")
        if part.dtype.kind == "f" and not np.isfinite(part).all():
            raise HapteraError(f"{where} has {int((~np.isfinite(part)).sum())} values that are NaN or infinite")
        if part.dtype.kind in "cmM":
            raise HapteraError(f"{where} has type {part.dtype}; numbers or classes were expected")
    parts = [part.reshape(len(part), -1) for part in parts]
    if len({(part.shape[1], part.dtype.kind == "f") for part in parts}) > 1:
        found = ", ".join(f"{part.shape[1]} columns of {part.dtype}" for part in parts)
        raise HapteraError(f"{name} differs between sessions: {found}")
    return np.concatenate(parts)


def _combine(columns: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Codes from 0 on for the combinations of several discrete labels, and a name for each code."""
    parts = [np.unique(one.astype(str) if one.dtype == object else one, return_inverse=True) for one in columns]
    names, codes = parts[0][0].astype(str), parts[0][1]
    for values, more in parts[1:]:
        pairs, codes = np.unique(codes * len(values) + more, return_inverse=True)
        names = np.array([f"{names[pair // len(values)]} {values[pair % len(values)]}" for pair in pairs])
    return codes, names
