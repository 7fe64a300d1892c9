"""Cells: the rows of one measure, with every name filled in; nothing is computed here but plain means of them.

What the page says about an average, a gain or an interval is a row of the table (`clean_accuracy`, `mean_accuracy`,
`adaptation_gain`, `mean_gain`, `recovered`, `model_margin`, `adapter_margin`, and each of them `..._over_seeds`).
A figure also shows means of what it shows: `value`, `low` and `high` are plain means, `n` is the sum over cells. The
mean of interval ends is the interval as wide as if all of it had been measured on the same images, which within one
study it mostly is; it does not shrink with the number of shifts, and so claims no more than one cell could.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from haptera.measures.averages import AVERAGED, CLEAN, SUFFIX, once, shifted
from haptera.measures.pairs import NONE
from haptera.measures.windows import CELL, EPOCH, last_epochs
from haptera.report.paper.published import MEASURE as PUBLISHED
from haptera.table import coded, decoded

__all__ = ["CLEAN", "NONE", "shifted"]
RESET = "corruptions"
STYLES = 42
"""Adapters that a page can tell apart: seven colours, each with six dashes and markers."""
KEYS = ["model", "stream", "adapter", "shift", "severity"]
NUMBERS = {"value", "low", "high", "n", "seed", "step", "sd", "seeds", *AVERAGED}


def read(table: pd.DataFrame, measure: str) -> pd.DataFrame:
    """The rows of one measure that have a value, as they are; those over seeds in the place of single ones.

    Of several epochs the last.
    """
    return decoded(_read(table, measure))


def _read(table: pd.DataFrame, measure: str) -> pd.DataFrame:
    own, many = _rows(table, measure), _rows(table, measure + SUFFIX)
    if many.empty:
        return own
    both = pd.concat([decoded(many).assign(summed=True), decoded(own).assign(summed=False)], ignore_index=True)
    keys = [name for name in both if name not in NUMBERS and name != "summed" and both[name].notna().any()]
    covered = both.groupby(keys, dropna=False, observed=True)["summed"].transform("any")
    return both[both["summed"] | ~covered].drop(columns="summed")


def named(table: pd.DataFrame, measure: str, columns: Iterable[str] | None = None) -> pd.DataFrame:
    """The rows of one measure, seed by seed, with names that a reader understands; of several epochs the last.

    Where columns are given, only these are read beside the names, as far as the table has them.
    """
    return _named(_rows(table, measure, columns))


def summed(table: pd.DataFrame, measure: str) -> pd.DataFrame:
    """The same with those over seeds in the place of single ones."""
    return _named(_read(table, measure))


def _rows(table: pd.DataFrame, measure: str, columns: Iterable[str] | None = None) -> pd.DataFrame:
    # By place, not by a mask: most sections look for a few rows, or none, among a million.
    places = np.flatnonzero((table["measure"] == measure) & table["value"].notna())
    wanted = {*table} if columns is None else {*CELL, "shift", EPOCH, *columns}
    kept = table[[column for column in table if column in wanted and column != "measure"]]
    return last_epochs(kept.iloc[places])


def _named(rows: pd.DataFrame) -> pd.DataFrame:
    """No adapter is "none", no stream is "unnamed", and without a shift the stream says what the data is."""
    names = coded(rows[["model", "stream", "adapter", "shift"]])  # a million rows are grouped by codes, not by text
    unnamed = (names["shift"] == "").to_numpy()
    if unnamed.any():
        shift = names["shift"].astype("str").where(~unnamed, names["stream"].astype("str"))
        names["shift"] = shift.replace("", "all data").astype("category")
    for column, word in (("adapter", NONE), ("stream", "unnamed")):
        if (names[column] == "").any():
            names[column] = names[column].astype("str").replace("", word).astype("category")
    return rows.assign(**{str(column): names[column].cat.remove_unused_categories() for column in names})


def pool(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """One row for each combination of `by` that occurs, sorted: means of value, low and high, sum of n."""
    groups = rows.groupby(by, observed=True, dropna=False, sort=True)
    averaged = [column for column in ("value", "low", "high", "change") if column in rows]
    total = groups["n"].sum(min_count=1).round().astype("Int64")
    pooled = groups[averaged].mean().join(total).reset_index()
    for column in by:
        if isinstance(pooled[column].dtype, pd.CategoricalDtype):
            pooled[column] = pooled[column].astype("str")
    return pooled


def cells(table: pd.DataFrame, measure: str = "accuracy") -> pd.DataFrame:
    """One row per model, stream, adapter, shift and severity; a cell that is there in several orders counts once."""
    rows = summed(table, measure)
    kept = [name for name in rows if name not in NUMBERS - {"value", "low", "high", "n"} and rows[name].notna().any()]
    return pool(once(rows[list(dict.fromkeys([*KEYS, "value", "low", "high", "n", *kept]))], KEYS), KEYS)


def clean(table: pd.DataFrame) -> pd.DataFrame:
    """Accuracy on clean data, one row per model and adapter."""
    rows = read(table, "clean_accuracy")
    return pool(rows.assign(adapter=rows["adapter"].replace("", NONE)), ["model", "adapter"])


def means(table: pd.DataFrame) -> pd.DataFrame:
    """Mean accuracy over shifts, one row per model, stream and adapter, with `shifts`, `sd` and `seeds`."""
    rows = summed(table, "mean_accuracy").astype(dict.fromkeys(["model", "stream", "adapter"], "str"))
    wanted = ["model", "stream", "adapter", "value", "low", "high", "n", "shifts", "sd", "seeds"]
    return rows.reindex(columns=wanted).reset_index(drop=True)


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
    measured = table.loc[table["measure"] != PUBLISHED, "adapter"].unique()
    names = led_by([NONE], [name or NONE for name in measured])
    return tuple(names) if len(names) <= STYLES else ()


def models_after_adapters(table: pd.DataFrame, models: Sequence[str]) -> tuple[str, ...]:
    """Return the palette of a figure with a colour for each model: theirs come after those of the adapters.

    So a colour that stands for an adapter in one figure never stands for a model in another, as long as there are
    colours; beyond, a model has the colour of an adapter with another marker. A name that both have counts once.
    """
    return tuple(dict.fromkeys([*adapters(table), *models]))


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
        if order is None:
            return values
        places = {value: at for at, value in enumerate(order)}
        if isinstance(values.dtype, pd.CategoricalDtype):
            each = np.array([places.get(value, len(order)) for value in values.cat.categories])
            return pd.Series(each[values.cat.codes], values.index)
        return values.map(places)

    return frame.sort_values(by, key=place, kind="stable", ignore_index=True)
