"""A study's page: the rows that it reads, and its sections, each a function from the table in a file of its own."""

from collections.abc import Sequence

import pandas as pd

from haptera import catalog
from haptera import table as tables
from haptera.measures.averages import SUFFIX, mean_over_seeds
from haptera.report.section import MakeSection, Section

REPORTED = (
    "clean_accuracy", "mean_accuracy", "matched_accuracy", "adaptation_gain", "mean_gain", "recovered", "model_margin",
    "adapter_margin", "learning_gain", "relative_seconds", "shift_mean", "shift_margin",
)  # fmt: skip
"""What a report reads beside the accuracies themselves."""


def complete(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with the rows that a report reads, which compare cells and sum up seeds, where it lacks them."""
    present = set(table["measure"])
    missing = [catalog.find("measures", name) for name in REPORTED if name not in present]
    still = at_rest(table)
    more = [row for measure in missing for row in measure(still)]
    whole = tables.join(table, more)
    known = any(str(name).endswith(SUFFIX) for name in present)
    return tables.join(whole, mean_over_seeds(tables.tidy(more) if known else whole))


def at_rest(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table without the measures that have a step in every row, which no comparison of cells reads."""
    names = table["measure"].astype("category")
    standing = names[table["step"].isna()].unique()
    return table[names.isin(standing)] if len(standing) < len(names.cat.categories) else table


def sections(table: pd.DataFrame, makers: Sequence[MakeSection] | None = None) -> list[Section]:
    """Return the sections for which the table has data, in order; those of the catalog by default."""
    makers = [catalog.find("sections", name) for name in catalog.entries("sections")] if makers is None else makers
    table = tables.coded(table)  # every section looks for names in all rows
    return [section for make in makers if (section := make(table)) is not None]
