"""Record: what an export says about a study or an analysis, whichever program it is for.

Numbers are rows of the table. The name of a metric is `stream/shift/severity/measure`, then `seed_N` where there are
several, then `low` or `high` for the ends of its interval. Measures along a stream keep their steps, under
`stream/measure`. What has a row for each class or bin is left to `table.parquet`, and a note says so.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from haptera import __version__
from haptera.analysis import REPORT, RESULT, TABLE_FILE, Analysis, SavedAnalysis, numbers_table
from haptera.errors import HapteraError, check_keys
from haptera.export.metrics import Metric, metrics_of
from haptera.files.fingerprint import fingerprint
from haptera.files.json import plain
from haptera.measures.pairs import NONE
from haptera.report.paper.published import MEASURE as PUBLISHED
from haptera.run.folder import read_plan
from haptera.run.report import StudyReport
from haptera.run.results import results_of
from haptera.words import count

__all__ = ["Metric", "Outcome", "Record", "Run", "analysis_of", "artifacts", "record_of"]
log = logging.getLogger("haptera")

PRINTS = "fingerprints of streams"
"""A setting of studies that has an entry for each part of each stream; one for all of them tells the same."""


@dataclass(frozen=True)
class Run:
    """One model with one adapter, or a whole study or analysis.

    Attributes:
        name: what people call it.
        key: fingerprint of what it is about; a run with the same key takes its place.
        tags: short texts to search by.
        settings: what was asked, name -> number or text.
        metrics: the numbers.
        main: whether it stands for the whole, and carries the page and the table.
    """

    name: str
    key: str
    tags: Mapping[str, str]
    settings: Mapping[str, Any]
    metrics: Sequence[Metric]
    main: bool = False

    @property
    def digest(self) -> str:
        """Fingerprint of what it says; a run with the same need not be written again."""
        numbers = [(each.name, each.value, each.step) for each in self.metrics]
        return fingerprint(self.name, dict(self.tags), dict(self.settings), numbers)


@dataclass(frozen=True)
class Record:
    """What is exported.

    Attributes:
        title: name of the study, or title of the analysis.
        analysis: whose page and table go with it.
        runs: the one for the whole first.
        notes: what a reader must know, such as which cells have not been run yet.
    """

    title: str
    analysis: Analysis
    runs: Sequence[Run]
    notes: Sequence[str]


@dataclass
class Outcome:
    """What an export did.

    Attributes:
        place: where the runs are.
        written: names of the runs that were written.
        kept: names of those that were there already and say the same.
        replaced: names of those among the written ones that took the place of others.
        notes: those of the record.
    """

    place: str
    written: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    notes: Sequence[str] = ()

    def __str__(self) -> str:
        told = [f"{count(len(self.written), 'run')} written"]
        told += [f"{len(self.replaced)} of them in the place of others"] if self.replaced else []
        told += [f"{len(self.kept)} there already"] if self.kept else []
        return f"{', '.join(told)}: {self.place}"


def analysis_of(source: Any) -> Analysis:
    """Return the analysis behind a study, an analysis, or the folder of one of them."""
    if isinstance(source, Analysis):
        return source
    folder = Path(getattr(source, "out", source))
    if not folder.is_dir():
        raise HapteraError(f"there is no folder {folder}; that of a study or of an analysis was expected")
    plan = read_plan(folder)
    if plan is not None and plan["kind"] == "study":
        return results_of(folder).report()
    if not (folder / RESULT).is_file():
        raise HapteraError(
            f"{folder} is neither the folder of a study nor of an analysis: it has no plan and no {RESULT}"
        )
    return SavedAnalysis(folder)


def record_of(source: Any, measures: Sequence[str] = (), steps: bool = True) -> Record:
    """Return what an export says.

    Args:
        source: a study, an analysis, or the folder of one of them.
        measures: only these; all by default.
        steps: whether measures along a stream are among them, a number for each step.
    """
    analysis = analysis_of(source)
    table = _table(analysis)
    table = table[table["measure"] != PUBLISHED]
    check_keys("measure", measures, table["measure"].unique())
    kept = table["measure"].isin(measures or table["measure"].unique())
    if not steps and "step" in table:
        kept &= table["step"].isna()
    rows, notes = table[kept], [*analysis.notes, *(f"Not finished: {each}" for each in analysis.failures)]
    if rows["value"].notna().sum() == 0:
        raise HapteraError(f"{analysis.title} has no numbers to export" + "".join(f"; {note}" for note in notes))
    runs, left_out = _runs(analysis, rows, notes)
    if left_out:
        names = ", ".join(sorted(left_out))
        log.info("rows for each class or bin are in %s alone: %s", TABLE_FILE, names)
    for note in notes:
        log.warning("%s", note)
    return Record(analysis.title, analysis, runs, notes)


@contextmanager
def artifacts(record: Record) -> Iterator[list[Path]]:
    """Give the page, the table and the JSON of a record as files, as long as the block lasts."""
    if isinstance(record.analysis, SavedAnalysis):
        paths = [record.analysis.folder / name for name in (REPORT, TABLE_FILE, RESULT)]
        yield [path for path in paths if path.is_file()]
    else:
        with TemporaryDirectory(prefix="haptera-") as folder:
            yield list(record.analysis.save(folder).values())


def _table(analysis: Analysis) -> pd.DataFrame:
    """Return the table of an analysis; where it has no measures, the numbers of its findings."""
    try:
        table = analysis.table()
    except (OSError, ValueError) as error:
        raise HapteraError(f"cannot read the table of {analysis.title}: {error}") from error
    return table if {"measure", "value"} <= {*table} else numbers_table(analysis.findings())


def _kind(analysis: Analysis) -> str:
    return str(analysis.content["analysis"]) if isinstance(analysis, SavedAnalysis) else analysis.kind


def _runs(analysis: Analysis, rows: pd.DataFrame, notes: Sequence[str]) -> tuple[list[Run], set[str]]:
    """Return the runs, and the measures whose rows are in the table alone."""
    tags = {"haptera": __version__, "kind": _kind(analysis), "title": analysis.title}
    settings = flat(
        {name: fingerprint(value) if name == PRINTS else value for name, value in analysis.settings.items()}
    )
    more = {"notes": " ".join(notes)} if notes else {}
    if isinstance(analysis, StudyReport):
        return _study_runs(analysis, rows, tags, settings | _protocol(analysis.protocol), more)
    metrics, left_out = metrics_of(rows)
    key = fingerprint(tags["kind"], analysis.title, settings.get("model", ""))
    return [Run(analysis.title, key, tags | more, settings, metrics, main=True)], left_out


def _study_runs(
    study: StudyReport, rows: pd.DataFrame, tags: dict[str, str], settings: dict[str, Any], more: dict[str, str]
) -> tuple[list[Run], set[str]]:
    data = sorted({str(row.get("data", "")) for row in study.protocol.get("streams", [])})
    weights = study.settings.get("fingerprints of models", {})
    resets = {str(row["adapter"]): {"resets": row["resets"]} for row in study.protocol.get("adapters", [])}
    rows = rows.assign(adapter=rows["adapter"].replace("", NONE))
    metrics, left_out = metrics_of(rows[rows["model"] == ""], first=["adapter"])  # what is about all models
    key = fingerprint(study.title, "study", data)
    runs = [Run(study.title, key, tags | more, settings, metrics, main=True)]
    for (model, adapter), own in rows[rows["model"] != ""].groupby(["model", "adapter"], sort=False):
        names = {"model": str(model), "adapter": str(adapter)}
        metrics, others = metrics_of(own)
        left_out |= others
        key = fingerprint(study.title, *names.values(), weights.get(model, ""), data)
        asked = names | resets.get(str(adapter), {}) | settings
        runs.append(Run(f"{model} · {adapter}", key, tags | names, asked, metrics))
    return runs, left_out


def _protocol(protocol: Mapping[str, Any]) -> dict[str, Any]:
    streams = protocol.get("streams", [])
    several = len({row.get("seed") for row in streams}) > 1
    made: dict[str, Any] = {}
    for row in streams:
        name = f"{row['stream']} seed {row['seed']}" if several else str(row["stream"])
        made |= flat({key: value for key, value in row.items() if key != "stream"}, f"stream.{name}.")
    return made


def flat(settings: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Return nested settings on one level, their names joined by full stops; lists of plain values become texts.

    >>> flat({"seeds": [0, 1], "versions": {"torch": "2.6"}, "rows": [{"a": True}]})
    {'seeds': '0, 1', 'versions.torch': '2.6', 'rows.0.a': True}
    """
    made: dict[str, Any] = {}
    for key, value in plain(settings).items():
        if isinstance(value, list) and any(isinstance(each, list | dict) for each in value):
            value = {str(place): each for place, each in enumerate(value)}
        if isinstance(value, Mapping):
            made |= flat(value, f"{before}{key}.")
        else:
            made[f"{before}{key}"] = ", ".join(map(str, value)) if isinstance(value, list) else value
    return made
