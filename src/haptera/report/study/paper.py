"""Adapters by shifts as papers print them, each stream and model a table of its own, in error or in accuracy."""

import pandas as pd

from haptera.errors import HapteraError
from haptera.families import FAMILY
from haptera.report.figure import Figure
from haptera.report.paper.formats import heading
from haptera.report.paper.table import MEAN, PaperTable, paper_tables
from haptera.report.study.cells import cells, streams
from haptera.report.study.findings import model_order
from haptera.report.thin import bounded

MOST_ROWS = 50_000
CAPTION = (
    "In per cent: means over severities and seeds, and last the mean over shifts. Best in bold, second underlined, "
    "among the numbers that were measured here, as they are printed. A click on a shift sorts by it. The command "
    "“haptera export table” writes LaTeX, Markdown, CSV and HTML."
)


def figure(table: pd.DataFrame) -> Figure | None:
    """Return the table, where some model has two adapters in a stream."""
    try:
        made = [each for each in paper_tables(table) if len(_measured(each)) > 1]
    except HapteraError:  # no error under any shift
        return None
    if not made:
        return None
    pooled = cells(table)
    order = {name: place for place, name in enumerate([*streams(pooled), *model_order(table, pooled)])}
    made.sort(key=lambda each: (order.get(each.stream, len(order)), order.get(each.model, len(order))))
    frame, left_out = bounded(pd.DataFrame([row for each in made for row in _rows(each)]), "model", MOST_ROWS)
    seeds = " The small number is the standard deviation over seeds." if frame["sd"].notna().any() else ""
    return Figure(
        title="Adapters by shifts",
        caption=CAPTION + seeds + left_out,
        frame=frame,
        kind="table",
        x="shift",
        y="adapter",
        value=("error", "accuracy"),
        select=("stream", "model"),
        bands="family",
        spread="sd",
        rank="rank",
        source="published",
        remark="remark",
        labels={"sd": "standard deviation", "published": "published by"},
    )


def _measured(table: PaperTable) -> list[str]:
    return [row.name for row in table.rows if not row.source]


def _rows(table: PaperTable) -> list[dict[str, object]]:
    """One row for each number, in per cent."""
    remark = " ".join([f"{table.title}.", table.margin, *table.notes]).replace("  ", " ").strip()
    found = []
    for row in table.rows:
        for shift, cell in zip((*table.shifts, MEAN), row.cells, strict=True):
            if cell is None:
                continue
            numbers = {"error": 100 * cell.value, "accuracy": 100 * (1 - cell.value), "sd": 100 * cell.sd}
            names = {"stream": table.stream, "model": table.model, "adapter": row.name, "shift": heading(shift)}
            about = {"family": FAMILY.get(shift, "").capitalize(), "rank": cell.rank, "published": row.source or None}
            found.append(names | numbers | about | {"remark": remark})
    return found
