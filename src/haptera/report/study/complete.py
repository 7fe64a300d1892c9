"""The rows that a report reads, added to a table that lacks them."""

import pandas as pd

from haptera import catalog
from haptera import table as tables
from haptera.measures.mean_over_seeds import SUFFIX, mean_over_seeds

REPORTED = (
    "clean_accuracy", "mean_accuracy", "matched_accuracy", "adaptation_gain", "mean_gain", "recovered", "model_margin",
    "adapter_margin", "learning_gain", "relative_seconds",
)  # fmt: skip
"""What a report reads beside the accuracies themselves."""


def complete(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with the rows that a report reads, which compare cells and sum up seeds, where it lacks them."""
    present = set(table["measure"])
    missing = [catalog.find("measures", name) for name in REPORTED if name not in present]
    more = [row for measure in missing for row in measure(table)]
    whole = tables.join(table, more)
    known = any(str(name).endswith(SUFFIX) for name in present)
    return tables.join(whole, mean_over_seeds(tables.tidy(more) if known else whole))
