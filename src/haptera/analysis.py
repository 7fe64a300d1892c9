"""Analysis: one question answered, in sentences with their numbers, in one table, and on one page.

A subclass writes `findings`, `table` and `sections`, and says its `title`, `settings` and `notes`; the base makes of
them a summary to print, one JSON object, and one HTML page, so that all three say the same numbers.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from haptera import __version__
from haptera.errors import HapteraError, unknown
from haptera.files.atomic import whole, writable_folder, write_text
from haptera.files.json import plain, read_json
from haptera.files.schema import TABLE, TEXT, check, list_of
from haptera.report.display import Display
from haptera.report.figure import Figure
from haptera.report.page import page_data, render, write_page
from haptera.report.section import Finding, Listing, Section

REPORT, TABLE_FILE, RESULT = "report.html", "table.parquet", "result.json"
LEAST_WIDTH = 12
SAVED = {"analysis": TEXT, "title": TEXT, "settings": TABLE, "notes": list_of(TEXT), "findings": list_of(TABLE)}
FINDING = {"word": TEXT, "question": TEXT, "sentence": TEXT, "numbers": list_of(TEXT)}


class Analysis(ABC):
    """A question and its answer.

    Attributes:
        kind: the name of the analysis, such as `trends`.
        definitions: word of the findings -> what it means, for the page.
        title: the heading of the page.
        settings: what was asked, nested mappings, lists and scalars.
        notes: what a reader must know before believing it.
        failures: sentences about parts that could not be done, while the others were.
        objections: sentences about what makes results meaningless; a command ends with 1 for them, as for failures.
        folder: where finished pieces of it are kept, if they are; a command that is not told `--out` writes there.
    """

    kind: ClassVar[str]
    definitions: ClassVar[Mapping[str, str]] = {}
    if TYPE_CHECKING:  # a subclass may have a property or an attribute of the name, which a property here would hide

        @property
        def title(self) -> str: ...  # noqa: D102
        @property
        def settings(self) -> Mapping[str, Any]: ...  # noqa: D102
        @property
        def notes(self) -> Sequence[str]: ...  # noqa: D102
        @property
        def failures(self) -> Sequence[str]: ...  # noqa: D102
        @property
        def objections(self) -> Sequence[str]: ...  # noqa: D102
        @property
        def folder(self) -> Path | None: ...  # noqa: D102
    else:
        notes = failures = objections = ()
        folder = None

    @abstractmethod
    def findings(self) -> Sequence[Finding]:
        """Return the answers; one with an empty word goes on where the one before it ended."""

    def table(self) -> pd.DataFrame:
        """Return every number of the findings, a row each; a subclass may add those behind them.

        Columns are `finding`, `measure` (the name of the number; inside another one, `outer.inner`), `value`, and
        `low` and `high` where there is a number of the same name with `_interval`.
        """
        return numbers_table(self.findings())

    @abstractmethod
    def sections(self) -> Sequence[Section | None]:
        """Return the figures and tables of the page; None stands for a section that would show nothing."""

    def figures(self) -> dict[str, Figure]:
        """Return the charts of the page by their titles."""
        return {figure.title: figure for section in self.sections() if section for figure in section.figures}

    def draw(self, title: str, engine: str = "matplotlib") -> Display:
        """Draw a figure of the page for a notebook.

        Args:
            title: as `figures()` lists it.
            engine: `matplotlib`, or `plotly`, which is interactive.
        """
        figures = self.figures()
        if title not in figures:
            raise unknown("figure", title, figures)
        return Display([figures[title]], engine)

    def headline(self) -> str:
        """Return what was looked at, such as `66 models, 50,000 examples`; the first line of the summary."""
        return ""

    def origin(self) -> str:
        """Return when and where the results were made, for the line below the title; empty where that is not known."""
        return ""

    def files(self) -> Mapping[str, Callable[[Path], None]]:
        """Name of a file of its own, such as `embedding.npz` -> what writes it to a path."""
        return {}

    def summary(self, notes: bool = True) -> str:
        """Return the findings as text, a line each, under the headline and after the notes."""
        findings = self.findings()
        width = max([LEAST_WIDTH, *(len(finding.word) + 2 for finding in findings)])
        lines = [self.headline()] if self.headline() else []
        lines += [f"{'note':<{width}}{note}" for note in self.notes if notes]
        return "\n".join([*lines, *(f"{finding.word:<{width}}{finding.sentence}" for finding in findings)])

    def json(self) -> dict[str, Any]:
        """Return everything that was found as JSON can hold it: the findings, and each of their numbers by its name."""
        findings = self.findings()
        content: dict[str, Any] = {
            "analysis": self.kind,
            "haptera": __version__,
            "title": self.title,
            "headline": self.headline(),
            "settings": dict(self.settings),
            "notes": list(self.notes),
            "failures": list(self.failures),
            "findings": [
                {name: getattr(finding, name) for name in FINDING} | {"numbers": list(finding.numbers)}
                for finding in findings
            ],
        }
        for finding in findings:
            if twice := content.keys() & finding.numbers.keys():
                raise ValueError(f"two findings have a number called {min(twice)!r}")
            content |= finding.numbers
        return plain(content)

    def page(self, *, served: bool = False) -> str:
        """Return the page, one HTML text that needs no network; or one whose scripts a server has beside it."""
        return render(
            [section for section in self.sections() if section is not None],
            _answers(self.headline(), self.findings()),
            title=self.title,
            origin=self.origin(),
            settings={"haptera": __version__, **self.settings},
            notes=self._page_notes(),
            definitions=self.definitions,
            served=served,
        )

    def page_data(self) -> str:
        """Return as JSON what may have changed since a page that is served was opened."""
        sections = [section for section in self.sections() if section is not None]
        return page_data(sections, _answers(self.headline(), self.findings()), self._page_notes())

    def _page_notes(self) -> list[str]:
        return [*self.notes, *(f"Not finished: {failure}" for failure in self.failures)]

    def save(self, out: Path | str) -> dict[str, Path]:
        """Write page, table, result and the analysis's own files into a folder, each whole; name -> path."""
        folder = writable_folder(Path(out))
        paths = {"report": folder / REPORT, "table": folder / TABLE_FILE, "result": folder / RESULT}
        for name, write in self.files().items():
            paths[Path(name).stem] = folder / name
            write(folder / name)
        self.write_table(paths["table"])
        write_text(paths["result"], json.dumps(self.json(), indent=1, allow_nan=False) + "\n")
        write_page(self.page(), paths["report"])
        return paths

    def write_table(self, path: Path) -> None:
        """Write the table as a parquet file, whole."""
        with whole(path) as file:
            self.table().to_parquet(file, index=False)

    def _repr_html_(self) -> str:
        """What a notebook shows; it would set sentences flush right by itself."""
        rows = pd.DataFrame([{"": finding.word, "finding": finding.sentence} for finding in self.findings()])
        plain = rows.to_html(index=False, border=0, justify="left")
        return plain.replace("<td>", '<td style="text-align: left; vertical-align: top; white-space: pre-wrap">')


class SavedAnalysis(Analysis):
    """An analysis that was saved, read again: its findings and its table; the figures are in its page.

    Args:
        folder: what `save`, or a command with `--out`, wrote.
    """

    kind = "saved"
    title: str
    settings: Mapping[str, Any]
    notes: Sequence[str]
    failures: Sequence[str]
    folder: Path

    def __init__(self, folder: Path | str) -> None:
        path = Path(folder) / RESULT
        if not path.is_file():
            raise HapteraError(f"{folder} is not the folder of an analysis: it has no {RESULT}")
        self.folder = Path(folder)
        self.content = check(read_json(path), SAVED, str(path))
        self.title, self.settings, self.notes = (self.content[name] for name in ("title", "settings", "notes"))
        self.failures = self.content.get("failures", [])
        self._findings = [check(each, FINDING, f"{path}: a finding") for each in self.content["findings"]]

    def headline(self) -> str:
        """Return what was looked at."""
        return str(self.content.get("headline", ""))

    def findings(self) -> list[Finding]:
        """Return the answers, with their numbers."""
        return [
            Finding(each["word"], each["question"], each["sentence"], self._numbers(each["numbers"]))
            for each in self._findings
        ]

    def _numbers(self, names: Sequence[str]) -> dict[str, Any]:
        return {name: self.content[name] for name in names if name in self.content}

    def json(self) -> dict[str, Any]:
        """Return what was saved."""
        return dict(self.content)

    def table(self) -> pd.DataFrame:
        """Return the table that was saved."""
        return pd.read_parquet(self.folder / TABLE_FILE)

    def sections(self) -> list[Section]:
        """Return the table alone."""
        return [Section("Table", tables=(Listing("All numbers", "As they were saved.", self.table()),))]


def numbers_table(findings: Sequence[Finding]) -> pd.DataFrame:
    """Return the numbers of findings as a frame.

    >>> numbers_table([Finding("fit", "", "", {"r2": 0.9, "r2_interval": [0.8, 1.0]})]).to_dict("records")
    [{'finding': 'fit', 'measure': 'r2', 'value': 0.9, 'low': 0.8, 'high': 1.0}]
    """
    rows, word = [], ""
    for finding in findings:
        word = finding.word or word
        for name, value in _flat(plain(finding.numbers), ""):
            rows.append({"finding": word, "measure": name, "value": value})
    frame = pd.DataFrame(rows, columns=["finding", "measure", "value", "low", "high"])
    ends = frame["measure"].str.extract(r"^(.*)_interval(.*)\.([01])$")
    known = ends[0].notna()
    for end, column in (("0", "low"), ("1", "high")):
        here = known & (ends[2] == end)
        values = dict(zip(ends[0][here] + ends[1][here], frame["value"][here], strict=True))
        frame[column] = frame["measure"].map(values)
    return frame[~known].astype({"value": float, "low": float, "high": float}).reset_index(drop=True)


def _flat(value: Any, name: str) -> Iterator[tuple[str, float]]:
    """Yield every number inside, with its name."""
    inside = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inside:
        yield from _flat(each, f"{name}.{key}" if name else str(key))
    if isinstance(value, int | float):
        yield name, float(value)


def _answers(headline: str, findings: Sequence[Finding]) -> list[Finding]:
    """Findings as the page shows them: those that go on where another ended are joined to it, the headline first."""
    joined: dict[str, list[str]] = {}
    shown: dict[str, Finding] = {}
    last = ""
    for place, finding in enumerate(findings):
        last = finding.question or last
        parts = joined.setdefault(last, [])
        parts += [headline] if headline and not place else []
        parts.append(finding.sentence)
        if last not in shown or not (shown[last].figure or shown[last].number):
            shown[last] = finding
    return [
        Finding("", question, _sentence("; ".join(parts)), number=shown[question].number, figure=shown[question].figure)
        for question, parts in joined.items()
    ]


def _sentence(text: str) -> str:
    """Return a text that ends with a full stop."""
    return text if text.endswith((".", "!", "?")) else f"{text}."
