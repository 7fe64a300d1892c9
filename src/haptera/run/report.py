"""StudyReport: the analysis of a study's table: which model holds, where it breaks, and whether adaptation helps."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from haptera.analysis import Analysis
from haptera.report.section import Finding, Section
from haptera.report.study.complete import complete
from haptera.report.study.page import sections
from haptera.report.study.summary import DEFINITIONS, summarise
from haptera.run.journal import PLAN
from haptera.table import COLUMNS, tidy


class StudyReport(Analysis):
    """What a table says about models, shifts and adapters.

    Args:
        table: as `haptera.table.tidy` makes it, or rows for it; further measures and columns are welcome.
        title: heading of the page.
        settings: nested mappings, lists and scalars, shown under "Settings and versions".
        notes: sentences shown near the top, such as which cells failed.
    """

    kind: ClassVar[str] = "study"
    definitions: ClassVar[Mapping[str, str]] = DEFINITIONS
    title: str
    settings: Mapping[str, Any]
    notes: Sequence[str]

    def __init__(
        self,
        table: pd.DataFrame | Iterable[Mapping[str, Any]],
        title: str = "Study",
        settings: Mapping[str, Any] | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        self.title, self.settings, self.notes = title, dict(settings or {}), notes
        if not isinstance(table, pd.DataFrame) or any(column not in table for column in COLUMNS):
            table = tidy(table)
        self._table = complete(table)

    @cached_property
    def _findings(self) -> tuple[Finding, ...]:
        return summarise(self._table)

    def findings(self) -> tuple[Finding, ...]:
        """Return at most three answers."""
        return self._findings

    def table(self) -> pd.DataFrame:
        """Return the table of the study, with the rows that compare cells and sum up seeds."""
        return self._table

    def sections(self) -> list[Section]:
        """Return every section of the catalog for which the table has data."""
        return sections(self._table)

    def write_table(self, path: Path) -> None:
        """Write the table where there is none, and not into the folder of a study, which keeps its own."""
        if not path.exists() and not (path.parent / PLAN).is_file():
            super().write_table(path)

    def sentences(self) -> str:
        """Return the answers in one line."""
        return " ".join(finding.sentence for finding in self.findings())
