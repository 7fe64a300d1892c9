"""haptera: how a trained model holds when the world shifts, why, and how to make it hold without labels.

Shift the input, keep the outputs, measure the outputs: one table.
Names are imported when first used, so that `import haptera` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.2.0"

_HOME = {
    "Batch": "batch",
    "Stream": "batch",
    "Outputs": "outputs",
    "Study": "run.study",
    "HapteraError": "errors",
    "NotApplicable": "errors",
    "evaluate": "run.loop",
    "open_data": "data",
    "Analysis": "analysis",
    "attribute": "analyses.attribution",
    "embed": "analyses.embedding.analysis",
    "identify": "analyses.identify",
    "check_model": "analyses.preflight.analysis",
    "compare": "analyses.comparison",
    "dependencies": "analyses.dependencies",
    "gate": "analyses.gate",
    "diagnose": "analyses.diagnosis.analysis",
    "stability": "analyses.stability.analysis",
    "trends": "analyses.trends",
}
__all__ = [*_HOME, "__version__"]

if TYPE_CHECKING:
    from haptera.analyses.attribution import attribute as attribute
    from haptera.analyses.comparison import compare as compare
    from haptera.analyses.dependencies import dependencies as dependencies
    from haptera.analyses.diagnosis.analysis import diagnose as diagnose
    from haptera.analyses.embedding.analysis import embed as embed
    from haptera.analyses.gate import gate as gate
    from haptera.analyses.identify import identify as identify
    from haptera.analyses.preflight.analysis import check_model as check_model
    from haptera.analyses.stability.analysis import stability as stability
    from haptera.analyses.trends import trends as trends
    from haptera.analysis import Analysis as Analysis
    from haptera.batch import Batch as Batch
    from haptera.batch import Stream as Stream
    from haptera.data import open_data as open_data
    from haptera.errors import HapteraError as HapteraError
    from haptera.errors import NotApplicable as NotApplicable
    from haptera.outputs import Outputs as Outputs
    from haptera.run.loop import evaluate as evaluate
    from haptera.run.study import Study as Study


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'haptera' has no attribute {name!r}")
    return getattr(import_module(f"haptera.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
