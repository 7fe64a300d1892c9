"""Scripts of a page: our own, and of plotly.js what its figures need.

That is the bundle for charts in a plane, which this package has, or, where a page shows points in space, all of
plotly.js, which the package plotly has; a page without a figure needs none. A page that is a file carries it
compressed, 0.7 or 1.9 MB instead of 1.5 or 4.8, and unpacks it before anything is drawn (`static/inflate.js`); one that
is served has it beside it.
"""

import base64
import gzip
from collections.abc import Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from haptera.errors import HapteraError
from haptera.report.section import Section

Bundle = Literal["none", "plane", "space"]
"""What of plotly.js a page needs: nothing, charts in a plane, or points in space as well."""
PLANE = files("haptera.report") / "static" / "plotly-cartesian.min.js.gz"
SCRIPTS = (
    "inflate.js", "frame.js", "grid.js", "theme.js", "controls.js", "legend.js", "chart.js", "labels.js", "lines.js",
    "table.js", "layers.js", "graph.js", "cloud.js", "page.js",
)  # fmt: skip


def page_scripts(bundle: Bundle = "plane", *, served: bool = False) -> dict[str, str]:
    """Return name -> script of a page, in the order in which they run.

    Args:
        bundle: what of plotly.js comes with them.
        served: with the one that asks for new data.
    """
    static = files("haptera.report") / "static"
    names = (*SCRIPTS, "live.js") if served else SCRIPTS
    scripts = "\n".join((static / name).read_text("utf-8") for name in names)
    own = {"early.js": (static / "early.js").read_text("utf-8")}
    own |= {} if bundle == "none" else {"plotly.js": plotly_script(bundle)}
    return own | {"page.js": f"(() => {{\n'use strict';\n{scripts}\n}})();"}


def bundle_for(sections: Sequence[Section]) -> Bundle:
    """Return what of plotly.js the figures of a page need."""
    kinds = {figure.kind for section in sections for figure in section.figures}
    return "space" if "cloud" in kinds else "plane" if kinds - {"table"} else "none"


def plotly_script(bundle: Bundle = "plane") -> str:
    """Return plotly.js: our copy of its bundle for the plane, or all of it out of the installed package."""
    return _whole_plotly() if bundle == "space" else gzip.decompress(PLANE.read_bytes()).decode("utf-8")


def plotly_packed(bundle: Bundle = "plane") -> str:
    """Return plotly.js as a page carries it."""
    return packed(_whole_plotly()) if bundle == "space" else base64.b64encode(PLANE.read_bytes()).decode("ascii")


def packed(text: str) -> str:
    """Return a text compressed: gzip, as base64, which ends no element and has no time in it."""
    return base64.b64encode(gzip.compress(text.encode("utf-8"), mtime=0)).decode("ascii")


def _whole_plotly() -> str:
    """Return the script of the installed plotly, which is found but not imported, for that costs a second."""
    found = find_spec("plotly")
    folders = found.submodule_search_locations if found else None
    path = Path(folders[0], "package_data", "plotly.min.js") if folders else None
    if path is None or not path.is_file():
        raise HapteraError(
            "points in space need plotly.min.js, which comes with the package plotly: pip install plotly"
        )
    return path.read_text("utf-8")
