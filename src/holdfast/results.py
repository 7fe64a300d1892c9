"""From a folder of finished cells to the table and the report, without a model and without torch."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from holdfast import __version__, catalog
from holdfast import table as tables
from holdfast.errors import HoldfastError
from holdfast.manifest import Manifest
from holdfast.measures.facts import fact, required
from holdfast.table import Measure


def measure(folder: Path, measures: Sequence[str | Measure] | None = None) -> pd.DataFrame:
    """Measure every finished cell of a study, then compare the cells.

    Args:
        folder: of a study.
        measures: names, or functions and partials of them; by default all of the catalog that need no settings, and
            `table.parquet` is written.
    """
    manifest = Manifest.read(folder)
    every: list[Measure] = [catalog.find("measures", name) for name in catalog.entries("measures")]
    every = [function for function in every if not required(function)]
    chosen = every if measures is None else [_function(each) for each in measures]
    comparing = [function for function in chosen if fact(function, "of") == "table"]
    own = [function for function in chosen if function not in comparing]
    # What compares cells may need the rows of any measure of outputs, whether or not these were asked for.
    others = [each for each in every if each not in own and fact(each, "of") != "table"] if comparing else []
    rows, beside = [], []
    for outputs in manifest.outputs():
        rows += tables.measured(outputs, own)
        beside += tables.measured(outputs, others)
    table = tables.tidy(rows)
    if comparing:
        whole = tables.tidy(rows + beside) if beside else table
        compared = [row for function in comparing for row in function(whole)]
        table = tables.tidy(pd.concat([table, tables.tidy(compared)])) if compared else table
    if measures is None:
        tables.write(table, folder / "table.parquet")
    return table


def _function(measure: str | Measure) -> Measure:
    return catalog.find_or_import("measures", measure) if isinstance(measure, str) else measure


def table_of(folder: Path) -> pd.DataFrame:
    """The table of a study; measured anew where a cell or the list of cells is newer."""
    manifest, path = Manifest.read(folder), folder / "table.parquet"
    sources = [folder / "study.json", *filter(Path.is_file, map(manifest.path, manifest.cells))]
    if path.is_file() and path.stat().st_mtime_ns >= max(source.stat().st_mtime_ns for source in sources):
        return tables.read(path)
    return measure(folder)


def report(folder: Path) -> tuple[Path, str]:
    """Write `report.html` from the table of a study; its path and its first sentences."""
    from holdfast.report import write

    manifest = Manifest.read(folder)
    table = table_of(folder)
    if table.empty and not manifest.cells:
        raise HoldfastError(f"{folder} has no cells yet; run a study or import predictions first")
    settings: dict[str, Any] = {"holdfast": __version__} | manifest.settings
    summary = write(
        table, folder / "report.html", title=manifest.name or folder.name, settings=settings, notes=manifest.notes()
    )
    return folder / "report.html", summary
