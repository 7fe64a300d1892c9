"""Plots by the names of that package, drawn by haptera's; each returns a `Display` with its figure and frame.

How they look is haptera's: sizes, colour maps and the like of a script are left out, with a warning that names them.
"""

import logging
from typing import Any

from haptera.compat.cebra.estimator import CEBRA, array
from haptera.contrastive import plots
from haptera.report.display import Display

log = logging.getLogger("haptera")


def plot_embedding(
    embedding: Any, embedding_labels: Any = None, ax: Any = None, idx_order: Any = None, **style: Any
) -> Display:
    """Draw an embedding.

    Args:
        embedding: `(samples, dimensions)`.
        embedding_labels: a number or class for each sample; `time`, or the name of a colour, colours by time.
        ax: of matplotlib, to draw into.
        idx_order: which dimensions.
        **style: is left out.
    """
    _leave_out(style)
    label = None if embedding_labels is None or isinstance(embedding_labels, str) else array(embedding_labels)
    return plots.plot_embedding(array(embedding), label, dimensions=idx_order, ax=ax)


def plot_loss(model: CEBRA, label: str | None = None, ax: Any = None, **style: Any) -> Display:
    """Draw the loss of every step; `label` names the line."""
    _leave_out(style)
    return plots.plot_loss({label or "model": model.embedding_}, unit="loss", ax=ax)


def plot_temperature(model: CEBRA, label: str | None = None, ax: Any = None, **style: Any) -> Display:
    """Draw the temperature after every step; `label` names the line."""
    _leave_out(style)
    return plots.plot_temperature({label or "model": model.embedding_}, ax=ax)


def _leave_out(style: dict[str, Any]) -> None:
    if style:
        log.warning("%s: haptera draws in its own way, left out", ", ".join(sorted(style)))
