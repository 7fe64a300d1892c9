"""The page of an identification: scores of each row beside their controls, figure 6.2, losses, and the tables."""

from typing import Any

import pandas as pd

from haptera.analyses.identify.frames import VALUES, against_concentration, as_printed, by_seed, families
from haptera.report.figure import Figure
from haptera.report.section import Listing, Section

TALL = 24
"""Rows whose names fit beside a figure."""
DRAWN = 7
"""Losses that are drawn when the page opens, as there are so many colours."""


def sections(scores: pd.DataFrame, losses: pd.DataFrame) -> list[Section]:
    """Return scores, marginals where they differ, and losses."""
    every = [scores_section(scores), marginal_section(scores), loss_section(losses)]
    return [section for section in every if section is not None]


def scores_section(scores: pd.DataFrame) -> Section:
    """Show every seed of every row beside its controls, and the tables with means."""
    frame = by_seed(scores)
    spaces = list(frame["space"].iloc[::-1].unique())
    style: dict[str, Any] = {"color": ("what",), "palette": ("contrastive", "identity", "supervised", "rotations")}
    if len(spaces) > 1:
        style |= {"choose": "space", "start": {"space": spaces[:1]} if frame["row"].nunique() > TALL else {}}
    text = (
        "A point is a seed; of rotations, the mean over many. Point at one for its 95 % interval over samples, mostly "
        "narrower than the point."
    )
    axes: dict[str, Any] = {"x": "value", "y": "row", "mark": "mark", "labels": {"value": "score"}}
    figure = Figure("Scores of each row", text, frame, kind="layers", select=("score",), **axes, **style)
    text = "Means ± standard deviations over seeds; rotations with the end below which 95 % of them stay."
    names = {"fit": "loss in the end", "latents": "loss of the latents"}
    listing = Listing("As tables 6.1 and 6.2 have it", text, as_printed(scores), names)
    text = "How far the encoder found the latents, up to an affine map (R²) and up to order and sign (MCC)."
    return Section("Scores", text, (figure,), (listing,))


def marginal_section(scores: pd.DataFrame) -> Section | None:
    """Show figure 6.2, and R² against the mass, where rows differ in the concentration of their marginal."""
    frame = families(scores)
    if frame.empty:
        return None
    text = (
        "κ on the sphere, 1/σ² in a box; the uniform marginal is drawn at half of the least other concentration. The "
        "area lies between the least and the largest of the seeds. The mass is what must be moved to make the "
        "marginal uniform; the upright line is where the marginal is as concentrated as pairs are (figure 6.2)."
    )
    ends: dict[str, Any] = {"low": "low", "high": "high"}
    style: dict[str, Any] = {"x": "drawn at", "y": "value", "color": ("what",), "palette": VALUES, "log_x": True}
    style |= {"labels": {"drawn at": "concentration of the marginal", "value": "R², share of the mass"}}
    style |= {"select": ("family",), "limits": (0.0, 1.0)}
    rows = against_concentration(frame)
    against = Figure("R² against the concentration of the marginal", text, rows, kind="line", **ends, **style)
    points = frame[["family", "mass", "r2", "low", "high", "concentration", "seeds"]]
    rows = pd.concat([points.assign(mark=mark) for mark in ("line", "point")], ignore_index=True)
    text = "The same on one scale for all spaces and laws; the least and the largest of the seeds."
    style = {"x": "mass", "y": "r2", "color": ("family",), "mark": "mark"}
    style |= {"labels": {"mass": "share of the mass to be moved", "r2": "R²"}}
    moved = Figure("R² against the distance from uniform", text, rows, kind="layers", **ends, **style)
    text = "What becomes of it when the marginal is not uniform, as the theorems want it."
    return Section("Marginals", text, (against, moved))


def loss_section(losses: pd.DataFrame) -> Section:
    """Show the loss of each row's first seed."""
    first = losses[losses["seed"] == losses.groupby("title")["seed"].transform("first")]
    frame = first.rename(columns={"title": "row"})[["row", "seed", "step", "loss"]]
    rows = list(frame["row"].unique())
    text = (
        "Of the first seed of each row, minus that of a constant embedding; means over neighbouring steps. A line that "
        "still falls at its end needs more steps."
    )
    style: dict[str, Any] = {"choose": "row"} if len(rows) > 1 else {}
    style |= {"start": {"row": rows[:DRAWN]}} if len(rows) > DRAWN else {}
    axes: dict[str, Any] = {"x": "step", "y": "loss", "color": ("row",), "labels": {"loss": "loss, nats"}}
    figure = Figure("Loss over steps", text, frame, kind="line", **axes, **style)
    return Section("Training", "Whether the encoders were trained to the end.", (figure,))
