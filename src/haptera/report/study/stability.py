"""Stability in a study: R, D and G of each network against its error on clean data, with the power laws among them."""

import pandas as pd

from haptera.analyses.stability.page import against_error
from haptera.report.section import Section
from haptera.report.study.cells import CLEAN, NONE, cells, pool, summed
from haptera.statistics.power_law import power_laws

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
