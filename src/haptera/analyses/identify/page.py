"""The page of tables of `identify`: scores of each row beside their controls, figure 6.2, losses, and the tables."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from haptera import __version__
from haptera.analyses.identify.identifiability import fit_verdict
from haptera.analyses.identify.page_marginal import marginal_answer, marginal_section
from haptera.report.figure import Figure
from haptera.report.page import render, write_page
from haptera.report.section import Finding, Listing, Section

if TYPE_CHECKING:
    from haptera.analyses.identify.analysis import Tables

AFFINE = 0.95
NAMED = 3
TALL = 24
"""Rows whose names fit beside a figure."""
DRAWN = 7
"""Losses that are drawn when the page opens, as there are so many colours."""
SCORES = {"r2": "R²", "mcc": "MCC"}
DEFINITIONS = {
    "R²": "of an affine map from the embedding to the latents, the mean over latents; map and score from different "
    "samples",
    "MCC": "mean absolute correlation of each latent with the dimension that the best assignment gives it; assignment "
    "and score from different samples",
    "rotations": "the MCC of random rotations of the latents themselves: what an embedding has that finds the latents "
    "but not their axes; 95 % of rotations stay below the upper end",
    "identity": "the observations themselves, in place of an embedding",
    "supervised": "the same encoder, taught the latents",
    "promised": "what the theorems say of the best encoder, with a uniform marginal, the model’s space that of the "
    "process, and its law that of the pairs: the latents up to an affine map (theorems 4 and 7), or up to order and "
    "sign (theorem 8)",
    "±": "standard deviation over seeds; each has a mixing, pairs and weights of its own",
    "loss of the latents": "what an encoder would have that inverts the process, at its best size. A loss above it was "
    "not trained to the end; one below it prefers another embedding to the latents",
    "loss": "minus that of a constant embedding, in nats; below 0 pairs are told from other samples",
}


def write_identify(found: "Tables", path: Path, title: str, settings: Mapping[str, object] | None = None) -> None:
    """Write the page, whole."""
    table = found.table()
    sections = [scores_section(table), marginal_section(table), loss_section(found.losses())]
    runs = f"{len(found.records)} of {len(found.records) + len(found.failures)}"
    page = render(
        [section for section in sections if section is not None],
        answers(table),
        title=title,
        settings={"haptera": __version__, "rows with a seed, finished": runs} | dict(settings or {}),
        notes=[f"Not finished: {failure}" for failure in found.failures],
        definitions=DEFINITIONS,
    )
    write_page(page, path)


def answers(table: pd.DataFrame) -> list[Finding]:
    """Which rows find the latents up to an affine map, which their axes, and what a concentrated marginal does."""
    rows = per_row(table)
    affine, axes = rows["r2"] > AFFINE, rows["mcc"] > rows["rotation_high"]
    first = f"{_of(affine)} have a mean R² above {AFFINE:g}"
    first += "" if affine.all() else f"; not {_named(rows[~affine], 'r2')}"
    second = f"{_of(axes)} have a mean MCC above that of 95 % of random rotations"
    second += f": {_named(rows[axes], 'mcc')}" if axes.any() else ""
    said = [Finding("", "Which find the latents up to an affine map?", f"{first}.")]
    said.append(Finding("", "Which find their axes as well?", f"{second}."))
    said += training_answers(table)
    marginal = marginal_answer(table, AFFINE)
    return [*said, *([marginal] if marginal else [])]


def training_answers(table: pd.DataFrame) -> list[Finding]:
    """Which rows were not trained to the end, and which would not find the latents if they were."""
    fits = table.groupby("title", sort=False)[["goodness_of_fit", "latents_fit"]].mean().reset_index()
    verdicts = [fit_verdict(*one) for one in fits[["goodness_of_fit", "latents_fit"]].to_numpy()]

    def named(which: str) -> list[str]:
        rows = fits[[one == which for one in verdicts]].itertuples()
        return [f"{row.title} ({row.goodness_of_fit:.3f}, latents {row.latents_fit:.3f})" for row in rows]

    short, others = named("not reached"), named("another embedding")
    text = f"{len(fits) - len(short)} of {len(fits)} rows reach the loss of the latents themselves, or go below it"
    text += f". These do not, and need more steps: {', '.join(short)}" if short else ""
    said = [Finding("", "Were encoders trained to the end?", f"{text}.")]
    if others:
        text = f"In these rows it prefers another embedding, and more steps lead away from them: {', '.join(others)}."
        said.append(Finding("", "Does the loss want the latents?", text))
    return said


def per_row(table: pd.DataFrame) -> pd.DataFrame:
    """One line for each row: `r2` and `mcc` of the encoder, means over seeds, and the rotations' MCC with its end."""
    own = table[(table["what"] == "contrastive") & table["measure"].isin(list(SCORES))]
    means = own.pivot_table(index="title", columns="measure", values="value", sort=False)
    null = own.groupby("title", sort=False)[["rotation_mcc", "rotation_high"]].mean()
    return means.join(null).reset_index()[["title", "r2", "mcc", "rotation_mcc", "rotation_high"]]


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


def _of(which: pd.Series) -> str:
    return f"{int(which.sum())} of {len(which)} rows"


def _named(rows: pd.DataFrame, score: str) -> str:
    """The first rows by name, with a score of each, and how many more."""
    shown = [f"{row['title']} ({row[score]:.2f})" for row in rows.head(NAMED).to_dict("records")]
    return ", ".join(shown) + (f" and {len(rows) - NAMED} more" if len(rows) > NAMED else "")
