"""Section: one question of the report with the figures and tables that answer it.

A section is made by a function from the table to a `Section`, or to None where the table has nothing for it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from holdfast.report.figure import Figure
from holdfast.report.listing import Listing


@dataclass(frozen=True)
class Section:
    """A heading, a paragraph, and what stands below it.

    Attributes:
        title: The heading, also the entry of the page's navigation.
        text: One paragraph of plain text.
        figures: Charts, drawn when the reader comes near.
        tables: Tables below the charts.
    """

    title: str
    text: str = ""
    figures: tuple[Figure, ...] = ()
    tables: tuple[Listing, ...] = ()


MakeSection = Callable[[pd.DataFrame], Section | None]
