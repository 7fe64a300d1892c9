"""Readings of a label beside one another: their means as numbers, and a sentence of them."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from haptera.analyses.embedding.comparison import value_of
from haptera.analyses.embedding.findings import UNITS, score_text

Shown = Mapping[str, tuple[str, str]]
"""Name of a number -> what a label is read from, and by which decoder."""


def mean_scores(rows: pd.DataFrame, shown: Shown) -> dict[str, float | None]:
    """Return the mean of each reading over the rows of one label and measure; None for those that there are none of."""
    return {name: value_of(rows, what=what, decoder=decoder) for name, (what, decoder) in shown.items()}


def reading_lead(label: str, kind: str, score: float | None) -> tuple[str, str]:
    """Return a score as a page shows it in large, and the title of the figure that shows it.

    >>> reading_lead("heading", "angle", 12.345)
    ('12.3 deg median', 'Decoding of heading')
    """
    return "" if score is None else f"{score_text(score, kind)}{UNITS[kind]}", f"Decoding of {label}"


def reading_sentence(
    label: str, kind: str, numbers: Mapping[str, Any], own: str, others: Mapping[str, str], where: str
) -> str:
    """Return the score of one reading and where it was measured, then those of others that are known, in words."""
    known = [f"{text} {score_text(numbers[name], kind)}" for name, text in others.items() if numbers[name] is not None]
    return ", ".join([f"{label} {score_text(numbers[own], kind)}{UNITS[kind]} on {where}", *known])
