"""What scripts reach as `cebra.sklearn`: the estimator and the metrics."""

from haptera.compat.cebra.estimator import CEBRA
from haptera.compat.cebra.sklearn import metrics

__all__ = ["CEBRA", "metrics"]
