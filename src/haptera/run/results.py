"""From a folder of finished cells to the table and the report, without a model and without torch."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from haptera import catalog
from haptera import table as tables
from haptera.errors import HapteraError
from haptera.measures.facts import fact, required
from haptera.outputs import Outputs
from haptera.run.cells import Listed, Manifest, locked
from haptera.table import Measure

log = logging.getLogger("haptera")


def measure(folder: Path, measures: Sequence[str | Measure] | None = None) -> pd.DataFrame:
    """Measure every finished cell of a study, then compare the cells.

    A cell whose file is damaged is left out; `study.json` then says so, and so does the report.

    Args:
        folder: of a study.
        measures: names, or functions and partials of them; by default all of the catalog that need no settings, and
            `table.parquet` is written.
    """
    manifest = Manifest.read(folder)
    every: list[Measure] = [catalog.find("measures", name) for name in catalog.entries("measures")]
    every = [function for function in every if not required(function)]
    chosen = every if measures is None else [_function(each) for each in measures]
    own = [function for function in chosen if _reads(function, "outputs")]
    comparing = [function for function in chosen if function not in own]
    # What compares cells may need the rows of any measure of outputs, whether or not these were asked for.
    others = [each for each in every if each not in own and _reads(each, "outputs")] if comparing else []
    rows, beside, damaged = [], [], {}
    finished = [cell for cell in manifest.cells if manifest.finished(cell)]
    for cell in finished:
        try:
            outputs = Outputs.load(manifest.path(cell))
            found = tables.measured(outputs, own), tables.measured(outputs, others)
        except HapteraError as error:
            if measures is not None and str(manifest.path(cell)) not in str(error):
                raise  # about the settings of a measure, not about the cell
            damaged[cell.key] = f"{error}; remove the file and run the study again"
            log.error("%s is left out: %s", cell.title, error)
            continue
        rows += found[0]
        beside += found[1]
    _note(manifest, finished, damaged)
    table = tables.tidy(rows)
    if comparing:
        everything = tables.tidy(rows + beside) if beside else table
        more = _compared(everything, [each for each in comparing if _reads(each, "table")])
        if summing := [each for each in comparing if _reads(each, "rows")]:
            # What sums up seeds may need the rows of any comparison, too.
            asked = more if measures is None else _compared(everything, [e for e in every if _reads(e, "table")])
            more += _compared(tables.joined(everything, asked), summing)
        table = tables.joined(table, more)
    if measures is None:
        tables.write(table, folder / "table.parquet")
    return table


def _note(manifest: Manifest, finished: Sequence[Listed], damaged: Mapping[str, str]) -> None:
    """Write down which finished cells cannot be used, and forget it of those that can again."""
    if {cell.key: cell.failure for cell in manifest.damaged} != damaged:
        with locked(manifest.folder):
            now = Manifest.read(manifest.folder)
            now.note_failures(finished, damaged)
            now.write()


def _compared(table: pd.DataFrame, functions: Sequence[Measure]) -> tables.Rows:
    return [row for function in functions for row in function(table)]


def _reads(function: Measure, what: str) -> bool:
    return fact(function, "of", "outputs") == what


def _function(measure: str | Measure) -> Measure:
    return catalog.find_or_import("measures", measure) if isinstance(measure, str) else measure


def table_of(folder: Path) -> pd.DataFrame:
    """The table of a study; measured anew where a cell or the list of cells is newer."""
    manifest, path = Manifest.read(folder), folder / "table.parquet"
    sources = [folder / "study.json", *filter(Path.is_file, map(manifest.path, manifest.cells))]
    if path.is_file() and path.stat().st_mtime_ns >= max(source.stat().st_mtime_ns for source in sources):
        try:
            table = tables.read(path)
            there = set(table["measure"])
            if "accuracy" not in there or there & {"clean_accuracy", "mean_accuracy"}:
                return table  # one of an earlier version has neither of the two
        except HapteraError as error:
            log.warning("%s; it is made anew", error)
    return measure(folder)


def report(folder: Path) -> tuple[Path, str]:
    """Write `report.html` and `result.json` from the table of a study; its path and its first sentences."""
    from haptera.run.report import StudyReport

    table, manifest = table_of(folder), Manifest.read(folder)
    if table.empty and not manifest.cells:
        raise HapteraError(f"{folder} has no cells yet; run a study or import predictions first")
    made = StudyReport(table, manifest.name or folder.name, manifest.settings, manifest.notes())
    return made.save(folder)["report"], made.sentences()
