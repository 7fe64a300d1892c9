"""Display: charts as a notebook shows them, with the numbers that they are drawn from.

    shown = model.plot(spikes, heading)                     # matplotlib; engine="plotly" can be turned with the mouse
    shown.figure, shown.frame                               # to change, and to compute with
    shown.save("ring.pdf")

The charts are those of a page (`haptera.report.figure.Figure`): a frame, and which columns are drawn. Where a page has
a dropdown, what it opens with is drawn.
Cost: matplotlib and plotly are imported when something is drawn.
"""

import base64
import io
import json
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd

from haptera.errors import HapteraError, unknown
from haptera.extras import import_extra
from haptera.report.figure import Figure

ENGINES = ("matplotlib", "plotly")
PANEL = "panel"


class Display:
    """One or more charts, drawn.

    Args:
        charts: side by side.
        engine: `matplotlib`, or `plotly`, which is interactive.
        ax: an axis of matplotlib to draw a single chart into, instead of a figure of its own.

    Attributes:
        figure: of matplotlib or of plotly.
        frame: the numbers that are drawn; of several charts, with a column `panel`.
        charts: what was drawn, with captions.
    """

    def __init__(self, charts: Sequence[Figure], engine: str = "matplotlib", ax: Any = None) -> None:
        if engine not in ENGINES:
            raise unknown("engine", engine, ENGINES)
        if ax is not None and (engine != "matplotlib" or len(charts) != 1):
            raise HapteraError("ax is for a single chart of engine='matplotlib'")
        self.charts = tuple(charts)
        frames = [opened(chart) for chart in charts]
        self.engine = engine
        self.figure = _drawing(engine).draw(
            list(zip(self.charts, frames, strict=True)), **({} if ax is None else {"ax": ax})
        )
        named = [frame.assign(**{PANEL: chart.title}) for chart, frame in zip(charts, frames, strict=True)]
        self.frame = frames[0] if len(frames) == 1 else pd.concat(named, ignore_index=True)

    @property
    def caption(self) -> str:
        """Return how to read it."""
        return "\n".join(f"{chart.title}: {chart.caption}" for chart in self.charts)

    def save(self, path: Path | str) -> None:
        """Write it: `.html` of plotly; of matplotlib any of its formats, such as `.pdf`, `.svg`, `.png`."""
        path = Path(path)
        if self.engine == "plotly":
            if path.suffix.lower() != ".html":
                raise HapteraError(
                    f"{path}: a figure of plotly is saved as .html; engine='matplotlib' has other formats"
                )
            self.figure.write_html(path)
            return
        known = self.figure.canvas.get_supported_filetypes()
        if path.suffix.lower().removeprefix(".") not in known:
            raise unknown(f"ending of {path.name!r}", path.suffix, [f".{one}" for one in known])
        self.figure.savefig(path, bbox_inches="tight")

    def __repr__(self) -> str:
        titles = ", ".join(chart.title for chart in self.charts)
        return f"Display({titles}; {len(self.frame):,} rows; engine={self.engine!r})"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """What a notebook shows: a picture, or what its viewer of plotly reads."""
        if self.engine == "plotly":
            return {"application/vnd.plotly.v1+json": json.loads(self.figure.to_json()), "text/plain": repr(self)}
        file = io.BytesIO()
        self.figure.savefig(file, format="png", bbox_inches="tight")
        return {"image/png": base64.b64encode(file.getvalue()).decode(), "text/plain": repr(self)}


def opened(chart: Figure) -> pd.DataFrame:
    """Return the rows that a chart shows when its page opens."""
    frame = chart.frame
    for column in chart.select:
        start = chart.start.get(column, frame[column].iloc[0])
        frame = frame[frame[column] == start]
    if chart.choose and chart.choose in chart.start:
        frame = frame[frame[chart.choose].isin(list(chart.start[chart.choose]))]
    return frame.reset_index(drop=True)


def _drawing(engine: str) -> ModuleType:
    if engine == "matplotlib":
        import_extra("matplotlib.figure", "notebook", "plotting")
        from haptera.report import drawn_by_matplotlib

        return drawn_by_matplotlib
    from haptera.report import drawn_by_plotly

    return drawn_by_plotly
