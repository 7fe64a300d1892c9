"""The sections of a study's page: every one for which the table has data."""

from collections.abc import Sequence

import pandas as pd

from haptera import catalog
from haptera.report.section import MakeSection, Section


def sections(table: pd.DataFrame, makers: Sequence[MakeSection] | None = None) -> list[Section]:
    """Return the sections for which the table has data, in order; those of the catalog by default."""
    makers = [catalog.find("sections", name) for name in catalog.entries("sections")] if makers is None else makers
    return [section for make in makers if (section := make(table)) is not None]
