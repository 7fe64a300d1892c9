"""Figure 6.2: how R² falls when the marginal is concentrated, beside the mass that must move to make it uniform.

Rows belong together that differ in nothing but the concentration of their marginal: κ of a von Mises-Fisher law on the
sphere, 1/σ² of a normal law in a box; a uniform marginal has 0.
"""

from typing import Any

import numpy as np
import pandas as pd

from haptera.report.figure import Figure
from haptera.report.section import Section

LAWS = {"sphere": "vmf", "box": "normal"}
SAME = ["family", "dimensions", "steps", "batch_size", "learning_rate", "start"]
VALUES = ("R²", "mass to be moved", "concentration of pairs")


def families(table: pd.DataFrame) -> pd.DataFrame:
    """`family`, `concentration`, `pairs` (that of the conditional), `mass`, `r2`, `low`, `high`, `seeds`.

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


def marginal_section(table: pd.DataFrame) -> Section | None:
    """Figure 6.2, and R² against the mass, where rows differ in the concentration of their marginal."""
    frame = families(table)
    if frame.empty:
        return None
    against = Figure(
        "R² against the concentration of the marginal",
        "κ on the sphere, 1/σ² in a box; the uniform marginal is drawn at half of the least other concentration. The "
        "area lies between the least and the largest of the seeds. The mass is what must be moved to make the "
        "marginal uniform; the upright line is where the marginal is as concentrated as pairs are (figure 6.2).",
        against_concentration(frame),
        kind="line",
        x="drawn at",
        y="value",
        low="low",
        high="high",
        color=("what",),
        palette=VALUES,
        select=("family",),
        limits=(0.0, 1.0),
        log_x=True,
        labels={"drawn at": "concentration of the marginal", "value": "R², share of the mass"},
    )
    points = frame[["family", "mass", "r2", "low", "high", "concentration", "seeds"]]
    moved = Figure(
        "R² against the distance from uniform",
        "The same on one scale for all spaces and laws; the least and the largest of the seeds.",
        pd.concat([points.assign(mark="line"), points.assign(mark="point")], ignore_index=True),
        kind="layers",
        x="mass",
        y="r2",
        low="low",
        high="high",
        color=("family",),
        mark="mark",
        labels={"mass": "share of the mass to be moved", "r2": "R²"},
    )
    text = "What becomes of it when the marginal is not uniform, as the theorems want it."
    return Section("Marginals", text, (against, moved))


def against_concentration(frame: pd.DataFrame) -> pd.DataFrame:
    """`family`, `what`, `concentration`, `drawn at`, `value`, `low`, `high`: R², mass and the upright line."""
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
