"""All results as tables: a row per model and adapter, and every measured value."""

import pandas as pd

from holdfast.report.cells import average, cells, clean, pool, shifted
from holdfast.report.listing import Listing
from holdfast.report.section import Section
from holdfast.table import COLUMNS

MOST_ROWS = 50_000
LABELS = {
    "lost": "lost to clean",
    "worst": "worst shift",
    "worst_accuracy": "accuracy there",
    "n": "images",
}


def section(table: pd.DataFrame) -> Section | None:
    """What every model reached, and the rows behind it."""
    if table.empty:
        return None
    overview = by_model(cells(table))
    tables = []
    if not overview.empty:
        caption = (
            "Accuracy is the mean over shifts of the mean over severities, seeds pooled; low and high are means of "
            "interval ends; the worst shift is the one with the lowest mean over severities."
        )
        tables.append(Listing("Models and adapters", caption, overview, LABELS))
    rows, caption = _values(table)
    tables.append(Listing("Every value", caption, rows))
    return Section(
        "Results",
        "Sort by any column; the filter keeps rows that contain all its words.",
        tables=tuple(tables),
    )


def by_model(pooled: pd.DataFrame) -> pd.DataFrame:
    """One row per stream, model and adapter: mean accuracy under shift, clean, lost, and the worst shift."""
    by = ["stream", "model", "adapter"]
    rows = shifted(pooled)
    if rows.empty:
        return clean(pooled)[["model", "adapter", "value", "low", "high", "n"]].rename(columns={"value": "accuracy"})
    mean = average(rows, by)
    unshifted = clean(pooled)[["model", "adapter", "value"]].rename(columns={"value": "clean"})
    within = pool(rows, [*by, "shift"]).sort_values([*by, "value", "shift"])
    worst = within.drop_duplicates(by)[[*by, "shift", "value"]]
    worst = worst.rename(columns={"shift": "worst", "value": "worst_accuracy"})
    frame = mean.merge(unshifted, on=["model", "adapter"], how="left").merge(worst, on=by)
    frame = frame.rename(columns={"value": "accuracy"}).assign(lost=lambda found: found["clean"] - found["accuracy"])
    shown = ["model", "adapter", "accuracy", "low", "high", "clean", "lost", "worst", "worst_accuracy", "n"]
    if frame["stream"].nunique() > 1:
        shown.insert(2, "stream")
    if frame["clean"].isna().all():
        shown = [column for column in shown if column not in ("clean", "lost")]
    return frame.sort_values(["accuracy", *by], ascending=[False, True, True, True], ignore_index=True)[shown]


def _values(table: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The rows that are not windows of a stream over time, without columns that are empty throughout."""
    rows = table[table["step"].isna()]
    caption = "One row per measured value and seed"
    caption += "; windows over time are in the chart above." if len(rows) < len(table) else "."
    if len(rows) > MOST_ROWS:
        caption += f" The first {MOST_ROWS:,} of {len(rows):,} rows; the table file has all."
        rows = rows[:MOST_ROWS]
    order = [
        "model",
        "stream",
        "adapter",
        "shift",
        "severity",
        "measure",
        "value",
        "low",
        "high",
        "n",
        "seed",
    ]
    order += [column for column in rows if column not in COLUMNS]
    empty = [column for column in order if rows[column].isna().all() or rows[column].astype("str").eq("").all()]
    return rows[[column for column in order if column not in empty]], caption
