"""The page of a gate: every comparison with its interval, the bars, and the images that did it."""

from typing import TYPE_CHECKING

import pandas as pd

from haptera.analyses.gate.decide import FELL
from haptera.report.figure import Figure
from haptera.report.section import Listing, Section

if TYPE_CHECKING:
    from haptera.analyses.gate.analysis import Gate

LABELS = {"difference": "paired difference", "low": "low (corrected)", "high": "high (corrected)"}
COMPARISONS = (
    "One row for each shift and severity: the mean over the images that both studies have, and after minus before with "
    "an interval that holds together with all the others at 95 %. Lost: right before and wrong now; won: the reverse."
)
LINES = "The candidate minus the model before, with simultaneous intervals; one that fell lies below zero as a whole."
WORST = "Images that the model before got right and the candidate gets wrong under what fell, most shifts first."


def sections(gate: "Gate") -> list[Section]:
    """Return the sections."""
    rows = gate.comparisons
    compared = Section.of(
        "Comparisons",
        f"The candidate beside {gate.baseline}, on the same images.",
        _lines(rows),
        Listing("Comparisons", COMPARISONS, rows.drop(columns="part"), LABELS),
    )
    caption = "Every value that a bar is about."
    bars = Section.of("Bars", "What the candidate must reach.", Listing("Bars", caption, gate.bars))
    worst = Section.of("Worst images", WORST, *gate.pictures, Listing("Images", WORST, gate.worst))
    return [section for section in (compared, bars, worst) if section is not None]


def _lines(rows: pd.DataFrame) -> Figure | None:
    """Return the differences of what has a severity; models, streams and adapters under which most fell come first."""
    shown = rows[rows["severity"].notna() & ~rows["shift"].isin(["", "clean"]) & rows["low"].notna()]
    if shown.empty:
        return None
    where = ["model", "stream", "adapter"]
    fell = (shown["verdict"] == FELL).groupby([shown[name] for name in where]).transform("sum")
    shown = shown.assign(fell=-fell).sort_values(["fell", *where, "shift", "severity"]).drop(columns="fell")
    select = tuple(name for name in where if shown[name].nunique() > 1)
    return Figure(
        "Paired difference against severity",
        LINES,
        shown.reset_index(drop=True),
        "line",
        "severity",
        "difference",
        low="low",
        high="high",
        color=("shift",),
        select=select,
        labels=LABELS,
    )
