"""What the scores of poses say: sentences with their numbers, what to know before believing them, and the page."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from haptera.files.json import plain
from haptera.measures.keypoints import BOX, PIXELS
from haptera.pose.corruptions import corruption_findings, corruption_lines, corruption_section, has_severities
from haptera.pose.further_page import further_line
from haptera.pose.skeletons import Frame, contact_sheet
from haptera.report.figure import Figure
from haptera.report.section import Finding, Listing, Picture, Section, answer, enlarge
from haptera.streams.published import usual_order
from haptera.words import count, interval

CELL = ["model", "stream", "shift", "severity", "adapter"]
RECORD = [*CELL, "part", "individual", "measure", "value", "low", "high", "n", "missing"]
MEASURES = {"normalised_error": "Normalised error", "pck": "PCK"}
LABELS = {"n": "keypoints", "what": "shift and severity"}
DEFINITIONS = {
    "normalised error": "distance between prediction and label, over the distance from nose to eye of that individual "
    "(or the root of the area of the box around the labels)",
    "PCK": "the share of keypoints whose normalised error is at most the threshold",
    "within, out": "other frames of the individuals that the model learnt from; individuals it never saw",
    "intervals": "95 %, over individuals (Student’s t; errors on the logarithm, PCK on the log odds); means are taken "
    "within each individual first. None where there is one individual, or all have the same mean",
}
BY_SHIFT = "by shift and adapter"
ERRORS, SHARES = (f"{name} {BY_SHIFT}" for name in MEASURES.values())
"""Titles of the figures to which answers link."""
FEW = 2
"""Of so many cells all scores are printed."""
SKELETONS = (
    "White rings are labels, dots predictions in the colours of the parts, which the last line names; lines join "
    "predictions."
)
STATISTICS = "Means over individuals. Statistics of BatchNorm are estimated for each individual and shift."


def overall(rows: pd.DataFrame, measure: str | None = None) -> pd.DataFrame:
    """Return the rows of all parts and individuals together."""
    rows = rows[(rows["part"] == "") & (rows["individual"] == "")]
    return rows if measure is None else rows[rows["measure"] == measure]


def normaliser(rows: pd.DataFrame) -> str:
    """Return by what the normalised error is divided."""
    return str(rows.loc[rows["measure"] == "normalised_error", "normalise"].iloc[0])


def headline(rows: pd.DataFrame) -> str:
    """Return how many parts and individuals there are."""
    return ", ".join(count(rows.loc[rows[name] != "", name].nunique(), name) for name in ("part", "individual"))


def times(errors: pd.Series, others: pd.Series) -> pd.Series:
    """Return how many times the others the errors are: 1 where both are 0, infinite where only the others are.

    >>> times(pd.Series([6.0, 0.0, 2.0]), pd.Series([3.0, 0.0, 0.0])).tolist()
    [2.0, 1.0, inf]
    """
    return (errors / others).mask((errors == 0) & (others == 0), 1.0)


def findings(rows: pd.DataFrame) -> list[Finding]:
    """Return how well parts are found, and what adapters win back of what shifts cost."""
    every = overall(rows)
    first = "none" if "none" in set(every["adapter"]) else every["adapter"].iloc[0]
    clean = every[every["adapter"] == first]
    clean = clean if (own := clean[clean["shift"].isin(["clean", ""])]).empty else own
    words = []
    for (_, stream, *_), own in clean.groupby(CELL, sort=False, dropna=False):
        value = own.set_index("measure")["value"]
        words.append(f"{stream}: " * bool(stream) + f"{value['pck']:.1%} of keypoints, ")
        words[-1] += f"normalised error {value['normalised_error']:.3f}"
    scores, normalise = plain(rows[RECORD].to_dict("records")), normaliser(rows)
    told = answer("parts", "Does it find the parts?", "; ".join(words), scores=scores, normalise=normalise)
    if clean["shift"].isin(["clean", ""]).all() and clean["model"].nunique() < 2:
        worst = clean[clean["measure"] == "pck"].sort_values("value").iloc[0]  # of several sets
        told = enlarge(told, f"{worst['stream']}: " * (len(words) > 1) + f"{worst['value']:.1%}", SHARES)
    errors = overall(rows, "normalised_error")
    wide = errors.pivot_table(index=["model", "stream", "shift", "severity"], columns="adapter", values="value")
    if others := [name for name in wide.columns if name != first]:
        told += _adaptation(wide[first], wide[others])
    return told + corruption_findings(rows)


def _adaptation(bare: pd.Series, adapted: pd.DataFrame) -> list[Finding]:
    """Return in how many cells the best adapter lowers the error, and where it does so most, or least harm."""
    ratio = times(bare, adapted.min(axis=1)).sort_values(ascending=False)
    (_, stream, shift, severity), gain, lower = ratio.index[0], ratio.iloc[0], int((ratio > 1).sum())
    adapter, before = adapted.loc[ratio.index[0]].idxmin(), bare.loc[ratio.index[0]]
    where = f"{f'{shift} {severity:g}' if severity > 0 else shift}{f' ({stream})' if stream else ''}: {adapter}"
    cells = f"{lower} of {count(len(ratio), 'cell')}"
    numbers: dict[str, float] = {"largest_gain": gain, "cells_with_lower_error": lower, "cells": len(ratio)}
    if np.isinf(gain):
        del numbers["largest_gain"]
        numbers |= {"largest_before": before, "largest_after": 0.0}
        sentence = f"most under {where} brings the error from {before:.3f} to 0; it lowers the error in {cells}"
    elif lower:
        sentence = f"most under {where} divides the error by {gain:.1f}; it lowers the error in {cells}"
    elif gain > 0:
        numbers["least_harm"] = 1 / gain
        sentence = f"it lowers the error in {cells}; least harm under {where} multiplies it by {1 / gain:.2f}"
    else:
        sentence = f"it lowers the error in {cells}; without it there is none"
    return enlarge(answer("adaptation", "Does adaptation help?", sentence, **numbers), f"lower in {cells}", ERRORS)


def lines(rows: pd.DataFrame) -> Iterator[str]:
    """Yield both scores of every cell with intervals, and the further scores of frames as they are without adaptation.

    Parts and individuals too, where there is one cell only; of shifts at several severities, means over them. The table
    has all scores of all cells.
    """
    many = has_severities(rows)
    shown = rows[rows["shift"] == "clean"] if many else rows
    cells: Any = overall(shown).groupby(CELL, dropna=False)
    for (_, stream, shift, severity, adapter), own in cells:
        shifted = f"{shift} {severity:g}" if severity > 0 else shift
        name = " · ".join(word for word in (stream, shifted, adapter) if isinstance(word, str) and word)
        yield f"{name or 'all':<44} {_scores(own)}"
        bare = shift in ("clean", "") and adapter in ("none", "")
        if (bare or cells.ngroups <= FEW) and (further := further_line(own)):
            yield f"    {further}"
    if many:
        yield from corruption_lines(rows)
    for column in ("part", "individual") if cells.ngroups == 1 and not many else ():
        for each, own in rows[rows[column] != ""].groupby(column, sort=False):
            yield f"  {each!s:<42} {_scores(own)}"


def notes(rows: pd.DataFrame, chosen: bool) -> list[str]:
    """Return in what errors are counted, and how many labelled keypoints have no prediction.

    Args:
        rows: of the table.
        chosen: whether the user said what errors are divided by; if not, the note says why it is this.
    """
    unit = normaliser(rows)
    if unit == BOX:
        why = "" if chosen else "; there are no parts named nose and eye, --normalise takes two others"
        told = [f"errors are over the root of the area of the box around the labels{why}"]
    elif unit == PIXELS:
        why = "" if chosen else ", as one part alone says nothing of the size of the animal"
        told = [f"errors are in pixels{why}"]
    else:
        told = [f"errors are over the distance from {' to '.join(unit.split(','))} of each individual"]
    missing, there = (int(overall(rows, "normalised_error")[name].sum()) for name in ("missing", "n"))
    lost = f"{missing} of {missing + there} labelled keypoints have no prediction"
    return told + ([f"{lost}: PCK counts them as misses, the error leaves them out"] if missing else [])


def sections(
    rows: pd.DataFrame, frames: Sequence[Frame], parts: Sequence[str], skeleton: Sequence[tuple[str, str]]
) -> list[Section]:
    """Return frames with both skeletons, and both scores over shifts, parts and individuals.

    Args:
        rows: of the table.
        frames: to show.
        parts: their names.
        skeleton: pairs of parts between which lines are drawn.
    """
    severity = [f" {value:g}" if value > 0 else "" for value in rows["severity"]]
    table = rows.assign(what=rows["shift"] + severity).drop(columns=["step", "seed"], errors="ignore")
    table = table[[name for name in RECORD if name in table] + [name for name in table if name not in RECORD]]
    order = {name: place for place, name in enumerate(["", "clean", *usual_order(set(rows["shift"]) - {"", "clean"})])}
    table = table.sort_values("shift", key=lambda names: names.map(order), kind="stable")
    table = table.sort_values("adapter", key=lambda names: names != "none", kind="stable")  # unadapted first
    made = []
    if frames:
        picture = Picture("Predicted skeletons", SKELETONS, contact_sheet(frames, parts, skeleton))
        made.append(Section("Frames", "What the model sees, and where it finds the parts.", pictures=(picture,)))
    figures = _heatmaps(overall(table), BY_SHIFT, STATISTICS, "adapter", "what", ("stream",))
    made.append(Section("Shifts", "What shifts cost, and what adaptation wins back.", figures))
    made += filter(None, [corruption_section(rows)])
    for column, title, text, caption in (
        ("part", "Parts", "Which parts are found.", "A part without labels has no row."),
        ("individual", "Individuals", "Which individuals are hard.", "One individual alone has no interval."),
    ):
        own = table[table[column] != ""]
        if own[column].nunique() > 1:  # one alone is in the section before
            figures = _heatmaps(own, f"by {column}", caption, "what", column, ("stream", "adapter"))
            made.append(Section(title, text, figures))
    return [*made, Section("All values", "", (), (Listing("Scores", "One row each.", table, LABELS),))]


def _heatmaps(rows: pd.DataFrame, by: str, caption: str, x: str, y: str, select: tuple[str, ...]) -> tuple[Figure, ...]:
    """Return a heatmap of each score."""
    start = {"adapter": "none"} if "adapter" in select and "none" in set(rows["adapter"]) else {}
    made = []
    for measure, name in MEASURES.items():
        frame = rows.loc[rows["measure"] == measure, [*select, x, y, "value", "low", "high", "n"]]
        limits = (0.0, 1.0 if measure == "pck" else float(frame["value"].max()))
        labels = {"value": name, "n": "keypoints", "what": "shift"}
        figure = Figure(
            f"{name} {by}", caption, frame, kind="heatmap", x=x, y=y, value=("value",), low="low", high="high",
            select=select, start=start, labels=labels, limits=limits,
        )  # fmt: skip
        made.append(figure)
    return tuple(made)


def _scores(rows: pd.DataFrame) -> str:
    words = []
    for measure in MEASURES:
        row = rows[rows["measure"] == measure].iloc[0]
        label = "error" if measure == "normalised_error" else f"PCK@{row['threshold']:g}"
        words.append(f"{label} {row['value']:.3f}{interval(row['low'], row['high'], digits=3)}")
    return "   ".join(words)
