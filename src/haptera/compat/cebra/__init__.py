"""What a script written for the package `cebra` (0.6.1) imports, on haptera's estimator.

    import haptera.compat.cebra as cebra

    model = cebra.CEBRA(model_architecture="offset10-model", batch_size=512, max_iterations=5000)
    model.fit(neural, position)
    cebra.sklearn.metrics.goodness_of_fit_score(model, neural, position)

`arguments.ARGUMENTS` says of every argument whether it is taken, changed or refused. New work is better written with
`haptera.contrastive.ContrastiveEmbedding`, which can do more. The guide "From CEBRA" has both side by side.
The method is patented (US 12,499,131 B2): check before commercial use.
"""

from typing import Any

from haptera.compat.cebra import sklearn
from haptera.compat.cebra.arguments import refuse_name
from haptera.compat.cebra.decoders import KNNDecoder, L1LinearRegressor
from haptera.compat.cebra.estimator import CEBRA
from haptera.compat.cebra.plots import plot_embedding, plot_loss, plot_temperature

__all__ = [
    "CEBRA",
    "KNNDecoder",
    "L1LinearRegressor",
    "plot_embedding",
    "plot_loss",
    "plot_temperature",
    "sklearn",
]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise refuse_name(name, __all__)
