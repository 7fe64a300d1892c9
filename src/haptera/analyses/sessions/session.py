"""Sessions: recordings of different animals or days, prepared each by itself, whose labels mean the same.

Classes get the same codes everywhere. Where a label is a class in one session and a number in another, because one of
them holds few different whole numbers, it is taken as a number in all, with a note.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from haptera.analyses.embedding.cutting import is_constant
from haptera.analyses.embedding.plan import Parts, Plan
from haptera.analyses.sessions.agreement import doubt_of_ranges
from haptera.errors import HapteraError
from haptera.recordings.label import Label
from haptera.recordings.recording import Recording


@dataclass(frozen=True, eq=False)
class Session:
    """One recording among several.

    Attributes:
        name: the stem of its file, or with a number where two have the same.
        parts: as it is used.
    """

    name: str
    parts: Parts


def prepare_sessions(recordings: Sequence[Recording], plan: Plan) -> list[Session]:
    """Bring labels into agreement, then prepare each recording by itself."""
    same = agree_on_labels(recordings, plan.labels)
    sessions = []
    for name, recording in zip(session_names([each.source for each in recordings]), same, strict=True):
        try:
            parts = Parts.of(recording, plan)
        except HapteraError as error:
            raise HapteraError(f"{recording.source}: {error}".replace(f"{recording.source}: " * 2, "")) from error
        sessions.append(Session(name, replace(parts, preparation=replace(parts.preparation, name=name))))
    return sessions


def session_names(sources: Sequence[str]) -> list[str]:
    """Return a name for each session.

    >>> session_names(["a/rat.npz", "b/rat.npz", "mouse.nwb"])
    ['rat 1', 'rat 2', 'mouse']
    """
    stems = [Path(source).stem for source in sources]
    numbers = [stems[: place + 1].count(stem) for place, stem in enumerate(stems)]
    return [f"{stem} {number}" if stems.count(stem) > 1 else stem for stem, number in zip(stems, numbers, strict=True)]


def agree_on_labels(recordings: Sequence[Recording], names: Sequence[str]) -> list[Recording]:
    """Return the recordings with labels of one kind, whose classes have the same codes."""
    changed: list[dict[str, Label]] = [{} for _ in recordings]
    for name in names:
        labels = [recording.label(name) for recording in recordings]
        if {label.kind for label in labels} == {"continuous", "discrete"}:
            labels = [_as_number(label, name) for label in labels]
        kinds = {recording.source: _form(label) for recording, label in zip(recordings, labels, strict=True)}
        if len(set(kinds.values())) > 1:
            if flat := [one.source for one in recordings if is_constant(one.label(name))]:
                raise HapteraError(f"{flat[0]}: label {name!r} is the same in every sample; leave that recording out")
            listed = ", ".join(f"{form} in {Path(source).name}" for source, form in kinds.items())
            raise HapteraError(f"label {name!r} is {listed}; one kind was expected, say it as {name}:KIND")
        if labels[0].kind == "discrete":
            labels = _same_codes(labels)
        elif labels[0].kind == "continuous":
            where, first = Path(recordings[0].source).stem, labels[0]
            doubts = [doubt_of_ranges(name, label.values, first.values, where) for label in labels]
            labels = [_noted(label, doubt) for label, doubt in zip(labels, doubts, strict=True)]
        for one, label in zip(changed, labels, strict=True):
            one[name] = label
    pairs = zip(recordings, changed, strict=True)
    return [replace(recording, labels={**recording.labels, **one}) for recording, one in pairs]


def shared_classes(labels: Mapping[str, Label]) -> np.ndarray | None:
    """Return the codes that occur in every session, or None for a label without classes."""
    if any(label.kind != "discrete" for label in labels.values()):
        return None
    first, *others = [np.unique(label.values) for label in labels.values()]
    for each in others:
        first = np.intersect1d(first, each)
    return first


def _form(label: Label) -> str:
    return f"{label.kind}, {label.values.shape[1]} columns" if label.values.ndim > 1 else label.kind


def _as_number(label: Label, name: str) -> Label:
    """Return classes that are numbers as numbers."""
    if label.kind != "discrete":
        return label
    try:
        values = np.array([float(each) for each in label.classes])
    except ValueError:
        return label
    note = f"{name} has {len(values)} different values here and more elsewhere, and is taken as continuous in all"
    return Label(values[label.values], "continuous", note=note)


def _noted(label: Label, notes: list[str]) -> Label:
    return replace(label, note="; ".join([label.note] * bool(label.note) + notes))


def _same_codes(labels: Sequence[Label]) -> list[Label]:
    classes = sorted({each for label in labels for each in label.classes}, key=_order)
    place = {each: code for code, each in enumerate(classes)}
    codes = [np.array([place[each] for each in label.classes], np.int64)[label.values] for label in labels]
    return [Label(code, "discrete", tuple(classes), label.note) for code, label in zip(codes, labels, strict=True)]


def _order(text: str) -> tuple[int, float, str]:
    """Sort numbers by their size, before texts."""
    try:
        return 0, float(text), text
    except ValueError:
        return 1, 0.0, text
