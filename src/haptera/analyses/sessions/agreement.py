"""Agreement: whether two sessions mean the same: by codes of classes, units of numbers, and the length of a sample.

Nothing says in which unit a file holds a position. Where most of two ranges lies apart, as that of centimetres and of
metres, a note says so. Cost: quantiles of a label.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from haptera.recordings.label import Label

APART = 0.2
"""Share of two ranges that they have in common, below which a note asks for the unit."""
ENDS = (0.02, 0.98)
"""Quantiles between which a range lies: a few values that are far off say nothing about the unit."""

ALIKE = 0.05
"""Share by which the length of a sample may be off that of another session."""
OTHER_STEP = "a sample is {:g} s long, and {:g} s in {}, so that its windows see another length of time"


def is_other_step(step: float | None, width: float | None) -> bool:
    """Say whether samples are longer or shorter than others; where nobody knows, they are not."""
    return bool(step and width) and abs(float(step or 0) / float(width or 1) - 1) > ALIKE


def doubt_of_samples(steps: Mapping[str, float | None]) -> list[str]:
    """Return a note for each session whose samples are not as long as those of the first.

    >>> doubt_of_samples({"a": 0.1, "b": 0.1, "c": 0.05})
    ['c: a sample is 0.05 s long, and 0.1 s in a, so that its windows see another length of time']
    """
    (first, width), *others = steps.items()
    return [f"{name}: {OTHER_STEP.format(step, width, first)}" for name, step in others if is_other_step(step, width)]


def with_codes(label: Label, classes: Sequence[str]) -> tuple[Label, list[str]]:
    """Return a label with the codes that its classes had elsewhere, new ones behind, and the names of those.

    >>> label, new = with_codes(Label.of(np.array(["b", "c", "x"])), ["a", "b", "c"])
    >>> label.values.tolist(), label.classes, new
    ([1, 2, 3], ('a', 'b', 'c', 'x'), ['x'])
    """
    new = [one for one in label.classes if one not in classes]
    all_classes = (*classes, *new)
    codes = np.array([all_classes.index(one) for one in label.classes], np.int64)
    return Label(codes[label.values], "discrete", all_classes, label.note), new


def doubt_of_ranges(name: str, here: np.ndarray, there: np.ndarray, where: str) -> list[str]:
    """Return a note where the ranges of a number are mostly apart.

    Args:
        name: of the label.
        here: its values, `(samples,)` or `(samples, columns)`, in one session.
        there: in another.
        where: what the other is called.

    >>> doubt_of_ranges("x", np.linspace(0, 100, 50), np.linspace(0, 1, 50), "rat0")
    ['x goes from 2 to 98 here and from 0.02 to 0.98 in rat0; is it in the same unit?']
    """
    columns = zip(*(values.reshape(len(values), -1).T for values in (here, there)), strict=True)
    for column, other in columns:
        (low, high), (least, most) = (np.quantile(values, ENDS) for values in (column, other))
        common, both = min(high, most) - max(low, least), max(high, most) - min(low, least)
        if both > 0 and common < APART * both:
            return [
                f"{name} goes from {low:.3g} to {high:.3g} here and from {least:.3g} to {most:.3g} in {where}; is it "
                "in the same unit?"
            ]
    return []
