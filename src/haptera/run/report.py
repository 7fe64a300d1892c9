"""StudyReport: the analysis of a study's table: which model holds, where it breaks, and whether adaptation helps."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from haptera.analysis import Analysis
from haptera.report.paper.published import published_rows
from haptera.report.section import Finding, Section
from haptera.report.study import complete, sections
from haptera.report.study.protocol import section as protocol_section
from haptera.report.study.summary import DEFINITIONS, answers_of
from haptera.run.folder import PLAN
from haptera.table import COLUMNS, join, tidy


class StudyReport(Analysis):
    """What a table says about models, shifts and adapters.

    Args:
        table: as `haptera.table.tidy` makes it, or rows for it; further measures and columns are welcome.
        title: heading of the page.
        settings: nested mappings, lists and scalars, shown under "Settings and versions".
            `protocol` among them has a section of its own.
        notes: sentences shown near the top, such as which cells failed.
        checks: what the preflight of each model found: rows of `model`, `check`, `verdict`, `sentence`.
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
        checks: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self.title, self.notes, self.checks = title, notes, checks
        self.settings = {key: value for key, value in (settings or {}).items() if key != "protocol"}
        self.protocol = dict((settings or {}).get("protocol", {}))
        if not isinstance(table, pd.DataFrame) or any(column not in table for column in COLUMNS):
            table = tidy(table)
        self._table = complete(table)
        if self.protocol.get("streams"):
            self._table = join(self._table, published_rows(self._table, self.protocol))

    @cached_property
    def _findings(self) -> tuple[Finding, ...]:
        return answers_of(self._table)

    def findings(self) -> tuple[Finding, ...]:
        """Return at most three answers."""
        return self._findings

    def table(self) -> pd.DataFrame:
        """Return the table of the study, with the rows that compare cells and sum up seeds, and published results."""
        return self._table

    def sections(self) -> list[Section]:
        """Return every section of the catalog for which the table has data, and how it came about."""
        last = protocol_section(self.protocol, self.checks)
        return sections(self._table) + ([last] if last else [])

    def write_table(self, path: Path) -> None:
        """Write the table where there is none, and not into the folder of a study, which keeps its own."""
        if not path.exists() and not (path.parent / PLAN).is_file():
            super().write_table(path)

    def sentences(self) -> str:
        """Return the answers in one line."""
        return " ".join(finding.sentence for finding in self.findings())
