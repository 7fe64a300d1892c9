"""Measures: plain functions from outputs, or from the table, to rows. NumPy and pandas, no torch."""

from holdfast.measures.accuracy import accuracy, accuracy_over_steps, error, seconds_per_image, top5_accuracy
from holdfast.measures.facts import measure
from holdfast.measures.proportion import wilson

__all__ = ["accuracy", "accuracy_over_steps", "error", "measure", "seconds_per_image", "top5_accuracy", "wilson"]
