"""What adaptation costs against the unadapted model: time and memory."""

import numpy as np
import pandas as pd

from haptera.measures.facts import measure
from haptera.measures.pairs import NAMES, beside, named_after, rows_of
from haptera.measures.repetitions import last_epoch
from haptera.measures.windows import shared
from haptera.outputs import Outputs
from haptera.table import Rows


@measure(bounds=(0, float("inf")), higher_is_better=False)
def peak_bytes(outputs: Outputs) -> Rows:
    """The most memory that any step of the cell took, where steps report `peak_bytes`; of several epochs, the last."""
    outputs = last_epoch(outputs)
    peaks = np.asarray(outputs.steps.get("peak_bytes", []), float)
    if not np.isfinite(peaks).any():
        return []
    row = {"measure": "peak_bytes", "value": float(np.nanmax(peaks)), "n": len(outputs)}
    return [shared(outputs.groups[0]) | row]


@measure(bounds=(0, float("inf")), higher_is_better=False, of="table")
def relative_seconds(table: pd.DataFrame) -> Rows:
    """Time per image over that of the unadapted model, in each stream; one core that is busy elsewhere moves it."""
    return _relative(table, "seconds_per_image", "relative_seconds")


@measure(bounds=(0, float("inf")), higher_is_better=False, of="table")
def relative_bytes(table: pd.DataFrame) -> Rows:
    """Peak memory over that of the unadapted model, in each stream, where it was recorded."""
    return _relative(table, "peak_bytes", "relative_bytes")


def _relative(table: pd.DataFrame, measure: str, name: str) -> Rows:
    """The ratio of sums over the contexts and parts of a stream that both have, each weighted by its samples."""
    pairs = beside(rows_of(table, measure)).dropna(subset="n")
    names = [each for each in NAMES if each != "part"]
    rows: Rows = []
    for key, run in pairs.groupby(names, dropna=False, sort=True):
        n = run["n"].to_numpy(float)
        without = float(np.dot(run["value_reference"], n))
        if without > 0:
            row = {"measure": name, "value": float(np.dot(run["value"], n)) / without, "n": int(n.sum())}
            rows.append(named_after(names, key) | row)
    return rows
