"""The error of each visit to the shifts of a stream in which they come again and again."""

import pandas as pd

from haptera.measures.averages import RUN, over_shifts, shifted
from haptera.measures.facts import measure
from haptera.measures.pairs import records_of, rows_of
from haptera.table import Rows

VISIT = "visit"


@measure(bounds=(0, 1), higher_is_better=False, of="table")
def visit_error(table: pd.DataFrame) -> Rows:
    """Mean error over the shifts of each visit of a recurring stream; the column `visit` counts from 1."""
    rows = rows_of(table, "error")
    if VISIT not in rows:
        return []
    rows = shifted(rows[rows[VISIT].notna()])
    return records_of(over_shifts(rows, [*RUN, VISIT]).assign(measure="visit_error"))
