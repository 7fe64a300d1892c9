"""Results: from a folder of finished cells to the table and the report, without a model and without torch.

`table.parquet` carries the digest of what it was made from: the cells, the measures, the version. It is stale when that
differs from what is there, whatever the clocks say. It is written while the lock of the folder is held, so it never
lacks a cell that the plan had by then. While another run holds the lock, results are measured and nothing is written.
"""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from haptera import __version__, catalog
from haptera import table as tables
from haptera.errors import Busy, HapteraError
from haptera.files.fingerprint import fingerprint
from haptera.measures.facts import fact, required_settings
from haptera.measures.many_cells import CellRows
from haptera.outputs import Outputs
from haptera.run.cells import about_of, notes, open_study
from haptera.run.ledger import Ledger
from haptera.run.paired_margins import pair_margins
from haptera.run.protocol import read_checks
from haptera.table import Measure

if TYPE_CHECKING:
    from haptera.run.report import StudyReport

log = logging.getLogger("haptera")

TABLE = "table.parquet"


@dataclass(frozen=True)
class Results:
    """What the finished cells of a study say.

    Attributes:
        ledger: of the study.
        table: every value of all measures of the catalog that need no settings.
        damage: what is wrong with each finished cell that was left out, by key.
    """

    ledger: Ledger
    table: pd.DataFrame
    damage: dict[str, str] = field(default_factory=dict)

    @property
    def notes(self) -> list[str]:
        """What a reader must know about what is not in the table."""
        return notes(self.ledger, self.damage)

    def report(self, images: bool = True) -> "StudyReport":
        """Return the analysis of the table, whose page is `report.html`, with images if the study kept any."""
        from haptera.run.report import StudyReport
        from haptera.run.samples import read_samples

        folder, about = self.ledger.folder, about_of(self.ledger)
        samples = read_samples(self.ledger) if images and about["settings"].get("images", True) is True else []
        if self.table.empty and not self.ledger.pieces:
            raise HapteraError(f"{folder} has no cells yet; run a study or import predictions first")
        name = about["name"] or folder.name
        checks = read_checks(folder)
        return StudyReport(self.table, name, about["settings"], self.notes, checks, samples, measured=True)


def measure(folder: Path, measures: Sequence[str | Measure] | None = None) -> pd.DataFrame:
    """Measure every finished cell of a study, then compare the cells.

    A cell whose file is damaged is left out, and the report says so.

    Args:
        folder: of a study.
        measures: names, or functions and partials of them; by default all of the catalog that need no settings, and
            `table.parquet` is written.
    """
    return (update_results(folder) if measures is None else measure_cells(open_study(folder), measures)).table


def table_of(folder: Path) -> pd.DataFrame:
    """Return the table of a study, measured again where it is not that of the cells."""
    return results_of(folder).table


def report(folder: Path) -> tuple[Path, str]:
    """Write `report.html` and `result.json` from the table of a study; return the page's path and first sentences."""
    made = results_of(folder, as_codes=True).report()
    return made.save(folder)["report"], made.sentences()


def results_of(folder: Path, as_codes: bool = False) -> Results:
    """Return the results of a study, measured again where the table is not that of the cells.

    Args:
        folder: of the study.
        as_codes: whether a table that is read has categories for text, which is enough for a report.
    """
    return current_results(open_study(folder), as_codes=as_codes) or update_results(folder)


def update_results(folder: Path) -> Results:
    """Measure the finished cells of a study and write its table, unless another run is about to."""
    ledger = open_study(folder, wait=0)
    try:
        with ledger:
            return write_table(ledger)
    except Busy:
        log.info(
            "another run is writing into %s; what is finished is measured, and the table is left to that run", folder
        )
        return measure_cells(ledger)


def current_results(ledger: Ledger, known: Collection[str] = (), as_codes: bool = False) -> Results | None:
    """Return the results of a study if its table is that of the cells; None where it has to be measured.

    Args:
        ledger: of the study.
        known: keys of cells that were read and found as they were finished, which are not read again.
        as_codes: whether the table has categories for text.
    """
    path, damage = ledger.folder / TABLE, ledger.damaged(known, read=False)
    if path.is_file():
        try:
            if tables.digest(path) == digest_of(ledger, damage):
                table = tables.read(path, as_codes)
                _complain(ledger, damage)
                return Results(ledger, table, damage)
        except HapteraError as error:
            log.warning("%s; it is made again", error)
    return None


def write_table(ledger: Ledger) -> Results:
    """Measure the finished cells of a study and write its table; for those who hold the lock."""
    results = measure_cells(ledger)
    tables.write(results.table, ledger.folder / TABLE, digest_of(ledger, results.damage))
    return results


def measure_cells(ledger: Ledger, measures: Sequence[str | Measure] | None = None) -> Results:
    """Measure finished cells, as `measure` does, and write nothing."""
    every = _measures()
    chosen = every if measures is None else [_function(each) for each in measures]
    own = [function for function in chosen if _reads(function, "outputs")]
    comparing = [function for function in chosen if function not in own]
    # What compares cells may need the rows of any measure of outputs, whether or not these were asked for.
    others = [each for each in every if each not in own and _reads(each, "outputs")] if comparing else []
    rows, beside, damage = CellRows(own), CellRows(others), {}
    added: list[str] = []

    def leave_out(key: str, error: HapteraError) -> None:
        if measures is not None and str(ledger.path(ledger.pieces[key])) not in str(error):
            raise error  # about the settings of a measure, not about the cell
        damage[key] = str(error)

    for piece in ledger.pieces.values():
        path = ledger.path(piece)
        if wrong := ledger.damage(piece):
            damage[piece.key] = wrong
            continue
        if piece.key not in ledger.intact:  # never finished
            continue
        try:
            outputs = Outputs.load(path)
            measured, also_measured = rows.measure(outputs), beside.measure(outputs)
        except HapteraError as error:
            leave_out(piece.key, error)
            continue
        rows.add(measured)
        beside.add(also_measured)
        added.append(piece.key)
    failures = beside.failures() | rows.failures()
    for cell in sorted(failures):
        leave_out(added[cell], failures[cell])
    damage = {key: damage[key] for key in ledger.pieces if key in damage}
    _complain(ledger, damage)
    table = rows.table(failures)
    if comparing:
        everything = tables.tidy(pd.concat([table, beside.table(failures)])) if others else table
        more = pair_margins(ledger, _compare(everything, [each for each in comparing if _reads(each, "table")]))
        if summing := [each for each in comparing if _reads(each, "rows")]:
            # What sums up seeds may need the rows of any comparison, too.
            asked = more if measures is None else _compare(everything, [e for e in every if _reads(e, "table")])
            more += _compare(tables.join(everything, asked), summing)
        table = tables.join(table, more)
    return Results(ledger, table, damage)


def _measures() -> list[Measure]:
    """Return every measure of the catalog that needs no settings."""
    every: list[Measure] = [catalog.find("measures", name) for name in catalog.entries("measures")]
    return [function for function in every if not required_settings(function)]


def digest_of(ledger: Ledger, damage: Collection[str] = ()) -> str:
    """Return the fingerprint of all that decides the table: version, measures, and the cells that can be used."""
    return fingerprint(__version__, sorted(catalog.entries("measures")), ledger.digest(without=damage))


def _complain(ledger: Ledger, damage: dict[str, str]) -> None:
    for key, why in damage.items():
        log.error("%s is left out: %s", ledger.pieces[key].title or key, why)


def _compare(table: pd.DataFrame, functions: Sequence[Measure]) -> tables.Rows:
    return [row for function in functions for row in function(table)]


def _reads(function: Measure, what: str) -> bool:
    return fact(function, "of", "outputs") == what


def _function(measure: str | Measure) -> Measure:
    return catalog.find_or_import("measures", measure) if isinstance(measure, str) else measure
