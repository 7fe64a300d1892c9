"""The report: sections, figures and tables in one HTML file that works offline, with the table behind every figure."""

from haptera.report.figure import Figure
from haptera.report.section import Listing, Section

__all__ = ["Figure", "Listing", "Section"]
