"""Table: a tidy pandas frame with one measured value per row, whatever it was measured on."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from haptera.errors import HapteraError
from haptera.files.atomic import whole
from haptera.outputs import Outputs

COLUMNS = [
    "model", "stream", "adapter", "shift", "severity", "step", "measure", "value", "low", "high", "n", "seed",
]  # fmt: skip
TEXT = ["model", "stream", "adapter", "shift", "measure"]
ORDER = ["model", "stream", "adapter", "seed", "shift", "severity", "measure", "step"]

KINDS = dict.fromkeys(COLUMNS, "float64") | dict.fromkeys(TEXT, "str") | dict.fromkeys(("seed", "step", "n"), "Int64")

DIGEST = "haptera.digest"

Rows = list[dict[str, Any]]
Measure = Callable[..., Rows]
"""Makes rows from the outputs of a cell, or from the table; `haptera.measures.measure` declares which."""


def tidy(rows: Iterable[Mapping[str, Any]] | pd.DataFrame) -> pd.DataFrame:
    """Return a table with every standard column, in the standard order, sorted; further columns follow.

    >>> tidy([{"model": "net", "measure": "accuracy", "value": 0.5, "n": 8}])["value"].tolist()
    [0.5]
    """
    frame = pd.DataFrame(rows if isinstance(rows, pd.DataFrame) else list(rows))
    for column in COLUMNS:
        if column not in frame:
            frame[column] = "" if column in TEXT else float("nan")
    frame = frame[COLUMNS + [column for column in frame if column not in COLUMNS]]
    frame = frame.astype(KINDS).fillna(dict.fromkeys(TEXT, ""))
    return frame.sort_values(ORDER, kind="stable", ignore_index=True)


def _is_tidy(path: Path, frame: pd.DataFrame) -> bool:
    """Say whether a study wrote this table, which then is as `tidy` makes it: a million rows take a while to sort."""
    kinds = {column: _kind(frame[column].dtype) for column in COLUMNS if column in frame}
    return path.suffix != ".csv" and list(frame)[: len(COLUMNS)] == COLUMNS and kinds == KINDS and bool(digest(path))


def _kind(kind: object) -> str:
    return "str" if _is_coded(kind) else str(kind)


def join(table: pd.DataFrame, rows: Rows) -> pd.DataFrame:
    """Return a table with further rows."""
    return tidy(pd.concat([table, tidy(rows)])) if rows else table


def measure_outputs(outputs: Outputs, measures: Iterable[Measure]) -> Rows:
    """Return the rows of one cell: every measure that applies, named after the cell.

    A cell of a stream with several parts says which, and that of an adapter that learns which other one it is without
    learning, unless that is the model as it is; these become the columns `part` and `parent`.
    """
    measures = list(measures)
    if not measures:
        return []
    names = names_of(outputs)
    with outputs.sharing():
        return [names | row for measure in measures for row in measure(outputs)]


def names_of(outputs: Outputs) -> dict[str, Any]:
    """Return what all rows of a cell are called."""
    names = {key: outputs.provenance.get(key, "") for key in ("model", "stream", "adapter", "seed")}
    more = {key: outputs.provenance.get(key) for key in ("part", "parent")}
    return names | {key: value for key, value in more.items() if value and value not in (names["stream"], "none")}


def write(table: pd.DataFrame, path: Path, digest: str = "") -> None:
    """Write a table as Parquet, whole.

    Args:
        table: the rows; tidy, where there is a digest.
        path: of the file.
        digest: fingerprint of what the table was made from, which `digest` returns.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = pa.Table.from_pandas(table, preserve_index=False)
    content = content.replace_schema_metadata({**(content.schema.metadata or {}), DIGEST: digest})
    with whole(path) as file:
        pq.write_table(content, file, write_page_checksum=True)


def coded(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose text is categories, in order of the alphabet: rows are compared and taken by codes."""
    text = [column for column in table if column in TEXT or isinstance(table[column].dtype, pd.StringDtype)]
    return table.astype(dict.fromkeys(text, "category"))


def decoded(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose categories are text again."""
    return table.astype({column: "str" for column in table if _is_coded(table[column].dtype)})


def _is_coded(kind: object) -> bool:
    return isinstance(kind, pd.CategoricalDtype) and kind.categories.inferred_type in ("string", "empty")


def digest(path: Path) -> str:
    """Return the fingerprint of what a table was made from; nothing where the file does not say."""
    import pyarrow.parquet as pq

    try:
        return (pq.read_schema(path).metadata or {}).get(DIGEST.encode(), b"").decode("utf-8", "replace")
    except (OSError, ValueError) as error:
        raise HapteraError(f"cannot read the table {path}: {error}") from error


def _read_parquet(path: Path, as_codes: bool) -> pd.DataFrame:
    """Return the rows of a file; as codes its text is never written out, which would be half of the memory."""
    if not as_codes:
        return pd.read_parquet(path, page_checksum_verification=True)
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {field.name: field.type for field in pq.read_schema(path)}
    text = [name for name, kind in kinds.items() if pa.types.is_large_string(kind) or pa.types.is_string(kind)]
    content = pq.read_table(path, read_dictionary=text, page_checksum_verification=True)
    frame = content.to_pandas(split_blocks=True, self_destruct=True)
    for name in text:
        codes = frame[name].astype("category").cat  # which it is, but with older pyarrow
        frame[name] = codes.set_categories(pd.Index(sorted(codes.categories), dtype="str"))
    return frame


def read(path: Path, as_codes: bool = False) -> pd.DataFrame:
    """Read a table that `write` wrote, or a CSV with the same columns.

    Args:
        path: of the file.
        as_codes: whether text becomes categories, as `coded` makes them, which takes less time and memory to read.
    """
    if not path.is_file():
        raise HapteraError(f"there is no table at {path}")
    try:
        frame = pd.read_csv(path) if path.suffix == ".csv" else _read_parquet(path, as_codes)
        missing = [column for column in ("model", "measure", "value") if column not in frame]
        if not missing:
            frame = frame if _is_tidy(path, frame) else tidy(decoded(frame))
            return coded(frame) if as_codes else frame
    except (OSError, ValueError, TypeError, LookupError, OverflowError, NotImplementedError, MemoryError) as error:
        raise HapteraError(f"cannot read the table {path}: {error}") from error
    raise HapteraError(f"{path} is not a table of results: it has no column {missing[0]!r}")
