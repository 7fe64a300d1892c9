"""The page of tables of `identify`: scores of each row beside their controls, figure 6.2, losses, and the tables."""

import numpy as np
import pandas as pd

from haptera.analyses.identify.findings import SCORES
from haptera.analyses.identify.page_marginal import marginal_section
from haptera.report.figure import Figure
from haptera.report.section import Listing, Section

TALL = 24
"""Rows whose names fit beside a figure."""
DRAWN = 7
"""Losses that are drawn when the page opens, as there are so many colours."""


def sections(table: pd.DataFrame, losses: pd.DataFrame) -> list[Section]:
    """Return scores, marginals where they differ, and losses."""
    every = [scores_section(table), marginal_section(table), loss_section(losses)]
    return [section for section in every if section is not None]


def scores_section(table: pd.DataFrame) -> Section:
    """Every seed of every row beside its controls, and the tables with means."""
    frame = by_seed(table)
    spaces = list(frame["space"].iloc[::-1].unique())
    figure = Figure(
        "Scores of each row",
        "A point is a seed; of rotations, the mean over many. Point at one for its 95 % interval over samples, mostly "
        "narrower than the point.",
        frame,
        kind="layers",
        x="value",
        y="row",
        color=("what",),
        palette=("contrastive", "identity", "supervised", "rotations"),
        select=("score",),
        choose="space" if len(spaces) > 1 else None,
        start={"space": spaces[:1]} if len(spaces) > 1 and frame["row"].nunique() > TALL else {},
        mark="mark",
        labels={"value": "score"},
    )
    listing = Listing(
        "As tables 6.1 and 6.2 have it",
        "Means ± standard deviations over seeds; rotations with the end below which 95 % of them stay.",
        as_printed(table),
        {"fit": "loss in the end", "latents": "loss of the latents"},
    )
    text = "How far the encoder found the latents, up to an affine map (R²) and up to order and sign (MCC)."
    return Section("Scores", text, (figure,), (listing,))


def by_seed(table: pd.DataFrame) -> pd.DataFrame:
    """R² and MCC of each row, seed and kind, with the rotations beside the MCC; the first row last, as axes go up."""
    parts = []
    for measure, score in SCORES.items():
        rows = table[table["measure"] == measure]
        for title in reversed(table["title"].unique()):
            own = rows[rows["title"] == title]
            parts.append(own.assign(score=score))
            if measure == "mcc":
                null = own[own["what"] == "contrastive"].assign(score=score, what="rotations", low=np.nan)
                parts.append(null.assign(value=null["rotation_mcc"], high=null["rotation_high"]))
    frame = pd.concat(parts, ignore_index=True).rename(columns={"title": "row"})
    frame = frame.assign(space=frame["process"].str.partition("/")[0], mark="point")
    return frame[["score", "space", "row", "what", "seed", "value", "low", "high", "mark"]]


def as_printed(table: pd.DataFrame) -> pd.DataFrame:
    """One line for each row: process, model, what is promised, and R² and MCC of each kind."""
    lines = []
    for title, rows in table.groupby("title", sort=False):
        first = rows.iloc[0]
        line = {"row": title} | {key: first[key] for key in ("process", "model", "promised")}
        for measure, name in SCORES.items():
            for what in ("identity", "supervised", "contrastive"):
                line[f"{name} {what}"] = _spread(rows[(rows["measure"] == measure) & (rows["what"] == what)]["value"])
        null = rows[rows["what"] == "contrastive"]
        line["rotations"] = f"{null['rotation_mcc'].mean():.3f} (below {null['rotation_high'].mean():.3f})"
        runs = rows.drop_duplicates("seed")
        line |= {"fit": _spread(runs["goodness_of_fit"]), "latents": _spread(runs["latents_fit"])}
        line |= {"seeds": len(runs), "seconds": runs["seconds"].sum()}
        lines.append(line)
    frame = pd.DataFrame(lines)
    plain = (frame["row"] == frame["process"] + " → " + frame["model"]).all()
    frame = frame.drop(columns="row") if plain else frame
    return frame.loc[:, (frame != "").any()]  # where nothing was supervised, there are no columns for it


def loss_section(losses: pd.DataFrame) -> Section:
    """The loss of each row's first seed."""
    first = losses[losses["seed"] == losses.groupby("title")["seed"].transform("first")]
    frame = first.rename(columns={"title": "row"})[["row", "seed", "step", "loss"]]
    rows = list(frame["row"].unique())
    figure = Figure(
        "Loss over steps",
        "Of the first seed of each row, minus that of a constant embedding; means over neighbouring steps. A line that "
        "still falls at its end needs more steps.",
        frame,
        kind="line",
        x="step",
        y="loss",
        color=("row",),
        choose="row" if len(rows) > 1 else None,
        start={"row": rows[:DRAWN]} if len(rows) > DRAWN else {},
        labels={"loss": "loss, nats"},
    )
    return Section("Training", "Whether the encoders were trained to the end.", (figure,))


def _spread(values: pd.Series) -> str:
    """Mean ± standard deviation; the mean alone where there is one."""
    if values.empty:
        return ""
    return f"{values.mean():.3f}" + (f" ± {values.std():.3f}" if len(values) > 1 else "")
