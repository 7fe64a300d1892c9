"""All results as tables: a row per model and adapter, and every measured value."""

import pandas as pd

from haptera.report.paper.published import MEASURE as PUBLISHED
from haptera.report.section import Listing, Section
from haptera.report.study.cells import KEYS, cells, clean, means, pool, shifted, summed
from haptera.table import COLUMNS, decoded

MOST_ROWS = 50_000
ELSEWHERE = ("reliability", "class_attraction", "collapse")
LABELS = {"lost": "lost to clean", "worst": "worst shift", "worst_accuracy": "accuracy there", "n": "images"}
CAPTION = (
    "Accuracy is the mean over shifts of the mean over severities, on what all models with the same adapter met; low "
    "and high are means of interval ends; the worst shift has the lowest mean over severities. With several seeds it "
    "is their mean, sd the standard deviation among them."
)
FAMILIES = (
    "The mean over the shifts of a family of the mean over severities; seeds are averaged. “all” leaves hold-out "
    "shifts out."
)


def section(table: pd.DataFrame) -> Section | None:
    """What every model reached, and the rows behind it."""
    overview = by_model(table)
    rows, caption = values(table)
    tables = [
        Listing("Models and adapters", CAPTION, overview, LABELS),
        Listing("Mean error by family", FAMILIES, by_family(table)),
        Listing("Every value", caption, rows, on_paper=False),
    ]
    tables = [table for table in tables if not table.frame.empty]
    text = "Sort by any column; the filter keeps rows that contain all its words."
    return Section("Results", text, tables=tuple(tables)) if tables else None


def by_model(table: pd.DataFrame) -> pd.DataFrame:
    """One row per stream, model and adapter: mean accuracy under shift, clean, lost, and the worst shift."""
    by = ["stream", "model", "adapter"]
    rows = shifted(cells(table))
    if rows.empty:
        return clean(table).rename(columns={"value": "accuracy"})
    unshifted = clean(table)[["model", "adapter", "value"]].rename(columns={"value": "clean"})
    within = pool(rows, [*by, "shift"]).sort_values([*by, "value", "shift"])
    worst = within.drop_duplicates(by).rename(columns={"shift": "worst", "value": "worst_accuracy"})
    frame = means(table).rename(columns={"value": "accuracy"})
    frame = frame.merge(unshifted, on=["model", "adapter"], how="left")
    frame = frame.merge(worst[[*by, "worst", "worst_accuracy"]], on=by)
    frame["lost"] = frame["clean"] - frame["accuracy"]
    shown = ["model", "adapter", "stream", "accuracy", "low", "high", "sd", "seeds", "clean", "lost", "worst"]
    shown += ["worst_accuracy", "n"]
    if frame["seeds"].isna().all():
        shown = [column for column in shown if column not in ("sd", "seeds")]
    if frame["stream"].nunique() == 1:
        shown.remove("stream")
    if frame["clean"].isna().all():
        shown = [column for column in shown if column not in ("clean", "lost")]
    return frame.sort_values(["accuracy", *by], ascending=[False, True, True, True], ignore_index=True)[shown]


def by_family(table: pd.DataFrame) -> pd.DataFrame:
    """One row per model, stream and adapter: the mean error in each family of corruptions, and over all shifts."""
    by = ["model", "stream", "adapter"]
    rows = summed(table, "family_error")
    if rows["shift"].nunique() < 2:
        return pd.DataFrame()
    rows = pd.concat([rows.astype({"shift": "str"}), summed(table, "mean_error").assign(shift="all")])
    frame = rows.groupby([*by, "shift"], observed=True)["value"].mean().unstack()
    shown = [family for family in ("noise", "blur", "weather", "digital", "holdout", "all") if family in frame]
    return frame[shown].reset_index().astype(dict.fromkeys(by, "str"))


def values(table: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The rows that are not parts of a figure above, without columns that are empty throughout; and a caption."""
    told = table["measure"].eq(PUBLISHED) & table["value"].isna()  # a row that only says why there is no number
    rows = table[table["step"].isna() & ~table["measure"].isin(ELSEWHERE) & ~told]
    rows = rows.drop(columns="parent", errors="ignore")
    caption = "One row per measured value and seed"
    caption += "; values over steps, of bins and of classes are left out here." if len(rows) < len(table) else "."
    if len(rows) > MOST_ROWS:
        caption += f" These are the first {MOST_ROWS:,} of {len(rows):,} rows; the table file has all."
        rows = rows[:MOST_ROWS]
    order = [*KEYS, "measure", "value", "low", "high", "n", "seed"]
    order += [str(column) for column in rows if column not in COLUMNS]
    filled = [column for column in order if (rows[column].notna() & rows[column].ne("")).any()]
    return decoded(rows[filled]), caption
