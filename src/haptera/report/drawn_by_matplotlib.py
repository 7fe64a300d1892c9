"""Charts drawn by matplotlib: clouds in two or three dimensions, lines, points, heatmaps, layers; no pyplot."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.dates import ConciseDateFormatter
from matplotlib.figure import Figure as Canvas

from haptera.errors import HapteraError
from haptera.report.figure import Figure
from haptera.report.groups import Group, axis_names, groups, matrix
from haptera.report.layers_by_matplotlib import draw_layers

SIZE = 4.6
"""Inches of a panel."""
DASHES = ("-", "--", ":", "-.")
MOST_BANDS = 10
MARKERS = ("o", "^", "s", "D", "v", "P", "X")


def draw(charts: Sequence[tuple[Figure, pd.DataFrame]], ax: Any = None) -> Any:
    """Return a figure with a panel for each chart, or the figure of `ax` with one drawn into it."""
    if ax is not None:
        _panel(ax, *charts[0])
        return ax.figure
    canvas = Canvas(figsize=(SIZE * len(charts) + 0.6, SIZE), layout="constrained")
    for place, (chart, frame) in enumerate(charts, start=1):
        space: dict[str, Any] = {"projection": "3d"} if chart.kind == "cloud" and chart.depth else {}
        _panel(canvas.add_subplot(1, len(charts), place, **space), chart, frame)
    return canvas


def _panel(ax: Any, chart: Figure, frame: pd.DataFrame) -> None:
    kinds = {"cloud": _points, "scatter": _points, "line": _lines, "heatmap": _heatmap, "layers": draw_layers}
    if chart.kind not in kinds:
        raise HapteraError(f"{chart.title!r} is a chart of kind {chart.kind!r}; {', '.join(kinds)} can be drawn here")
    if chart.kind == "cloud" and chart.depth and not hasattr(ax, "get_zlim"):
        raise HapteraError("ax is flat, and the embedding has three dimensions; add_subplot(projection='3d') has them")
    kinds[chart.kind](ax, chart, frame)
    ax.set_title(chart.title)
    names = axis_names(chart)
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])
    if chart.depth:
        ax.set_zlabel(names[2])


def _points(ax: Any, chart: Figure, frame: pd.DataFrame) -> None:
    every = groups(chart, frame)
    for group in every:
        places = [group.frame[name] for name in (chart.x, chart.y, chart.depth) if name]
        style: dict[str, Any] = {"s": 6, "marker": MARKERS[group.dash % len(MARKERS)], "label": group.name or None}
        if chart.value:
            low, high = chart.limits or (frame[chart.value[0]].min(), frame[chart.value[0]].max())
            cmap = "twilight" if chart.cyclic else "viridis"
            drawn = ax.scatter(*places, c=group.frame[chart.value[0]], cmap=cmap, vmin=low, vmax=high, **style)
        else:
            drawn = ax.scatter(*places, color=_color(group, every), **style)
    if chart.value:
        ax.figure.colorbar(drawn, ax=ax, label=chart.labels.get(chart.value[0], chart.value[0]), shrink=0.7)
    _legend(ax, every)


def _lines(ax: Any, chart: Figure, frame: pd.DataFrame) -> None:
    every = groups(chart, frame)
    for group in every:
        x = pd.to_datetime(group.frame[chart.x]) if chart.time_x else group.frame[chart.x]
        style = DASHES[group.dash % len(DASHES)]
        ax.plot(x, group.frame[chart.y], style, color=_color(group, every), label=group.name or None)
        if chart.low and chart.high and len(every) <= MOST_BANDS:
            ends = (group.frame[name].astype(float) for name in (chart.low, chart.high))
            ax.fill_between(x, *ends, color=_color(group, every), alpha=0.15, linewidth=0)
    if chart.bands:
        _shade(ax, chart, frame.drop_duplicates(chart.x))
    if chart.time_x:
        ax.xaxis.set_major_formatter(ConciseDateFormatter(ax.xaxis.get_major_locator()))
    if chart.log_x:
        ax.set_xscale("log")
    if chart.log_y:
        ax.set_yscale("log")
    if chart.limits:
        ax.set_ylim(*chart.limits)
    _legend(ax, every)


def _shade(ax: Any, chart: Figure, frame: pd.DataFrame) -> None:
    """Shade the runs of a column along x: those with a name, or, where all have one, every other."""
    x = pd.to_datetime(frame[chart.x]) if chart.time_x else frame[chart.x]
    names = frame[str(chart.bands)].fillna("").astype(str).to_numpy()
    starts = np.flatnonzero(np.append(True, names[1:] != names[:-1]))
    ends = np.append(starts[1:], len(names) - 1)
    for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if names[start] and (place % 2 or not names.all()):
            ax.axvspan(x.iloc[start], x.iloc[end], color="gray", alpha=0.12, linewidth=0)
        if names[start] and len(starts) <= MOST_BANDS:
            style: dict[str, Any] = {
                "rotation": 90,
                "fontsize": "x-small",
                "va": "bottom",
                "transform": ax.get_xaxis_transform(),
            }
            ax.text(x.iloc[start], 0.02, f" {names[start]}", **style)


def _heatmap(ax: Any, chart: Figure, frame: pd.DataFrame) -> None:
    values, rows, columns = matrix(chart, frame)
    low, high = chart.limits or (np.nanmin(values), np.nanmax(values))
    drawn = ax.imshow(values, cmap="viridis", vmin=low, vmax=high)
    ax.set_xticks(range(len(columns)), columns, rotation=45, ha="right")
    ax.set_yticks(range(len(rows)), rows)
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            color = "black" if (value - low) > 0.6 * (high - low) else "white"
            ax.text(column, row, f"{value:.2f}", ha="center", va="center", color=color)
    ax.figure.colorbar(drawn, ax=ax, label=chart.labels.get(chart.value[0], chart.value[0]), shrink=0.7)


def _color(group: Group, every: Sequence[Group]) -> Any:
    count = max(one.color for one in every) + 1
    return colormaps["tab10"](group.color) if count <= 10 else colormaps["turbo"](group.color / (count - 1))


def _legend(ax: Any, every: Sequence[Group]) -> None:
    if any(group.name for group in every):
        ax.legend(fontsize="small", markerscale=2)
