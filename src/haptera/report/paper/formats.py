"""Formats of a paper's table: LaTeX with booktabs, Markdown, CSV and HTML, with names escaped as each of them needs."""

import csv
import html
import io
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from math import isnan

from haptera.errors import check_keys
from haptera.families import FAMILY
from haptera.report.paper.table import MEAN, Cell, PaperTable, Row

SHORT = {
    "gaussian_noise": "Gauss.", "shot_noise": "Shot", "impulse_noise": "Impul.", "defocus_blur": "Defoc.",
    "glass_blur": "Glass", "motion_blur": "Motion", "zoom_blur": "Zoom", "snow": "Snow", "frost": "Frost", "fog": "Fog",
    "brightness": "Brit.", "contrast": "Contr.", "elastic_transform": "Elast.", "pixelate": "Pixel",
    "jpeg_compression": "JPEG", "speckle_noise": "Speck.", "gaussian_blur": "G. blur", "spatter": "Spat.",
    "saturate": "Satur.",
}  # fmt: skip
"""What papers call the corruptions at the head of a narrow column."""
SPREADS = ("mean", "all", "none")
TEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': "''", "[": "{[}", "]": "{]}", "*": "{*}", "±": r"$\pm$",
    "·": r"\textperiodcentered{}", "–": "--", "—": "---", "−": "$-$", "×": r"$\times$",
    "“": "``", "”": "''", "’": "'", "‘": "`", "…": r"\ldots{}",
}  # fmt: skip
MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~])")
FORMULA = re.compile(r"^[=+\-@\t\r]")


def heading(shift: str) -> str:
    """Return what stands at the head of a column."""
    return SHORT.get(shift, shift.replace("_", " "))


def families(shifts: Sequence[str]) -> list[tuple[str, int]]:
    """Return the families of neighbouring columns and how many columns each has.

    Nothing where a shift has no family, or where every column would be alone.

    >>> families(["shot_noise", "impulse_noise", "fog"]), families(["shot_noise", "fog"]), families(["fog", "mine"])
    ([('Noise', 2), ('Weather', 1)], [], [])
    """
    if any(shift not in FAMILY for shift in shifts):
        return []
    groups = [(family.capitalize(), len(list(own))) for family, own in groupby(shifts, FAMILY.__getitem__)]
    return groups if len(groups) < len(shifts) else []


def write_tables(tables: Sequence[PaperTable], form: str, spread: str = "mean") -> str:
    """Return tables as text, one after the other; in CSV they are one table.

    Args:
        tables: what is written.
        form: `latex`, `markdown`, `csv` or `html`.
        spread: where the standard deviation over seeds stands: with the `mean` over shifts, with `all` numbers, or with
            `none`.
    """
    check_format(form, spread)
    return FORMATS[form](tables, spread)


def check_format(form: str, spread: str = "mean") -> None:
    """Refuse a format or a spread that there is not."""
    check_keys("format", [form], FORMATS)
    check_keys("spread", [spread], SPREADS)


def latex(tables: Sequence[PaperTable], spread: str) -> str:
    """Return `table` environments that need the packages booktabs and graphicx, and are at most as wide as a line."""
    return "% needs \\usepackage{booktabs} and \\usepackage{graphicx}\n" + "\n".join(
        _latex(table, spread) for table in tables
    )


def _latex(table: PaperTable, spread: str) -> str:
    count = len(table.shifts)
    groups = families(table.shifts)
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{tex(table.caption)}}}",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{@{{}}l*{{{count + 1}}}{{r}}@{{}}}}",
        r"\toprule",
    ]
    if groups:
        heads = [rf"\multicolumn{{{width}}}{{c}}{{{tex(name)}}}" for name, width in groups]
        lines.append(" & ".join(["", *heads, ""]).strip() + r" \\")
        ends = [2 + sum(width for _, width in groups[:place]) for place in range(len(groups))]
        rules = [rf"\cmidrule(lr){{{at}-{at + width - 1}}}" for at, (_, width) in zip(ends, groups, strict=True)]
        lines.append("".join(rules))
    lines.append(" & ".join(["Adapter", *(tex(heading(shift)) for shift in table.shifts), "Mean"]) + r" \\")
    lines.append(r"\midrule")
    lines += [" & ".join([tex(row.name), *_texts(table, row, spread, _tex_cell)]) + r" \\" for row in _measured(table)]
    for source, rows in _printed(table):
        lines += [r"\midrule", rf"\multicolumn{{{count + 2}}}{{@{{}}l}}{{\emph{{Published: {tex(source)}}}}} \\"]
        lines += [" & ".join([tex(row.name), *_texts(table, row, spread, _tex_cell)]) + r" \\" for row in rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}}", r"\end{table}", ""])


def _tex_cell(text: str, sd: str, rank: int) -> str:
    text = {1: rf"\textbf{{{text}}}", 2: rf"\underline{{{text}}}"}.get(rank, text).replace("-", "$-$")
    return text + (rf"{{\scriptsize$\pm${sd}}}" if sd else "")


def tex(text: str) -> str:
    r"""Return a text that LaTeX prints as it is; what pdfLaTeX cannot print is named by its number.

    >>> print(tex("batchnorm:prior=0 & 50 % of α_1"))
    batchnorm:prior=0 \& 50 \% of $\alpha$\_1
    """
    return "".join(TEX.get(letter) or _tex_letter(letter) for letter in " ".join(text.split()))


def _tex_letter(letter: str) -> str:
    if letter.isascii() or "\u00c0" <= letter <= "\u017f":
        return letter if letter.isprintable() else ""
    name = unicodedata.name(letter, "")
    if match := re.fullmatch(r"GREEK (SMALL|CAPITAL) LETTER (\w+)", name):
        word = match[2].lower().replace("lamda", "lambda")
        if match[1] == "SMALL" and word not in ("omicron", "final"):
            return rf"$\{word}$"
    return rf"\texttt{{U+{ord(letter):04X}}}"


def markdown(tables: Sequence[PaperTable], spread: str) -> str:
    """Return pipe tables, each after its caption."""
    return "\n".join(_markdown(table, spread) for table in tables)


def _markdown(table: PaperTable, spread: str) -> str:
    heads = ["adapter", *(escape_markdown(heading(shift)) for shift in table.shifts), MEAN]
    lines = [escape_markdown(table.caption), "", _pipes(heads), _pipes([":--", *["--:"] * (len(heads) - 1)])]
    lines += [
        _pipes([escape_markdown(row.name), *_texts(table, row, spread, _markdown_cell)]) for row in _measured(table)
    ]
    for source, rows in _printed(table):
        for row in rows:
            name = f"*published:* {escape_markdown(row.name)} ({escape_markdown(source)})"
            lines.append(_pipes([name, *_texts(table, row, spread, _markdown_cell)]))
    return "\n".join([*lines, ""])


def _pipes(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(text: str, sd: str, rank: int) -> str:
    return {1: f"**{text}**", 2: f"<u>{text}</u>"}.get(rank, text) + (f" ±{sd}" if sd else "")


def escape_markdown(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    return MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def write_csv(tables: Sequence[PaperTable], spread: str) -> str:
    """Return one table of all: a line for each stream, model and adapter; `published` is the source of such a line.

    Numbers are those that the other formats print, and `sd` of the mean stands beside it; with `all`, every column has
    one. Text that a spreadsheet would run as a formula gets an apostrophe.
    """
    shifts = list(dict.fromkeys(shift for table in tables for shift in table.shifts))
    names = [*shifts, MEAN]
    heads = ["stream", "model", "measure", "adapter", "published"]
    for name in names:
        heads += [name, f"{name} sd"] if spread == "all" or (spread == MEAN and name == MEAN) else [name]
    out = io.StringIO()
    writer = csv.DictWriter(out, heads, lineterminator="\r\n")
    writer.writeheader()
    for table in tables:
        for row in table.rows:
            own = dict(zip((*table.shifts, MEAN), row.cells, strict=True))
            line = {"stream": table.stream, "model": table.model, "measure": table.of, "adapter": row.name}
            line |= {"published": row.source}
            line = {key: f"'{text}" if FORMULA.match(text) else text for key, text in line.items()}
            for name, cell in own.items():
                line[name] = "" if cell is None else table.number(cell.value)
                line[f"{name} sd"] = "" if cell is None or isnan(cell.sd) else table.number(cell.sd)
            writer.writerow({key: line.get(key, "") for key in heads})
    return out.getvalue()


def write_html(tables: Sequence[PaperTable], spread: str) -> str:
    """Return `table` elements without any style."""
    return "\n".join(_html(table, spread) for table in tables)


def _html(table: PaperTable, spread: str) -> str:
    lines = ["<table>", f"<caption>{html.escape(table.caption)}</caption>", "<thead>"]
    if groups := families(table.shifts):
        cells = "".join(f'<th colspan="{width}" scope="colgroup">{name}</th>' for name, width in groups)
        lines.append(f"<tr><td></td>{cells}<td></td></tr>")
    heads = ["Adapter", *(html.escape(heading(shift)) for shift in table.shifts), "Mean"]
    lines += ["<tr>" + "".join(f'<th scope="col">{head}</th>' for head in heads) + "</tr>", "</thead>", "<tbody>"]
    lines += [_html_row(table, row, spread) for row in _measured(table)]
    for source, rows in _printed(table):
        label = f'<tr><th colspan="{len(heads)}" scope="rowgroup">Published: {html.escape(source)}</th></tr>'
        lines += ["</tbody>", "<tbody>", label, *(_html_row(table, row, spread) for row in rows)]
    return "\n".join([*lines, "</tbody>", "</table>", ""])


def _html_row(table: PaperTable, row: Row, spread: str) -> str:
    cells = "".join(f"<td>{text}</td>" for text in _texts(table, row, spread, _html_cell))
    return f'<tr><th scope="row">{html.escape(row.name)}</th>{cells}</tr>'


def _html_cell(text: str, sd: str, rank: int) -> str:
    text = {1: f"<strong>{text}</strong>", 2: f"<u>{text}</u>"}.get(rank, text)
    return text + (f" <small>±{sd}</small>" if sd else "")


def _measured(table: PaperTable) -> list[Row]:
    return [row for row in table.rows if not row.source]


def _printed(table: PaperTable) -> list[tuple[str, list[Row]]]:
    """Return published rows by their source."""
    return [(source, list(rows)) for source, rows in groupby(table.rows, lambda row: row.source) if source]


def _texts(table: PaperTable, row: Row, spread: str, write: Callable[[str, str, int], str]) -> list[str]:
    """Return the numbers of a row as a format writes them."""
    last = len(row.cells) - 1
    return [
        _text(table, cell, spread == "all" or (spread == "mean" and place == last), write)
        for place, cell in enumerate(row.cells)
    ]


def _text(table: PaperTable, cell: Cell | None, with_sd: bool, write: Callable[[str, str, int], str]) -> str:
    if cell is None:
        return "–" if write is not _tex_cell else "--"
    return write(table.number(cell.value), table.number(cell.sd) if with_sd and not isnan(cell.sd) else "", cell.rank)


FORMATS: Mapping[str, Callable[[Sequence[PaperTable], str], str]] = {
    "latex": latex,
    "markdown": markdown,
    "csv": write_csv,
    "html": write_html,
}
