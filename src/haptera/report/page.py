"""Page: sections in one HTML file that needs no network, with plotly.js, style and script inside.

A content security policy in the page forbids every request, so that offline is not a promise but a rule.
"""

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

import haptera
from haptera.errors import HapteraError
from haptera.files.atomic import whole
from haptera.report.encode import columns, script
from haptera.report.section import Finding, Section

SCRIPTS = ("frame.js", "grid.js", "theme.js", "controls.js", "chart.js", "layers.js", "graph.js", "cloud.js", "page.js")


def render(
    sections: Sequence[Section],
    answers: Sequence[Finding],
    *,
    title: str,
    settings: Mapping[str, object],
    notes: Sequence[str] = (),
    definitions: Mapping[str, str] | None = None,
) -> str:
    """The page as text; the same input gives the same text."""
    static = files("haptera.report") / "static"
    # Markup: these are the package's own files and plotly's, the only text that is not escaped.
    scripts = "\n".join((static / name).read_text("utf-8") for name in SCRIPTS)
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((static / "page.html").read_text("utf-8"))
    return template.render(
        title=title,
        answers=answers,
        definitions=definitions or {},
        notes=notes,
        settings=settings,
        sections=_parts(sections),
        version=haptera.__version__,
        style=Markup((static / "page.css").read_text("utf-8")),
        script=Markup(f"(() => {{\n'use strict';\n{scripts}\n}})();"),
        theme=Markup((static / "early.js").read_text("utf-8")),
        plotly=Markup(plotly_script()) if any(section.figures for section in sections) else "",
    )


def plotly_script() -> str:
    """plotly.js out of the installed plotly, which is found but not imported, for that costs a second."""
    found = find_spec("plotly")
    folders = found.submodule_search_locations if found else None
    path = Path(folders[0], "package_data", "plotly.min.js") if folders else None
    if path is None or not path.is_file():
        raise HapteraError("a report needs plotly.min.js, which comes with the package plotly: pip install plotly")
    # Nothing in the script may end the element it stands in.
    return re.sub(r"</(?=script)", r"<\\/", path.read_text("utf-8"), flags=re.IGNORECASE)


def write_page(page: str, path: Path) -> None:
    """Write a page, whole or not at all; what is not text, such as half a character in a name, is replaced."""
    with whole(path) as file:
        file.write(page.encode("utf-8", errors="replace"))


def _parts(sections: Sequence[Section]) -> list[dict[str, Any]]:
    """What the template needs of each section, with names for links and data as JSON."""
    parts = []
    for number, section in enumerate(sections, 1):
        figures = [
            {
                "id": f"figure-{number}-{place}",
                "figure": figure,
                "data": script({"encoding": figure.encoding(), "title": figure.title, "data": columns(figure.frame)}),
            }
            for place, figure in enumerate(section.figures, 1)
        ]
        tables = [
            {
                "id": f"table-{number}-{place}",
                "table": table,
                "data": script({"labels": dict(table.labels), "title": table.title, "data": columns(table.frame)}),
            }
            for place, table in enumerate(section.tables, 1)
        ]
        name = re.sub(r"\W+", "-", section.title.lower()).strip("-")
        parts.append({"id": f"{number}-{name}", "section": section, "figures": figures, "tables": tables})
    return parts
