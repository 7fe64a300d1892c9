"""Tables of accuracies: a CSV with a row for each model, as people and spreadsheets write them.

A column `model` (or else the first, if it holds text), and one with accuracies: `accuracy`, `top1` as in the tables
that timm publishes, or any that is named, for a wide table with a column for each test set. Commas, semicolons or tabs
part the columns; with semicolons and tabs a decimal comma is read too. Percent is told by its sign, or by a value above
1. A model without a number is left out with a note. `n`, or `NAME_n` beside the column NAME, is the number of examples.
A column `group` says which models are `standard`.
"""

import csv
from pathlib import Path

import numpy as np
import pandas as pd

from haptera.analyses.trends.side import MOST_MODELS, Side
from haptera.errors import HapteraError, hint, unknown
from haptera.words import shorten

ACCURACIES = ("accuracy", "top1")
GROUP = "group"
"""The column that says of which kind a model is; the line is fitted to those of the group standard."""
EMPTY = {"", "-", "--", "–", "—", "na", "n/a", "nan", "none", "null", "?"}
ROWS = 4 * MOST_MODELS
"""The most rows of a table; a model may be measured at several image sizes."""


def read_table(path: Path, column: str | None = None) -> Side:
    """A side out of a CSV; `column` is the test set in a wide one."""
    frame, comma = _text(path)
    notes: list[str] = []
    models, others = _models(path, frame, notes)
    column = _column(path, others, column)
    kept = pd.DataFrame({"model": models, "accuracy": others[column], "img_size": others.get("img_size", "")})
    if (sizes := next((name for name in (f"{column}_n", "n") if name in others), None)) is not None:
        kept["n"] = others[sizes]
    empty = kept["accuracy"].str.lower().isin(EMPTY)
    if "n" in kept:
        empty |= kept["n"].str.lower().isin(EMPTY)
    if empty.any():
        names = kept["model"][empty].tolist()
        notes.append(f"{path}: {len(names)} left out, whose cell in {column} or n is empty: {shorten(names)}")
        kept = kept[~empty]
    if kept.empty:
        raise HapteraError(f"{path} has no model with a number for {column}")
    values, percent = _shares(path, kept, column, comma)
    if percent:
        notes.append(f"{path}: {column} is in percent")
    kept = kept.assign(accuracy=values)
    if "img_size" in others and kept["model"].duplicated().any():
        whole, size = len(kept), pd.to_numeric(kept["img_size"], errors="coerce")
        order = kept.assign(img_size=size).sort_values("img_size", ascending=False, kind="stable")
        kept = order.drop_duplicates("model").sort_index()
        notes.append(
            f"{path}: {whole - len(kept)} rows of models measured at several img_size left out, the largest kept"
        )
    n = _sizes(path, kept, comma) if "n" in kept else None
    source = str(path) if column in ACCURACIES else f"{path}:{column}"
    groups = tuple(others.loc[kept.index, GROUP]) if GROUP in others else None
    return Side(source, tuple(kept["model"]), kept["accuracy"].to_numpy(float), n, notes=tuple(notes), groups=groups)


def columns_of_sets(path: Path) -> list[str]:
    """The columns of a wide table that hold accuracies; none of a table with a column `accuracy` or `top1`."""
    frame, _ = _text(path)
    _, others = _models(path, frame, [])
    named = {str(name).lower() for name in others}
    return [] if named & set(ACCURACIES) else _sets(others)


def _sets(frame: pd.DataFrame) -> list[str]:
    """Return the columns that hold numbers, but for sizes of sets and images."""
    columns = [str(column) for column in frame]
    none = {"n", "img_size", GROUP}
    return [
        name for name in columns if name not in none and not name.endswith("_n") and _parse(frame[name]).notna().any()
    ]


def _text(path: Path) -> tuple[pd.DataFrame, bool]:
    """All cells as text without spaces around them, and whether a comma may be a decimal point."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline(2**16)
        mark = max(",;\t", key=first.count)  # of equals the first, so that a single column is read too
        frame = pd.read_csv(
            path, sep=mark, dtype=str, keep_default_na=False, nrows=ROWS + 1, encoding="utf-8-sig", index_col=False
        )
    except (OSError, ValueError, csv.Error) as error:
        raise HapteraError(f"cannot read {path}: {error}") from error
    if len(frame) > ROWS:
        raise HapteraError(
            f"{path} has more than {ROWS:,} rows; one for each model was expected, not one for each example"
        )
    frame = frame.rename(columns=lambda name: str(name).strip())
    if (twice := frame.columns[frame.columns.duplicated()]).size:
        raise HapteraError(f"{path}: the column {twice[0]!r} comes twice; give one of them another name")
    return frame.apply(lambda column: column.fillna("").str.strip()), mark != ","


def _models(path: Path, frame: pd.DataFrame, notes: list[str]) -> tuple[pd.Series, pd.DataFrame]:
    """Names, and the other columns; rows without anything in them are not there."""
    frame = frame[(frame != "").any(axis=1)]
    columns = [str(column) for column in frame]
    name = next((column for column in columns if column.lower() == "model"), None)
    if name is None:
        name = columns[0] if columns else None
        if name is None or not len(frame) or _parse(frame[name]).notna().all():
            raise HapteraError(f"{path} has no column 'model', only {', '.join(columns) or 'an empty line'}")
        notes.append(f"{path}: there is no column model; the first, {name}, names the models")
    return frame[name], frame.drop(columns=name)


def _column(path: Path, frame: pd.DataFrame, wanted: str | None) -> str:
    """The column of accuracies; of a wide table, the one that was named."""
    if wanted is not None:
        if wanted not in frame:
            raise unknown(f"column of {path}", wanted, frame.columns)
        return wanted
    columns = [str(column) for column in frame]
    named = {name.lower(): name for name in reversed(columns)}
    for name in ACCURACIES:
        if name in named:
            return named[name]
    if len(sets := _sets(frame)) > 1:
        raise HapteraError(
            f"{path} has no column 'accuracy'; name the test set, as in {path}:{sets[0]}; columns: {', '.join(sets)}"
        )
    near = hint("accuracy", columns)
    raise HapteraError(f"{path} has no column 'accuracy', only {', '.join(columns)};{near}".rstrip(";"))


def _shares(path: Path, frame: pd.DataFrame, shown: str, comma: bool) -> tuple[pd.Series, bool]:
    """Shares, and whether they were in percent: by a sign, by the name top1, or by a value above 1."""
    text = frame["accuracy"]
    signed, values = text.str.endswith("%"), _parse(text, comma)
    if values.isna().any():
        place = int(values.isna().to_numpy().argmax())
        raise HapteraError(f"{path}: {frame['model'].iloc[place]} has no number for {shown}, but {text.iloc[place]!r}")
    if signed.any() and not signed.all():
        first = frame["model"][~signed].iloc[0]
        raise HapteraError(f"{path}: {first} has no percent sign in {shown}, and others have; all or none was expected")
    percent = bool(signed.all() or shown == "top1" or values.max() > 1)
    return values / 100 if percent else values, percent


def _sizes(path: Path, frame: pd.DataFrame, comma: bool) -> np.ndarray:
    n = _parse(frame["n"], comma).to_numpy(float)
    wrong = ~((n >= 1) & (n == np.floor(n)) & (n < 2**53))
    if wrong.any():
        first = int(wrong.argmax())
        raise HapteraError(
            f"{path}: {frame['model'].iloc[first]} has n = {frame['n'].iloc[first]}; a number of examples was expected"
        )
    return n.astype(np.int64)


def _parse(text: pd.Series, comma: bool = True) -> pd.Series:
    """Numbers, without a percent sign, with a decimal comma if there may be one; NaN for anything else."""
    plain = text.str.removesuffix("%").str.strip()
    return pd.to_numeric(plain.str.replace(",", ".") if comma else plain, errors="coerce")
