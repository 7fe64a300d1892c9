"""Seeds: the same images with other noise and in another order; they give a mean and a standard deviation.

They add no images, so `n` stays that of a single seed.
The interval is that of few units (`few_units`). It tells what another seed would give on the same images, and there is
none where seeds change nothing, so it is never narrower than the mean interval of a single seed, which is about the
images: it covers at least 95 %, for both questions.
"""

import numpy as np
import pandas as pd

from haptera import catalog
from haptera.measures.facts import fact, measure
from haptera.measures.pairs import records_of
from haptera.measures.repetitions import last_epochs
from haptera.statistics.intervals import INTERVAL, mean_of_units
from haptera.table import COLUMNS, Rows

SUFFIX = "_over_seeds"
APART = ("reliability", "class_attraction", "collapse", "expected_accuracy")
"""Measures with a row for each bin or class, or about one run."""
AVERAGED = ("before", "after", "cells", "shifts", "lost")
"""Further columns that are numbers like the value, and have a mean."""
UNBOUNDED = (float("-inf"), float("inf"))


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
    units = [
        mean_of_units(own["value"].to_numpy(), _scale(str(own["measure"].iloc[0]))) for _, own in rows.groupby(several)
    ]
    known = [(unit.low, unit.high) if unit.kind == INTERVAL else (np.nan, np.nan) for unit in units]
    ends = np.array(known).reshape(-1, 2)
    means["low"], means["high"] = np.fmin(means["low"], ends[:, 0]), np.fmax(means["high"], ends[:, 1])
    means["sd"], means["seeds"] = [unit.deviation for unit in units], [unit.units for unit in units]
    means["n"] = means["n"].round()
    means["measure"] += SUFFIX
    return records_of(means)


def _scale(name: str) -> str:
    """Return the scale on which the mean of a measure has an interval that covers, by its bounds."""
    known = name in catalog.entries("measures")
    bounds = fact(catalog.find("measures", name), "bounds", UNBOUNDED) if known else UNBOUNDED
    return "plain" if bounds[0] < 0 else "share" if bounds[1] == 1 else "log"
