"""Trends: why accuracies on two sets of data fall on a line, and which model leaves it."""

from haptera.analyses.trends.analysis import Guarantee, Trends, trends
from haptera.analyses.trends.events import Events
from haptera.analyses.trends.reading import read_side
from haptera.analyses.trends.side import Joined, Side, join

__all__ = ["Events", "Guarantee", "Joined", "Side", "Trends", "join", "read_side", "trends"]
