"""What an identification found, in sentences with their numbers: about one row, or about several."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from haptera.analyses.identify.frames import SCORES, families, per_row
from haptera.analyses.identify.identifiability import fit_verdict
from haptera.report.section import Finding

AFFINE = 0.95
NAMED = 3
UNSAID = ("loss", "seconds")
"""What the JSON object of several rows leaves out: curves are on the page, and times differ from run to run."""
VERDICTS = {"not reached": ": not trained to the end", "another embedding": ": it prefers another embedding to them"}
QUESTIONS = {
    "process": "What was asked?",
    "contrastive": "How far were the latents found?",
    "identity": "How far are they there without an encoder?",
    "supervised": "How far could they be found?",
    "loss": "Was the encoder trained to the end?",
    "rotations": "What would latents have whose axes are not found?",
}
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


def row_findings(record: Mapping[str, Any]) -> list[Finding]:
    """Return everything that is known about one row with one seed."""
    row = dict(record)
    numbers = {
        "process": ("process", "dimensions", "seed", "condition", "mass_from_uniform", "promised"),
        "model": ("model", "steps", "batch_size", "learning_rate", "start", "fixed", "size"),
        "loss": ("goodness_of_fit", "latents_fit"),
    }
    parts = [name for name in ("contrastive", "identity", "supervised") if name in row]
    sentences: dict[str, str] = {
        "process": f"{row['process']}, {row['dimensions']} latents, mixing of condition {row['condition']:.1f}",
        "model": f"{row['model']}, {row['steps']:,} steps of {row['batch_size']}",
        **{name: "   ".join(_score(row[name], score) for score in SCORES) for name in parts},
        "loss": _loss(row["goodness_of_fit"], row.get("latents_fit")),
        "rotations": f"MCC {row['contrastive']['rotation_mcc']:.3f} of a random rotation of the latents",
    }
    names = {name: numbers.get(name, (name,) if name in parts else ()) for name in sentences}
    return [
        Finding(word, QUESTIONS.get(word, ""), sentence, {name: row.get(name) for name in names[word]})
        for word, sentence in sentences.items()
    ]


def _score(part: Mapping[str, Any], score: str) -> str:
    low, high = part[f"{score}_interval"]
    return f"{SCORES[score]} {part[score]:.3f} ({low:.3f} .. {high:.3f})"


def _loss(fit: float, latents: float | None) -> str:
    """Return the loss of the encoder beside that of the latents themselves, and what that says."""
    if latents is None or latents != latents:
        return f"{fit:.3f} nats"
    return f"{fit:.3f} nats, of the latents themselves {latents:.3f}{VERDICTS.get(fit_verdict(fit, latents), '')}"


def record_findings(scores: pd.DataFrame, records: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """Return a line for each row, means over seeds.

    Args:
        scores: of an identification.
        records: of each row and seed, which become numbers of the first finding.
    """
    told = [{key: value for key, value in record.items() if key not in UNSAID} for record in records]
    sentences = [
        f"{row.title}: R² {row.r2:.3f}, MCC {row.mcc:.3f}, rotations {row.rotation_mcc:.3f}"
        for row in per_row(scores).itertuples()
    ]
    first = Finding("rows", "How far did each row come?", sentences[0], {"rows": told})
    return [first, *(Finding("", "", sentence) for sentence in sentences[1:])]


def table_findings(scores: pd.DataFrame) -> list[Finding]:
    """Return which rows find the latents, which their axes, and what a concentrated marginal does."""
    rows = per_row(scores)
    affine, axes = rows["r2"] > AFFINE, rows["mcc"] > rows["rotation_high"]
    first = f"{_of(affine)} have a mean R² above {AFFINE:g}"
    first += "" if affine.all() else f"; not {_named(rows[~affine], 'r2')}"
    second = f"{_of(axes)} have a mean MCC above that of 95 % of random rotations"
    second += f": {_named(rows[axes], 'mcc')}" if axes.any() else ""
    by = rows.set_index("title")
    found = {"mean_r2": by["r2"].to_dict(), "rows_above": int(affine.sum())}
    turned = {f"mean_{name}": by[name].to_dict() for name in ("mcc", "rotation_mcc", "rotation_high")}
    return [
        Finding("affine", "Which find the latents up to an affine map?", f"{first}.", found),
        Finding("axes", "Which find their axes as well?", f"{second}.", turned | {"rows_with_axes": int(axes.sum())}),
        *_training(scores),
        *_marginal(scores),
    ]


def _training(table: pd.DataFrame) -> list[Finding]:
    """Return which rows were not trained to the end, and which would not find the latents if they were."""
    fits = table.groupby("title", sort=False)[["goodness_of_fit", "latents_fit"]].mean().reset_index()
    verdicts = [fit_verdict(*one) for one in fits[["goodness_of_fit", "latents_fit"]].to_numpy()]

    def named(which: str) -> list[str]:
        rows = fits[[one == which for one in verdicts]].itertuples()
        return [f"{row.title} ({row.goodness_of_fit:.3f}, latents {row.latents_fit:.3f})" for row in rows]

    short, others = named("not reached"), named("another embedding")
    text = f"{len(fits) - len(short)} of {len(fits)} rows reach the loss of the latents themselves, or go below it"
    text += f". These do not, and need more steps: {', '.join(short)}" if short else ""
    numbers = {f"mean_{name}": fits.set_index("title")[name].to_dict() for name in ("goodness_of_fit", "latents_fit")}
    said = [Finding("trained", "Were encoders trained to the end?", f"{text}.", numbers)]
    if others:
        text = f"In these rows it prefers another embedding, and more steps lead away from them: {', '.join(others)}."
        said.append(Finding("wanted", "Does the loss want the latents?", text))
    return said


def _marginal(table: pd.DataFrame) -> list[Finding]:
    """Return from which concentration on R² is too small, for each family of rows."""
    said = []
    frame = families(table)
    for family, rows in frame.groupby("family", sort=False):
        lost = rows[rows["r2"] <= AFFINE]
        if lost.empty:
            text = f"R² stays above {AFFINE:g} up to a concentration of {rows['concentration'].iloc[-1]:g}"
        else:
            level, score = lost[["concentration", "r2"]].iloc[0]
            text = f"R² is {score:.2f} " + (f"at a concentration of {level:g}" if level else "even if it is uniform")
        pairs = rows["pairs"].iloc[0]
        said.append(f"{family}: {text}" + (f", that of pairs being {pairs:g}" if pairs > 0 else ""))
    question, numbers = "How concentrated may the marginal be?", {"marginals": frame.to_dict("records")}
    return [Finding("marginal", question, f"{'; '.join(said)}.", numbers)] if said else []


def _of(which: pd.Series) -> str:
    return f"{int(which.sum())} of {len(which)} rows"


def _named(rows: pd.DataFrame, score: str) -> str:
    """The first rows by name, with a score of each, and how many more."""
    shown = [f"{row['title']} ({row[score]:.2f})" for row in rows.head(NAMED).to_dict("records")]
    return ", ".join(shown) + (f" and {len(rows) - NAMED} more" if len(rows) > NAMED else "")
