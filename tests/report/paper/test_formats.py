"""The same table in four formats; names that mean something to a format stay names."""

import csv
import io
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from haptera.errors import HapteraError
from haptera.report.paper.formats import tex, write_tables
from haptera.report.paper.table import Cell, PaperTable, Row

NAN = float("nan")
HOSTILE = r"a_b & 50 % | <b> \x {y} $z$ #1 ~^ *i* `c` =1"
TABLE = PaperTable(
    stream="continual",
    model="net",
    of="error",
    shifts=("gaussian_noise", "shot_noise", "fog"),
    rows=(
        Row("none", (Cell(0.5, 0.01), Cell(0.6, 0.01), Cell(0.2, 0.01, 2), Cell(0.4333, 0.01, 2))),
        Row(HOSTILE, (Cell(0.4, 0.02, 1), None, Cell(0.1, 0.02, 1), Cell(0.25, 0.02, 1))),
        Row("Tent", (Cell(0.45), Cell(0.55), Cell(0.15), Cell(0.383)), source="Somebody & others 2020"),
    ),
    seeds=5,
    severities="severity 5",
    margin="It is ahead.",
    notes=(),
    digits=1,
)


def body(text):
    """The lines of a LaTeX tabular, as cells."""
    inside = text[text.index("\\midrule") : text.index("\\bottomrule")]
    return [re.split(r" (?<!\\)& ", line.removesuffix(r" \\")) for line in inside.splitlines() if line.endswith(r"\\")]


def test_latex_is_a_booktabs_table_whose_rows_have_as_many_cells_as_columns():
    text = write_tables([TABLE], "latex", "all")
    for command in ("\\toprule", "\\bottomrule", "\\begin{table}", "\\end{table}", "\\end{tabular}}"):
        assert text.count(command) == 1
    assert text.count("\\midrule") == 2  # below the head, and above what is published
    assert "\\begin{tabular}{@{}l*{4}{r}@{}}" in text
    none, hostile, published, tent = body(text)
    numbers = ("50.0", "60.0", "\\underline{20.0}", "\\underline{43.3}")
    assert none == ["none", *(f"{number}{{\\scriptsize$\\pm$1.0}}" for number in numbers)]
    assert hostile[1:] == ["\\textbf{40.0}{\\scriptsize$\\pm$2.0}", "--", *hostile[3:]]
    assert published == ["\\multicolumn{5}{@{}l}{\\emph{Published: Somebody \\& others 2020}}"]
    assert tent == ["Tent", "45.0", "55.0", "15.0", "38.3"]
    assert "& \\multicolumn{2}{c}{Noise} & \\multicolumn{1}{c}{Weather} & \\\\" in text
    assert "\\cmidrule(lr){2-3}\\cmidrule(lr){4-4}" in text


def test_latex_has_balanced_braces_and_no_bare_special_characters():
    text = write_tables([TABLE], "latex")
    plain = re.sub(r"\\[\\{}&%$#_]", "", text)
    assert plain.count("{") == plain.count("}")
    assert plain.count("\\begin{") == plain.count("\\end{")
    name = re.sub(r"\\text\w+\{\}|\\[{}&%$#_]|\{\*\}", "", tex(HOSTILE))
    assert not set(name) & set("\\{}&%$#_~^<>|")


@pytest.mark.long
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX is installed")
def test_latex_compiles(tmp_path):
    head = "\\documentclass{article}\n\\usepackage{booktabs}\n\\usepackage{graphicx}\n\\begin{document}\n"
    (tmp_path / "table.tex").write_text(f"{head}{write_tables([TABLE], 'latex', 'all')}\n\\end{{document}}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "table.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "table.pdf").stat().st_size > 0


def test_a_name_at_the_start_of_a_line_is_not_taken_for_an_option_of_the_line_before():
    assert tex("[1] *x*") == "{[}1{]} {*}x{*}"


def test_what_latex_cannot_print_is_named():
    assert tex("α–β ± é 雪") == "$\\alpha$--$\\beta$ $\\pm$ é \\texttt{U+96EA}"
    assert tex("two\nlines\x07") == "two lines"


def test_the_spread_stands_where_it_was_asked_for():
    assert write_tables([TABLE], "markdown", "none").count("±") == 1  # the caption's
    assert write_tables([TABLE], "markdown", "mean").count(" ±") == 1 + 2
    assert write_tables([TABLE], "markdown", "all").count(" ±") == 1 + 4 + 3


def test_markdown_has_a_pipe_table_in_which_names_stay_names():
    lines = write_tables([TABLE], "markdown").splitlines()
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines if line.startswith("|")]
    assert {len(row) for row in rows} == {5}
    assert [cell.strip() for cell in rows[0]] == ["adapter", "Gauss.", "Shot", "Fog", "mean"]
    assert rows[3][1:] == [" **40.0** ", " – ", " **10.0** ", " **25.0** ±2.0 "]
    assert re.sub(r"\\(.)", r"\1", rows[3][0]).strip() == HOSTILE
    assert rows[4][0].strip() == "*published:* Tent (Somebody & others 2020)"


def test_csv_can_be_read_back_and_runs_no_formula():
    formula = PaperTable(**vars(TABLE) | {"rows": (Row("=1+1", TABLE.rows[0].cells), *TABLE.rows)})
    lines = list(csv.DictReader(io.StringIO(write_tables([formula], "csv", "all"))))
    assert [line["adapter"] for line in lines] == ["'=1+1", "none", HOSTILE, "Tent"]
    assert (lines[2]["gaussian_noise"], lines[2]["shot_noise"]) == ("40.0", "")
    assert (lines[2]["mean"], lines[2]["mean sd"]) == ("25.0", "2.0")
    assert [line["published"] for line in lines] == ["", "", "", "Somebody & others 2020"]


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.rows, self.tags = [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


def test_html_is_well_formed_and_names_stay_names():
    reader = Reader()
    reader.feed(write_tables([TABLE], "html"))
    assert reader.open == []
    assert reader.rows[0] == ["", "Noise", "Weather", ""]
    assert reader.rows[3] == [HOSTILE, "40.0", "–", "10.0", "25.0 ±2.0"]
    assert reader.rows[4] == ["Published: Somebody & others 2020"]
    assert reader.tags.count("strong") == 3
    assert reader.tags.count("u") == 2
    assert "b" not in reader.tags


def test_unknown_formats_are_refused():
    with pytest.raises(HapteraError, match="unknown format 'latx'; did you mean 'latex'"):
        write_tables([TABLE], "latx")
    with pytest.raises(HapteraError, match="unknown spread 'al'; did you mean 'all'"):
        write_tables([TABLE], "latex", "al")
