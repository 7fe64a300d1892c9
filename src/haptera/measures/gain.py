"""What adaptation wins, and what it costs on the data the model came from: differences to the unadapted model.

Sources: thesis chapters 2 and 3; forgetting after table 3.14, which takes the accuracy on clean data after adapting,
with the statistics of BatchNorm corrected to the clean data again. A stream with clean batches in between
(`interleave`), or one whose severity returns to 0, shows that: an adapter that takes statistics of the batch takes
those of the clean one. The adapter also learns from the clean batches, which table 3.14 does not.
"""

from collections.abc import Mapping

import pandas as pd

from haptera.measures.averages import CLEAN, NUMBERS, clean_accuracy, group_means, once, shifted
from haptera.measures.facts import measure
from haptera.measures.margins import learners
from haptera.measures.pairs import NONE, beside, name_group, newcombe, records_of, rows_of
from haptera.measures.windows import CELL
from haptera.statistics.intervals import wilson
from haptera.table import Rows

AT_THE_END = 4
"""Forgetting is measured on the last quarter of the clean windows."""
WORTH_RECOVERING = 0.02
"""Accuracy that a shift must cost before a share of it is said to be recovered."""


@measure(bounds=(-1, 1), higher_is_better=True, of="table")
def adaptation_gain(table: pd.DataFrame) -> Rows:
    """Accuracy minus that of the unadapted model on the same samples; the interval takes them as independent."""
    return records_of(_gains(table).drop(columns=["before", "after"]).assign(measure="adaptation_gain"))


@measure(bounds=(-1, 1), higher_is_better=True, of="table")
def mean_gain(table: pd.DataFrame) -> Rows:
    """The mean of `adaptation_gain` over the cells of an adapter, each counting the same; intervals are means of ends.

    One row for all shifted cells, of all models and streams; one for each shift; one for each stream, if there are
    several; and one for clean data. `cells` is how many, `before` and `after` are the mean accuracies of both.
    """
    gains = _gains(table)
    if gains.empty:
        return []
    gains["shift"] = gains["shift"].where(gains["shift"] != "", gains["stream"])
    cells = once(gains, ["adapter", "seed", "model", "stream"])
    moved = shifted(cells)
    places = [(moved, []), (moved, ["shift"]), (cells[cells["shift"] == CLEAN], ["shift"])]
    if moved["stream"].nunique() > 1:
        places.append((moved, ["stream"]))
    numbers = [*NUMBERS, "before", "after"]
    found = [group_means(rows, ["adapter", "seed", *place], numbers) for rows, place in places]
    return [row for frame in found for row in records_of(frame.assign(measure="mean_gain"))]


@measure(bounds=(float("-inf"), float("inf")), higher_is_better=True, of="table")
def recovered(table: pd.DataFrame) -> Rows:
    """Share of the accuracy lost under a shift that an adapter brings back: its gain there over what was lost.

    `lost` is the accuracy of the unadapted models on clean data minus that under the shift, on average over the cells
    that the adapter was measured on. No rows where it is less than 0.02.
    """
    gains, clean = _gains(table), pd.DataFrame(clean_accuracy(table))
    if gains.empty or clean.empty:
        return []
    clean = clean[clean["adapter"] == NONE].rename(columns={"value": "clean"})
    names = [name for name in ("model", "seed") if name in clean]
    cells = shifted(once(gains, ["adapter", "seed", "model", "stream"])).merge(clean[[*names, "clean"]], on=names)
    cells["lost"] = cells["clean"] - cells["before"]
    means = group_means(cells, ["adapter", "seed", "shift"], ["value", "lost"]).drop(columns="cells")
    means = means[means["lost"] >= WORTH_RECOVERING]
    return records_of(means.assign(value=means["value"] / means["lost"], measure="recovered"))


@measure(bounds=(-1, 1), higher_is_better=True, of="table")
def learning_gain(table: pd.DataFrame) -> Rows:
    """What learning adds: the mean over shifted cells of accuracy minus that of the parent, which does not learn.

    For adapters whose parent, which `against` names, is in the table; intervals are means of ends.
    """
    parents = learners(table)
    gains = _gains(table, parents)
    if gains.empty:
        return []
    means = group_means(shifted(once(gains, ["adapter", "seed", "model", "stream"])), ["adapter", "seed"])
    return records_of(means.assign(against=means["adapter"].map(parents), measure="learning_gain"))


def _gains(table: pd.DataFrame, references: Mapping[str, str] | str = NONE) -> pd.DataFrame:
    """Every adapted cell: `value` is its gain, with `low` and `high`; `before` and `after` are the accuracies."""
    pairs = beside(rows_of(table, "accuracy"), references)
    own, other = (
        [pairs[f"{name}{end}"].astype(float) for name in ("value", "low", "high")] for end in ("", "_reference")
    )
    low, high = newcombe(own, other)
    pairs = pairs.drop(columns=[name for name in pairs if str(name).endswith("reference")])
    return pairs.assign(value=own[0] - other[0], low=low, high=high, before=other[0], after=own[0])


@measure(bounds=(-1, 1), higher_is_better=False, of="table")
def forgetting(table: pd.DataFrame) -> Rows:
    """Accuracy on clean data that is lost at the end of a stream: the unadapted model's minus the adapted one's.

    Clean are windows of the shift "clean" or of severity 0. Of those that come after the first shifted window the last
    quarter counts, at least one. Negative where the adapted model has become better. No rows for a stream without
    clean data after shifted data. The interval takes the two accuracies as independent.
    """
    rows = rows_of(table, "accuracy_over_steps")
    rows = rows[rows["step"].notna() & rows["n"].notna()]
    unshifted = (rows["shift"] == CLEAN) | (rows["severity"] == 0)
    if rows.empty or not unshifted.any():
        return []
    begins = rows[~unshifted].groupby(CELL, dropna=False)["step"].min().rename("begins").reset_index()
    after = rows[unshifted].merge(begins, on=CELL)
    pairs = beside(after[after["step"] > after["begins"]].drop(columns="begins"))
    found: Rows = []
    for names, run in pairs.groupby(CELL, dropna=False, sort=True):
        run = run.sort_values("step")
        last = run.tail(-(-len(run) // AT_THE_END))
        n = int(last["n"].sum())
        columns = (last[name].to_numpy(float) for name in ("value", "value_reference"))
        hits = [float(column @ last["n"].to_numpy(float)) for column in columns]
        own, other = ((right / n, *wilson(right, n)) for right in hits)
        low, high = newcombe(other, own)
        row = {"measure": "forgetting", "value": other[0] - own[0], "low": low, "high": high, "n": n, "shift": CLEAN}
        found.append(name_group(CELL, names) | row)
    return found
