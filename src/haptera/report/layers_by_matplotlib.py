"""Layers drawn by matplotlib: points with their intervals, lines, bands and cells over one another.

As on a page, a colour belongs to a name of the legend, and points lie above lines, lines above bands.
"""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.colors import LogNorm
from scipy.special import ndtr, ndtri

from haptera.report.figure import Figure
from haptera.report.groups import groups

CELL = "cell"
MARKS = ("band", "line", "point")
"""From the lowest to the highest; cells lie below them."""
INSIDE = 1e-4
"""How near to 0 and 1 a probit axis goes."""
TICKS = (0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)


def draw_layers(ax: Any, chart: Figure, frame: pd.DataFrame) -> None:
    """Draw a chart of kind `layers` into an axis."""
    marks = str(chart.mark)
    every = [group for group in groups(chart, frame) if (group.frame[marks] != CELL).any()]
    _cells(ax, chart, frame[frame[marks] == CELL])
    for mark in MARKS:
        for place, group in enumerate(every):
            rows = group.frame[group.frame[marks] == mark]
            if not rows.empty:
                _mark(ax, chart, rows.sort_values(chart.x), mark, colormaps["tab10"](place % 10), group.name)
    if chart.scale == "probit":
        _probit(ax)
    if chart.scale == "log":
        ax.set_xscale("log")
        ax.set_yscale("log")
    if chart.limits:
        ax.set_ylim(*chart.limits)
    found = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))  # a name that has two marks comes once
    if found:
        ax.legend(found.values(), found.keys(), fontsize="small")


def _mark(ax: Any, chart: Figure, rows: pd.DataFrame, mark: str, color: Any, name: str) -> None:
    style = {"color": color, "label": name or None}
    if mark == "band":
        ax.fill_between(rows[chart.x], rows[str(chart.low)], rows[str(chart.high)], alpha=0.2, linewidth=0, **style)
    elif mark == "line":
        ax.plot(rows[chart.x], rows[chart.y], **style)
    else:
        bars = {"yerr": _interval(rows, chart.y, chart.low, chart.high)}
        bars["xerr"] = _interval(rows, chart.x, chart.x_low, chart.x_high)
        ax.errorbar(rows[chart.x], rows[chart.y], **bars, fmt="o", markersize=4, linewidth=1, **style)
        for row in rows.to_dict("records") if chart.names else ():
            if isinstance(text := row[chart.names], str) and text:
                place = (row[chart.x], row[chart.y])
                ax.annotate(text, place, xytext=(4, 4), textcoords="offset points", fontsize="x-small")


def _interval(rows: pd.DataFrame, middle: str, low: str | None, high: str | None) -> np.ndarray | None:
    """Return how far the ends are below and above; None where no row has any."""
    if not low or not high or rows[[low, high]].isna().all(axis=None):
        return None
    ends = np.stack([rows[middle] - rows[low], rows[high] - rows[middle]]).astype(float)
    return np.nan_to_num(ends).clip(0)


def _cells(ax: Any, chart: Figure, rows: pd.DataFrame) -> None:
    """Draw cells of a grid, coloured by the logarithm of a count."""
    if rows.empty:
        return
    name = chart.value[0]
    style: dict[str, Any] = {"marker": "s", "s": 12, "norm": LogNorm(1, max(rows[name].max(), 10)), "cmap": "Blues"}
    drawn = ax.scatter(rows[chart.x], rows[chart.y], c=rows[name], **style)
    ax.figure.colorbar(drawn, ax=ax, label=chart.labels.get(name, name), shrink=0.7)


def _probit(ax: Any) -> None:
    """Space shares as quantiles of the normal distribution are."""
    spaced = (lambda share: ndtri(np.clip(share, INSIDE, 1 - INSIDE)), ndtr)
    ends = [np.clip(limits, INSIDE, 1 - INSIDE) for limits in (ax.get_xlim(), ax.get_ylim())]
    for axis, (low, high) in zip("xy", ends, strict=True):
        getattr(ax, f"set_{axis}scale")("function", functions=spaced)
        getattr(ax, f"set_{axis}lim")(low, high)
        ticks = [tick for tick in TICKS if low <= tick <= high]
        getattr(ax, f"set_{axis}ticks")(ticks, [f"{tick:g}" for tick in ticks])
