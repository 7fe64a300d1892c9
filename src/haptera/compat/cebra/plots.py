"""Plots by the names of that package, drawn by haptera's; each returns what there is an axis, and its frame besides.

Where no axis is given, one of pyplot's figures is made, so that `plt.savefig` and `plt.show` of a script find it. How
plots look is haptera's: colour maps and the like of a script are left out, with a warning that names them.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from haptera.analyses.embedding import plots as analysis_plots
from haptera.compat.cebra.estimator import CEBRA, array
from haptera.contrastive import plots
from haptera.errors import HapteraError
from haptera.extras import import_extra
from haptera.report.display import Display

log = logging.getLogger("haptera")

SIZE = {"embedding": (5, 5), "curve": (7, 4), "overview": (15, 4)}
"""Inches of figures, as there."""
CANVAS = ("figsize", "dpi")


class AxisDisplay(Display):
    """A display that can do what its axis of matplotlib can, which that package returns.

    Args:
        shown: what was drawn.
        axis: into which.
    """

    def __init__(self, shown: Display, axis: Any) -> None:
        vars(self).update(vars(shown))
        self.axis_drawn = axis

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "axis_drawn":
            raise AttributeError(name)
        return getattr(self.axis_drawn, name)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Words only: a notebook shows pyplot's figures by itself."""
        return {"text/plain": repr(self)}


def plot_embedding(
    embedding: Any,
    embedding_labels: Any = None,
    ax: Any = None,
    idx_order: Any = None,
    title: str = "Embedding",
    **style: Any,
) -> AxisDisplay:
    """Draw an embedding.

    Args:
        embedding: `(samples, dimensions)`.
        embedding_labels: a number or class for each sample; `time`, or the name of a colour, colours by time.
        ax: of matplotlib, to draw into.
        idx_order: which dimensions.
        title: above it.
        **style: `figsize` and `dpi`; the rest is left out.
    """
    points = array(embedding)
    space = len(range(points.shape[1]) if idx_order is None else idx_order) > 2

    def draw(axis: Any) -> Display:
        return plots.plot_embedding(points, _label(embedding_labels), dimensions=idx_order, ax=axis)

    return _titled(_drawn(draw, ax, "embedding", style, space=space), title)


def plot_embedding_interactive(
    embedding: Any,
    embedding_labels: Any = None,
    axis: Any = None,
    idx_order: Any = None,
    title: str = "Embedding",
    **style: Any,
) -> Any:
    """Draw an embedding that can be turned with the mouse, and return the figure of plotly; `axis` must be None."""
    if axis is not None:
        raise HapteraError("axis is given; haptera draws a figure of its own, whose traces can be added to another")
    _leave_out({name: value for name, value in style.items() if name not in CANVAS})
    shown = plots.plot_embedding(array(embedding), _label(embedding_labels), dimensions=idx_order, engine="plotly")
    return shown.figure.update_layout(title=title)


def plot_loss(model: CEBRA, label: Any = None, ax: Any = None, **style: Any) -> AxisDisplay:
    """Draw the loss of every step; `label` names the line."""
    return compare_models([model], None if label is None else [label], ax, **style)


def compare_models(
    models: Sequence[CEBRA], labels: Sequence[Any] | None = None, ax: Any = None, **style: Any
) -> AxisDisplay:
    """Draw the loss of every step of several models; losses at other batch sizes are not comparable."""
    if labels is not None and len(labels) != len(models):
        raise HapteraError(f"{len(labels)} labels were given for {len(models)} models; one for each was expected")
    usual = ["model"] if len(models) == 1 else [f"model {place}" for place in range(len(models))]
    names = [str(one) for one in (usual if labels is None else labels)]
    if len(set(names)) < len(names):
        raise HapteraError(f"labels are {', '.join(names)}; a different one for each model was expected")
    if len({model.batch_size for model in models}) > 1:
        log.warning("the models have different batch sizes: their losses cannot be compared, goodness of fit can")
    named = {name: model.embedding_ for name, model in zip(names, models, strict=True)}
    return _drawn(lambda axis: plots.plot_loss(named, unit="loss", ax=axis), ax, "curve", style)


def plot_temperature(model: CEBRA, label: Any = None, ax: Any = None, **style: Any) -> AxisDisplay:
    """Draw the temperature after every step; `label` names the line."""
    named = {"model" if label is None else str(label): model.embedding_}
    return _drawn(lambda axis: plots.plot_temperature(named, ax=axis), ax, "curve", style)


def plot_overview(model: CEBRA, X: Any, *, embedding_kwargs: Any = None, **style: Any) -> tuple[Any, tuple[Any, ...]]:
    """Draw loss, temperature and embedding beside one another; return the figure and its three axes."""
    pyplot = import_extra("matplotlib.pyplot", "notebook", "plotting")
    points, options = model.transform(X), dict(embedding_kwargs or {})
    _leave_out({name: value for name, value in style.items() if name not in CANVAS})
    size = {"figsize": SIZE["overview"]} | {name: style[name] for name in CANVAS if name in style}
    figure = pyplot.figure(**size, layout="constrained")
    space = len(options.get("idx_order") or range(points.shape[1])) > 2
    shapes: list[dict[str, Any]] = [{}, {}, {"projection": "3d"} if space else {}]
    axes = tuple(figure.add_subplot(1, 3, place, **shape) for place, shape in enumerate(shapes, start=1))
    plot_loss(model, ax=axes[0])
    plot_temperature(model, ax=axes[1])
    plot_embedding(points, ax=axes[2], **options)
    return figure, axes


def plot_consistency(
    scores: Any, pairs: Any = None, datasets: Any = None, ax: Any = None, title: str | None = None, **style: Any
) -> AxisDisplay:
    """Draw R² of linear maps between embeddings as a square.

    Args:
        scores: one for each ordered pair, as `consistency_score` returns them, or a square of them.
        pairs: of each score.
        datasets: the ids in their order.
        ax: of matplotlib, to draw into.
        title: above it.
        **style: `figsize` and `dpi`; the rest is left out.
    """
    values = array(scores)
    if values.ndim == 2 and values.shape[0] == values.shape[1] > 1:
        names = range(len(values)) if datasets is None else list(datasets)
        pairs = [(one, other) for one in names for other in names]
        values = values.ravel()
    if pairs is None or values.ndim != 1 or len(pairs) != len(values):
        raise HapteraError(
            f"scores have the shape {array(scores).shape} and there are {0 if pairs is None else len(pairs)} pairs; a "
            "pair for each score was expected, as consistency_score returns them"
        )
    rows = [(str(one), str(other), value, 0) for (one, other), value in zip(pairs, values, strict=True) if one != other]
    frame = pd.DataFrame(rows, columns=["source", "target", "value", "n"])
    shown = _drawn(lambda axis: analysis_plots.plot_consistency(frame, ax=axis), ax, "embedding", style)
    return shown if title is None else _titled(shown, title)


def plot(model: CEBRA, which: str, X: Any = None, ax: Any = None, **options: Any) -> AxisDisplay:
    """Draw the `loss`, the `temperature`, or the `embedding` of X."""
    if which == "embedding":
        return plot_embedding(model.transform(X), ax=ax, **options)
    if which not in ("loss", "temperature"):
        raise HapteraError(f"which is {which!r}; 'loss', 'temperature' or 'embedding' was expected")
    return (plot_loss if which == "loss" else plot_temperature)(model, ax=ax, **options)


def _label(given: Any) -> np.ndarray | None:
    return None if given is None or isinstance(given, str) else array(given)


def _drawn(
    draw: Callable[[Any], Display], ax: Any, what: str, style: dict[str, Any], *, space: bool = False
) -> AxisDisplay:
    """Draw into an axis, or into a new one of pyplot's."""
    _leave_out({name: value for name, value in style.items() if name not in CANVAS})
    if ax is None:
        pyplot = import_extra("matplotlib.pyplot", "notebook", "plotting")
        size = {"figsize": SIZE[what]} | {name: style[name] for name in CANVAS if name in style}
        ax = pyplot.figure(**size).add_subplot(**({"projection": "3d"} if space else {}))
    return AxisDisplay(draw(ax), ax)


def _titled(shown: AxisDisplay, title: str) -> AxisDisplay:
    shown.axis_drawn.set_title(title)
    return shown


def _leave_out(style: dict[str, Any]) -> None:
    if style:
        log.warning("%s: haptera draws in its own way, left out", ", ".join(sorted(style)))
