"""Margins: how far ahead the best is, of models in a stream, and of adapters on a model.

With several seeds the interval is Student's t of the differences, seed by seed: what another seed would give on the
same images. With one, or where all seeds differ alike, it is Newcombe's, made of the two intervals, taken as
independent. The winner is chosen by the same numbers, so a narrow margin flatters it. A margin of 0 is a tie; it goes
to what does not learn: the unadapted model, or the adapter that the others are without learning.
"""

from typing import Any

import numpy as np
import pandas as pd

from haptera.measures.averages import NUMBERS, RUN, comparable, group_means, over_shifts, shifted
from haptera.measures.facts import measure
from haptera.measures.pairs import NONE, newcombe, records_of, rows_of
from haptera.statistics.intervals import INTERVAL, mean_of_units
from haptera.table import Rows

SAME = 12
"""Accuracies that agree in so many digits are the same."""


@measure(bounds=(-1, 1), of="table")
def model_margin(table: pd.DataFrame) -> Rows:
    """Mean accuracy over shifts of the best unadapted model minus that of the next, in each stream.

    On the combinations of shift and severity that all of them met. `against` is the next best, `seeds` how many both
    have. Where no model was measured without an adapter, models with each of theirs are compared.
    """
    found: Rows = []
    rows = shifted(rows_of(table, "accuracy"))
    if rows.empty:
        return found
    unadapted = rows["adapter"] == NONE
    rows = rows[unadapted | ~rows["stream"].isin(rows["stream"][unadapted].unique())]
    every = over_shifts(comparable(rows, ["stream"], ["model", "adapter", "seed"]), RUN)
    every["who"] = every["model"].where(every["adapter"] == NONE, every["model"] + " with " + every["adapter"])
    for stream, runs in every.groupby("stream"):
        if row := margin(runs, "who", {}):
            best = runs[runs["who"] == row["who"]].iloc[0]
            names = {"model": best["model"], "adapter": best["adapter"], "stream": stream, "measure": "model_margin"}
            found.append(names | {key: value for key, value in row.items() if key != "who"})
    return found


@measure(bounds=(-1, 1), of="table")
def adapter_margin(table: pd.DataFrame) -> Rows:
    """Mean accuracy over shifts with the best adapter minus that with the next, for each model and stream.

    `against` is the next best, `seeds` how many both have, `tied` how many others are exactly as good as the best. Rows
    without a model are about the mean over models, as those of `matched_accuracy` are.
    """
    runs, learns = _matched(table), learners(table)
    found: Rows = []
    for (model, stream), own in runs.groupby(["model", "stream"], sort=False):
        if row := margin(own, "adapter", learns):
            found.append({"model": model, "stream": stream, "measure": "adapter_margin"} | row)
    return found


@measure(bounds=(0, 1), higher_is_better=True, of="table")
def matched_accuracy(table: pd.DataFrame) -> Rows:
    """Mean accuracy over shifts, as `mean_accuracy`, on what all adapters of a model met, so that these compare.

    Where a model has at least two adapters in a stream, "none" among them. The mean over models, whose rows have no
    model, takes those that have every adapter of the stream; it needs two.
    """
    return records_of(_matched(table).assign(measure="matched_accuracy"))


def _matched(table: pd.DataFrame) -> pd.DataFrame:
    rows = shifted(rows_of(table, "accuracy"))
    adapters = rows.groupby(["model", "stream"])["adapter"].transform("nunique")
    met = rows.groupby(["model", "stream", "seed", "shift", "severity"], dropna=False)["adapter"].transform("nunique")
    rows = rows[(adapters > 1) & (met == adapters)]
    runs = over_shifts(rows, RUN).drop(columns="shifts")
    known = runs.groupby("stream")["adapter"].transform("nunique")
    whole = runs[runs.groupby(["model", "stream", "seed"], dropna=False)["adapter"].transform("nunique") == known]
    several = whole[whole.groupby(["stream", "seed"], dropna=False)["model"].transform("nunique") > 1]
    means = group_means(several, ["stream", "adapter", "seed"]).assign(model="")
    return pd.concat([means, runs], ignore_index=True)[runs.columns] if len(means) else runs


def learners(table: pd.DataFrame) -> dict[str, str]:
    """Adapters that learn -> what they are without learning, as far as the cells say it."""
    if "parent" not in table:
        return {}
    said = table.dropna(subset="parent").drop_duplicates("adapter")
    return {str(adapter): str(parent) for adapter, parent in zip(said["adapter"], said["parent"], strict=True)}


def in_rank(values: pd.Series, learns: dict[str, str]) -> list[str]:
    """The names of values from the largest to the smallest; of equal ones first what does not learn, then by name."""
    rounded = {str(name): -round(float(value), SAME) for name, value in values.items()}
    return sorted(rounded, key=lambda name: (rounded[name], name != NONE, name in learns, name))


def margin(runs: pd.DataFrame, who: str, learns: dict[str, str], bounded: bool = True) -> dict[str, Any]:
    """The best of several runs against the next, over the seeds that all of them have.

    Args:
        runs: a row for each run and seed: `seed`, `value`, `low`, `high`, `n`; more is better.
        who: the column that names a run.
        learns: what learns -> what it is without learning.
        bounded: whether values are shares, so that no margin is beyond 1.
    """
    wide = runs.pivot(index="seed", columns=who, values="value").dropna()
    if wide.empty or wide.shape[1] < 2:
        return {}
    means = wide.mean()
    best, second, *others = in_rank(means, learns)
    change = (wide[best] - wide[second]).to_numpy(float)
    value, n = float(change.mean()), runs.loc[runs[who] == best, "n"].mean()
    units = mean_of_units(change)
    low, high = units.low, units.high
    if units.kind != INTERVAL:  # one seed, or a difference that is the same for all
        low, high = newcombe(*(runs.loc[runs[who] == name, NUMBERS].astype(float).mean() for name in (best, second)))
    tied = [name for name in (second, *others) if round(float(means[best] - means[name]), SAME) == 0]
    row = {who: best, "against": second, "value": value, "seeds": len(change), "tied": len(tied)}
    least, most = (-1.0, 1.0) if bounded else (-np.inf, np.inf)
    known = {} if np.isnan(low) else {"low": max(float(low), least), "high": min(float(high), most)}
    return row | known | ({} if pd.isna(n) else {"n": round(float(n))})
