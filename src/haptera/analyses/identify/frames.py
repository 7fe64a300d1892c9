"""The frames behind the page of an identification: scores of each row and seed, means over seeds, and figure 6.2.

Figure 6.2 shows how R² falls when the marginal is concentrated, beside the mass that must move to make it uniform. Rows
belong together that differ in nothing but the concentration of their marginal: κ of a von Mises-Fisher law on the
sphere, 1/σ² of a normal law in a box; a uniform marginal has 0.
"""

from typing import Any

import numpy as np
import pandas as pd

SCORES = {"r2": "R²", "mcc": "MCC"}
LAWS = {"sphere": "vmf", "box": "normal"}
SAME = ["family", "dimensions", "steps", "batch_size", "learning_rate", "start"]
VALUES = ("R²", "mass to be moved", "concentration of pairs")


def per_row(table: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each row: `r2`, `mcc`, `rotation_mcc` and `rotation_high` of the encoder, means over seeds."""
    own = table[(table["what"] == "contrastive") & table["measure"].isin(list(SCORES))]
    means = own.pivot_table(index="title", columns="measure", values="value", sort=False)
    null = own.groupby("title", sort=False)[["rotation_mcc", "rotation_high"]].mean()
    return means.join(null).reset_index()[["title", "r2", "mcc", "rotation_mcc", "rotation_high"]]


def by_seed(table: pd.DataFrame) -> pd.DataFrame:
    """Return R² and MCC of each row, seed and kind, and of rotations; the first row last, as axes go up."""
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
    """Return a line for each row: process, model, what is promised, and R² and MCC of each kind."""
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


def _spread(values: pd.Series) -> str:
    """Return mean ± standard deviation; the mean alone where there is one."""
    if values.empty:
        return ""
    return f"{values.mean():.3f}" + (f" ± {values.std():.3f}" if len(values) > 1 else "")


def families(table: pd.DataFrame) -> pd.DataFrame:
    """Return `family`, `concentration`, `pairs` (that of the conditional), `mass`, `r2`, `low`, `high`, `seeds`.

    One line for each concentration, those of a family in order: the mean over seeds, the least and the largest. Empty
    where no rows differ in the concentration alone.
    """
    own = table[(table["what"] == "contrastive") & (table["measure"] == "r2")]
    parts = own["process"].str.split("/", expand=True).set_axis(["space", "marginal", "conditional"], axis=1)
    own = own.assign(
        family=parts["space"] + ", pairs by " + parts["conditional"] + " → " + own["model"],
        concentration=[concentration(space, law) for space, law in parts[["space", "marginal"]].to_numpy()],
        pairs=[concentration(space, law) for space, law in parts[["space", "conditional"]].to_numpy()],
    )
    groups = [(names, rows) for names, rows in own.groupby(SAME, sort=False, dropna=False) if _varied(rows)]
    found = []
    for names, rows in groups:
        alike = [other for other, _ in groups if other[0] == names[0]]
        for level, seeds in rows.groupby("concentration"):
            scores = seeds["value"]
            line = {"family": _name(names, alike), "concentration": level, "pairs": seeds["pairs"].iloc[0]}
            line |= {"mass": seeds["mass_from_uniform"].iloc[0], "r2": scores.mean(), "low": scores.min()}
            found.append(line | {"high": scores.max(), "seeds": len(seeds)})
    return pd.DataFrame(found, columns=["family", "concentration", "pairs", "mass", "r2", "low", "high", "seeds"])


def concentration(space: str, law: str) -> float:
    """Return the concentration of a law as rows have it; NaN if it has none.

    >>> concentration("sphere", "vmf=10"), concentration("box", "normal=0.5"), concentration("box", "uniform")
    (10.0, 4.0, 0.0)
    """
    name, _, number = law.partition("=")
    if name == "uniform":
        return 0.0
    if name != LAWS.get(space):
        return float("nan")
    return float(number) if name == "vmf" else float(number) ** -2


def against_concentration(frame: pd.DataFrame) -> pd.DataFrame:
    """Return R², mass and the upright line: `family`, `what`, `concentration`, `drawn at`, `value`, `low`, `high`."""
    parts = []
    for family, rows in frame.groupby("family", sort=False):
        at = rows["concentration"].where(rows["concentration"] > 0, _least(rows) / 2)
        known = {"family": family, "concentration": rows["concentration"], "drawn at": at}
        ends = {"low": rows["low"], "high": rows["high"]}
        parts.append(pd.DataFrame(known | {"what": VALUES[0], "value": rows["r2"]} | ends))
        parts.append(pd.DataFrame(known | {"what": VALUES[1], "value": rows["mass"], "low": np.nan, "high": np.nan}))
        if (pairs := rows["pairs"].iloc[0]) > 0:
            line = {"family": family, "concentration": pairs, "drawn at": pairs, "what": VALUES[2]}
            parts.append(pd.DataFrame([line | {"value": end, "low": np.nan, "high": np.nan} for end in (0.0, 1.0)]))
    columns = ["family", "what", "concentration", "drawn at", "value", "low", "high"]
    return pd.concat(parts, ignore_index=True)[columns]


def _least(rows: pd.DataFrame) -> float:
    return float(rows.loc[rows["concentration"] > 0, "concentration"].min())


def _varied(rows: pd.DataFrame) -> bool:
    return bool(rows["concentration"].nunique() > 1)


def _name(names: tuple[Any, ...], alike: list[tuple[Any, ...]]) -> str:
    """Return the name of a family, with the settings in which others of that name differ."""
    settings = zip(SAME, names, zip(*alike, strict=True), strict=True)
    said = [f"{key.replace('_', ' ')} {value:g}" for key, value, all_of in settings if len(set(map(str, all_of))) > 1]
    return ", ".join([names[0], *said])
