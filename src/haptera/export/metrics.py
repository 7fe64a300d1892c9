"""Metrics: rows of a table as numbers with names, each row and step under a name of its own."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import pandas as pd

from haptera.export.names import Names
from haptera.table import COLUMNS, TEXT

FIRST = ("finding", "stream", "shift", "severity")
LAST = ("measure", "of", "seed")
ENDS = ("low", "high")
APART = ("model", "adapter", "parent", "measure", "step", "value", "low", "high", "n")


@dataclass(frozen=True)
class Metric:
    """One number.

    Attributes:
        name: such as `corruptions/fog/3/accuracy`.
        value: a finite number.
        step: where along a stream; None for what is about all of it.
    """

    name: str
    value: float
    step: int | None = None


def metrics_of(rows: pd.DataFrame, first: Sequence[str] = ()) -> tuple[list[Metric], set[str]]:
    """Return the numbers of one run, and the measures that have rows which only numbers such as a class tell apart.

    Args:
        rows: of the table.
        first: columns that begin every name.

    >>> from haptera.table import tidy
    >>> row = {"stream": "ccc", "shift": "fog", "severity": 3, "measure": "accuracy", "value": 0.8, "low": 0.7}
    >>> for metric in metrics_of(tidy([row]))[0]:
    ...     print(metric.name, metric.value)
    ccc/fog/3/accuracy 0.8
    ccc/fog/3/accuracy/low 0.7
    """
    rows = rows[rows["value"].notna()]
    if rows.empty:
        return [], set()
    rows = rows.dropna(axis="columns", how="all")
    names, left_out = Names(), set()
    metrics: list[Metric] = []
    steps = rows["step"].notna() if "step" in rows else rows["value"].isna()
    seeds = rows["seed"].nunique() > 1 if "seed" in rows else False
    for along in (False, True):
        for measure, own in rows[steps == along].groupby("measure", sort=False):
            columns = _columns(own, along, seeds, first)
            if own.duplicated([*columns, "step"] if along else columns).any():
                left_out.add(str(measure))
            else:
                metrics += _metrics(own.sort_values("step", kind="stable") if along else own, columns, along, names)
    return metrics, left_out


def _columns(rows: pd.DataFrame, along: bool, seeds: bool, first: Sequence[str]) -> list[str]:
    """Return the columns that name rows of one measure: the usual ones, and as many others as it takes.

    A series along a stream goes through shifts and severities, which are part of its name only if it must be.
    """
    known = (*first, *FIRST[: 2 if along else 4], *LAST)
    usual = [name for name in known if name in rows and (name != "seed" or seeds)]
    texts = [str(name) for name in rows if name in TEXT or (name not in COLUMNS and _is_text(rows[name]))]
    further = [name for name in ("part", *FIRST, *texts) if name in rows and name not in (*usual, *APART)]
    chosen, order = list(usual), ["step"] if along else []
    for name in dict.fromkeys(further):
        if not rows.duplicated(chosen + order).any():
            break
        if rows[name].nunique(dropna=False) > 1:
            chosen.append(name)
    place = {name: number for number, name in enumerate((*first, *FIRST, "part", *LAST))}
    return sorted(chosen, key=lambda name: place.get(name, len(place)))


def _is_text(column: pd.Series) -> bool:
    return pd.api.types.is_string_dtype(column) or pd.api.types.is_object_dtype(column)


def _metrics(rows: pd.DataFrame, columns: Sequence[str], along: bool, names: Names) -> Iterator[Metric]:
    ends = [end for end in ENDS if end in rows]
    steps = rows["step"].tolist() if along else [None] * len(rows)
    parts = zip(*(_words(name, rows[name]) for name in columns), strict=True)
    numbers = zip(*(rows[name].tolist() for name in ("value", *ends)), strict=True)
    for words, values, step in zip(parts, numbers, steps, strict=True):
        for end, value in zip(("", *ends), values, strict=True):
            if isfinite(value):
                yield Metric(names([*words, end]), float(value), None if step is None else int(step))


def _words(name: str, column: pd.Series) -> list[str]:
    """Return what a column adds to the names; nothing where it is empty."""
    before = {"of": "of_", "seed": "seed_"}.get(name, "")
    return [f"{before}{_word(value)}" if pd.notna(value) and value != "" else "" for value in column]


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
