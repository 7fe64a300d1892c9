"""What an identification found, in sentences with their numbers: about one row, or about several."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from haptera.analyses.identify.identifiability import fit_verdict
from haptera.analyses.identify.row import FITS, SCORES, families, per_row
from haptera.report.section import Finding, answer, lead

AFFINE = 0.95
NAMED = 3
UNSAID = ("loss", "seconds")
"""What the JSON object of several rows leaves out: curves are on the page, and times differ from run to run."""
VERDICTS = {"not reached": ": not trained to the end", "another embedding": ": it prefers another embedding to them"}
PARTS = {
    "contrastive": "How far were the latents found?",
    "identity": "How far are they there without an encoder?",
    "supervised": "How far could they be found?",
}
SCATTER, PRINTED, LOSSES = "Scores of each row", "As tables 6.1 and 6.2 have it", "Loss over steps"
AGAINST = "R² against the concentration of the marginal"
"""Titles of what shows an answer on the page."""
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
    asked = ("process", "dimensions", "seed", "condition", "mass_from_uniform", "promised")
    assumed = ("model", "steps", "batch_size", "learning_rate", "start", "fixed", "size")

    def finding(word: str, question: str, sentence: str, *numbers: str) -> Finding:
        return Finding(word, question, sentence, {name: record.get(name) for name in numbers})

    def score(part: str, name: str) -> str:
        low, high = record[part][f"{name}_interval"]
        return f"{SCORES[name]} {record[part][name]:.3f} ({low:.3f} .. {high:.3f})"

    fit, latents = record["goodness_of_fit"], record.get("latents_fit")
    loss = f"{fit:.3f} nats"
    if latents is not None and latents == latents:
        loss += f", of the latents themselves {latents:.3f}{VERDICTS.get(fit_verdict(fit, latents), '')}"
    process = f"{record['process']}, {record['dimensions']} latents"
    if record["condition"] == record["condition"] and record["condition"] is not None:
        process += f", mixing of condition {record['condition']:.1f}"
    turned = f"MCC {record['contrastive']['rotation_mcc']:.3f} of a random rotation of the latents"
    scores = {part: "   ".join(score(part, name) for name in SCORES) for part in PARTS if part in record}
    told = [
        finding("process", "What was asked?", process, *asked),
        finding("model", "", f"{record['model']}, {record['steps']:,} steps of {record['batch_size']}", *assumed),
        *(finding(part, PARTS[part], sentence, part) for part, sentence in scores.items()),
        finding("loss", "Was the encoder trained to the end?", loss, *FITS),
        finding("rotations", "What would latents have whose axes are not found?", turned),
    ]
    leads = {part: (f"R² {record[part]['r2']:.2f}, MCC {record[part]['mcc']:.2f}", SCATTER) for part in scores}
    leads |= {"loss": (f"{fit:.3f} nats".replace("-", "−") if np.isfinite(fit) else "", LOSSES)}
    return lead(told, leads | {"rotations": ("", SCATTER)})


def table_findings(scores: pd.DataFrame, records: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """Return how far each row came, which find the latents, which their axes, and what a concentrated marginal does.

    Args:
        scores: of an identification.
        records: of each row and seed, which become numbers of the first finding.
    """
    kept = [{key: value for key, value in record.items() if key not in UNSAID} for record in records]
    rows = per_row(scores)
    line = "{title}: R² {r2:.3f}, MCC {mcc:.3f}, rotations {rotation_mcc:.3f}"
    lines = [line.format_map(row) for row in rows.to_dict("records")]
    affine, axes = rows["r2"] > AFFINE, rows["mcc"] > rows["rotation_high"]
    first = f"{affine.sum()} of {len(rows)} rows have a mean R² above {AFFINE:g}"
    first += "" if affine.all() else f"; not {_names(rows[~affine], 'r2')}"
    second = f"{axes.sum()} of {len(rows)} rows have a mean MCC above that of 95 % of random rotations"
    second += f": {_names(rows[axes], 'mcc')}" if axes.any() else ""
    means = {f"mean_{name}": values.to_dict() for name, values in rows.set_index("title").items()}
    found = {"mean_r2": means.pop("mean_r2"), "rows_above": int(affine.sum())}
    leads = {"affine": (f"{affine.sum()} of {len(rows)} rows", PRINTED), "rows": ("", SCATTER)}
    leads |= {"axes": (f"{axes.sum()} of {len(rows)} rows", SCATTER), "marginal": ("", AGAINST)}
    told = [
        *answer("rows", "How far did each row come?", *lines, rows=kept),
        Finding("affine", "Which find the latents up to an affine map?", f"{first}.", found),
        Finding("axes", "Which find their axes as well?", f"{second}.", means | {"rows_with_axes": int(axes.sum())}),
        *_training(scores),
        *_marginal(families(scores)),
    ]
    return lead(told, leads | dict.fromkeys(("trained", "wanted"), ("", PRINTED)))


def _training(scores: pd.DataFrame) -> list[Finding]:
    """Return which rows were not trained to the end, and which would not find the latents if they were."""
    fits = scores.groupby("title", sort=False)[FITS].mean()
    named: dict[str, list[str]] = {"not reached": [], "another embedding": [], "reached": [], "": []}
    for title, fit, latents in fits.itertuples():
        named[fit_verdict(fit, latents)].append(f"{title} ({fit:.3f}, latents {latents:.3f})")
    short, others = named["not reached"], named["another embedding"]
    text = f"{len(fits) - len(short)} of {len(fits)} rows reach the loss of the latents themselves, or go below it"
    text += f". These do not, and need more steps: {', '.join(short)}" if short else ""
    numbers = {f"mean_{name}": fits[name].to_dict() for name in FITS}
    trained = Finding("trained", "Were encoders trained to the end?", f"{text}.", numbers)
    text = f"In these rows it prefers another embedding, and more steps lead away from them: {', '.join(others)}."
    return [trained, Finding("wanted", "Does the loss want the latents?", text)] if others else [trained]


def _marginal(frame: pd.DataFrame) -> list[Finding]:
    """Return from which concentration on R² is too small, for each family of rows."""
    said = []
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


def _names(rows: pd.DataFrame, score: str) -> str:
    """Return the first rows by name, with a score of each, and how many more."""
    shown = [f"{title} ({value:.2f})" for title, value in rows[["title", score]].head(NAMED).to_numpy()]
    return ", ".join(shown) + (f" and {len(rows) - NAMED} more" if len(rows) > NAMED else "")
