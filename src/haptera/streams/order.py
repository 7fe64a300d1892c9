"""Once through a data set in an order, or under a choice of shifts, that a model was not promised.

`Mixed` shows every image under another shift at another severity; `Correlated` lets classes come in runs
(`haptera.streams.class_order`).
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from zlib import crc32

import numpy as np

from haptera.batch import Batch, check_index
from haptera.data import Classes, CorruptedImages, Data
from haptera.errors import HapteraError
from haptera.shifts import SampleRandom, Shift
from haptera.streams.class_order import DIRICHLET, MIXED, ClassOrder
from haptera.streams.condition import Condition, find_parts, read_conditions
from haptera.streams.shift_stream import ShiftStream, check_data

SALT = crc32(b"mixed")


@dataclass(frozen=True)
class Pool(ClassOrder):
    """One pass through samples under several conditions; a subclass has `data` and writes `list_conditions`.

    An image that several conditions share comes once, under one that is drawn by the seed and the number of the sample.
    Domains have samples of their own, and all of them come.
    """

    @abstractmethod
    def list_conditions(self) -> list[Condition]:
        """What samples may be under."""

    @cached_property
    def _conditions(self) -> list[Condition]:
        return self.list_conditions()

    @cached_property
    def _starts(self) -> np.ndarray:
        """Return `(groups + 1,)`, where samples of each group begin and the last ends; conditions may share a group."""
        data = self.data  # type: ignore[attr-defined]
        shared = not isinstance(data, CorruptedImages) or data.paired
        groups = self._conditions[:1] if shared else self._conditions
        return np.cumsum([0, *(len(condition.data) for condition in groups)])

    @cached_property
    def _targets(self) -> np.ndarray | None:
        """Return `(samples,)`, the classes of all groups, where they decide the order."""
        if self.labels == MIXED:
            return None
        return np.concatenate([np.asarray(each.data.targets) for each in self._conditions[: len(self._starts) - 1]])

    @property
    def samples(self) -> int:
        """The number of samples."""
        return int(self._starts[-1])

    def __len__(self) -> int:
        return self.batches(self.samples)

    def draw(self, ids: np.ndarray) -> np.ndarray:
        """Return `(len(ids),)`, which of the conditions each sample is under that all of them share."""
        draws = SampleRandom(ids.tolist(), self.seed, SALT).uniform().numpy().astype(np.float64)
        return (draws * len(self._conditions)).astype(np.int64)

    def __getitem__(self, index: int) -> Batch:
        check_index(index, self)
        places = self.order_samples(self.samples, self._targets)[self.places(index, self.samples)]
        groups = np.searchsorted(self._starts, places, side="right") - 1
        inside = places - self._starts[groups]
        ids = np.empty_like(places)
        for group in np.unique(groups):
            ids[groups == group] = self._conditions[group].data.rows[inside[groups == group]]
        own = groups if len(self._starts) > 2 else self.draw(ids)
        return read_conditions(self._conditions, own, inside, ids, self.seed)


@dataclass(frozen=True)
class Mixed(Pool, ShiftStream):
    """Every image under another shift and severity, drawn by the seed and the number of the sample.

    `shift` and `severity` in the context are one value for each sample. Of domains, all images come, mixed.

    Args:
        data: a data set whose images are shifted while they are read, or one that is corrupted already, in parts.
        shifts: classes of shifts to draw from; names, where data is in parts.
        severities: from 0 to 5, to draw from; by default 1 to 5, or those that are there.
    """

    severities: Sequence[float] | None = None
    name: str = field(default="mixed", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self._conditions

    def list_conditions(self) -> list[Condition]:
        """Every shift at every severity."""
        return self.conditions(self.severities)


@dataclass(frozen=True)
class Correlated(Pool):
    """The data in an order in which neighbours share their class.

    Args:
        data: what is read; it needs labels.
        by: the shift it is under, if any. Of data in parts the name and severity of one of them, `fog:5`, or of a
            domain; without it, all parts are drawn from, as in `mixed`.
    """

    data: Data | CorruptedImages
    by: Shift | str | None = None
    labels: str = field(default=DIRICHLET, kw_only=True)
    name: str = field(default="correlated", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_data(self.name, self.data)
        text = isinstance(self.by, str) and isinstance(self.data, CorruptedImages)
        if self.by is not None and not isinstance(self.by, Shift) and not text:
            raise HapteraError(f"by of the stream {self.name!r} is {self.by!r}; a shift, such as Contrast(5), or None")
        for condition in self._conditions:
            self.check_labels(condition.data)

    @property
    def classes(self) -> Classes | None:
        """Return how targets relate to the model's classes."""
        return self.data.classes

    def list_conditions(self) -> list[Condition]:
        """The one that was asked for; else the data as it is, or all of its parts."""
        if isinstance(self.data, Data):
            assert not isinstance(self.by, str)
            if self.by is None:
                return [Condition(self.data, "clean", 0.0)]
            return [Condition(self.data, self.by.name, self.by.severity, self.by)]
        if self.by is None:
            return [each.at(one) for each in find_parts(self.data, None, self.name) for one in each.severities]
        name, severity = (self.by.name, self.by.severity) if isinstance(self.by, Shift) else _parse(self.by)
        [parts] = find_parts(self.data, [name], self.name)
        return [parts.at(parts.hardest if severity is None else severity)]


def _parse(text: str) -> tuple[str, float | None]:
    """Return the name and the severity of `fog:5` or `fog:severity=5`, or of `fog` alone."""
    name, colon, severity = text.partition(":")
    try:
        return name, float(severity.removeprefix("severity=")) if colon else None
    except ValueError:
        raise HapteraError(f"severity of {name} is {severity!r}; a number was expected, such as {name}:5") from None
