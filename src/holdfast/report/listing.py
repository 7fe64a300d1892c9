"""Listing: a table to read, which the page sorts, filters, pages through and saves as CSV."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd


@dataclass(frozen=True, eq=False)
class Listing:
    """One table of the report.

    Attributes:
        title: What a row is, a few words.
        caption: How the columns were computed, and what was left out.
        frame: The rows, in the order in which they are first shown.
        labels: Column -> its heading, with the unit; else the column's name.
    """

    title: str
    caption: str
    frame: pd.DataFrame
    labels: Mapping[str, str] = field(default_factory=dict)
