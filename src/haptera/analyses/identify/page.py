"""The page of an identification: scores of each row beside their controls, figure 6.2, losses, and the tables."""

from typing import Any

import numpy as np
import pandas as pd

from haptera.analyses.identify.findings import AGAINST, LOSSES, PARTS, PRINTED, SCATTER
from haptera.analyses.identify.row import FITS, SCORES, families, per_row
from haptera.report.figure import Figure
from haptera.report.section import Listing, Section

TALL = 24
"""Rows whose names fit beside a figure."""
DRAWN = 7
"""Losses that are drawn when the page opens, as there are so many colours."""
VALUES = ("R²", "mass to be moved", "concentration of pairs")


def sections(scores: pd.DataFrame, losses: pd.DataFrame) -> list[Section]:
    """Return scores, marginals where they differ, and losses."""
    every = [scores_section(scores), marginal_section(scores), loss_section(losses)]
    return [section for section in every if section is not None]


def scores_section(scores: pd.DataFrame) -> Section:
    """Show every seed of every row beside its controls, and the tables with means."""
    frame = by_seed(scores)
    spaces = list(frame["space"].iloc[::-1].unique())
    style: dict[str, Any] = {"x": "value", "y": "row", "mark": "mark", "labels": {"value": "score"}}
    style |= {"select": ("score",), "color": ("what",), "palette": (*PARTS, "rotations")}
    if len(spaces) > 1:
        style |= {"choose": "space", "start": {"space": spaces[:1]} if frame["row"].nunique() > TALL else {}}
    text = (
        "A point is a seed; of rotations, the mean over many. Point at one for its 95 % interval over samples, mostly "
        "narrower than the point."
    )
    figure = Figure(SCATTER, text, frame, kind="layers", **style)
    text = "Means ± standard deviations over seeds; rotations with the end below which 95 % of them stay."
    names = {"fit": "loss in the end", "latents": "loss of the latents"}
    listing = Listing(PRINTED, text, as_printed(scores), names)
    text = "How far the encoder found the latents, up to an affine map (R²) and up to order and sign (MCC)."
    return Section("Scores", text, (figure,), (listing,))


def by_seed(scores: pd.DataFrame) -> pd.DataFrame:
    """Return R² and MCC of each row, seed and kind, and of rotations; the first row last, as axes go up."""
    rows = scores[scores["measure"].isin(list(SCORES))]
    null = rows[(rows["measure"] == "mcc") & (rows["what"] == "contrastive")]
    null = null.assign(what="rotations", value=null["rotation_mcc"], low=np.nan, high=null["rotation_high"])
    places = {"r2": 0, "mcc": 1} | {title: -place for place, title in enumerate(scores["title"].unique())}
    frame = pd.concat([rows, null]).sort_values(["measure", "title"], key=lambda names: names.map(places))
    frame = frame.assign(score=frame["measure"].map(SCORES), space=frame["process"].str.partition("/")[0], mark="point")
    columns = ["score", "space", "row", "what", "seed", "value", "low", "high", "mark"]
    return frame.rename(columns={"title": "row"})[columns].reset_index(drop=True)


def as_printed(scores: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each row: process, model, what is promised, and R² and MCC of each kind."""
    frame = scores.groupby("title", sort=False)[["process", "model", "promised"]].first()
    for measure, name in SCORES.items():
        for what in ("identity", "supervised", "contrastive"):
            own = scores[(scores["measure"] == measure) & (scores["what"] == what)]
            if len(own):  # where nothing was supervised, there are no columns for it
                frame[f"{name} {what}"] = own.groupby("title")["value"].agg(_spread)
    null = per_row(scores).set_index("title")[["rotation_mcc", "rotation_high"]].map("{:.3f}".format)
    runs = scores.drop_duplicates(["title", "seed"]).groupby("title")
    frame["rotations"] = null["rotation_mcc"] + " (below " + null["rotation_high"] + ")"
    frame[["fit", "latents"]] = runs[FITS].agg(_spread)
    frame[["seeds", "seconds"]] = runs["seconds"].agg(["size", "sum"])
    frame = frame.fillna("").rename_axis("row").reset_index()
    plain = (frame["row"] == frame["process"] + " → " + frame["model"]).all()
    return frame.drop(columns="row") if plain else frame


def _spread(values: pd.Series) -> str:
    """Return mean ± standard deviation; the mean alone where there is one."""
    return f"{values.mean():.3f}" + (f" ± {values.std():.3f}" if len(values) > 1 else "")


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
    against = Figure(AGAINST, text, rows, kind="line", **ends, **style)
    points = frame[["family", "mass", "r2", "low", "high", "concentration", "seeds"]]
    rows = pd.concat([points.assign(mark=mark) for mark in ("line", "point")], ignore_index=True)
    text = "The same on one scale for all spaces and laws; the least and the largest of the seeds."
    style = {"x": "mass", "y": "r2", "color": ("family",), "mark": "mark"}
    style |= {"labels": {"mass": "share of the mass to be moved", "r2": "R²"}}
    moved = Figure("R² against the distance from uniform", text, rows, kind="layers", **ends, **style)
    text = "What becomes of it when the marginal is not uniform, as the theorems want it."
    return Section("Marginals", text, (against, moved))


def against_concentration(frame: pd.DataFrame) -> pd.DataFrame:
    """Return R², mass and the upright line: `family`, `what`, `concentration`, `drawn at`, `value`, `low`, `high`."""
    known = frame["concentration"].where(frame["concentration"] > 0)
    frame = frame.assign(**{"drawn at": known.fillna(known.groupby(frame["family"]).transform("min") / 2)})
    bare = {"low": np.nan, "high": np.nan}
    upright = frame[frame["pairs"] > 0].drop_duplicates("family")
    upright = upright.assign(**{"concentration": upright["pairs"], "drawn at": upright["pairs"]}, **bare)
    parts = [frame.assign(what=VALUES[0], value=frame["r2"]), frame.assign(what=VALUES[1], value=frame["mass"], **bare)]
    parts += [upright.assign(what=VALUES[2], value=end) for end in (0.0, 1.0)]
    columns = ["family", "what", "concentration", "drawn at", "value", "low", "high"]
    return pd.concat(parts, ignore_index=True)[columns]


def loss_section(losses: pd.DataFrame) -> Section:
    """Show the loss of each row's first seed."""
    first = losses[losses["seed"] == losses.groupby("title")["seed"].transform("first")]
    frame = first.rename(columns={"title": "row"})[["row", "seed", "step", "loss"]]
    rows = list(frame["row"].unique())
    text = (
        "Of the first seed of each row, minus that of a constant embedding; means over neighbouring steps. A line that "
        "still falls at its end needs more steps."
    )
    style: dict[str, Any] = {"x": "step", "y": "loss", "color": ("row",), "labels": {"loss": "loss, nats"}}
    style |= {"choose": "row"} if len(rows) > 1 else {}
    style |= {"start": {"row": rows[:DRAWN]}} if len(rows) > DRAWN else {}
    figure = Figure(LOSSES, text, frame, kind="line", **style)
    return Section("Training", "Whether the encoders were trained to the end.", (figure,))
