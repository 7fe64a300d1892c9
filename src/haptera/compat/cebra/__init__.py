"""What a script written for the package `cebra` (0.6.1) imports, on haptera's estimator.

    import haptera.compat.cebra as cebra

    model = cebra.CEBRA(model_architecture="offset10-model", batch_size=512, max_iterations=5000)
    model.fit(neural, position)
    cebra.sklearn.metrics.goodness_of_fit_score(model, neural, position)

`arguments.ARGUMENTS` says of every argument whether it is taken, changed or refused. New work is better written with
`haptera.contrastive.ContrastiveEmbedding`, which can do more. The guide "From CEBRA" has both side by side.
The method is patented (US 12,499,131 B2): check before commercial use.
"""

import sys
from importlib.machinery import ModuleSpec
from typing import Any

from haptera.compat.cebra import integrations, sklearn
from haptera.compat.cebra.arguments import refuse_name
from haptera.compat.cebra.decoders import KNNDecoder, L1LinearRegressor
from haptera.compat.cebra.estimator import CEBRA
from haptera.compat.cebra.loading import load_data, load_deeplabcut
from haptera.compat.cebra.plots import (
    compare_models,
    plot,
    plot_consistency,
    plot_embedding,
    plot_embedding_interactive,
    plot_loss,
    plot_overview,
    plot_temperature,
)

__all__ = [
    "CEBRA",
    "KNNDecoder",
    "L1LinearRegressor",
    "compare_models",
    "integrations",
    "load_data",
    "load_deeplabcut",
    "plot",
    "plot_consistency",
    "plot_embedding",
    "plot_embedding_interactive",
    "plot_loss",
    "plot_overview",
    "plot_temperature",
    "sklearn",
]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise refuse_name(name, __all__)


class _Refusal:
    """Says of `import haptera.compat.cebra.NAME` what to use instead, after all others who may find it."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        parent, _, last = name.rpartition(".")
        if parent == __name__ and not last.startswith("__"):
            raise ImportError(str(refuse_name(last, __all__)), name=name)
        return None


if _Refusal not in sys.meta_path:
    sys.meta_path.append(_Refusal)
