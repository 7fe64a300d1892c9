"""From a folder of finished cells to the table and the report, without a model and without torch."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from holdfast import __version__, catalog
from holdfast import table as tables
from holdfast.errors import HoldfastError
from holdfast.manifest import Manifest
from holdfast.table import Measure


def measure(folder: Path, names: Sequence[str] | None = None) -> pd.DataFrame:
    """Measure every finished cell of a study.

    Args:
        folder: of a study.
        names: of measures; by default all of the catalog, and `table.parquet` is written.
    """
    manifest = Manifest.read(folder)
    measures: list[Measure] = [catalog.find("measures", name) for name in names or catalog.entries("measures")]
    rows = [row for outputs in manifest.outputs() for row in tables.measured(outputs, measures)]
    table = tables.tidy(rows)
    if not names:
        tables.write(table, folder / "table.parquet")
    return table


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
