"""Figure: a frame and how its columns are drawn, so that a picture and its CSV cannot disagree.

A page is drawn by its script, a notebook by `haptera.report.display`. The script reads the columns and the encoding; a
dropdown is a filter on a column, and a line, a cell or a point stands for rows that the reader can open as a table or
save.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np
import pandas as pd

from haptera.errors import check_keys

ROW_HEIGHT = 24
PRINTED_HEIGHT = 42
PLOT_HEIGHT = 400
TALL_HEIGHT = 560
FEW_NAMES = 7
"""As many as there are colours; a chart of more names is taller."""
HEIGHTS = {"layers": 500, "star": 500, "cloud": 560, "graph": 680}


@dataclass(frozen=True, eq=False)
class Figure:
    """One chart; every encoding names a column of `frame`.

    Attributes:
        title: What is shown, a few words.
        caption: How to read it: what was averaged, what an interval means, what was left out.
        frame: The table the figure shows. The order in which values first appear is the order of dropdowns, of
            legends and of the rows and columns of a heatmap.
        kind: `line`, `scatter` or `heatmap`; or `layers`, which has points, lines, bands and cells over one another;
            or `star`, a selected name amid those of `x` with `y` as the weight of each; or `graph`, nodes and edges;
            or `cloud`, points in space at `x`, `y` and `depth`, coloured by the first of `value` or by `color`; or
            `table`, the values at `x` and `y` as papers print them.
        x: Horizontal position.
        y: Vertical position; for a heatmap its rows.
        value: For a heatmap, the columns its colour may show; several become a dropdown.
        low: Lower end of the interval around `y` (around the first of `value` in a heatmap).
        high: Upper end of it.
        color: Columns whose values, joined by " · ", get a colour each; for layers, `layer` where nothing else is said.
        palette: Values of `color` in the order of the colours, to keep theirs whichever of them are shown.
        dash: Column whose values get a style of line (of marker, in a scatter) each.
        select: Columns that become dropdowns, each narrowed by those before it.
        choose: Column of which several values are shown at once, as the reader chooses.
        bands: Column whose runs along x are shaded and named behind the lines, or named over the columns of a table;
            where some are empty, only the others are shaded.
        flags: Column that says what happened at a point of a line, which then gets a cross; empty where nothing did.
        start: Column -> the value of a dropdown, or the chosen values, when the page opens; else the first, or all.
        labels: Column -> what the page calls it, with the unit.
        limits: Range of `y`, or of the first of `value`; else that of the data.
        diverging: Those of `value` that are differences, coloured on both sides of zero.
        log_x: Whether x is logarithmic.
        log_y: Whether y of lines is; what is not above 0 has no place.
        time_x: Whether x is a time, a text such as `2026-11-17 14:02:05`; for lines.
        diagonal: Whether x and y are both shares, and the line on which they are equal is drawn.
        mark: For layers, the column that says how a row is drawn: as `point` or as part of a `line` at `y`, of a `band`
            from `low` to `high`, or as a `cell` of a grid, coloured by the first of `value`; `mark` by default.
        scale: For layers, of both axes: `linear`, `log`, or `probit` for accuracies.
        ends: For a graph, the columns with name, x and y of the node at the other end of an edge; the node at (`x`,
            `y`) is named by `choose`, and the first of `value` is the weight of the edge, empty for a node without one.
        names: For layers and scatters, the column whose text is printed beside points; empty for those without.
        x_low: For layers, the lower end of the interval around `x` of points.
        x_high: The upper end of it.
        depth: For a cloud, the third position; without it the cloud is flat.
        cyclic: For a cloud, whether both ends of the colours are the same, as for angles.
        spread: For a table, the standard deviation of its values.
        rank: For a table, 1 for the best of a column of it and 2 for the second.
        source: For a table, who published a row of it; empty for what was measured.
        remark: For a table, a sentence about all that is shown.
        quantity: For lines, the one of `select` whose chosen value says what y is, and is written along its axis.
    """

    title: str
    caption: str
    frame: pd.DataFrame
    kind: Literal["line", "scatter", "heatmap", "layers", "star", "graph", "cloud", "table"]
    x: str
    y: str
    value: tuple[str, ...] = ()
    low: str | None = None
    high: str | None = None
    color: tuple[str, ...] = ()
    palette: tuple[str, ...] = ()
    dash: str | None = None
    select: tuple[str, ...] = ()
    choose: str | None = None
    bands: str | None = None
    flags: str | None = None
    start: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    limits: tuple[float, float] | None = None
    diverging: tuple[str, ...] = ()
    log_x: bool = False
    log_y: bool = False
    time_x: bool = False
    diagonal: bool = False
    mark: str | None = None
    scale: Literal["linear", "log", "probit"] = "linear"
    ends: tuple[str, ...] = ()
    names: str | None = None
    x_low: str | None = None
    x_high: str | None = None
    depth: str | None = None
    cyclic: bool = False
    spread: str | None = None
    rank: str | None = None
    source: str | None = None
    remark: str | None = None
    quantity: str | None = None

    def __post_init__(self) -> None:
        if self.kind == "layers":
            object.__setattr__(self, "mark", self.mark or "mark")
            object.__setattr__(self, "color", self.color or ("layer",))
        single = (self.x, self.y, self.low, self.high, self.dash, self.choose, self.bands, self.flags, self.mark)
        printed = (self.spread, self.rank, self.source, self.remark, self.names, self.x_low, self.x_high, self.quantity)
        named = [name for name in (*single, self.depth, *printed) if name is not None]
        named += [*self.value, *self.color, *self.select, *self.diverging, *self.start, *self.ends]
        check_keys(f"column in figure {self.title!r}", named, map(str, self.frame.columns))

    @property
    def height(self) -> int:
        """Pixels, known before anything is drawn, so that the page does not jump."""
        if self.kind in HEIGHTS:
            return HEIGHTS[self.kind]
        if self.kind in ("heatmap", "table"):
            row = ROW_HEIGHT if self.kind == "heatmap" else PRINTED_HEIGHT
            return 150 + row * int(self.frame[self.y].nunique())
        names = len(self.frame[list(self.color)].drop_duplicates())
        return TALL_HEIGHT if names > FEW_NAMES and not self.choose else PLOT_HEIGHT

    def encoding(self) -> dict[str, Any]:
        """All but the frame and the prose, for the page's script."""
        prose = ("title", "caption", "frame")
        shown = {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name not in prose}
        return shown | {"height": self.height}


def layer(mark: str, name: str | pd.Series | np.ndarray, **columns: Any) -> pd.DataFrame:
    """Return rows of a figure of kind `layers` that are drawn alike, all of one layer or each of its own.

    >>> layer("line", "nothing lost", x=[0.0, 1.0], y=[0.0, 1.0]).to_dict("list")
    {'mark': ['line', 'line'], 'layer': ['nothing lost', 'nothing lost'], 'x': [0.0, 1.0], 'y': [0.0, 1.0]}
    """
    frame = pd.DataFrame(columns)
    frame.insert(0, "mark", mark)
    frame.insert(1, "layer", name)
    return frame


def place_nodes(edges: pd.DataFrame, nodes: Sequence[str]) -> pd.DataFrame:
    """Return the frame of a figure of kind `graph`: edges among some nodes, and a row for each node without any.

    Args:
        edges: the names of both ends and the weight, in this order.
        nodes: to be shown; an edge to another one is left out.

    Returns:
        Columns of the edges, and the places of both ends: `x` and `y`, and those of the second end after its name and
        an underscore, such as `on_x`.
    """
    one, other, weight = edges.columns
    edges = edges[edges[one].isin(nodes) & edges[other].isin(nodes)]
    alone = pd.DataFrame({one: [name for name in nodes if name not in set(edges[one])]})
    size = edges[weight].abs() / max(edges[weight].abs().max(), 1e-300)
    places = lay_out(nodes, zip(edges[one], edges[other], size, strict=True))
    rows = pd.concat([edges, alone], ignore_index=True)
    return rows.join(places, on=one).join(places.add_prefix(f"{other}_"), on=other)


def lay_out(nodes: Sequence[Any], edges: Iterable[tuple[Any, Any, float]]) -> pd.DataFrame:
    """Return `x` and `y` of each node, from -1 to 1, nearer where edges are; the same for the same graph.

    Args:
        nodes: their names.
        edges: two nodes and a positive weight each.

    Cost, by networkx: nodes² for each of some steps.
    """
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(nodes)
    graph.add_weighted_edges_from(edges)
    return pd.DataFrame.from_dict(nx.spring_layout(graph, seed=0), orient="index", columns=["x", "y"])
