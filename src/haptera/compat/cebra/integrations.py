"""What scripts reach as `cebra.integrations`: the estimator and its metrics, and plots."""

import sys

from haptera.compat.cebra import plots, sklearn

matplotlib = plotly = plots
for _name, _module in {
    "sklearn": sklearn,
    "sklearn.metrics": sklearn.metrics,
    "matplotlib": plots,
    "plotly": plots,
}.items():
    sys.modules[f"{__name__}.{_name}"] = _module
__path__: list[str] = []
"""A package to the import system, whose modules stand elsewhere."""

__all__ = ["matplotlib", "plotly", "sklearn"]
