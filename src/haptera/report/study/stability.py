"""Stability in a study: R, D and G of each network against its error on clean data, with the power laws among them."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from haptera.report.figure import Figure
from haptera.report.section import Listing, Section
from haptera.report.study.cells import CLEAN, NONE, cells, pool, summed
from haptera.statistics.power_law import INDICES, PowerLaw, power_laws

MEASURES = {"relative_stability": "R", "diffeo_stability": "D", "noise_stability": "G"}


def section(table: pd.DataFrame) -> Section | None:
    """Where the stream `stability` was run on at least two networks, and their error on clean data is known."""
    points = stability_and_error(table)
    return against_error(points, power_laws(points)) if len(points) > 1 else None


def stability_and_error(table: pd.DataFrame) -> pd.DataFrame:
    """`model`, `error`, `R`, `D` and `G` of the networks without an adapter; seeds, and settings of δ, are averaged."""
    errors = cells(table, "error")
    errors = errors[(errors["shift"] == CLEAN) & (errors["adapter"] == NONE)]
    own = errors[errors["stream"] == CLEAN]
    errors = pool(errors if own.empty else own, ["model"])[["model", "value"]].rename(columns={"value": "error"})
    for measure, index in MEASURES.items():
        rows = summed(table, measure)
        rows = pool(rows[rows["adapter"] == NONE], ["model"])[["model", "value"]]
        errors = errors.merge(rows.rename(columns={"value": index}), on="model")
    return errors.sort_values("R", ignore_index=True)


def against_error(points: pd.DataFrame, laws: Mapping[str, PowerLaw]) -> Section:
    """A section from `model`, `error`, `R`, `D` and `G` of networks, and the laws among them."""
    figure = Figure(
        "Error against stability",
        "Both axes are logarithmic, so a power law is a straight line. Without an error there is no place.",
        points_and_laws(points, laws),
        kind="layers",
        x="value",
        y="error",
        scale="log",
        color=("layer",),
        mark="mark",
        select=("index",),
        start={"index": "R"},
        labels={"value": "index"},
    )
    tables = [Listing("Networks", "Medians of the output, and the share of wrong decisions.", points)]
    if laws:
        tables.append(
            Listing(
                "Power laws",
                "error ≈ prefactor x index to the exponent; the correlation is that of logarithms. 95 % intervals: "
                "Student’s t and Fisher’s z.",
                pd.DataFrame([{"index": index} | vars(law) for index, law in laws.items()]),
            )
        )
    return Section("Error", "Whether stability goes with performance.", (figure,), tuple(tables))


def points_and_laws(points: pd.DataFrame, laws: Mapping[str, PowerLaw]) -> pd.DataFrame:
    """Networks as points, laws as lines, one index after the other."""
    parts = []
    for index in INDICES:
        known = points[(points["error"] > 0) & (points[index] > 0)]
        here = pd.DataFrame({"model": known["model"], "value": known[index], "error": known["error"]})
        parts.append(here.assign(index=index, mark="point", layer="networks"))
        if index in laws and len(known):
            ends = np.geomspace(known[index].min(), known[index].max(), 2)
            line = pd.DataFrame({"value": ends, "error": laws[index](ends)})
            parts.append(line.assign(index=index, mark="line", layer="power law"))
    return pd.concat(parts, ignore_index=True)[["index", "mark", "layer", "model", "value", "error"]]
