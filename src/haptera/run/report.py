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
from haptera.report.study.images import Sample
from haptera.report.study.images import section as images_section
from haptera.report.study.protocol import section as protocol_section
from haptera.report.study.summary import DEFINITIONS, answers_of
from haptera.run.folder import PLAN
from haptera.run.machine import RUN_ON
from haptera.table import COLUMNS, decoded, join, tidy
from haptera.words import count

BEFORE_IMAGES = "Shifts"
"""The section below which images stand."""
SIZES = ("models", "streams", "adapters", "seeds")


class StudyReport(Analysis):
    """What a table says about models, shifts and adapters.

    Args:
        table: as `haptera.table.tidy` makes it, or rows for it; further measures and columns are welcome.
        title: heading of the page.
        settings: nested mappings, lists and scalars, shown under "Settings and versions".
            `protocol` among them has a section of its own.
        notes: sentences shown near the top, such as which cells failed.
        checks: what the preflight of each model found: rows of `model`, `check`, `verdict`, `sentence`.
        samples: small pictures that the study kept.
        measured: every measure that a report reads was asked for the table, so what it lacks has no answer.
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
        samples: Sequence[Sample] = (),
        measured: bool = False,
    ) -> None:
        self.title, self.notes, self.checks, self.samples = title, notes, checks, samples
        self.settings = {key: value for key, value in (settings or {}).items() if key != "protocol"}
        self.protocol = dict((settings or {}).get("protocol", {}))
        if not isinstance(table, pd.DataFrame) or any(column not in table for column in COLUMNS):
            table = tidy(table)
        self._table = table if measured else complete(decoded(table))
        if self.protocol.get("streams"):
            self._table = join(self.table(), published_rows(self.table(), self.protocol))

    @cached_property
    def _findings(self) -> tuple[Finding, ...]:
        return answers_of(self._table)

    def findings(self) -> tuple[Finding, ...]:
        """Return at most three answers."""
        return self._findings

    def table(self) -> pd.DataFrame:
        """Return the table of the study, with the rows that compare cells and sum up seeds, and published results."""
        return decoded(self._table)

    def sections(self) -> list[Section]:
        """Return every section of the catalog for which the table has data, and how it came about."""
        made = sections(self._table)
        if images := images_section(self.samples):
            titles = [section.title for section in made]
            made.insert(titles.index(BEFORE_IMAGES) + 1 if BEFORE_IMAGES in titles else 0, images)
        last = protocol_section(self.protocol, self.checks)
        return made + ([last] if last else [])

    def origin(self) -> str:
        """Return when and on what the study ran, and how large it is."""
        run, versions = self.settings.get(RUN_ON, {}), self.settings.get("versions", {})
        cores, memory = run.get("cores"), run.get("memory in GB")
        hardware = [run.get("GPU"), run.get("processor"), cores and count(cores, "core"), memory and f"{memory} GB"]
        libraries = ", ".join(f"{name} {versions[name]}" for name in ("haptera", "torch") if name in versions)
        size = [count(len(many), word[:-1]) for word in SIZES if isinstance(many := self.settings.get(word), list)]
        told = [run.get("date"), ", ".join(map(str, filter(None, hardware))), libraries, ", ".join(size)]
        return " · ".join(str(each) for each in told if each)

    def write_table(self, path: Path) -> None:
        """Write the table where there is none, and not into the folder of a study, which keeps its own."""
        if not path.exists() and not (path.parent / PLAN).is_file():
            super().write_table(path)

    def sentences(self) -> str:
        """Return the answers in one line."""
        return " ".join(finding.sentence for finding in self.findings())
