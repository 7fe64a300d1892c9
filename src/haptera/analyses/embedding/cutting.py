"""Cutting: what of a recording can be learnt from, and where it is cut so that every part holds something to learn."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product

import numpy as np

from haptera.errors import HapteraError
from haptera.recordings.kinds import MANY
from haptera.recordings.label import Label
from haptera.recordings.preparation import varies
from haptera.recordings.recording import Recording

LONG = 30
"""Samples in a run of equal values, on average, that can be cut into three parts."""
NAMED = 10
"""Units or classes that a note names; of more, the first."""


def block_label(recording: Recording, parts: Mapping[str, Recording], labels: Sequence[str]) -> tuple[str, str] | None:
    """Return a label by whose blocks a recording is to be cut, and why; None where there is none.

    That is a label of few values that is always the same in a part, though not in the recording, or one in long runs
    of which most of the held-out part was never seen before.
    """
    for name, (title, part) in product(labels, parts.items()):
        label = recording.label(name)
        few = label.values.ndim == 1 and len(np.unique(label.values)) <= MANY
        if (few or label.kind == "discrete") and is_constant(part.label(name)) and not is_constant(label):
            return name, f"the same in all of the {title} part"
    *_, known, test = parts.values()
    for name in labels:
        label = recording.label(name)
        if label.kind != "discrete" or len(label) < LONG * (1 + int((label.values[1:] != label.values[:-1]).sum())):
            continue
        if 2 * int((~np.isin(test.label(name).values, known.label(name).values)).sum()) > len(test):
            return name, "of other classes in most of the held-out part than before"
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


def is_constant(label: Label) -> bool:
    """Say whether a label is the same in every sample."""
    return bool((label.values == label.values[:1]).all())


def varying_channels(train: Recording, name: str) -> tuple[np.ndarray, list[str]]:
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


def unseen_note(train: Recording, test: Recording, name: str) -> str:
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


def without_single_trial(recording: Recording) -> Recording:
    """Return the recording without trials where all samples are of the same one."""
    trials = recording.trials
    return recording if trials is None or (trials != trials[:1]).any() else replace(recording, trials=None)


def check_lengths(parts: Sequence[Recording], source: str, architecture: str) -> None:
    """Refuse a recording of which a part is shorter than a window of an encoder whose name says how long that is."""
    found = re.search(r"offset(\d+)", architecture)
    lengths, need = [len(part) for part in parts], int(found[1]) if found else 1
    if min(lengths[0], lengths[-1]) < need:
        raise HapteraError(
            f"{source} has {sum(lengths):,} samples, {lengths[0]:,} to learn from and {lengths[-1]:,} held out; a "
            f"window of {architecture} alone needs {need}"
        )
