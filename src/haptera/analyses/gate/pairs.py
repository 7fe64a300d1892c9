"""Pairs: what a candidate and the model before it said about the same images, a comparison for each shift and severity.

A comparison is about one model, stream, part, adapter, shift and severity. Its units are images: an image that comes
under several seeds, or several times in one stream, counts once, with the mean of its differences. A stream whose
severity changes with every step is one comparison, for its groups would hold a handful of images each.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np
import pandas as pd

from haptera.errors import HapteraError, unknown
from haptera.measures.images import SAMPLE, scores_of
from haptera.outputs import Outputs

FEWEST = 20
"""Images of a shift and severity below which a cell is compared as a whole."""
MEASURES = ("accuracy", "confidence", "negative_log_likelihood")
LOWER_IS_BETTER = ("negative_log_likelihood",)


@dataclass(frozen=True)
class About:
    """What a comparison is about; `severity` is NaN where there is none."""

    model: str
    stream: str
    part: str
    adapter: str
    shift: str
    severity: float

    @property
    def key(self) -> tuple[Any, ...]:
        """Return the same as a key that is equal to itself, which NaN is not."""
        severity = None if isnan(self.severity) else self.severity
        return self.model, self.stream, self.part, self.adapter, self.shift, severity

    @property
    def place(self) -> str:
        """Return a text such as `contrast 4`."""
        return self.shift if isnan(self.severity) or self.shift in ("clean", "") else f"{self.shift} {self.severity:g}"


@dataclass(frozen=True, eq=False)
class Pairs:
    """One comparison.

    Attributes:
        about: which one.
        images: `(images,)`, the number of each in its data set.
        before: `(images,)`, the score of each by the model before.
        after: `(images,)`, the same by the candidate.
    """

    about: About
    images: np.ndarray
    before: np.ndarray
    after: np.ndarray

    @property
    def differences(self) -> np.ndarray:
        """`(images,)`, after minus before."""
        difference: np.ndarray = self.after - self.before
        return difference


Scores = Mapping[tuple[str, float | None], pd.DataFrame]
"""Shift and severity (None: none) -> a row for each answer: `image`, `score`, `target`."""


def check_measure(measure: str) -> None:
    """Refuse a measure that does not score single images."""
    if measure not in MEASURES:
        raise unknown("measure of single images", measure, MEASURES)


def scores_by_place(
    outputs: Outputs, measure: str = "accuracy", where: str = "the outputs", like: Scores | None = None
) -> Scores:
    """Return the score of every answer, by shift and severity.

    Args:
        outputs: of one cell.
        measure: one of `MEASURES`.
        where: what an error calls the outputs.
        like: scores of the same cell, whose groups these get as well.
    """
    scores = scores_of(outputs)
    if measure not in scores:
        why = "there are no labels" if "accuracy" not in scores else f"only {', '.join(outputs.arrays)} were kept"
        raise HapteraError(f"{where} has no {measure} of single images: {why}")
    columns = {"image": outputs.context.get(SAMPLE, outputs.ids), "score": scores[measure]}
    columns["target"] = np.full(len(outputs), -1) if outputs.targets is None else outputs.targets
    frame = pd.DataFrame(columns)
    for key in ("shift", "severity", "epoch"):
        if key in outputs.context:
            frame[key] = outputs.context[key]
    if "epoch" in frame:
        frame = frame[frame["epoch"] == frame["epoch"].max()]
    names = [name for name in ("shift", "severity") if name in frame]
    groups = list(frame.groupby(names, dropna=False, sort=True)) if names else []
    if like is not None and len(like) == 1 and next(iter(like))[1] is None:
        return {next(iter(like)): frame}
    if like is not None or len(groups) < 2 or min(len(own) for _, own in groups) >= FEWEST:
        return {_place(dict(zip(names, found, strict=True))): own for found, own in groups} or {("", None): frame}
    shifts = sorted(set(frame["shift"])) if "shift" in frame else []
    return {(str(shifts[0]) if len(shifts) == 1 else "", None): frame}


def _place(found: Mapping[str, Any]) -> tuple[str, float | None]:
    severity = float(found.get("severity", np.nan))
    return str(found.get("shift", "")), None if isnan(severity) else severity


def pair_scores(before: Scores, after: Scores, where: str) -> Iterator[tuple[tuple[str, float | None], pd.DataFrame]]:
    """Yield, for each shift and severity of both, a row for each image of both: `image`, `before`, `after`.

    Args:
        before: of the model before.
        after: of the candidate.
        where: what an error calls the cell.
    """
    for place in (each for each in before if each in after):
        one, other = (each.groupby("image")[["score", "target"]].mean() for each in (before[place], after[place]))
        both = one.rename(columns={"score": "before", "target": "label"}).join(other, how="inner")
        labels = both["label"] != both["target"]
        if labels.any():
            raise HapteraError(
                f"{where}: {int(labels.sum()):,} of {len(both):,} images with the same number have another label in "
                f"the other study (image {both.index[labels][0]}), so the two are not about the same data"
            )
        if len(both):
            columns = {
                "image": both.index,
                "before": both["before"].to_numpy(),
                "after": both["score"].to_numpy(),
            }
            yield place, pd.DataFrame(columns)


def join_seeds(found: Mapping[tuple[Any, ...], tuple[About, list[pd.DataFrame]]]) -> list[Pairs]:
    """Return comparisons, of frames for each seed: an image of several seeds counts once."""
    made = []
    for about, frames in found.values():
        frame = frames[0] if len(frames) == 1 else pd.concat(frames).groupby("image", as_index=False).mean()
        made.append(Pairs(about, *(frame[name].to_numpy() for name in ("image", "before", "after"))))
    return made
