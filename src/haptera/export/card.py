"""ModelCard: a section of a model card about how the model holds, and the results in its head, for the hub.

The section stands between two marks that name the study, and results carry its name, so a later export replaces both
and nothing else: every other line of the file, comments of the head among them, stays as it is. Its sentences are about
the one model, also where the study has several.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from haptera import __version__
from haptera.analysis import Analysis
from haptera.errors import HapteraError, WriteError, check_keys
from haptera.export import head
from haptera.export.hub import MEASURE, RESULTS, Score, eval_results, model_index, scores_of
from haptera.export.names import file_name
from haptera.export.record import analysis_of
from haptera.extras import import_extra
from haptera.files.atomic import check_plain_file, write_text
from haptera.measures.averages import SUFFIX
from haptera.measures.pairs import NONE
from haptera.report.paper.formats import escape_markdown, write_tables
from haptera.report.paper.published import MEASURE as PUBLISHED
from haptera.report.paper.table import Choice, paper_tables
from haptera.report.study import REPORTED
from haptera.report.study.cells import led_by
from haptera.run.report import StudyReport
from haptera.words import count

log = logging.getLogger("haptera")

TITLE = "Robustness"
TASK = "image-classification"


@dataclass(frozen=True)
class ModelCard:
    """What a card says.

    Attributes:
        name: of the study or analysis.
        model: whose card it is.
        section: Markdown, with its marks.
        results: entries of `model-index`; none for an analysis, and for data without labels.
        files: name of a file in `.eval_results` -> its entries.
    """

    name: str
    model: str
    section: str
    results: Sequence[Any] = ()
    files: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """A card of its own: head, heading and section."""
        return self.merge(f"# {escape_markdown(self.model or self.name)}\n")

    def merge(self, text: str) -> str:
        """Return the text of a card with the section and the results, in the place of those of an earlier export."""
        return head.with_results(_with_section(text, self.section), self.model, self.results, self.name)

    def save(self, path: Path | str) -> list[Path]:
        """Write a new card, and the evaluation results beside it; return the paths."""
        path = Path(path)
        if path.exists() and path.read_bytes() != self.text.encode():
            raise WriteError(f"{path} is there already; --update changes what haptera wrote in it, and nothing else")
        return self._write(path, self.text)

    def update(self, path: Path | str) -> list[Path]:
        """Write section and results into a card that is there, and the evaluation results beside it."""
        path = Path(path)
        check_plain_file(path)
        try:
            return self._write(path, self.merge(path.read_bytes().decode()))
        except UnicodeDecodeError as error:
            raise HapteraError(f"{path} is not text in UTF-8: {error}") from error

    def _write(self, path: Path, text: str) -> list[Path]:
        yaml = import_extra("yaml", "export", "export card")
        write_text(path, text)
        paths = [path]
        for name, entries in self.files.items():
            paths.append(path.parent / RESULTS / name)
            write_text(paths[-1], yaml.safe_dump(list(entries), sort_keys=False, allow_unicode=True))
        return paths


def model_card(
    source: Any,
    model: str | None = None,
    *,
    dataset: str | None = None,
    task: str = TASK,
    task_id: str = "{shift}",
    title: str = TITLE,
) -> ModelCard:
    """Return the card of a model.

    Args:
        source: a study, an analysis, or the folder of one of them.
        model: which one; need not be said where the study has one.
        dataset: ORG/NAME of the data set on the hub; if it is a benchmark there, `.eval_results` are for it.
        task: as the hub calls it.
        task_id: a task of the benchmark; `{shift}` in it stands for the name of a shift.
        title: heading of the section.
    """
    analysis = analysis_of(source)
    if not isinstance(analysis, StudyReport):
        name = str(analysis.settings.get("model", "")) if model is None else model
        return ModelCard(analysis.title, name, _section(analysis, title, []))
    table = analysis.table()
    names = [str(name) for name in table["model"].unique() if name]
    if model is None and len(names) != 1:
        raise HapteraError(
            f"{analysis.title} has {count(len(names), 'model')}, and a card is about one; say which with --model"
            + (f": {', '.join(names)}" if names else "; no cell is finished")
        )
    chosen = model or names[0]
    check_keys("model", [chosen], names)
    study, order = _alone(analysis, chosen), _adapters(analysis)
    scores = sorted(scores_of(study.table(), chosen), key=lambda score: order.index(score.adapter))
    if not scores:
        log.warning("%s has no accuracy, so the card has no results for the hub", analysis.title)
    for note in analysis.notes:
        log.warning("%s", note)
    data = {str(row["stream"]): str(row.get("data", "")) for row in analysis.protocol.get("streams", [])}
    results = model_index(scores, data, analysis.title, task, dataset or "")
    files = eval_results(scores, dataset, task_id) if dataset else {}
    return ModelCard(analysis.title, chosen, _section(study, title, scores, chosen), results, files)


def _alone(study: StudyReport, model: str) -> StudyReport:
    """Return the report of one model of a study; what compares it with others is not part of it."""
    table = study.table()
    compared = [name + end for name in REPORTED for end in ("", SUFFIX)]
    rows = table[(table["model"] == model) & ~table["measure"].isin([*compared, PUBLISHED])]
    alone = StudyReport(rows, study.title, study.settings, study.notes)
    alone.protocol = study.protocol
    return alone


def _section(analysis: Analysis, title: str, scores: Sequence[Score], model: str = "") -> str:
    begin, end = marks(analysis.title)
    lines = [begin, f"## {escape_markdown(title)}", ""]
    lines += [f"- {escape_markdown(finding.sentence)}" for finding in analysis.findings()]
    told = [*analysis.notes, *(f"Not finished: {failure}" for failure in analysis.failures)]
    lines += ["", *(f"> **Note:** {escape_markdown(note)}  " for note in told)] if told else []
    if scores and isinstance(analysis, StudyReport):
        lines += ["", _tables(analysis, model).rstrip("\n")]
    if isinstance(analysis, StudyReport) and (streams := analysis.protocol.get("streams")):
        lines += ["", "How it was measured:", ""]
        lines += list(dict.fromkeys(f"- {_stream(row)}" for row in streams))
    lines += ["", f"Measured with haptera {__version__}. Intervals are at 95 %.", end]
    return "\n".join(lines) + "\n"


def _adapters(study: StudyReport) -> list[str]:
    """Return adapters in the order of the study, the unadapted model first."""
    own = [str(row["adapter"]) for row in study.protocol.get("adapters", [])]
    return led_by([NONE, *own], study.table()["adapter"].replace("", NONE))


def _tables(study: StudyReport, model: str) -> str:
    try:
        return write_tables(
            paper_tables(study.table(), Choice(MEASURE, models=[model], published=False), _adapters(study)), "markdown"
        )
    except HapteraError:  # no shift, and so no table of shifts
        return ""


def _stream(row: Mapping[str, Any]) -> str:
    facts = [f"{key} {row[key]}" for key in ("data", "images", "batch size", "shifts") if row.get(key)]
    return escape_markdown(f"{row['stream']}: {', '.join(facts)}")


def marks(name: str) -> tuple[str, str]:
    """Return the comments before and after the section of a study."""
    short = file_name(name)
    return (
        f"<!-- haptera {short}: what stands here is replaced by `haptera export card` -->",
        f"<!-- /haptera {short} -->",
    )


def _with_section(text: str, section: str) -> str:
    """Return a text with a section, in the place of an earlier one of the same study or at the end."""
    line = "\r\n" if "\r\n" in text else "\n"
    begin, end = section.splitlines()[0], section.splitlines()[-1]
    section = section.replace("\n", line)
    start = text.find(begin)
    stop = text.find(end, start)
    if start < 0:
        gap = "" if not text else line if text.endswith(line) else line * 2
        return f"{text}{gap}{section}"
    if stop < 0:
        raise HapteraError(f"the card has the line {begin!r} and no {end!r} after it; add it, or remove the line")
    return text[:start] + section.removesuffix(line) + text[stop + len(end) :]
