"""Tables of encoded images: Parquet as on the Hugging Face hub, and folders that `datasets` saved.

The image is a column of bytes, or of `{bytes, path}`; the label a column of whole numbers, whose names are those that
`datasets` notes in the schema. Arrow files are mapped into memory, so a batch reads the bytes of its own images from
any place. Parquet cannot be read so, as its rows are packed in groups: its images are written once into an Arrow file
in the cache (`$HAPTERA_CACHE`, by default `~/.cache/haptera`), which takes as much room as the Parquet file, and read
from there. Memory: the pages of the file that are in use, which the system takes back.
"""

import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from haptera.data.arrays import read_labels
from haptera.data.decode import Resize
from haptera.data.encoded import EncodedData
from haptera.data.folder import file_digest
from haptera.errors import HapteraError, unknown
from haptera.files.atomic import WriteError, whole
from haptera.files.fingerprint import fingerprint

log = logging.getLogger("haptera")

IMAGES = ("image", "img", "jpg", "png", "pixel_values", "picture")
LABELS = ("label", "labels", "fine_label", "target", "cls", "class")
ROWS = 64
"""Rows of a block in the cache."""
PROBLEMS = (pa.ArrowException, OSError, ValueError, KeyError)


class ArrowData(EncodedData):
    """Images in Parquet or Arrow files, the rows of one after those of the other.

    Args:
        paths: the files, in their order.
        resize: how images are brought to one size; without a size they must be of one.
        channels: 1 for grey; 3 or None for colour.
        name: what it is called in messages.
        image: the column of images, if it has an unusual name.
        label: the column of labels, if it has an unusual name.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        resize: Resize | None = None,
        channels: int | None = None,
        name: str | None = None,
        image: str | None = None,
        label: str | None = None,
    ) -> None:
        super().__init__(resize, channels)
        self._paths = [Path(path) for path in paths]
        self.name = name or self._paths[0].stem
        schema = _read_schema(self._paths[0])
        self._image = _column(schema, image, IMAGES, self._paths[0], _holds_bytes)
        label = label or next((each for each in LABELS if each in schema.names), None)
        self._files: list[pa.ChunkedArray] | None = None
        self._ends = np.cumsum([_count_rows(path) for path in self._paths])
        if not self._ends[-1]:
            raise HapteraError(f"{self._paths[0]} holds no rows; at least one image was expected")
        self.rows = np.arange(self._ends[-1])
        if label is not None:
            self.targets, self.names = self._labels(schema, label)
        digests = [file_digest(path) for path in self._paths]
        self._fingerprint = fingerprint("arrow", digests, self._image, label, self._resize, self._channels)
        self._prepare()

    def fingerprint(self) -> str:
        """Return the fingerprint of every file's name, size and time of change, and of the settings."""
        return self._fingerprint

    def _labels(self, schema: pa.Schema, label: str) -> tuple[np.ndarray | None, tuple[str, ...] | None]:
        _column(schema, label, (), self._paths[0], lambda kind: True)
        columns = [_read_column(path, label) for path in self._paths]
        names = _class_names(schema, label)
        if odd := next((path for path in self._paths if _class_names(_read_schema(path), label) != names), None):
            raise HapteraError(f"{odd} names other classes than {self._paths[0]}; the same in every file was expected")
        missing = sum(column.null_count for column in columns)
        if missing == len(self):
            return None, None
        if missing:
            raise HapteraError(f"{self.name}: {missing} of {len(self)} rows have no {label}; all or none was expected")
        values = np.concatenate([column.to_numpy() for column in columns])
        if (values == -1).all():  # how the hub marks a test set without labels
            return None, None
        return read_labels(values, len(self), f"{self.name}, column {label}"), names

    def _source(self, position: int) -> bytes:
        if self._files is None:
            self._files = [_map_column(path, self._image) for path in self._paths]
        file = int(np.searchsorted(self._ends, position, side="right"))
        row = position - (int(self._ends[file - 1]) if file else 0)
        value = self._files[file][row]
        found = value["bytes"] if isinstance(value, pa.StructScalar) else value
        if not found.is_valid:
            raise HapteraError(f"{self._place(position)} has no bytes; images that are only a path are not read")
        return found.as_buffer().to_pybytes()

    def _place(self, position: int) -> str:
        file = int(np.searchsorted(self._ends, position, side="right"))
        return f"row {position - (int(self._ends[file - 1]) if file else 0)} of {self._paths[file]}"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_files": None}


def cache_folder() -> Path:
    """Return where what can be made again is kept."""
    return Path(os.environ.get("HAPTERA_CACHE") or Path.home() / ".cache" / "haptera").expanduser()


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() == ".parquet"


def _read_schema(path: Path) -> pa.Schema:
    try:
        return pq.read_schema(path) if _is_parquet(path) else _map_table(path).schema
    except PROBLEMS as error:
        raise _unreadable(path, error) from error


def _read_column(path: Path, name: str) -> pa.ChunkedArray:
    try:
        return (pq.read_table(path, columns=[name]) if _is_parquet(path) else _map_table(path))[name]
    except PROBLEMS as error:
        raise _unreadable(path, error) from error


def _count_rows(path: Path) -> int:
    try:
        return pq.read_metadata(path).num_rows if _is_parquet(path) else _map_table(path).num_rows
    except PROBLEMS as error:
        raise _unreadable(path, error) from error


def _map_table(path: Path) -> pa.Table:
    """Map an Arrow file, of either of the two forms, into memory."""
    source = pa.memory_map(str(path))
    try:
        return pa.ipc.open_stream(source).read_all()
    except pa.ArrowInvalid:
        source.seek(0)
        return pa.ipc.open_file(source).read_all()


def _map_column(path: Path, image: str) -> pa.ChunkedArray:
    try:
        return _map_copy(path, image) if _is_parquet(path) else _map_table(path)[image]
    except PROBLEMS as error:
        raise _unreadable(path, error) from error


def _map_copy(path: Path, image: str) -> pa.ChunkedArray:
    """Map the copy of a Parquet file; one that is damaged is made anew."""
    kept = _in_cache(path, image)
    try:
        return _map_table(kept)[image]
    except PROBLEMS:
        kept.unlink(missing_ok=True)
        return _map_table(_in_cache(path, image))[image]


def _in_cache(path: Path, image: str) -> Path:
    """Return an Arrow file with the images of a Parquet file, written if it is not there."""
    kept = cache_folder() / "arrow" / f"{fingerprint(str(path.absolute()), file_digest(path), image)}.arrow"
    if kept.exists():
        return kept
    file = pq.ParquetFile(path, memory_map=True, pre_buffer=False, page_checksum_verification=True)
    log.info("%s: its images are written once into %s, from which they can be read in any order", path, kept)
    schema = pa.schema([file.schema_arrow.field(image)])
    try:
        with whole(kept) as sink, pa.ipc.new_stream(sink, schema) as out:
            for group in range(file.num_row_groups):  # all of them at once would all be held
                for batch in file.iter_batches(ROWS, row_groups=[group], columns=[image], use_threads=False):
                    out.write_batch(batch)
    except WriteError as error:
        raise HapteraError(
            f"{error}: images of a Parquet file are copied there, to be read in any order; set HAPTERA_CACHE to a "
            f"folder with {max(1, path.stat().st_size // 10**6):,} MB to spare"
        ) from error
    return kept


def _column(schema: pa.Schema, name: str | None, usual: Sequence[str], path: Path, fits: Any) -> str:
    if name is not None and name not in schema.names:
        raise unknown(f"column of {path}", name, schema.names)
    known = [name] if name is not None else [each for each in usual if each in schema.names]
    found = [each for each in known if fits(schema.field(each).type)] or [
        each for each in schema.names if name is None and fits(schema.field(each).type)
    ]
    if len(found) != 1 and not (known and found):
        raise HapteraError(
            f"{path} has the columns {', '.join(schema.names)}; one of encoded images, called {', '.join(usual)}, "
            "was expected"
        )
    return found[0]


def _holds_bytes(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return kind.get_field_index("bytes") >= 0
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


def _class_names(schema: pa.Schema, label: str) -> tuple[str, ...] | None:
    """Return the names that `datasets` noted for a column."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        names = features[label]["names"]
    except (KeyError, TypeError, ValueError):
        return None
    return tuple(map(str, names)) if isinstance(names, list) and names else None


def _unreadable(path: Path, error: Exception) -> HapteraError:
    reason = str(error).strip().partition("\n")[0]
    return HapteraError(f"cannot read {path}: {reason}")
