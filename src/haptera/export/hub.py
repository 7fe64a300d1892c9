"""Results as the Hugging Face hub reads them: `model-index` in the head of a model card, and `.eval_results/*.yaml`.

A result is the accuracy of an adapter under a shift, as the mean over severities and seeds, clean data among them; all
are rows of the table. Source: the hub's documentation of model cards (`model-index`: task, dataset, metrics) and of
evaluation results (a list of entries: `dataset` with `id` and `task_id`, `value`, `notes`). The latter belong to a data
set that is a benchmark on the hub and names its tasks, so they are written only if the data set is named.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import pandas as pd

from haptera import __version__
from haptera.errors import HapteraError
from haptera.export.names import file_name
from haptera.measures.pairs import NONE
from haptera.report.paper.table import with_means
from haptera.report.study.cells import CLEAN, read
from haptera.words import interval

MEASURE, MEAN = "accuracy", "mean"
DATASET = re.compile(r"[\w.-]+/[\w.-]+")
RESULTS = ".eval_results"


@dataclass(frozen=True)
class Score:
    """One result of a model.

    Attributes:
        stream: its name; empty for clean data of all streams.
        adapter: its name.
        shift: its name, `clean`, or empty for data that is as it is.
        value: the accuracy, a share.
        low: end of its interval; NaN where there is none.
        high: the other end.
        n: images.
    """

    stream: str
    adapter: str
    shift: str
    value: float
    low: float
    high: float
    n: int

    @property
    def place(self) -> str:
        """Stream and shift in one text."""
        return "/".join(filter(None, (self.stream, self.shift)))


def scores_of(table: pd.DataFrame, model: str) -> list[Score]:
    """Return the results of a model; none where there are no labels."""
    table = table[table["model"] == model]
    if not (table["measure"] == MEASURE).any():
        return []
    means = read(with_means(table, MEASURE), "shift_mean")
    means = means[means["of"] == MEASURE] if "of" in means else means[:0]
    own = read(table, MEASURE)
    clean = read(table, "clean_accuracy").assign(stream="", shift=CLEAN)
    means = means.assign(shift=means["shift"].replace("", MEAN))
    every = [clean, means, own[own["shift"] == ""]]
    rows = pd.concat([each for each in every if not each.empty]) if any(map(len, every)) else own[:0]
    return [_score(row) for row in rows.assign(adapter=rows["adapter"].replace("", NONE)).to_dict("records")]


def _score(row: Mapping[Any, Any]) -> Score:
    stream, adapter, shift = (str(row[name]) for name in ("stream", "adapter", "shift"))
    value, low, high = (float(row[name]) for name in ("value", "low", "high"))
    return Score(stream, adapter, shift, value, low, high, 0 if pd.isna(row["n"]) else int(row["n"]))


def model_index(scores: Sequence[Score], data: Mapping[str, str], study: str, task: str, dataset: str) -> list[Any]:
    """Return the `results` of a model index: an entry for each stream and shift, with a metric for each adapter.

    Args:
        scores: of one model.
        data: stream -> name of its data.
        study: its name, by which a later export finds the entries again.
        task: as the hub calls it, such as `image-classification`.
        dataset: the name of the data set on the hub; empty for that of the data.
    """
    places = dict.fromkeys((score.stream, score.shift, score.place) for score in scores)
    made = []
    for stream, shift, place in places:
        name = data.get(stream) or next(iter(data.values()), "") or stream or "data"
        own = [score for score in scores if score.place == place]
        about = {"haptera": __version__, "study": study, "stream": stream, "shift": shift}
        about = {key: text for key, text in about.items() if text}
        made.append(
            {
                "task": {"type": task},
                "dataset": {"name": f"{name} ({place})", "type": dataset or name, "config": place, "args": about},
                "metrics": [_metric(score) for score in own],
            }
        )
    return made


def _metric(score: Score) -> dict[str, Any]:
    name = "Accuracy" if score.adapter == NONE else f"Accuracy with {score.adapter}"
    facts: dict[str, Any] = {"adapter": score.adapter, "n": score.n}
    if not isnan(score.low):
        facts |= {"low": round(score.low, 6), "high": round(score.high, 6)}
    return {"type": MEASURE, "value": round(score.value, 6), "name": name, "args": facts}


def eval_results(scores: Sequence[Score], dataset: str, task_id: str = "{shift}") -> dict[str, list[Any]]:
    """Return name of a file in `.eval_results` -> its entries; a file for each stream and adapter.

    Args:
        scores: of one model.
        dataset: `ORG/NAME` of a benchmark on the hub.
        task_id: a task of the benchmark; `{shift}` in it stands for the shift, and without it only means are written.
    """
    if not DATASET.fullmatch(dataset):
        raise HapteraError(f"dataset {dataset!r} is not the name of a data set on the hub; ORG/NAME was expected")
    made: dict[str, list[Any]] = {}
    for score in scores:
        if "{shift}" in task_id or score.shift == MEAN:
            task = task_id.replace("{shift}", score.shift or score.stream)
            told = [f"stream {score.stream}" if score.stream else "", f"adapter {score.adapter}"]
            told += [f"95 % interval{interval(score.low, score.high, digits=4)}"] if not isnan(score.low) else []
            notes = ", ".join(filter(None, [*told, f"haptera {__version__}"]))
            name = f"haptera-{file_name(score.stream or CLEAN)}-{file_name(score.adapter)}.yaml"
            entry = {"dataset": {"id": dataset, "task_id": task}, "value": round(score.value, 6), "notes": notes}
            made.setdefault(name, []).append(entry)
    return made
