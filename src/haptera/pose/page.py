"""The page of a pose model: skeletons on frames, and errors by shift, adapter, part and individual."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image, ImageDraw

from haptera import __version__
from haptera.report.figure import Figure
from haptera.report.page import render, write_page
from haptera.report.section import Finding, Listing, Picture, Section

DEFINITIONS = {
    "normalised error": "distance between prediction and label, over the distance from nose to eye of that individual "
    "(or the root of the area of the box around the labels)",
    "PCK": "the share of keypoints whose normalised error is at most the threshold",
    "within, out": "other frames of the individuals that the model learnt from; individuals it never saw",
    "intervals": "95 %, over individuals (Student’s t; errors on the logarithm, PCK on the log odds); means are taken "
    "within each individual first. None where there is one individual, or all have the same mean",
}
LABELS = {"n": "keypoints", "what": "shift and severity"}
SIDE = 240
COLUMNS = 4


@dataclass(frozen=True, eq=False)
class Drawn:
    """One frame to draw skeletons on.

    Attributes:
        image: `(height, width, 3)`, uint8.
        predicted: `(parts, 2)`.
        labelled: `(parts, 2)`, NaN where missing.
        caption: a few words below it.
    """

    image: np.ndarray
    predicted: np.ndarray
    labelled: np.ndarray
    caption: str


def write_pose(
    table: pd.DataFrame,
    path: Path,
    *,
    title: str,
    frames: Sequence[Drawn] = (),
    parts: Sequence[str] = (),
    skeleton: Sequence[tuple[str, str]] = (),
    settings: Mapping[str, object] | None = None,
    notes: Sequence[str] = (),
) -> None:
    """Write the page, whole.

    Args:
        table: of a `PoseStudy`.
        path: the HTML file.
        title: heading of the page.
        frames: to show.
        parts: their names.
        skeleton: pairs of parts between which lines are drawn.
        settings: shown at the end.
        notes: what to know before believing the scores.
    """
    table = _named(table)
    sections = [
        frames_section(frames, parts, skeleton),
        shifts_section(table),
        places_section(table, "part", "Parts", "Which parts are found."),
        places_section(table, "individual", "Individuals", "Which individuals are hard."),
        Section("All values", "", (), (Listing("Scores", "One row each.", table, LABELS),)),
    ]
    page = render(
        [section for section in sections if section is not None],
        answers(table),
        title=title,
        settings={"haptera": __version__} | dict(settings or {}),
        definitions=DEFINITIONS,
        notes=notes,
    )
    write_page(page, path)


def answers(table: pd.DataFrame) -> list[Finding]:
    """How well it finds known and new individuals, what shifts cost, and what adapters win back."""
    every = _overall(table)
    first = every["adapter"].iloc[0] if "none" not in set(every["adapter"]) else "none"
    found = []
    clean = every[(every["shift"].isin(["clean", ""])) & (every["adapter"] == first)]
    words = [
        f"{stream}: {_value(rows, 'pck'):.1%} of keypoints, normalised error {_value(rows, 'normalised_error'):.3f}"
        for stream, rows in clean.groupby("stream", sort=False)
    ]
    found.append(Finding("", "Does it find the parts?", "; ".join(words) + "."))
    errors = every[every["measure"] == "normalised_error"]
    wide = errors.pivot_table(index=["stream", "shift", "severity"], columns="adapter", values="value")
    others = [name for name in wide.columns if name != first]
    if others:
        ratio = (wide[first] / wide[others].min(axis=1)).sort_values(ascending=False)
        stream, shift, severity = ratio.index[0]
        best = wide.loc[ratio.index[0], others].idxmin()
        found.append(
            Finding(
                "",
                "Does adaptation help?",
                f"Most under {shift} {severity:g} ({stream}): {best} divides the error by {ratio.iloc[0]:.1f}; "
                f"it lowers the error in {int((ratio > 1).sum())} of {len(ratio)} cells.",
            )
        )
    return found


def frames_section(
    frames: Sequence[Drawn], parts: Sequence[str], skeleton: Sequence[tuple[str, str]]
) -> Section | None:
    """Frames with both skeletons."""
    if not frames:
        return None
    caption = "White rings are labels, coloured dots predictions, one colour for each part; lines join predictions."
    picture = Picture("Predicted skeletons", caption, contact_sheet(frames, parts, skeleton))
    return Section("Frames", "What the model sees, and where it finds the parts.", pictures=(picture,))


def contact_sheet(frames: Sequence[Drawn], parts: Sequence[str], skeleton: Sequence[tuple[str, str]]) -> bytes:
    """A PNG with all frames, four in a row."""
    scale = max(1, round(SIDE / frames[0].image.shape[1]))
    height, width = (scale * side for side in frames[0].image.shape[:2])
    rows = -(-len(frames) // COLUMNS)
    sheet = Image.new("RGB", (min(len(frames), COLUMNS) * (width + 8), rows * (height + 24)), (24, 24, 28))
    for place, frame in enumerate(frames):
        row, column = divmod(place, COLUMNS)
        left, top = column * (width + 8) + 4, row * (height + 24)
        sheet.paste(_with_skeleton(frame, parts, skeleton, scale), (left, top))
        ImageDraw.Draw(sheet).text((left + 2, top + height + 5), frame.caption, fill=(230, 230, 230))
    buffer = BytesIO()
    sheet.save(buffer, "PNG")
    return buffer.getvalue()


def _with_skeleton(frame: Drawn, parts: Sequence[str], skeleton: Sequence[tuple[str, str]], scale: int) -> Image.Image:
    height, width = frame.image.shape[:2]
    image = Image.fromarray(frame.image).resize((scale * width, scale * height), Image.Resampling.BICUBIC)
    draw = ImageDraw.Draw(image)
    at = {part: scale * (point + 0.5) for part, point in zip(parts, frame.predicted, strict=True)}
    for one, two in skeleton:
        if np.isfinite([at[one], at[two]]).all():
            draw.line((*at[one], *at[two]), fill=(255, 220, 60), width=1)
    for number, (predicted, labelled) in enumerate(zip(at.values(), frame.labelled, strict=True)):
        if np.isfinite(labelled).all():
            draw.ellipse(_around(scale * (labelled + 0.5), 4), outline=(255, 255, 255))
        if np.isfinite(predicted).all():
            draw.ellipse(_around(predicted, 2.5), fill=_colour(number / len(parts)))
    return image


def _around(centre: np.ndarray, radius: float) -> tuple[float, float, float, float]:
    x, y = centre
    return x - radius, y - radius, x + radius, y + radius


def _colour(share: float) -> tuple[int, int, int]:
    angle = 2 * np.pi * (share + np.array([0.0, 1 / 3, 2 / 3]))
    red, green, blue = (127.5 * (1 + np.cos(angle))).astype(int).tolist()
    return red, green, blue


def shifts_section(table: pd.DataFrame) -> Section:
    """Both scores over shifts and adapters."""
    caption = "Means over individuals. Statistics of BatchNorm are estimated for each individual and shift."
    figures = _figures(_overall(table), "shift and adapter", caption, x="adapter", y="what", select=("stream",))
    return Section("Shifts", "What shifts cost, and what adaptation wins back.", figures)


def places_section(table: pd.DataFrame, column: str, title: str, text: str) -> Section | None:
    """Both scores by part or by individual."""
    rows = table[table[column] != ""]
    if rows.empty:
        return None
    caption = "A part without labels has no row." if column == "part" else "One individual alone has no interval."
    return Section(title, text, _figures(rows, column, caption, x="what", y=column, select=("stream", "adapter")))


def _figures(
    rows: pd.DataFrame, by: str, caption: str, *, x: str, y: str, select: tuple[str, ...]
) -> tuple[Figure, ...]:
    """A heatmap of each score."""
    made = []
    for measure, name in (("normalised_error", "Normalised error"), ("pck", "PCK")):
        own = rows[rows["measure"] == measure]
        most = 1.0 if measure == "pck" else float(own["value"].max())
        made.append(
            Figure(
                f"{name} by {by}",
                caption,
                own[[*select, x, y, "value", "low", "high", "n"]],
                kind="heatmap",
                x=x,
                y=y,
                value=("value",),
                low="low",
                high="high",
                select=select,
                start={"adapter": "none"} if "adapter" in select and "none" in set(own["adapter"]) else {},
                labels={"value": name, "n": "keypoints", "what": "shift"},
                limits=(0.0, most),
            )
        )
    return tuple(made)


def _named(table: pd.DataFrame) -> pd.DataFrame:
    severity = [f" {value:g}" if value > 0 else "" for value in table["severity"]]
    return table.assign(what=table["shift"] + severity).drop(columns=["step", "seed"], errors="ignore")


def _overall(table: pd.DataFrame) -> pd.DataFrame:
    return table[(table["part"] == "") & (table["individual"] == "")]


def _value(rows: pd.DataFrame, measure: str) -> float:
    return float(rows.loc[rows["measure"] == measure, "value"].iloc[0])
