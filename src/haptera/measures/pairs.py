"""Cells beside each other: the same model, stream, part, shift, severity and seed under another adapter.

The interval of a difference is Newcombe's (1998, method 10), made of the two intervals that the table has. It takes the
two as independent; they are about the same samples, mostly right and wrong together, so it is wider than it need be.
`difference` of two outputs has the samples themselves, and its interval is that of paired samples, Bonett and Price's.
"""

from collections.abc import Iterable, Mapping
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd

from haptera.errors import HapteraError
from haptera.measures.windows import last_epochs
from haptera.outputs import Outputs
from haptera.statistics.intervals import Z95
from haptera.table import COLUMNS, Rows

NONE = "none"
ABOUT = ("parent",)
"""Columns that say something about an adapter, not about the samples."""


def rows_of(table: pd.DataFrame, measure: str) -> pd.DataFrame:
    """The rows of one measure that have a value, with the further columns that say something about them.

    Of several epochs only the last: what compares cells takes an adapter as it ended.
    """
    rows = last_epochs(table[(table["measure"] == measure) & table["value"].notna()])
    further = [name for name in rows if name not in COLUMNS and name not in ABOUT and rows[name].notna().any()]
    rows = rows[COLUMNS + further].assign(adapter=rows["adapter"].replace("", NONE))
    return rows if "part" in further else rows.assign(part="")


def beside(rows: pd.DataFrame, references: Mapping[str, str] | str = NONE) -> pd.DataFrame:
    """Every row beside the one of its reference, whose value, low, high and n get the suffix `_reference`.

    Args:
        rows: of one measure.
        references: adapter -> the adapter it is compared with; or one for all.
    """
    adapters = rows["adapter"].unique()
    named = dict.fromkeys(adapters, references) if isinstance(references, str) else references
    pairs = {adapter: other for adapter, other in named.items() if adapter in adapters and adapter != other}
    own = rows[rows["adapter"].isin(list(pairs))]
    own = own.assign(reference=own["adapter"].map(pairs))
    others = rows[rows["adapter"].isin(set(pairs.values()))].rename(columns={"adapter": "reference"})
    numbers = ["value", "low", "high", "n"]
    same = [name for name in own if name not in (*numbers, "measure", "adapter")]
    others = others[[*same, *numbers]].drop_duplicates(same)
    return own.merge(others, on=same, suffixes=("", "_reference"))


def records_of(frame: pd.DataFrame) -> Rows:
    """Rows of a frame as dictionaries, without what is missing."""
    known = frame.notna().to_numpy()
    rows = frame.to_numpy(object)
    names = [str(name) for name in frame.columns]
    return [
        {name: value for name, value, there in zip(names, row, filled, strict=True) if there}
        for row, filled in zip(rows, known, strict=True)
    ]


def name_group(keys: Iterable[str], names: Iterable[Any]) -> dict[str, Any]:
    """Return what a group of rows is called, without what is missing."""
    return {key: name for key, name in zip(keys, names, strict=True) if not pd.isna(name) and name != ""}


def newcombe(one: Iterable[Any], other: Iterable[Any]) -> tuple[Any, Any]:
    """The interval of a difference of two proportions, each given as value, low and high: numbers, or arrays of them.

    >>> from haptera.statistics.intervals import wilson
    >>> [round(float(end), 4) for end in newcombe((56 / 70, *wilson(56, 70)), (48 / 80, *wilson(48, 80)))]
    [0.0524, 0.3339]
    """
    (value, low, high), (base, base_low, base_high) = one, other
    down, up = np.hypot(value - low, base_high - base), np.hypot(high - value, base - base_low)
    return value - base - down, value - base + up


def difference(one: Outputs, other: Outputs) -> tuple[float, float, float]:
    """How much more accurate `one` is than `other` on the same samples, with the 95 % interval for paired samples.

    The interval is Bonett and Price's (2012), see `paired_interval`.
    """
    if len(one) != len(other) or not np.array_equal(np.sort(one.ids), np.sort(other.ids)):
        raise HapteraError(f"the outputs are not about the same samples: {len(one)} and {len(other)}, by their ids")
    first, second = one.correct()[np.argsort(one.ids)], other.correct()[np.argsort(other.ids)]
    more, less, n = int((first & ~second).sum()), int((second & ~first).sum()), len(one)
    return (more - less) / n, *paired_interval(more, less, n)


def paired_interval(more: float, less: float, n: int) -> tuple[float, float]:
    """The 95 % interval of a difference of two shares of the same samples, from those that only one of them holds.

    Bonett and Price (2012): one sample is added to each of the two counts, without which an interval of a few samples
    covers far too little. Where hardly any sample is in one alone, it covers more than 95 %.

    >>> [round(end, 3) for end in paired_interval(12, 4, 100)]
    [-0.002, 0.159]
    """
    a, b = (more + 1) / (n + 2), (less + 1) / (n + 2)
    half = Z95 * sqrt((a + b - (a - b) ** 2) / (n + 2))
    value = (more - less) / n
    return float(max(min(a - b - half, value), -1.0)), float(min(max(a - b + half, value), 1.0))
