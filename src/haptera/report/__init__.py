"""The report: from the table to one HTML file that works offline, with the table behind every figure.

A section is one file with a function from the table to a `Section` or None, and one line in the catalog.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from haptera.report.figure import Figure
from haptera.report.page import made, render, write_page
from haptera.report.section import Listing, Section
from haptera.report.study.summary import summarise
from haptera.run.results import completed
from haptera.table import COLUMNS, tidy

__all__ = ["Figure", "Listing", "Section", "write"]


def write(
    table: pd.DataFrame,
    path: Path,
    *,
    title: str,
    settings: Mapping[str, object],
    notes: Sequence[str] = (),
) -> str:
    """Write a report, whole, and return its summary.

    Args:
        table: As `haptera.table.tidy` makes it; further measures and columns are welcome.
        path: The HTML file.
        title: Heading of the page.
        settings: Nested mappings, lists and scalars, shown under "Settings and versions".
        notes: Sentences shown near the top, such as which cells failed.

    Returns:
        At most three sentences: which model holds, where it breaks, whether adaptation helps.
    """
    if any(column not in table for column in COLUMNS):
        table = tidy(table)
    table = completed(table)
    answers = summarise(table)
    page = render(made(table), answers, title=title, settings=settings, notes=notes)
    write_page(page, path)
    return " ".join(answer.sentence for answer in answers)
