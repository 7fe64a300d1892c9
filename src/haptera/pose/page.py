"""The page of scores of poses: skeletons on frames, and errors by shift, adapter, part and individual."""

from collections.abc import Sequence

import pandas as pd

from haptera.pose.findings import overall
from haptera.pose.skeletons import Frame, contact_sheet
from haptera.report.figure import Figure
from haptera.report.section import Listing, Picture, Section

LABELS = {"n": "keypoints", "what": "shift and severity"}
MEASURES = {"normalised_error": "Normalised error", "pck": "PCK"}
SKELETONS = "White rings are labels, coloured dots predictions, one colour for each part; lines join predictions."


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
    found = []
    if frames:
        picture = Picture("Predicted skeletons", SKELETONS, contact_sheet(frames, parts, skeleton))
        found.append(Section("Frames", "What the model sees, and where it finds the parts.", pictures=(picture,)))
    caption = "Means over individuals. Statistics of BatchNorm are estimated for each individual and shift."
    figures = _heatmaps(overall(table), "shift and adapter", caption, "adapter", "what", ("stream",))
    found.append(Section("Shifts", "What shifts cost, and what adaptation wins back.", figures))
    for column, title, text, caption in (
        ("part", "Parts", "Which parts are found.", "A part without labels has no row."),
        ("individual", "Individuals", "Which individuals are hard.", "One individual alone has no interval."),
    ):
        own = table[table[column] != ""]
        if not own.empty:
            figures = _heatmaps(own, column, caption, "what", column, ("stream", "adapter"))
            found.append(Section(title, text, figures))
    return [*found, Section("All values", "", (), (Listing("Scores", "One row each.", table, LABELS),))]


def _heatmaps(rows: pd.DataFrame, by: str, caption: str, x: str, y: str, select: tuple[str, ...]) -> tuple[Figure, ...]:
    """Return a heatmap of each score."""
    made = []
    for measure, name in MEASURES.items():
        own = rows[rows["measure"] == measure]
        most = 1.0 if measure == "pck" else float(own["value"].max())
        start = {"adapter": "none"} if "adapter" in select and "none" in set(own["adapter"]) else {}
        labels = {"value": name, "n": "keypoints", "what": "shift"}
        frame = own[[*select, x, y, "value", "low", "high", "n"]]
        figure = Figure(
            f"{name} by {by}", caption, frame, kind="heatmap", x=x, y=y, value=("value",), low="low", high="high",
            select=select, start=start, labels=labels, limits=(0.0, most),
        )  # fmt: skip
        made.append(figure)
    return tuple(made)
