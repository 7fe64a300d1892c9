"""Identification: rows of tables 6.1 and 6.2, each with several seeds; what is finished is not run again.

    haptera.identify(process="box/uniform/laplace=0.05", model="box/laplace", training=Training(steps=2000))
    haptera.identify("examples/identify_small.toml", out="tables")
    identify_rows([Row("box/uniform/laplace=0.05", "box/laplace", seeds=(0, 1))], out="tables")

Source: thesis tables 6.1 and 6.2, and figure 6.2, whose rows are processes with other marginals.
With a folder, a row with a seed is kept there as soon as it ends, by a fingerprint of all that decides the result.
Cost: that of `invert` for each row and seed.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from haptera.analyses.identify.findings import DEFINITIONS, row_findings, table_findings
from haptera.analyses.identify.page import sections
from haptera.analyses.identify.row import FITS, MEASURES, WHAT, Row, read_rows, run_row
from haptera.analysis import Analysis, numbers_table
from haptera.errors import HapteraError, Unfinished
from haptera.files.json import plain, read_json
from haptera.files.schema import check
from haptera.models.source import choose_device
from haptera.report.section import Finding, Section
from haptera.run.ledger import Piece
from haptera.run.tasks import Task, finish

ONCE = ("dimensions", "steps", "batch_size", "learning_rate", "promised")
MEASURED = ("start", "condition", "size", "mass_from_uniform", *FITS, "seconds")


@dataclass(frozen=True, eq=False)
class Identification(Analysis):
    """How far contrastive learning finds latents that are known.

    Attributes:
        title: the heading of the page.
        rows: what was asked.
        records: of each row and seed, in order: its settings and all scores, as `run_row` returns them.
        failures: sentences about rows that could not be finished.
        single: whether it is about one row with one seed, of which everything is said.
        folder: where finished rows are kept, if they are.
    """

    kind: ClassVar[str] = "identify"
    definitions: ClassVar[Mapping[str, str]] = DEFINITIONS
    title: str
    rows: Sequence[Row]
    records: list[dict[str, Any]]
    failures: Sequence[str] = ()
    single: bool = False
    folder: Path | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """Return the rows as they were asked for."""
        return {"rows": [asdict(row) for row in self.rows]}

    def findings(self) -> list[Finding]:
        """Return all scores of one row, or those of several and which of them find the latents, or their axes."""
        if self.single:
            return row_findings(self.records[0])
        return table_findings(self.scores(), self.records)

    def sections(self) -> list[Section]:
        """Return scores, marginals where they differ, and losses."""
        return sections(self.scores(), self.losses())

    def table(self) -> pd.DataFrame:
        """Return the scores, and after them the numbers of the findings."""
        found = [replace(one, numbers={**one.numbers, "rows": None}) for one in self.findings()]
        return pd.concat([self.scores(), numbers_table(found)], ignore_index=True)

    def scores(self) -> pd.DataFrame:
        """Return a row for each score: `title`, `process`, `model`, `what`, `measure`, `seed`, `value`, `low`, `high`.

        After these come `n`, what random rotations have, and what there is once in a run, such as `goodness_of_fit`.
        """
        found = []
        for record in self.records:
            names = {key: record[key] for key in ("title", "process", "model")}
            run = {key: record[key] for key in (*ONCE, *MEASURED)}
            for what in (what for what in WHAT if what in record):
                part = record[what]
                null = {key: part[key] for key in ("rotation_mcc", "rotation_high")}
                for measure in MEASURES:
                    low, high = part[f"{measure}_interval"]
                    score = {"value": part[measure], "low": low, "high": high, "n": part["n"]}
                    one = {"what": what, "measure": measure, "seed": record["seed"]}
                    found.append(names | one | score | null | run)
        return pd.DataFrame(found).astype(dict.fromkeys(MEASURED, float))  # null becomes NaN

    def losses(self) -> pd.DataFrame:
        """Return `title`, `seed`, `step`, `loss`: minus that of a constant embedding, means over steps up to there."""
        frames = [
            pd.DataFrame({"title": record["title"], "seed": record["seed"], **record["loss"]})
            for record in self.records
        ]
        return pd.concat(frames, ignore_index=True)[["title", "seed", "step", "loss"]]


class RowTask(Task[dict[str, Any]]):
    """A row with one seed, to be run."""

    def __init__(self, row: Row, seed: int, progress: bool | None = False) -> None:
        self.row, self.seed, self._progress = row, seed, progress
        key = row.key(seed)
        self.piece = Piece(key, f"rows/{key}.json", f"{row.name}, seed {seed}")
        # Latents go through encoders with layers as wide as there are dimensions.
        self.work = float(row.steps * row.batch_size * (3 + row.supervised) * row.dimensions**2)

    def check(self) -> None:
        """Say so if its device is not there."""
        choose_device(self.row.device)

    def make(self) -> dict[str, Any]:
        """Run it."""
        return plain(run_row(self.row, self.seed, progress=self._progress))

    def write(self, result: dict[str, Any], path: Path) -> None:
        """Write what was found as JSON."""
        path.write_text(json.dumps(result, allow_nan=False), "utf-8")

    def read(self, path: Path) -> dict[str, Any]:
        """Read it again; the row may have another title by now."""
        return check(read_json(path), {}, str(path))


def identify_rows(
    rows: Path | str | Row | Sequence[Row], *, out: Path | str | None = None, progress: bool | None = False
) -> Identification:
    """Run rows, each with its seeds; one that fails does not stop the others.

    Args:
        rows: a file in TOML, a row, or several.
        out: a folder for finished rows, which are not run again.
        progress: show a bar; None does on a terminal.
    """
    single = isinstance(rows, Row) and len(rows.seeds) == 1
    if isinstance(rows, str | Path):
        name, rows = Path(rows).stem, read_rows(Path(rows))
    else:
        rows = [rows] if isinstance(rows, Row) else list(rows)
        name = rows[0].name if len(rows) == 1 else f"{len(rows)} rows"
    _check(rows)
    tasks = [RowTask(row, seed, progress if single else False) for row in rows for seed in row.seeds]
    outcome = finish(
        tasks,
        out,
        "identification",
        noun="row",
        tolerate=() if single else (HapteraError, RuntimeError),  # a loss that runs away, a GPU that is too small
        progress=False if single else progress,
    )
    records = [found | {"title": task.row.name} for task, found in zip(tasks, outcome.results, strict=True) if found]
    if not records:
        raise Unfinished(f"no row could be finished; {outcome.failures[0]}")
    where = None if out is None else Path(out)
    return Identification(f"Identifiability: {name}", rows, records, outcome.failures, single, where)


def _check(rows: Sequence[Row]) -> None:
    if not rows:
        raise HapteraError("rows is empty; at least one was expected")
    names = [row.name for row in rows]
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        raise HapteraError(f"two rows are called {twice[0]!r}; give one of them another title")
