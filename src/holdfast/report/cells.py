"""Cells: the rows of one measure, with every name filled in, pooled over seeds, averaged or paired with "none".

Pooling is always the same: `value`, `low` and `high` are plain means, `n` is the sum. The mean of interval ends
is the interval as wide as if all of it had been measured on the same images, which within one study it mostly is;
it does not shrink with the number of shifts or seeds, and so claims no more than one cell could.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

NONE = "none"
CLEAN = "clean"
RESET = "corruptions"
COLOURS = 7
KEYS = ["model", "stream", "adapter", "shift", "severity"]


def named(table: pd.DataFrame, measure: str) -> pd.DataFrame:
    """The rows of one measure that have a value; an empty name gets one that a reader understands.

    No adapter is "none", no stream is "unnamed", and without a shift the stream says what the data is.
    """
    # By place, not by a mask: most sections look for a few rows, or none, among a million.
    places = np.flatnonzero((table["measure"] == measure) & table["value"].notna())
    rows = table.iloc[places].drop(columns="measure")
    unnamed = (rows["shift"] == "").to_numpy()
    if unnamed.any():
        rows["shift"] = rows["shift"].where(~unnamed, rows["stream"]).replace("", "all data")
    rows["adapter"] = rows["adapter"].replace("", NONE)
    rows["stream"] = rows["stream"].replace("", "unnamed")
    for column in ("model", "stream", "adapter", "shift"):
        rows[column] = rows[column].astype("category")  # a million rows are grouped by codes, not by text
    return rows


def pool(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """One row for each combination of `by` that occurs, sorted: means of value, low and high, sum of n."""
    groups = rows.groupby(by, observed=True, dropna=False, sort=True)
    averaged = [column for column in ("value", "low", "high", "change") if column in rows]
    pooled = groups[averaged].mean().join(groups["n"].sum(min_count=1)).reset_index()
    for column in by:
        if isinstance(pooled[column].dtype, pd.CategoricalDtype):
            pooled[column] = pooled[column].astype("str")
    return pooled


def cells(table: pd.DataFrame) -> pd.DataFrame:
    """Accuracy, one row per model, stream, adapter, shift and severity, pooled over seeds."""
    return pool(named(table, "accuracy"), KEYS)


def shifted(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows on data that was changed: neither the shift "clean" nor severity 0."""
    return frame[(frame["shift"] != CLEAN) & (frame["severity"] != 0)]


def clean(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per model and adapter on unshifted data; from the stream "clean", where there is one."""
    rows = frame[frame["shift"] == CLEAN]
    own = rows[rows["stream"] == CLEAN]
    return pool(rows if own.empty else own, ["model", "adapter"])


def average(frame: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """The mean over shifts of the mean over the cells of a shift, so that every shift counts the same."""
    within = pool(frame, [*by, "shift"])
    shifts = within.groupby(by)["shift"].nunique().rename("shifts")
    return pool(within, by).join(shifts, on=by)


def paired(table: pd.DataFrame) -> pd.DataFrame:
    """Every adapted cell beside the same cell (model, stream, shift, severity, seed) without an adapter.

    Returns:
        Rows with `adapter`, `value`, `low`, `high` and `n` of the adapted cell, `none` (accuracy without an
        adapter), `half` and `none_half` (half-widths of the two intervals) and `change` (value − none). A cell
        that lacks its partner is left out.
    """
    same = ["model", "stream", "shift", "severity", "seed"]
    rows = pool(named(table, "accuracy"), [*same, "adapter"])
    rows["half"] = (rows["high"] - rows["low"]) / 2
    without = rows[rows["adapter"] == NONE][[*same, "value", "half"]]
    without = without.rename(columns={"value": "none", "half": "none_half"})
    both = rows[rows["adapter"] != NONE].merge(without, on=same)
    both["change"] = both["value"] - both["none"]
    return both


def streams(frame: pd.DataFrame) -> list[str]:
    """Streams with shifted data, the first of which the summary is about.

    "corruptions" comes first, where every shift is met afresh; then the one with the most combinations of shift
    and severity; then by name.
    """
    combinations = shifted(frame)[["stream", "shift", "severity"]].drop_duplicates()
    counts = combinations.groupby("stream").size()
    return sorted(counts.index, key=lambda name: (name != RESET, -counts[name], name))


def adapters(table: pd.DataFrame) -> tuple[str, ...]:
    """Every adapter, "none" first, for colours that are the same in every figure; empty if there are too many."""
    names = led_by([NONE], table["adapter"].replace("", NONE).unique())
    return tuple(names) if len(names) <= COLOURS else ()


def led_by(first: Iterable[str], values: Iterable[str]) -> list[str]:
    """Distinct values: those that come first, then the others, with numbers in names in their order.

    >>> led_by(["mean"], ["fog 10", "fog 2", "mean"])
    ['mean', 'fog 2', 'fog 10']
    """
    values = set(values)
    leading = [value for value in dict.fromkeys(first) if value in values]
    return [*leading, *sorted(values - set(leading), key=_natural)]


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]


def in_order(frame: pd.DataFrame, by: list[str], orders: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Sorted by columns; one that has an order by the place of its values in it, "none" before other adapters."""
    orders = {"adapter": led_by([NONE], frame["adapter"].unique()), **orders}

    def place(values: pd.Series) -> pd.Series:
        order = orders.get(str(values.name))
        return values if order is None else values.map({value: at for at, value in enumerate(order)})

    return frame.sort_values(by, key=place, kind="stable", ignore_index=True)
