"""The page of a study: every section for which the table has data, under a summary of at most three sentences."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from haptera import catalog
from haptera.report.page import render, write_page
from haptera.report.section import MakeSection, Section
from haptera.report.study.complete import complete
from haptera.report.study.summary import DEFINITIONS, summarise
from haptera.table import COLUMNS, tidy


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
    table = complete(table)
    answers = summarise(table)
    page = render(sections(table), answers, title=title, settings=settings, notes=notes, definitions=DEFINITIONS)
    write_page(page, path)
    return " ".join(answer.sentence for answer in answers)


def sections(table: pd.DataFrame, makers: Sequence[MakeSection] | None = None) -> list[Section]:
    """Return the sections for which the table has data, in order; those of the catalog by default."""
    makers = [catalog.find("sections", name) for name in catalog.entries("sections")] if makers is None else makers
    return [section for make in makers if (section := make(table)) is not None]
