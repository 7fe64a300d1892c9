"""Shift means: the numbers of the table that papers print, a row for each shift and one for the mean over shifts.

Under a shift, a run has the mean over severities and over the orders of its stream; over shifts, the mean of those, so
that every shift counts the same. Hold-out shifts have rows of their own, and count in the mean of a stream only where
it has no others, for settings are chosen on them. Along walks of CCC, where hardly two steps are under the same shift,
the columns are the difficulties of the walks, each the mean over speeds and walks (table 4.1 of the thesis).
A run that lacks a shift or a severity which another one of the same model and stream has met has no mean over shifts.
"""

import pandas as pd

from haptera import catalog
from haptera.errors import HapteraError
from haptera.families import HELD_OUT
from haptera.measures.averages import NUMBERS, RUN, SUFFIX, once, over_shifts, shifted
from haptera.measures.facts import fact, measure
from haptera.measures.margins import learners, margin
from haptera.measures.pairs import records_of, rows_of
from haptera.table import Rows

FADES = " > "
"""Between the two shifts of a step along a walk, as `haptera.streams.walk` writes it."""
MIRRORED = {"accuracy": "error", "error": "accuracy"}
"""Measures that say the same, the other way round; walks have them as a whole."""
WHERE = ["model", "stream"]


@measure(bounds=(float("-inf"), float("inf")), of="table")
def shift_mean(table: pd.DataFrame, of: str = "error") -> Rows:
    """The mean of a measure under each shift, and, in the row without a shift, over shifts; the column `of` names it.

    Args:
        table: with rows of that measure for each shift.
        of: a measure that has a row for each shift, such as `error`, `accuracy` or `expected_calibration_error`.
    """
    return records_of(_means(table, of).assign(measure="shift_mean", of=of))


@measure(bounds=(float("-inf"), float("inf")), of="table")
def shift_margin(table: pd.DataFrame, of: str = "error") -> Rows:
    """By how much the best adapter is better than the next in the mean over shifts, for each model and stream.

    Never negative, whichever direction is better. `against` is the next best, `seeds` how many both have, `tied` how
    many others are exactly as good as the best. The interval is that of the differences, seed by seed. Adapters that
    lack a shift are left out.

    Args:
        table: as for `shift_mean`.
        of: likewise; a measure of which either direction is better.
    """
    sign, learns = direction(of), learners(table)
    means = _means(table, of)
    runs = means[means["shift"] == ""].copy()
    ends = runs[NUMBERS].to_numpy(float) * sign
    runs[NUMBERS] = ends if sign > 0 else ends[:, [0, 2, 1]]
    runs = runs[runs.groupby(WHERE)["adapter"].transform("nunique") > 1]
    found: Rows = []
    for (model, stream), own in runs.groupby(WHERE, sort=False):
        if row := margin(own, "adapter", learns, bounded=of in MIRRORED):
            found.append({"model": model, "stream": stream, "measure": "shift_margin", "of": of} | row)
    return found


def direction(of: str) -> int:
    """Return 1 where more of a measure is better, and -1 where less is."""
    higher = fact(catalog.find("measures", of.removesuffix(SUFFIX)), "higher_is_better")
    if higher is None:
        raise HapteraError(f"no direction of {of} is better, so nobody can be the best in it")
    return 1 if higher else -1


def _means(table: pd.DataFrame, of: str) -> pd.DataFrame:
    """One row for each run and shift, and one without a shift for each run that has met them all."""
    rows = shifted(_rows(table, of))
    rows = rows[~rows["shift"].str.contains(FADES, regex=False) & (rows["shift"] != "")]
    rows = pd.concat([rows, _walks(table, of)]) if of in MIRRORED else rows
    if rows.empty:
        return pd.DataFrame(columns=[*RUN, "shift", *NUMBERS, "n"])
    cells = once(rows, RUN)
    groups = cells.groupby([*RUN, "shift"], dropna=False, observed=True)
    each = groups[NUMBERS].mean().join(groups["n"].sum(min_count=1).round()).reset_index()
    whole = rows[_counted(rows)]
    whole = whole[_complete(whole)]
    return pd.concat([over_shifts(whole, RUN).drop(columns="shifts").assign(shift=""), each], ignore_index=True)


def _rows(table: pd.DataFrame, of: str) -> pd.DataFrame:
    """The rows of a measure; errors from accuracies, or the other way round, where a table has only those."""
    rows = rows_of(table, of)
    return _mirrored(rows_of(table, MIRRORED[of])) if rows.empty and of in MIRRORED else rows


def _mirrored(rows: pd.DataFrame) -> pd.DataFrame:
    """Return accuracies as errors, and errors as accuracies."""
    return rows.assign(value=1 - rows["value"], low=1 - rows["high"], high=1 - rows["low"])


def _counted(rows: pd.DataFrame) -> pd.Series:
    """Return whether a row counts in the mean over shifts: hold-out shifts do only where a stream has no others."""
    tested = ~rows["shift"].isin(HELD_OUT)
    return tested | ~tested.groupby([rows[name] for name in WHERE], dropna=False).transform("any")


def _complete(rows: pd.DataFrame) -> pd.Series:
    """Return whether the run of a row has met every combination that any run of the model and stream has met."""
    met = (rows["shift"] + " " + rows["severity"].astype("str")).rename("met")
    every = met.groupby([rows[name] for name in WHERE], dropna=False).transform("nunique")
    return met.groupby([rows[name] for name in RUN], dropna=False).transform("nunique") == every


def _walks(table: pd.DataFrame, of: str) -> pd.DataFrame:
    """The accuracies, or errors, of whole walks, each difficulty in the place of a shift."""
    rows = rows_of(table, "walk_accuracy")
    if rows.empty or "difficulty" not in rows:
        return rows[:0]
    rows = rows if of == "accuracy" else _mirrored(rows)
    return rows.assign(shift="difficulty " + rows["difficulty"].map("{:g}".format))
