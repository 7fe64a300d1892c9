"""Collapse: from which step on an adapter stays below what it adapts, for good.

Sources: chapter 4 and appendix C, which compare with the unadapted model. Where the shift is strong that is never
reached, so the adapter is compared as well with its parent, the same one when it does not learn.
Differs: windows are noisy, and among many of them some lie below by chance. They are joined into at most 20 blocks with
as many samples each, and a run has collapsed only if its accuracy from there to the end lies below by more than the
95 % interval of the difference, the two taken as independent.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from haptera.errors import HapteraError
from haptera.measures.facts import measure
from haptera.measures.margins import learners
from haptera.measures.pairs import NONE, beside, name_group, newcombe, rows_of
from haptera.measures.windows import CELL
from haptera.statistics.intervals import wilson
from haptera.table import Rows

BLOCKS = 20
PARENT = "batchnorm:prior=0"
"""What an adapter that learns is without learning, unless the cell says otherwise: statistics of the batch."""


@measure(bounds=(0, 1), higher_is_better=False, of="table")
def collapse(table: pd.DataFrame, parents: Mapping[str, str] | None = None) -> Rows:
    """Share of a stream that an adapter spends below the unadapted model, or its parent, for good; 0 if it never does.

    `step` is the first of these steps, `against` the adapter it is compared with, `n` the samples from that step on.
    One row for each cell and each of the two; the first step is 0 where it was below from the beginning.

    Args:
        table: with accuracy over steps.
        parents: adapter -> its parent in the same table; by default what the cells say, and else `batchnorm:prior=0`.
    """
    if not isinstance(parents, Mapping | None):
        raise HapteraError(f"parents is {parents!r}; a mapping from an adapter to its parent was expected")
    rows = rows_of(table, "accuracy_over_steps")
    rows = rows[rows["step"].notna() & rows["n"].notna()]
    found: Rows = []
    for references in (NONE, _parents(table, rows, parents or {})):
        found += _runs(beside(rows, references))
    return found


def _runs(windows: pd.DataFrame) -> Rows:
    """The row of every run; a frame for each of them would take longer than all the rest."""
    if windows.empty:
        return []
    named = [*CELL, "reference"]
    run = windows.groupby(named, dropna=False, sort=True).ngroup().to_numpy()
    order = np.lexsort((windows["step"].to_numpy(np.int64), run))
    starts = np.flatnonzero(np.diff(run[order], prepend=-1))
    windows = windows.iloc[order]
    step, n = windows["step"].to_numpy(np.int64), windows["n"].to_numpy(float)
    right, other = (windows[name].to_numpy(float) * n for name in ("value", "value_reference"))
    context = windows.groupby(["shift", "severity"], dropna=False).ngroup().to_numpy()
    names = windows[[*named, "shift", "severity"]].iloc[starts].to_numpy(object)
    found: Rows = []
    for name, start, stop in zip(names, starts, np.append(starts[1:], len(order)), strict=True):
        rows = slice(start, stop)
        about = name_group([*CELL, "against"], name[: len(named)])
        if (context[rows] == context[start]).all():  # a run under one shift
            about |= {"shift": name[-2], "severity": name[-1]}
        found.append(about | _fall(step[rows], n[rows], right[rows], other[rows]))
    return found


def _fall(step: np.ndarray, n: np.ndarray, right: np.ndarray, other: np.ndarray) -> dict[str, object]:
    """The row of one run, from its windows in order: last steps, samples, and how many each of the two got right."""
    begin = np.append(0, step[:-1] + 1)  # a window is placed at its last step, and begins after the one before it
    block = np.minimum((np.cumsum(n) - n) * BLOCKS // n.sum(), BLOCKS - 1).astype(np.int64)
    _, first = np.unique(block, return_index=True)
    level = np.flatnonzero(np.add.reduceat(right - other, first) >= 0)
    start = int(level[-1]) + 1 if len(level) else 0
    never = {"measure": "collapse", "value": 0.0, "n": int(n.sum())}
    if start == len(first):
        return never
    at = first[start]
    total = int(n[at:].sum())
    own, base = ((float(part[at:].sum()) / total, *wilson(float(part[at:].sum()), total)) for part in (right, other))
    if newcombe(own, base)[1] >= 0:
        return never
    share = float((step[-1] + 1 - begin[at]) / (step[-1] + 1))
    return {"measure": "collapse", "value": share, "n": total, "step": int(begin[at])}


def _parents(table: pd.DataFrame, rows: pd.DataFrame, given: Mapping[str, str]) -> dict[str, str]:
    """The parent of each adapter that learns, but for those whose parent is the unadapted model."""
    adapters = [str(name) for name in rows["adapter"].unique()]
    parents = {name: PARENT for name in adapters if name != NONE and name.partition(":")[0] != "batchnorm"}
    parents |= learners(table) | dict(given)
    return {name: parent for name, parent in parents.items() if parent in adapters and parent != NONE}
