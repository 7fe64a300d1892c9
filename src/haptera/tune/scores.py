"""Scores: from errors of cells to ranks, intervals, margins, and how a choice carries over.

The score of a setting is its mean error, in which every corruption counts the same. An interval is Student's, at 95 %,
over corruptions (of errors on the log odds, of differences as they are; see `few_units`): the question is how a setting
does on another one, and of these there are as many as were tried. More seeds make each of them surer, not more of them.
With one corruption it is over seeds, and with one seed there is none. Two settings are compared on the same
corruptions, so what makes one harder than the other cancels.
"""

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any

import pandas as pd

from haptera.statistics.intervals import UnitMean, mean_of_units

UNADAPTED = -1
SAME = 12
"""Errors that agree in so many digits are the same."""

WHERE = ("model", "stream", "seed", "part", "order", "shift", "severity")


def errors(
    table: pd.DataFrame, tried: Mapping[tuple[str, str], int], within: Mapping[str, Sequence[Any]]
) -> pd.DataFrame:
    """The errors of cells: a row for each place (model, stream, shift, ...), a column for each setting.

    Args:
        table: of a study.
        tried: stream and adapter -> number of the setting, or `UNADAPTED`.
        within: column -> the values of this search; a folder may hold more.
    """
    rows = table[table["measure"] == "error"]
    for column, values in within.items():
        rows = rows[rows[column].isin(list(values))]
    pairs = list(zip(rows["stream"], rows["adapter"], strict=True))
    rows = rows[[pair in tried for pair in pairs]].assign(setting=[tried[pair] for pair in pairs if pair in tried])
    if "epoch" in rows:  # offline: what counts is the last pass
        last = rows.groupby(["setting", "stream"])["epoch"].transform("max")
        rows = rows[rows["epoch"].isna() | (rows["epoch"] == last)]
    where = [column for column in WHERE if column in rows]
    keyed = rows.assign(**{column: rows[column].astype(object).fillna("") for column in where})
    found = keyed.set_index([*where, "setting"])["value"].unstack()
    return found[found.drop(columns=UNADAPTED, errors="ignore").notna().any(axis=1)]


def by_corruption(found: pd.DataFrame) -> pd.DataFrame:
    """The mean error for each corruption, or for each seed of a single one; a column for each setting that is whole."""
    level = "shift" if found.index.unique("shift").size > 1 else "seed"
    return found.dropna(axis=1).groupby(level=level, sort=False).mean()


def rank(units: pd.DataFrame) -> list[int]:
    """The settings from best to worst; of equal ones, the one that was given earlier comes first."""
    means = units.drop(columns=UNADAPTED, errors="ignore").mean().round(SAME)
    return [int(setting) for setting in means.sort_index().sort_values(kind="stable").index]


def ties(units: pd.DataFrame, order: Sequence[int]) -> list[int]:
    """The settings that are as good as the best one."""
    means = units.mean().round(SAME)
    return [setting for setting in order[1:] if means[setting] == means[order[0]]]


def margin(units: pd.DataFrame, setting: int, best: int) -> UnitMean:
    """How much more error a setting makes than the best one, on the same corruptions."""
    return mean_of_units((units[setting] - units[best]).to_numpy())


def ranking(units: pd.DataFrame, settings: Sequence[Mapping[str, Any]], names: Sequence[str]) -> pd.DataFrame:
    """The table of everything tried, best first; then what could not be run whole, and the unadapted model.

    Columns: `rank`, `setting` in words, one for each setting, `error` with `low` and `high`, and `behind`, how much
    more error than the best one, on the same corruptions, with `behind_low` and `behind_high`.
    """
    order = rank(units)
    whole = [*order, *([UNADAPTED] if UNADAPTED in units else [])]
    lost = [number for number in range(len(settings)) if number not in order]
    rows: list[dict[str, Any]] = []
    for setting in [*order, *lost, *whole[len(order) :]]:
        row: dict[str, Any] = {"rank": float(order.index(setting) + 1) if setting in order else nan}
        row |= {"setting": "unadapted"} if setting == UNADAPTED else {"setting": names[setting], **settings[setting]}
        if setting in whole:
            own = mean_of_units(units[setting].to_numpy(), "share")
            row |= dict(zip(("error", "low", "high"), (own.value, *own.ends), strict=True))
        if setting in whole and setting != order[0]:
            behind = margin(units, setting, order[0])
            row |= dict(zip(("behind", "behind_low", "behind_high"), (behind.value, *behind.ends), strict=True))
        rows.append(row)
    columns = ["rank", "setting", *settings[0], "error", "low", "high", "behind", "behind_low", "behind_high"]
    return pd.DataFrame(rows, columns=columns).astype({"rank": "Int64"})


def leave_one_out(units: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return, for each corruption, what the choice on the others costs there.

    Columns: `left_out`; `chosen` on the others, and its `error` on the one left out; `best` there, and its
    `best_error`; `regret`, the difference; `unadapted`, the error of the unadapted model.
    """
    rows = []
    for shift in units.index if units.index.name == "shift" and len(units) > 1 else []:
        chosen, best = rank(units.drop(index=shift))[0], rank(units.loc[[shift]])[0]
        error, least = units.loc[shift, chosen], units.loc[shift, best]
        row = {"left_out": shift, "chosen": names[chosen], "error": error, "best": names[best], "best_error": least}
        rows.append(row | {"regret": error - least, "unadapted": units.loc[shift].get(UNADAPTED, nan)})
    return pd.DataFrame(rows, columns=["left_out", "chosen", "error", "best", "best_error", "regret", "unadapted"])
