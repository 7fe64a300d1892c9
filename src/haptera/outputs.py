"""Outputs: what one model said about one stream, in NumPy and in one file.

A file is a plain `.npz` that anybody can read: `logits` (or `top_values` and `top_indices`, or `labels`, or, of poses,
`keypoints`), `ids`, `targets`, `step`, `classes`, `context/KEY/values` and `context/KEY/codes`, `steps/KEY`, and
`provenance` as JSON.
Cost: the logits take 4 bytes (float32) or 2 (float16) per sample and class, top-k 8 k bytes per sample.
"""

import json
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from haptera.correctness import among, ranks
from haptera.errors import HapteraError
from haptera.files.atomic import whole
from haptera.files.json import parse_json
from haptera.files.npz import member, open_npz, read_npz
from haptera.outputs_schema import check_arrays, check_provenance, read_context, read_provenance

T = TypeVar("T")
ROWS_AT_ONCE = 8192
ASIDE = ("sample", "severity_1", "severity_2", "expected")
"""Keys of a context that say something about a sample, or where a walk is, and do not divide a stream into groups."""


@dataclass
class Outputs:
    """Per-sample arrays, ids, context, records per step, provenance.

    Attributes:
        arrays: `logits` (samples, classes); or `top_values` and `top_indices` (samples, k), best first;
            or `labels` (samples,) where only decisions are known; of poses, `keypoints` (samples, parts, 2) and
            `confidence` (samples, parts).
        ids: `(samples,)`.
        targets: `(samples,)`, of poses `(samples, parts, 2)`, or None.
        step: `(samples,)`, the batch in which a sample came.
        context: name -> `(samples,)`.
        steps: name -> `(steps,)`; `seconds` and whatever the adapter reports.
        accepted: `(classes of the data, columns)`, true where a prediction counts as right; None: target i is column i.
        columns: `(columns,)`, the model's class behind each column of the logits, where they were restricted.
        classes: `(columns,)`, the name of each column's class, where the data has names and needs no mapping.
        provenance: names, versions, seed, threads, fingerprints; `haptera.outputs_schema.FACTS` has all keys.
    """

    arrays: dict[str, np.ndarray]
    ids: np.ndarray
    targets: np.ndarray | None = None
    step: np.ndarray | None = None
    context: dict[str, np.ndarray] = field(default_factory=dict)
    steps: dict[str, np.ndarray] = field(default_factory=dict)
    accepted: np.ndarray | None = None
    columns: np.ndarray | None = None
    classes: np.ndarray | None = None
    provenance: dict[str, Any] = field(default_factory=dict)
    _shared: ClassVar[dict[Hashable, Any] | None] = None

    def __post_init__(self) -> None:
        if not {"logits", "top_indices", "labels", "keypoints"} & set(self.arrays):
            raise HapteraError("outputs need logits, top_indices, labels or keypoints")
        expected = {"ids": self.ids, **self.arrays, **{f"context {k!r}": v for k, v in self.context.items()}}
        expected |= {} if self.targets is None else {"targets": self.targets}
        expected |= {} if self.step is None else {"step": self.step}
        for name, array in expected.items():
            if len(array) != len(self.ids):
                raise HapteraError(f"{name} has {len(array)} entries, ids have {len(self.ids)}")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def logits(self) -> np.ndarray:
        """`(samples, classes)`; an error where only the best k or the decisions were kept."""
        if "logits" not in self.arrays:
            raise HapteraError(f"the logits were not kept, only {', '.join(self.arrays)}")
        return self.arrays["logits"]

    @contextmanager
    def sharing(self) -> Iterator[None]:
        """Let measures share what they work out, while nobody changes the arrays."""
        self._shared = {}  # type: ignore[misc]  # of this object alone
        try:
            yield
        finally:
            self._shared = None  # type: ignore[misc]

    def share(self, key: Hashable, work: Callable[[], T]) -> T:
        """Return what `work` gives; inside `sharing` that of the first call with this key."""
        if self._shared is None:
            return work()
        if key not in self._shared:
            self._shared[key] = work()
        found: T = self._shared[key]
        return found

    def predictions(self) -> np.ndarray:
        """`(samples,)`, the model's class with the largest logit; -1 where a logit is NaN."""
        return self.share("predictions", self._predictions)

    def _predictions(self) -> np.ndarray:
        if "labels" in self.arrays:
            return self.arrays["labels"]
        if "top_indices" in self.arrays:
            return self._named(self.arrays["top_indices"][:, 0])
        self._check_classes()
        best = np.concatenate([_argmax(rows) for rows in _blocks(self.logits)] or [np.empty(0, np.int64)])
        return self._named(best)

    def correct(self, k: int = 1) -> np.ndarray:
        """`(samples,)`, whether an accepted class is among the k largest logits; ties go to the lower index."""
        if self.targets is None:
            raise HapteraError("there are no targets to compare with")
        if "logits" in self.arrays:
            return self._ranks < k
        self._check_classes()
        best = self.arrays["top_indices"] if "top_indices" in self.arrays else self.arrays["labels"][:, None]
        if k > best.shape[1]:
            raise HapteraError(f"top-{k} was asked for, only the best {best.shape[1]} were kept")
        return among(best[:, :k], self.targets, self.accepted)

    def _check_classes(self) -> None:
        if not {"logits", "top_indices", "labels"} & set(self.arrays):
            raise HapteraError("these outputs hold keypoints, and classes were asked for; expected logits or labels")

    def keeps(self, k: int) -> bool:
        """Say whether `correct(k)` can be answered and means something."""
        if "logits" in self.arrays:
            return self.logits.shape[1] > k
        return "top_indices" in self.arrays and self.arrays["top_indices"].shape[1] >= k

    @cached_property
    def groups(self) -> tuple[list[dict[str, Any]], np.ndarray]:
        """The distinct contexts, but for what is `ASIDE`, in sorted order, and for each sample the index of its own."""
        codes = np.zeros(len(self), np.int64)
        keys = [key for key in self.context if key not in ASIDE]
        levels = []
        for key in keys:
            column = np.asarray(self.context[key])
            if len(column) and (column == column[0]).all():  # as of most cells, and much quicker than sorting
                levels.append(column[:1])
                continue
            values, own = np.unique(column, return_inverse=True)
            levels.append(values)
            codes = codes * len(values) + own
        if len(codes) and all(len(values) == 1 for values in levels):
            return [{key: values.tolist()[0] for key, values in zip(keys, levels, strict=True)}], codes
        present, codes = np.unique(codes, return_inverse=True)
        places = np.unravel_index(present, [len(values) for values in levels]) if levels else ()
        columns = [values[place].tolist() for values, place in zip(levels, places, strict=True)]
        return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)] or [{}], codes

    @cached_property
    def _ranks(self) -> np.ndarray:
        blocks = [self._rank(slice(start, start + ROWS_AT_ONCE)) for start in range(0, len(self), ROWS_AT_ONCE)]
        return np.concatenate(blocks or [np.empty(0, np.int64)])

    def _rank(self, rows: slice) -> np.ndarray:
        """How many classes come before the best accepted one."""
        return ranks(self.logits[rows], self.targets[rows], self.accepted)  # type: ignore[index]

    def _named(self, columns: np.ndarray) -> np.ndarray:
        return columns if self.columns is None else np.where(columns < 0, -1, self.columns[columns])

    def save(self, path: Path) -> None:
        """Write one `.npz`, whole or not at all."""
        content: dict[str, np.ndarray] = {"ids": self.ids, **self.arrays}
        for name in ("targets", "step", "accepted", "columns", "classes"):
            if (array := getattr(self, name)) is not None:
                content[name] = array
        for key, column in self.context.items():
            values, codes = np.unique(column, return_inverse=True)
            content[f"context/{key}/values"] = values
            content[f"context/{key}/codes"] = codes.astype(np.min_scalar_type(max(len(values) - 1, 0)))
        content |= {f"steps/{key}": values for key, values in self.steps.items()}
        provenance = check_provenance(self.provenance, "the provenance of outputs")
        content["provenance"] = np.frombuffer(json.dumps(provenance).encode(), np.uint8)
        with whole(path) as file:
            np.savez(file, **content)  # type: ignore[arg-type]

    @staticmethod
    def readable(path: Path) -> bool:
        """Say whether a file is there and whole, as far as its directory and its provenance tell."""
        try:
            with open_npz(path) as file:
                return bool(parse_json(member(file, "provenance", path).tobytes(), str(path)))
        except ValueError:  # ours among them
            return False

    @classmethod
    def load(cls, path: Path) -> "Outputs":
        """Read what `save` wrote; an error that names the file if it is anything else."""
        content = read_npz(path)
        provenance = read_provenance(content, path)
        check_arrays(content, path)
        known = ("logits", "top_values", "top_indices", "labels", "keypoints", "confidence")
        arrays = {key: content[key] for key in known if key in content}
        if not arrays.keys() & {"logits", "top_indices", "labels", "keypoints"}:
            raise HapteraError(f"{path} has none of logits, top_indices, labels and keypoints")
        return cls(
            arrays=arrays,
            ids=content["ids"],
            targets=content.get("targets"),
            step=content.get("step"),
            context=read_context(content, path),
            steps={key[6:]: values for key, values in content.items() if key.startswith("steps/")},
            accepted=content.get("accepted"),
            columns=content.get("columns"),
            classes=content.get("classes"),
            provenance=provenance,
        )


def context_columns(batches: Sequence[tuple[Mapping[str, Any], int]]) -> dict[str, np.ndarray]:
    """The contexts of batches, with their sizes, as one column per key; a value for a whole batch is repeated.

    >>> context_columns([({"shift": "fog"}, 2), ({"shift": "snow"}, 1)])["shift"].tolist()
    ['fog', 'fog', 'snow']
    """
    columns = {}
    sizes = [size for _, size in batches]
    for key in dict.fromkeys(key for context, _ in batches for key in context):
        values = []
        for context, size in batches:
            value = np.asarray(context.get(key))
            if value.dtype == object:
                raise HapteraError(f"context {key!r} is {context.get(key)!r} in a batch; a number or text was expected")
            if value.ndim and value.shape != (size,):
                raise HapteraError(f"context {key!r} has shape {value.shape} in a batch of {size}")
            values.append(value)
        if all(value.ndim == 0 for value in values):
            columns[key] = np.repeat(np.array(values), sizes)
        else:
            columns[key] = np.concatenate([np.broadcast_to(v, n) for v, n in zip(values, sizes, strict=True)])
    return columns


def _blocks(array: np.ndarray) -> list[np.ndarray]:
    return [array[start : start + ROWS_AT_ONCE] for start in range(0, len(array), ROWS_AT_ONCE)]


def _argmax(logits: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(logits).any(1), -1, logits.argmax(1))
