"""Figure: a frame and how its columns are drawn, so that a picture and its CSV cannot disagree.

Nothing is drawn in Python. The page's script reads the columns and the encoding; a dropdown is a filter on a
column, and a line, a cell or a point stands for rows that the reader can open as a table or save.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import pandas as pd

from haptera.errors import check_keys

ROW_HEIGHT = 24
PLOT_HEIGHT = 400
LAYERS_HEIGHT = 500
CLOUD_HEIGHT = 560
GRAPH_HEIGHT = 680


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
            or `cloud`, points in space at `x`, `y` and `depth`, coloured by the first of `value` or by `color`.
        x: Horizontal position.
        y: Vertical position; for a heatmap its rows.
        value: For a heatmap, the columns its colour may show; several become a dropdown.
        low: Lower end of the interval around `y` (around the first of `value` in a heatmap).
        high: Upper end of it.
        color: Columns whose values, joined by " · ", get a colour each.
        palette: Values of `color` in the order of the colours, to keep theirs whichever of them are shown.
        dash: Column whose values get a style of line (of marker, in a scatter) each.
        select: Columns that become dropdowns, each narrowed by those before it.
        choose: Column of which several values are shown at once, as the reader chooses.
        bands: Column whose runs along x are shaded and named behind the lines.
        flags: Column that says what happened at a point of a line, which then gets a cross; empty where nothing did.
        start: Column -> the value of a dropdown, or the chosen values, when the page opens; else the first, or all.
        labels: Column -> what the page calls it, with the unit.
        limits: Range of `y`, or of the first of `value`; else that of the data.
        diverging: Those of `value` that are differences, coloured on both sides of zero.
        log_x: Whether x is logarithmic.
        diagonal: Whether x and y are both shares, and the line on which they are equal is drawn.
        mark: For layers, the column that says how a row is drawn: as `point` or as part of a `line` at `y`, of a `band`
            from `low` to `high`, or as a `cell` of a grid, coloured by the first of `value`.
        scale: For layers, of both axes: `linear`, or `probit` for accuracies.
        ends: For a graph, the columns with name, x and y of the node at the other end of an edge; the node at (`x`,
            `y`) is named by `choose`, and the first of `value` is the weight of the edge, empty for a node without one.
        depth: For a cloud, the third position; without it the cloud is flat.
        cyclic: For a cloud, whether both ends of the colours are the same, as for angles.
    """

    title: str
    caption: str
    frame: pd.DataFrame
    kind: Literal["line", "scatter", "heatmap", "layers", "star", "graph", "cloud"]
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
    diagonal: bool = False
    mark: str | None = None
    scale: Literal["linear", "probit"] = "linear"
    ends: tuple[str, ...] = ()
    depth: str | None = None
    cyclic: bool = False

    def __post_init__(self) -> None:
        single = (self.x, self.y, self.low, self.high, self.dash, self.choose, self.bands, self.flags, self.mark)
        named = [name for name in (*single, self.depth) if name is not None]
        named += [*self.value, *self.color, *self.select, *self.diverging, *self.start, *self.ends]
        check_keys(f"column in figure {self.title!r}", named, map(str, self.frame.columns))

    @property
    def height(self) -> int:
        """Pixels, known before anything is drawn, so that the page does not jump."""
        if self.kind == "graph":
            return GRAPH_HEIGHT
        if self.kind == "cloud":
            return CLOUD_HEIGHT
        if self.kind != "heatmap":
            return LAYERS_HEIGHT if self.kind in ("layers", "star") else PLOT_HEIGHT
        return 150 + ROW_HEIGHT * int(self.frame[self.y].nunique())

    def encoding(self) -> dict[str, Any]:
        """All but the frame and the prose, for the page's script."""
        prose = ("title", "caption", "frame")
        shown = {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name not in prose}
        return shown | {"height": self.height}
