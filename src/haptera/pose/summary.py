"""Summary: the scores of a pose model in a few lines of text, and what to know before believing them."""

from typing import Any

import pandas as pd

from haptera.measures.keypoints import BOX, PIXELS

CELL = ["model", "stream", "shift", "severity", "adapter"]


def overall(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of all parts and individuals together."""
    return rows[(rows["part"] == "") & (rows["individual"] == "")]


def lines(rows: pd.DataFrame) -> list[str]:
    """Both scores of every cell with intervals; parts and individuals too, where there is one cell only."""
    cells: list[tuple[Any, pd.DataFrame]] = list(overall(rows).groupby(CELL, dropna=False))
    found = []
    for (_, stream, shift, severity, adapter), own in cells:
        shifted = f"{shift} {severity:g}" if severity > 0 else shift
        name = " · ".join(word for word in (stream, shifted, adapter) if isinstance(word, str) and word)
        found.append(f"{name or 'all':<44} {_text(own)}")
    if len(cells) > 1:
        return found
    for column in ("part", "individual"):
        names = rows.loc[rows[column] != "", column].unique()
        found += [f"  {name:<42} {_text(rows[rows[column] == name])}" for name in names]
    return found


def notes(rows: pd.DataFrame, chosen: bool) -> list[str]:
    """In what errors are counted, and how many labelled keypoints have no prediction.

    Args:
        rows: of the table.
        chosen: whether the user said what errors are divided by.
    """
    found = [unit(str(rows["normalise"].iloc[0]), chosen)]
    every = overall(rows)
    errors = every[every["measure"] == "normalised_error"]
    if missing := int(errors["missing"].sum()):
        found.append(
            f"{missing} of {missing + int(errors['n'].sum())} labelled keypoints have no prediction: PCK counts them "
            "as misses, the error leaves them out"
        )
    return found


def unit(normalise: str, chosen: bool) -> str:
    """Say in what errors are counted, and why where nobody chose it."""
    why = "" if chosen else "; there are no parts named nose and eye, --normalise takes two others"
    if normalise == BOX:
        return f"errors are over the root of the area of the box around the labels{why}"
    if normalise == PIXELS:
        return "errors are in pixels" + ("" if chosen else ", as one part alone says nothing of the size of the animal")
    return f"errors are over the distance from {' to '.join(normalise.split(','))} of each individual"


def _text(rows: pd.DataFrame) -> str:
    words = []
    for measure in ("normalised_error", "pck"):
        row = rows[rows["measure"] == measure].iloc[0]
        label = "error" if measure == "normalised_error" else f"PCK@{row['threshold']:g}"
        known = row["low"] == row["low"]
        words.append(f"{label} {row['value']:.3f}" + (f" ({row['low']:.3f} .. {row['high']:.3f})" if known else ""))
    return "   ".join(words)
