"""Page: sections in one HTML file that needs no network, with plotly.js, style and script inside.

A content security policy in the page forbids every request, so that offline is not a promise but a rule. The frame
behind a figure is compact JSON inside a `<script>`: text is a dictionary and codes (or runs of codes, where rows are
sorted), floats have five significant digits, what is missing or infinite is null. Everything outside ASCII and every
`<`, `>` and `&` is escaped, so no name ends the script. Where that is much, it is compressed (gzip, as
base64), as is plotly.js; the page unpacks both by itself (`static/inflate.js`).

A page may also be served: then its scripts are files of the same server (`page_scripts`), no other script runs, and
`page_data` is what it asks for again and again to show what is new.
"""

import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment
from markupsafe import Markup

import haptera
from haptera.files.atomic import whole
from haptera.report.scripts import bundle_for, packed, page_scripts, plotly_packed
from haptera.report.section import Finding, Section

DIGITS = 5
LARGE = 200_000
"""Bytes of numbers from which on they are compressed."""
SHORT = 60
"""Rows of the longest table that is also there for readers without JavaScript."""
_REST = "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
POLICY = f"default-src 'none'; script-src 'unsafe-inline'; {_REST}"
SERVED_POLICY = f"default-src 'none'; script-src 'self'; connect-src 'self'; {_REST}"


def render(
    sections: Sequence[Section],
    answers: Sequence[Finding],
    *,
    title: str,
    settings: Mapping[str, object],
    origin: str = "",
    notes: Sequence[str] = (),
    definitions: Mapping[str, str] | None = None,
    served: bool = False,
) -> str:
    """Return the page as text; the same input gives the same text.

    Args:
        sections: what stands on it.
        answers: what it opens with.
        title: its heading.
        origin: when and where the results were made, below the heading.
        settings: shown at its end.
        notes: sentences below the answers.
        definitions: word -> what it means.
        served: have its scripts at their names (`page_scripts`) beside it, not inside.
    """
    static = files("haptera.report") / "static"
    # Markup: these are the package's own files and plotly's, the only text that is not escaped.
    scripts = {} if served else page_scripts("none")
    inside = {name: Markup(text) for name, text in scripts.items()}
    bundle = "none" if served else bundle_for(sections)
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((static / "page.html").read_text("utf-8"))
    parts = _parts(sections)
    for item in (item for part in parts for item in (*part["figures"], *part["tables"])):
        large = not served and len(item["data"]) > LARGE
        item |= {"type": "application/gzip", "data": packed(item["data"])} if large else {"type": "application/json"}
    return template.render(
        title=title,
        origin=origin,
        answers=answers,
        targets=_targets(parts),
        definitions=definitions or {},
        notes=notes,
        settings=settings,
        sections=parts,
        version=haptera.__version__,
        style=Markup((static / "page.css").read_text("utf-8")),
        served=served,
        policy=SERVED_POLICY if served else POLICY,
        script=inside.get("page.js"),
        theme=inside.get("early.js"),
        plotly=None if bundle == "none" else plotly_packed(bundle),
    )


def page_data(sections: Sequence[Section], answers: Sequence[Finding], notes: Sequence[str] = ()) -> str:
    """Return JSON of what may change on a page while it is open; `shape` tells pages apart that have other parts."""
    parts = _parts(sections)
    targets = _targets(parts)
    items = [item for part in parts for item in (*part["figures"], *part["tables"])]
    pictures = [len(part["section"].pictures) for part in parts]
    content = {
        "shape": [[part["id"] for part in parts], [item["id"] for item in items], pictures],
        "answers": [
            [answer.question, answer.sentence, answer.number, answer.figure, targets.get(answer.figure, "")]
            for answer in answers
        ],
        "notes": list(notes),
        "captions": {item["id"]: (item.get("figure") or item["table"]).caption for item in items},
    }
    head = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    data = ",".join(f"{json.dumps(item['id'])}:{item['data']}" for item in items)
    return f'{head[:-1]},"data":{{{data}}}}}'


def write_page(page: str, path: Path) -> None:
    """Write a page, whole or not at all; what is not text, such as half a character in a name, is replaced."""
    with whole(path) as file:
        file.write(page.encode("utf-8", errors="replace"))


def _parts(sections: Sequence[Section]) -> list[dict[str, Any]]:
    """Return what the template needs of each section, with names for links and data as JSON."""
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
                "heads": [table.labels.get(name, name) for name in table.frame.columns],
                "rows": _texts(table.frame) if len(table.frame) <= SHORT else [],
            }
            for place, table in enumerate(section.tables, 1)
        ]
        name = re.sub(r"\W+", "-", section.title.lower()).strip("-")
        parts.append({"id": f"{number}-{name}", "section": section, "figures": figures, "tables": tables})
    return parts


def _targets(parts: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return title -> id of what a finding may link to; of equal titles the first, figures before sections."""
    named = [(item["figure"].title, item["id"]) for part in parts for item in part["figures"]]
    named += [(item["table"].title, item["id"]) for part in parts for item in part["tables"]]
    named += [(part["section"].title, part["id"]) for part in parts]
    return dict(reversed(named))


def _texts(frame: pd.DataFrame) -> list[list[str]]:
    """Return the rows as text, with four digits and a dash for what is missing."""

    def text(value: Any) -> str:
        if pd.isna(value):
            return "–"
        if isinstance(value, float):
            return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"
        return str(value)

    return [[text(value) for value in row] for row in frame.itertuples(index=False, name=None)]


def rounded(values: np.ndarray) -> np.ndarray:
    """Return floats with five significant digits.

    >>> rounded(np.array([0.123456789, 1234567.0, 0.0])).tolist()
    [0.12346, 1234600.0, 0.0]
    """
    values = np.asarray(values, dtype=float)
    usable = np.isfinite(values) & (values != 0)
    places = DIGITS - 1 - np.floor(np.log10(np.abs(np.where(usable, values, 1.0))))
    # A power of ten is exact, its reciprocal is not: dividing by the power gives the number that prints short.
    up, down = 10.0 ** np.clip(places, 0, 300), 10.0 ** np.clip(-places, 0, 300)
    return np.where(usable, np.round(np.where(usable, values, 0.0) / down * up) / up * down, values)


def columns(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the frame as `{"rows", "columns": [{"name", "numbers"} or {"name", "values", "codes" or "runs"}]}`.

    Numbers that mostly repeat the one before are given once, with `lengths` that say how many follow each other.
    """
    return {"rows": len(frame), "columns": [_column(str(name), frame[name]) for name in frame.columns]}


def script(content: Mapping[str, Any]) -> Markup:
    """Return JSON for the inside of a script element."""
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    # Safe as markup because nothing is left that HTML could read as anything but text.
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _column(name: str, values: pd.Series) -> dict[str, Any]:
    kind = values.dtype
    if pd.api.types.is_bool_dtype(kind) or not pd.api.types.is_numeric_dtype(kind):
        return {"name": name, **_text(values)}
    known = values.notna().to_numpy()
    if pd.api.types.is_integer_dtype(kind):
        numbers = np.asarray(values.fillna(0))
    else:
        numbers = rounded(values.to_numpy(dtype=float, na_value=np.nan))
        known = np.isfinite(numbers)
        numbers = np.where(known, numbers, 0.0)
    encoded: dict[str, Any] = {"name": name}
    starts = _starts(numbers) if known.all() else np.arange(len(numbers))
    if len(starts) * 3 < len(numbers):
        encoded["lengths"] = np.diff(starts, append=len(numbers)).tolist()
        numbers, known = numbers[starts], known[starts]
    listed = numbers.tolist()
    whole = listed if known.all() else [v if ok else None for v, ok in zip(listed, known, strict=True)]
    return encoded | {"numbers": whole}


def _starts(values: np.ndarray) -> np.ndarray:
    """Return the first place of every run of equal values."""
    return np.flatnonzero(np.append(True, values[1:] != values[:-1])) if len(values) else np.arange(0)


def _text(values: pd.Series) -> dict[str, Any]:
    codes, found = pd.factorize(values)
    encoded: dict[str, Any] = {"values": [str(value) for value in found]}
    starts = _starts(codes)
    if len(starts) * 3 < len(codes):
        lengths = np.diff(np.append(starts, len(codes)))
        return encoded | {"runs": np.column_stack([codes[starts], lengths]).ravel().tolist()}
    return encoded | {"codes": codes.tolist()}
