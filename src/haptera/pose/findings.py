"""What the scores of poses say, in sentences with their numbers, and what to know before believing them."""

from typing import Any

import pandas as pd

from haptera.files.json import plain
from haptera.measures.keypoints import BOX, PIXELS
from haptera.report.section import Finding
from haptera.words import count, interval

CELL = ["model", "stream", "shift", "severity", "adapter"]
RECORD = [*CELL, "part", "individual", "measure", "value", "low", "high", "n", "missing"]
DEFINITIONS = {
    "normalised error": "distance between prediction and label, over the distance from nose to eye of that individual "
    "(or the root of the area of the box around the labels)",
    "PCK": "the share of keypoints whose normalised error is at most the threshold",
    "within, out": "other frames of the individuals that the model learnt from; individuals it never saw",
    "intervals": "95 %, over individuals (Student’s t; errors on the logarithm, PCK on the log odds); means are taken "
    "within each individual first. None where there is one individual, or all have the same mean",
}


def overall(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of all parts and individuals together."""
    return rows[(rows["part"] == "") & (rows["individual"] == "")]


def headline(rows: pd.DataFrame) -> str:
    """Return how many parts and individuals there are."""
    counts = {name: rows.loc[rows[name] != "", name].nunique() for name in ("part", "individual")}
    return ", ".join(count(number, name) for name, number in counts.items())


def findings(rows: pd.DataFrame) -> list[Finding]:
    """Return how well parts are found, and what adapters win back of what shifts cost."""
    every = overall(rows)
    first = "none" if "none" in set(every["adapter"]) else every["adapter"].iloc[0]
    clean = every[(every["shift"].isin(["clean", ""])) & (every["adapter"] == first)]
    clean = every[every["adapter"] == first] if clean.empty else clean
    words = []
    for (_, stream, *_), own in clean.groupby(CELL, sort=False, dropna=False):
        share, error = (float(own.loc[own["measure"] == name, "value"].iloc[0]) for name in ("pck", "normalised_error"))
        words.append(f"{stream}: " * bool(stream) + f"{share:.1%} of keypoints, normalised error {error:.3f}")
    numbers = {"scores": plain(rows[RECORD].to_dict("records")), "normalise": str(rows["normalise"].iloc[0])}
    found = [Finding("parts", "Does it find the parts?", "; ".join(words), numbers)]
    errors = every[every["measure"] == "normalised_error"]
    wide = errors.pivot_table(index=["model", "stream", "shift", "severity"], columns="adapter", values="value")
    if others := [name for name in wide.columns if name != first]:
        ratio = (wide[first] / wide[others].min(axis=1)).sort_values(ascending=False)
        _, stream, shift, severity = ratio.index[0]
        best, lower = wide.loc[ratio.index[0], others].idxmin(), int((ratio > 1).sum())
        sentence = (
            f"most under {shift} {severity:g} ({stream}): {best} divides the error by {ratio.iloc[0]:.1f}; "
            f"it lowers the error in {lower} of {len(ratio)} cells"
        )
        numbers = {"largest_gain": ratio.iloc[0], "cells_with_lower_error": lower, "cells": len(ratio)}
        found.append(Finding("adaptation", "Does adaptation help?", sentence, numbers))
    return found


def lines(rows: pd.DataFrame) -> list[str]:
    """Return both scores of every cell with intervals; parts and individuals too, where there is one cell only."""
    cells: list[tuple[Any, pd.DataFrame]] = list(overall(rows).groupby(CELL, dropna=False))
    found = []
    for (_, stream, shift, severity, adapter), own in cells:
        shifted = f"{shift} {severity:g}" if severity > 0 else shift
        name = " · ".join(word for word in (stream, shifted, adapter) if isinstance(word, str) and word)
        found.append(f"{name or 'all':<44} {_scores(own)}")
    if len(cells) > 1:
        return found
    for column in ("part", "individual"):
        names = rows.loc[rows[column] != "", column].unique()
        found += [f"  {name:<42} {_scores(rows[rows[column] == name])}" for name in names]
    return found


def notes(rows: pd.DataFrame, chosen: bool) -> list[str]:
    """Return in what errors are counted, and how many labelled keypoints have no prediction.

    Args:
        rows: of the table.
        chosen: whether the user said what errors are divided by.
    """
    found = [_unit(str(rows["normalise"].iloc[0]), chosen)]
    every = overall(rows)
    errors = every[every["measure"] == "normalised_error"]
    if missing := int(errors["missing"].sum()):
        found.append(
            f"{missing} of {missing + int(errors['n'].sum())} labelled keypoints have no prediction: PCK counts them "
            "as misses, the error leaves them out"
        )
    return found


def _unit(normalise: str, chosen: bool) -> str:
    """Return in what errors are counted, and why where nobody chose it."""
    why = "" if chosen else "; there are no parts named nose and eye, --normalise takes two others"
    if normalise == BOX:
        return f"errors are over the root of the area of the box around the labels{why}"
    if normalise == PIXELS:
        return "errors are in pixels" + ("" if chosen else ", as one part alone says nothing of the size of the animal")
    return f"errors are over the distance from {' to '.join(normalise.split(','))} of each individual"


def _scores(rows: pd.DataFrame) -> str:
    words = []
    for measure in ("normalised_error", "pck"):
        row = rows[rows["measure"] == measure].iloc[0]
        label = "error" if measure == "normalised_error" else f"PCK@{row['threshold']:g}"
        words.append(f"{label} {row['value']:.3f}{interval(row['low'], row['high'], digits=3)}")
    return "   ".join(words)
