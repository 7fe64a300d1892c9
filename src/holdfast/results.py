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
    """Measure every finished cell of a study and write `table.parquet`.

    Args:
        folder: of a study.
        names: of measures; all of the catalog by default.
    """
    manifest = Manifest.read(folder)
    measures: list[Measure] = [catalog.find("measures", name) for name in names or catalog.entries("measures")]
    rows = [row for outputs in manifest.outputs() for row in tables.measured(outputs, measures)]
    table = tables.tidy(rows)
    tables.write(table, folder / "table.parquet")
    return table


def report(folder: Path) -> tuple[Path, str]:
    """Write `report.html` from the table of a study; its path and its first sentences."""
    from holdfast.report import write

    manifest = Manifest.read(folder)
    path = folder / "table.parquet"
    table = tables.read(path) if path.is_file() else measure(folder)
    if table.empty and not manifest.cells:
        raise HoldfastError(f"{folder} has no cells yet; run a study or import predictions first")
    settings: dict[str, Any] = {"holdfast": __version__} | manifest.settings
    summary = write(
        table, folder / "report.html", title=manifest.name or folder.name, settings=settings, notes=manifest.notes()
    )
    return folder / "report.html", summary
