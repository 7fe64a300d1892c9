"""Groups: the rows of a chart that are drawn alike, whatever draws them."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from haptera.report.figure import Figure


@dataclass(frozen=True, eq=False)
class Group:
    """Rows with one colour and one style.

    Attributes:
        name: for the legend; empty where there is nothing to tell apart.
        frame: the rows.
        color: the place of its colour.
        dash: the place of its style of line or marker.
    """

    name: str
    frame: pd.DataFrame
    color: int
    dash: int


def groups(chart: Figure, frame: pd.DataFrame) -> list[Group]:
    """Return the groups of a chart, in the order in which they first appear.

    >>> frame = pd.DataFrame({"x": [0, 1], "y": [1, 2], "fit": ["a", "b"]})
    >>> chart = Figure("", "", frame, "line", "x", "y", color=("fit",))
    >>> [(group.name, group.color) for group in groups(chart, chart.frame)]
    [('a', 0), ('b', 1)]
    """
    colors = frame[list(chart.color)].astype(str).agg(" · ".join, axis=1) if chart.color else pd.Series("", frame.index)
    dashes = frame[chart.dash].astype(str) if chart.dash else pd.Series("", frame.index)
    keys = pd.DataFrame({"color": colors, "dash": dashes})
    tones, styles = ({name: place for place, name in enumerate(keys[one].unique())} for one in keys)
    found = []
    for color, dash in keys.drop_duplicates().itertuples(index=False):
        rows = frame[(colors == color) & (dashes == dash)]
        name = ", ".join(text for text in (color, dash) if text)
        found.append(Group(name, rows, tones[color], styles[dash]))
    return found


def axis_names(chart: Figure) -> list[str]:
    """Return what the axes are called."""
    return [chart.labels.get(name, name) for name in (chart.x, chart.y, chart.depth) if name]


def matrix(chart: Figure, frame: pd.DataFrame) -> tuple[np.ndarray, list[str], list[str]]:
    """Return the values of a heatmap, and the names of its rows and columns in the order in which they appear."""
    rows, columns = ([str(one) for one in frame[name].unique()] for name in (chart.y, chart.x))
    table = frame.assign(**{name: frame[name].astype(str) for name in (chart.x, chart.y)})
    values = table.pivot_table(chart.value[0], chart.y, chart.x, sort=False).reindex(index=rows, columns=columns)
    return values.to_numpy(float), rows, columns
