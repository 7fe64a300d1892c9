"""Tables of `identify`: many rows, each with several seeds, from one file; what is finished is not run again.

Source: thesis tables 6.1 and 6.2, and figure 6.2, whose rows are processes with other marginals. A file in TOML has
`[[rows]]`, each with process and model; everything else, at the top of the file or in a row, which then counts, is
optional:

    steps = 2000
    seeds = [0, 1, 2]
    [[rows]]
    process = "box/uniform/laplace=0.05"
    model = "box/laplace"
    supervised = true

A row with a seed is stored as soon as it ends, in `rows/KEY.json` of the folder, the key a fingerprint of all that
decides the result; the device and the title do not.
Cost: that of `identify` for each row and seed.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from haptera.analyses.identify.row import MEASURES, WHAT, Row, run_row
from haptera.contrastive.building import chosen_device
from haptera.errors import HapteraError, Unfinished, check_keys
from haptera.files.atomic import writable_folder, write_text
from haptera.files.json import plain, read_json
from haptera.files.schema import check
from haptera.progress import Progress
from haptera.run.settings import read_study

SETTINGS = {
    "dimensions": int,
    "steps": int,
    "batch_size": int,
    "learning_rate": float,
    "supervised": bool,
    "start": float,
    "fixed": bool,
    "device": str,
    "seeds": list,
}
FITS = ("goodness_of_fit", "latents_fit")
TEXTS = {"process": str, "model": str, "title": str}
EXPECTED = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text",
    list: "a list of whole numbers",
}
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Tables:
    """What was found.

    Attributes:
        records: of each row and seed, in order: its settings and all scores, as `run_row` returns them.
        failures: sentences about rows that could not be finished.
        ran: rows, each with a seed, that were run now.
        kept: those that were found finished.
    """

    records: list[dict[str, Any]]
    failures: list[str]
    ran: int
    kept: int

    def table(self) -> pd.DataFrame:
        """`title`, `process`, `model`, `what`, `measure`, `seed`, `value`, `low`, `high`, `n`, then what a run has."""
        once = ("dimensions", "steps", "batch_size", "learning_rate", "promised")
        found = []
        for record in self.records:
            names = {key: record[key] for key in ("title", "process", "model")}
            run = {key: record[key] for key in once}
            run |= {key: _number(record[key]) for key in ("start", "mass_from_uniform", *FITS, "seconds")}
            for what in (what for what in WHAT if what in record):
                part = record[what]
                null = {key: part[key] for key in ("rotation_mcc", "rotation_high")}
                for measure in MEASURES:
                    low, high = part[f"{measure}_interval"]
                    score = {"value": part[measure], "low": low, "high": high, "n": part["n"]}
                    one = {"what": what, "measure": measure, "seed": record["seed"]}
                    found.append(names | one | score | null | run)
        return pd.DataFrame(found)

    def losses(self) -> pd.DataFrame:
        """`title`, `seed`, `step`, `loss`: minus that of a constant embedding, means over steps up to that one."""
        frames = [
            pd.DataFrame({"title": record["title"], "seed": record["seed"], **record["loss"]})
            for record in self.records
        ]
        return pd.concat(frames, ignore_index=True)[["title", "seed", "step", "loss"]]


def read_rows(path: Path) -> list[Row]:
    """The rows of a file."""
    content = read_study(path)
    check_keys(f"key in {path}", content, {"rows", *SETTINGS})
    shared = _typed({key: value for key, value in content.items() if key != "rows"}, SETTINGS, str(path))
    tables = content.get("rows", [])
    if not isinstance(tables, list) or not tables or not all(isinstance(table, Mapping) for table in tables):
        raise HapteraError(f"{path}: rows is {tables!r}; tables, [[rows]], with process and model were expected")
    rows = []
    for number, table in enumerate(tables, 1):
        where = f"{path}, row {number}"
        check_keys(f"key of row {number} in {path}", table, {*TEXTS, *SETTINGS})
        if missing := [key for key in ("process", "model") if key not in table]:
            raise HapteraError(f"{where}: there is no {missing[0]}; process and model were expected")
        settings = shared | _typed(table, TEXTS | SETTINGS, where)
        try:
            rows.append(Row(**settings))
        except HapteraError as error:
            raise HapteraError(f"{where}: {error}") from error
    return rows


def run_rows(rows: Sequence[Row], out: Path, *, progress: bool | None = False) -> Tables:
    """Run what is missing of rows and seeds, and return all of it; a row that fails does not stop the others.

    Args:
        rows: of the tables.
        out: the folder; finished rows are in `rows/` there.
        progress: show a bar; None does on a terminal.
    """
    if not rows:
        raise HapteraError("rows is empty; at least one was expected")
    names = [row.name for row in rows]
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        raise HapteraError(f"two rows are called {twice[0]!r}; give one of them another title")
    writable_folder(out)
    every = [(row, seed, _path(row, seed, out)) for row in rows for seed in row.seeds]
    todo = {path: (row, seed) for row, seed, path in every if not path.is_file()}
    for row, _ in todo.values():
        chosen_device(row.device)  # before anything runs
    failures = []
    with Progress("identify", len(todo), progress, unit="rows") as bar:
        whole = sum(_work(row) for row, _ in todo.values())
        for path, (row, seed) in todo.items():
            try:
                record = run_row(row, seed)
            except (HapteraError, RuntimeError) as error:  # a loss that runs away, a GPU that is too small
                failures.append(f"{row.name}, seed {seed}: {error}")
                _LOG.warning(failures[-1])
            else:
                write_text(path, json.dumps(plain(record), allow_nan=False))
            bar.advance(f"{row.name} · seed {seed}", _work(row) / whole * len(todo))
    done = [(row, path) for row, _, path in every if path.is_file()]
    if not done:
        raise Unfinished(f"no row could be finished; {failures[0]}")
    records = [_read(path) | {"title": row.name} for row, path in done]
    return Tables(records, failures, len(todo) - len(failures), len(every) - len(todo))


def finished(rows: Sequence[Row], out: Path) -> tuple[int, int]:
    """How many rows, each with a seed, are finished in a folder, and how many there are."""
    paths = [_path(row, seed, out) for row in rows for seed in row.seeds]
    return sum(path.is_file() for path in paths), len(paths)


def _path(row: Row, seed: int, out: Path) -> Path:
    return out / "rows" / f"{row.key(seed)}.json"


def _work(row: Row) -> float:
    """In proportion to the time it takes: latents through encoders with layers as wide as there are dimensions."""
    return float(row.steps * row.batch_size * (3 + row.supervised) * row.dimensions**2)


def _read(path: Path) -> dict[str, Any]:
    try:
        return check(read_json(path), {}, str(path))
    except HapteraError as error:
        raise HapteraError(f"cannot read {path}: {error}; remove it to run its row again") from error


def _typed(content: Mapping[str, Any], kinds: Mapping[str, type], where: str) -> dict[str, Any]:
    """Values of the kinds they should have, lists as tuples."""
    for key, value in content.items():
        kind = kinds[key]
        right = isinstance(value, int | float if kind is float else kind) and isinstance(value, bool) == (kind is bool)
        if kind is list and right:
            right = all(isinstance(one, int) and not isinstance(one, bool) for one in value)
        if not right:
            raise HapteraError(f"{where}: {key} is {value!r}; {EXPECTED[kind]} was expected")
    return {key: tuple(value) if isinstance(value, list) else value for key, value in content.items()}


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)
