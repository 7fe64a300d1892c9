"""Averages over cells: accuracy on clean data, and over shifts so that every shift counts the same.

An average is the mean over shifts of the mean over severities. Its interval is the mean of interval ends: as wide as if
every cell had been measured on the same images, which within one study it mostly is, so it does not shrink with the
number of shifts and claims no more than one cell could. `n` is the sum over cells; a cell that is there several times,
in each order of a stream, is averaged first, and its images are counted once.
"""

import pandas as pd

from haptera.measures.facts import measure
from haptera.measures.pairs import NONE, records_of, rows_of
from haptera.table import COLUMNS, Rows

CLEAN = "clean"
RUN = ["model", "stream", "adapter", "seed"]
NUMBERS = ["value", "low", "high"]


@measure(bounds=(0, 1), higher_is_better=True, of="table")
def clean_accuracy(table: pd.DataFrame) -> Rows:
    """Accuracy on data that is not shifted, in the stream `clean` where there is one, and else in all streams."""
    rows = rows_of(table, "accuracy")
    rows = rows[rows["shift"] == CLEAN]
    own = rows[rows["stream"] == CLEAN]
    rows = (rows if own.empty else own).drop(columns="stream")
    by = ["model", "adapter", "seed"]
    cells = once(rows, by)
    groups = cells.groupby(by, dropna=False, observed=True)
    means = groups[NUMBERS].mean().join(groups["n"].sum(min_count=1)).reset_index()
    return records_of(means.assign(measure="clean_accuracy", shift=CLEAN))


@measure(bounds=(0, 1), higher_is_better=True, of="table")
def mean_accuracy(table: pd.DataFrame) -> Rows:
    """Mean over shifts of the mean accuracy over severities, in each stream, without clean data.

    Taken over the combinations of shift and severity that every model with the same adapter met in that stream, so that
    models can be compared, or over all of a model's own where no combination is common; `shifts` is how many shifts.
    """
    rows = comparable(shifted(rows_of(table, "accuracy")), ["stream", "adapter"], ["model", "seed"])
    return records_of(over_shifts(rows, RUN).assign(measure="mean_accuracy"))


def shifted(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows on data that was changed: neither the shift "clean" nor severity 0."""
    return rows[(rows["shift"] != CLEAN) & (rows["severity"] != 0)]


def comparable(rows: pd.DataFrame, among: list[str], runs: list[str]) -> pd.DataFrame:
    """The rows at combinations of shift and severity that all runs have; all rows of those that share none.

    Args:
        rows: of one measure.
        among: what runs share to be compared.
        runs: what tells them apart.
    """
    if rows.empty:
        return rows
    everywhere = met_by_all(rows, among, runs)
    any_common = everywhere.groupby([rows[name] for name in among], dropna=False, observed=True).transform("any")
    return rows[everywhere | ~any_common]


def met_by_all(rows: pd.DataFrame, among: list[str], runs: list[str]) -> pd.Series:
    """Return whether every run among them has the combination of shift and severity of a row."""
    run = rows.groupby(runs, dropna=False, observed=True).ngroup().rename("run")
    both = rows[[*among, "shift", "severity"]].assign(run=run)
    met = both.groupby([*among, "shift", "severity"], dropna=False, observed=True)["run"].transform("nunique")
    return met == both.groupby(among, dropna=False, observed=True)["run"].transform("nunique")


def once(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """One row for each cell: shift, severity and whatever else divides the samples; means over parts that repeat it."""
    further = [str(name) for name in rows if name not in (*COLUMNS, "part", "order", *by)]
    numbers = [name for name in (*NUMBERS, "n", "before", "after") if name in rows]
    cell = [*by, *(name for name in ("shift", "severity") if name not in by)]
    cell += [name for name in further if name not in numbers]
    floats = rows.astype(dict.fromkeys(numbers, "float64"))
    return floats.groupby(cell, dropna=False, observed=True)[numbers].mean().reset_index()


def over_shifts(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """The mean over shifts of the mean over the cells of a shift, with `n` and the number of `shifts`."""
    cells = once(rows, by)
    within = cells.groupby([*by, "shift"], dropna=False, observed=True)[NUMBERS].mean()
    groups = within.groupby(by, dropna=False, observed=True)
    total = cells.groupby(by, dropna=False, observed=True)["n"].sum(min_count=1).round()
    shifts = groups.size().rename("shifts")
    return groups.mean().join(total).join(shifts).reset_index()


def unadapted(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of models without an adapter."""
    return rows[rows["adapter"] == NONE]
