"""Trends: why accuracies on two sets of data fall on a line, and which model leaves it."""

from holdfast.trends.analysis import Guarantee, Trends
from holdfast.trends.events import Events
from holdfast.trends.reading import read_side
from holdfast.trends.side import Joined, Side, join

__all__ = ["Events", "Guarantee", "Joined", "Side", "Trends", "join", "read_side"]
