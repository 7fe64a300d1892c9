"""Plots of consistency, for a notebook; `haptera.contrastive.plots` has those of embeddings and fits."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from haptera.analyses.embedding.consistency import BINS, consistency
from haptera.errors import HapteraError
from haptera.recordings.label import Label
from haptera.report.display import Display
from haptera.report.figure import Figure


def plot_consistency(
    scores: pd.DataFrame | Mapping[str, np.ndarray],
    labels: Mapping[str, Any] | None = None,
    *,
    bins: int = BINS,
    engine: str = "matplotlib",
    ax: Any = None,
) -> Display:
    """Draw R² of the best affine map from every embedding (rows) to every other (columns).

    Args:
        scores: what `consistency` returns; or name -> embedding `(samples, dimensions)`, of the same samples, or of any
            with labels.
        labels: name -> the label of its samples, values or a `Label`, or a list of several.
        bins: along continuous labels.
        engine: `matplotlib`, or `plotly`, which is interactive.
        ax: of matplotlib, to draw into.
    """
    if not isinstance(scores, pd.DataFrame):
        known = None if labels is None else {str(name): _labels(each) for name, each in labels.items()}
        if known is not None and known.keys() != {str(name) for name in scores}:
            raise HapteraError(f"labels are of {', '.join(known)}; of {', '.join(map(str, scores))} were expected")
        scores = consistency({str(name): np.asarray(each) for name, each in scores.items()}, known, bins=bins)
    missing = {"source", "target", "value", "n"} - set(scores)
    if missing:
        raise HapteraError(f"scores have no column {min(missing)}; source, target, value and n were expected")
    if scores.empty:
        raise HapteraError("scores have no rows; one for each ordered pair of embeddings was expected")
    text = "R² of the best affine map from the row to the column; to itself, 1."
    return Display([consistency_chart("Consistency", text, scores)], engine, ax)


def consistency_chart(title: str, text: str, scores: pd.DataFrame) -> Figure:
    """Return ordered pairs as a square, with 1 on its diagonal."""
    names = scores["source"].unique()
    same = pd.DataFrame({"source": names, "target": names, "value": 1.0, "n": scores["n"].iloc[0]})
    frame = pd.concat([same, scores], ignore_index=True)
    style: dict[str, Any] = {"value": ("value",), "limits": (0.0, 1.0), "labels": {"value": "R²"}}
    return Figure(title, text, frame, kind="heatmap", x="target", y="source", **style)


def _labels(given: Any) -> list[Label]:
    several = isinstance(given, Sequence) and not isinstance(given, str)
    return [one if isinstance(one, Label) else Label.of(np.asarray(one)) for one in (given if several else [given])]
