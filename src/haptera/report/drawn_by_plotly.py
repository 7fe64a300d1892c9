"""Charts drawn by plotly: clouds to turn, lines, points and heatmaps with the numbers under the mouse."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from plotly import graph_objects as go
from plotly.subplots import make_subplots

from haptera.errors import HapteraError
from haptera.report.figure import Figure
from haptera.report.groups import axis_names, groups, matrix

DASHES = ("solid", "dash", "dot", "dashdot")
MARKERS = ("circle", "diamond", "square", "cross", "x")  # those that clouds in space have, too
WIDTH, HEIGHT = 480, 440


def draw(charts: Sequence[tuple[Figure, pd.DataFrame]]) -> Any:
    """Return a figure with a panel for each chart."""
    kinds = {"cloud": _points, "scatter": _points, "line": _lines, "heatmap": _heatmap}
    strange = [chart for chart, _ in charts if chart.kind not in kinds]
    if strange:
        raise HapteraError(
            f"{strange[0].title!r} is a chart of kind {strange[0].kind!r}; {', '.join(kinds)} can be drawn"
        )
    spaces = [{"type": "scene" if chart.kind == "cloud" and chart.depth else "xy"} for chart, _ in charts]
    titles = [chart.title for chart, _ in charts]
    figure = make_subplots(rows=1, cols=len(charts), specs=[spaces], subplot_titles=titles)
    for place, (chart, frame) in enumerate(charts, start=1):
        for trace in kinds[chart.kind](chart, frame):
            if "colorbar" in _scale(trace):
                _scale(trace)["colorbar"]["x"] = place / len(charts)
            figure.add_trace(trace, row=1, col=place)
        names = axis_names(chart)
        if chart.depth:
            axes = {f"{axis}axis_title_text": name for axis, name in zip("xyz", names, strict=True)}
            figure.update_scenes(row=1, col=place, aspectmode="data", **axes)
        else:
            figure.update_xaxes(title_text=names[0], type="log" if chart.log_x else None, row=1, col=place)
            figure.update_yaxes(title_text=names[1], type="log" if chart.log_y else None, row=1, col=place)
            if chart.kind == "heatmap":
                figure.update_yaxes(autorange="reversed", row=1, col=place)
    figure.update_layout(width=WIDTH * len(charts) + 120, height=HEIGHT, legend_title_text="", legend_x=1.08)
    return figure


def _scale(trace: Any) -> Any:
    """Return what holds the colour bar of a trace."""
    return trace if trace.type == "heatmap" else trace.marker


def _points(chart: Figure, frame: pd.DataFrame) -> list[Any]:
    traces = []
    for place, group in enumerate(groups(chart, frame)):
        marker: dict[str, Any] = {"size": 3, "symbol": MARKERS[group.dash % len(MARKERS)]}
        if chart.value:
            low, high = chart.limits or (frame[chart.value[0]].min(), frame[chart.value[0]].max())
            bar = {"title": {"text": chart.labels.get(chart.value[0], chart.value[0])}, "len": 0.7}
            marker |= {"color": group.frame[chart.value[0]], "cmin": low, "cmax": high, "showscale": place == 0}
            marker |= {"colorscale": "Phase" if chart.cyclic else "Viridis", "colorbar": bar}
        common: dict[str, Any] = {
            "mode": "markers",
            "name": group.name,
            "showlegend": bool(group.name),
            "marker": marker,
        }
        flat = {"x": group.frame[chart.x], "y": group.frame[chart.y]}
        solid = chart.kind == "cloud" and chart.depth
        traces.append(
            go.Scatter3d(**flat, z=group.frame[chart.depth], **common) if solid else go.Scatter(**flat, **common)
        )
    return traces


def _lines(chart: Figure, frame: pd.DataFrame) -> list[Any]:
    colors = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f")
    return [
        go.Scatter(
            x=group.frame[chart.x],
            y=group.frame[chart.y],
            mode="lines",
            name=group.name,
            showlegend=bool(group.name),
            line={"color": colors[group.color % len(colors)], "dash": DASHES[group.dash % len(DASHES)]},
        )
        for group in groups(chart, frame)
    ]


def _heatmap(chart: Figure, frame: pd.DataFrame) -> list[Any]:
    values, rows, columns = matrix(chart, frame)
    low, high = chart.limits or (None, None)
    bar = {"title": {"text": chart.labels.get(chart.value[0], chart.value[0])}, "len": 0.7}
    common: dict[str, Any] = {"zmin": low, "zmax": high, "colorscale": "Viridis", "colorbar": bar}
    return [go.Heatmap(z=values, x=columns, y=rows, texttemplate="%{z:.2f}", **common)]
