"""Averages over cells and seeds: accuracy on clean data, and over shifts so that every shift counts the same.

An average is the mean over shifts of the mean over severities. Its interval is the mean of interval ends: as wide as if
every cell had been measured on the same images, which within one study it mostly is, so it does not shrink with the
number of shifts and claims no more than one cell could. `n` is the sum over cells; a cell that is there several times,
in each order of a stream, is averaged first, and its images are counted once.

Seeds are the same images with other noise and in another order. They add no images, so `n` stays that of one of them.
Their interval is Student's (`mean_of_units`), which tells what another seed would give on the same images. There is
none where seeds change nothing, so it is never narrower than the mean interval of a single seed, which is about the
images: it covers at least 95 %, for both questions.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from haptera import catalog
from haptera.measures.facts import fact, measure
from haptera.measures.pairs import records_of, rows_of
from haptera.measures.windows import last_epochs
from haptera.statistics.groups import means_of_groups
from haptera.table import COLUMNS, Rows

CLEAN = "clean"
RUN = ["model", "stream", "adapter", "seed"]
NUMBERS = ["value", "low", "high"]
SUFFIX = "_over_seeds"
APART = ("reliability", "class_attraction", "collapse", "expected_accuracy")
"""Measures with a row for each bin or class, or about one run."""
AVERAGED = ("before", "after", "cells", "shifts", "lost", "walk_sd")
"""Further columns that are numbers like the value, and have a mean."""
UNBOUNDED = (float("-inf"), float("inf"))


@measure(bounds=(0, 1), higher_is_better=True, of="table")
def clean_accuracy(table: pd.DataFrame) -> Rows:
    """Accuracy on data that is not shifted, in the stream `clean` where there is one, and else in all streams."""
    rows = rows_of(table, "accuracy")
    rows = rows[rows["shift"] == CLEAN]
    own = rows[rows["stream"] == CLEAN]
    rows = (rows if own.empty else own).drop(columns="stream")
    by = ["model", "adapter", "seed"]
    means = group_means(once(rows, by), by).drop(columns="cells")
    return records_of(means.assign(measure="clean_accuracy", shift=CLEAN))


@measure(bounds=(0, 1), higher_is_better=True, of="table")
def mean_accuracy(table: pd.DataFrame) -> Rows:
    """Mean over shifts of the mean accuracy over severities, in each stream, without clean data.

    Taken over the combinations of shift and severity that every model with the same adapter met in that stream, so that
    models can be compared, or over all of a model's own where no combination is common; `shifts` is how many shifts.
    """
    rows = comparable(shifted(rows_of(table, "accuracy")), ["stream", "adapter"], ["model", "seed"])
    return records_of(over_shifts(rows, RUN).assign(measure="mean_accuracy"))


@measure(bounds=UNBOUNDED, of="rows")
def mean_over_seeds(table: pd.DataFrame) -> Rows:
    """Mean over seeds of every value that has several, as `NAME_over_seeds`, with `sd` and the number of `seeds`.

    `sd` is the sample standard deviation over seeds, `n` that of a single seed. The interval is that of few units,
    and at least as wide as the mean interval of a single seed. Values along steps, of
    bins and of classes are not summarised, nor is `collapse`, which is about one run.
    """
    rows = table[table["seed"].notna() & table["step"].isna() & table["value"].notna() & ~table["measure"].isin(APART)]
    rows = last_epochs(rows)
    if rows["seed"].nunique() < 2:
        return []
    numbers = ["value", "low", "high", "n", *(name for name in AVERAGED if name in rows)]
    keys = [name for name in rows if name not in numbers and name not in ("seed", "step")]
    keys = [name for name in keys if name in COLUMNS or rows[name].notna().any()]
    rows = rows.astype(dict.fromkeys(numbers, "float64"))
    groups = rows.groupby(keys, dropna=False, observed=True, sort=True)
    several = groups.ngroup()[groups["seed"].transform("nunique") > 1]
    rows = rows.loc[several.index]
    means = rows.groupby(several)[numbers].mean().join(rows.groupby(several)[keys].first())
    named = rows["of"].fillna(rows["measure"]) if "of" in rows else rows["measure"]  # a mean is bounded as its terms
    scales = named.map({name: _scale(str(name)) for name in named.unique()})
    units = means_of_groups(rows["value"].to_numpy(), several.to_numpy(), scales.to_numpy(str))
    means["low"], means["high"] = np.fmin(means["low"], units.low), np.fmax(means["high"], units.high)
    means["sd"], means["seeds"] = units.deviation, units.units
    means["n"] = means["n"].round()
    means["measure"] += SUFFIX
    return records_of(means)


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


def group_means(rows: pd.DataFrame, by: list[str], numbers: Sequence[str] = NUMBERS) -> pd.DataFrame:
    """Means of some columns over the rows that share others, with the sum of `n` and the number of `cells`."""
    groups = rows.groupby(by, dropna=False, observed=True)
    sums = groups["n"].sum(min_count=1).round()
    return groups[list(numbers)].mean().join(sums).join(groups.size().rename("cells")).reset_index()


def over_shifts(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """The mean over shifts of the mean over the cells of a shift, with `n` and the number of `shifts`."""
    cells = once(rows, by)
    within = cells.groupby([*by, "shift"], dropna=False, observed=True)[NUMBERS].mean()
    groups = within.groupby(by, dropna=False, observed=True)
    total = cells.groupby(by, dropna=False, observed=True)["n"].sum(min_count=1).round()
    shifts = groups.size().rename("shifts")
    return groups.mean().join(total).join(shifts).reset_index()


def _scale(name: str) -> str:
    """Return the scale on which the mean of a measure has an interval that covers, by its bounds."""
    known = name in catalog.entries("measures")
    bounds = fact(catalog.find("measures", name), "bounds", UNBOUNDED) if known else UNBOUNDED
    return "plain" if bounds[0] < 0 else "share" if bounds[1] == 1 else "log"
