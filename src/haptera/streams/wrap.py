"""Streams around a stream: cut short, repeated, with clean data in between, or one image at a time.

They wrap any stream, each other included. A stream with parts keeps them, each wrapped; a repeated one is one part.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from haptera.batch import Batch, Stream
from haptera.checks import check_whole_number
from haptera.errors import HapteraError
from haptera.streams.wrapper import Wrapper, number, select

MOST_TIMES, MOST_BATCHES = 10**5, 10**8
"""The most repetitions and batches of a repeated stream; the size of every batch is kept in memory."""


@dataclass(frozen=True)
class Truncated(Wrapper):
    """The beginning of a stream, of each of its parts where it has any; all of it, if it is shorter.

    Args:
        stream: any stream.
        first: how many samples; the last batch may be cut.
        batches: or how many batches.
    """

    first: int | None = None
    batches: int | None = None

    def _check(self) -> None:
        if (self.first is None) == (self.batches is None):
            raise HapteraError("Truncated takes first, a number of samples, or batches; one of them")
        given = "batches" if self.first is None else "first"
        check_whole_number(f"{given} of the stream '{self.stream.name}, truncated'", getattr(self, given))

    @property
    def words(self) -> str:
        """Return a name such as `first 1,000 samples`."""
        if self.first is not None:
            return f"first {self.first:,} samples"
        return f"first {self.batches:,} batches"

    def _own_sizes(self) -> np.ndarray:
        sizes = self.stream.sizes()
        if self.first is None:
            return sizes[: self.batches]
        left = np.minimum(sizes, self.first - (np.cumsum(sizes) - sizes))
        return left[left > 0]

    def _batch(self, index: int) -> Batch:
        batch = self.stream[index]
        return batch if len(batch) == self._sizes[index] else select(batch, slice(0, int(self._sizes[index])))


@dataclass(frozen=True)
class Repeated(Wrapper):
    """A stream several times in a row with no reset, the k-th time with its seed + k, so that orders and noise differ.

    Ids are positions; `context["sample"]` is the sample's number in the data set. The parts of the stream, if it has
    any, are no longer parts.
    """

    times: int = 2

    def _check(self) -> None:
        check_whole_number(f"times of the stream '{self.stream.name}, repeated'", self.times)
        if self.times > MOST_TIMES or self.times * len(self.stream) > MOST_BATCHES:
            raise HapteraError(
                f"the stream {self.stream.name!r} has {len(self.stream):,} batches and times is {self.times:,}; "
                f"{MOST_TIMES:,} times and {MOST_BATCHES:,} batches are the most"
            )

    @property
    def words(self) -> str:
        """Return a name such as `repeated 3 times`."""
        return f"repeated {self.times:,} times" if self.times > 1 else "repeated once"

    @cached_property
    def _pieces(self) -> list[Self]:
        return []  # nothing is reset

    @cached_property
    def _turns(self) -> list[Stream]:
        return [self.stream, *(self.stream.with_seed(self.seed + turn) for turn in range(1, self.times))]

    @cached_property
    def _ends(self) -> np.ndarray:
        """Return `(times,)`, how many batches have come when each time is over."""
        return np.cumsum([len(turn) for turn in self._turns])

    def _own_sizes(self) -> np.ndarray:
        return np.concatenate([turn.sizes() for turn in self._turns])

    def _batch(self, index: int) -> Batch:
        turn = int(np.searchsorted(self._ends, index, side="right"))
        inside = index - (int(self._ends[turn - 1]) if turn else 0)
        return number(self._turns[turn][inside], int(self._starts[index]))


@dataclass(frozen=True)
class Interleaved(Wrapper):
    """A stream with a batch of clean data after every few of its own, which tells whether that is still known.

    `context["interleaved"]` says which is which. Ids are positions; `context["sample"]` is the sample's number in its
    data set. What else the stream says about its samples is for clean ones what it was just before.

    Args:
        stream: any stream.
        clean: what comes in between, from its first batch to its last and again.
        every: how many batches of the stream come before one of the other.
    """

    clean: Stream
    every: int = 5

    def _check(self) -> None:
        check_whole_number(f"every of the stream '{self.stream.name}, interleaved'", self.every)
        if not isinstance(self.clean, Stream):
            raise HapteraError(f"Interleaved takes a stream of clean data, found {type(self.clean).__name__}")
        if self.clean.classes != self.stream.classes:
            raise HapteraError(
                f"the streams {self.stream.name!r} and {self.clean.name!r} have other classes; "
                "both must be mapped to the model's in the same way"
            )

    @property
    def words(self) -> str:
        """Return a name such as `clean after every 5 batches`."""
        return f"{self.clean.name} after every {f'{self.every:,} batches' if self.every > 1 else 'batch'}"

    def with_seed(self, seed: int) -> Self:
        """Both streams with other randomness."""
        return replace(self, stream=self.stream.with_seed(seed), clean=self.clean.with_seed(seed))

    def _own_sizes(self) -> np.ndarray:
        sizes, between = self.stream.sizes(), self.clean.sizes()
        turns = len(sizes) // self.every
        return np.insert(sizes, (np.arange(turns) + 1) * self.every, np.resize(between, turns))

    @cached_property
    def _keys(self) -> list[str]:
        """Return what the stream says about its samples, but for `sample`."""
        return [key for key in self.stream[0].context if key != "sample"]

    def _batch(self, index: int) -> Batch:
        turn, inside = divmod(index, self.every + 1)
        start = int(self._starts[index])
        if inside < self.every:
            return _mark(number(self.stream[turn * self.every + inside], start), interleaved=False)
        batch = number(self.clean[turn % len(self.clean)], start)
        known = {key: batch.context[key] for key in (*self._keys, "sample") if key in batch.context}
        if missing := [key for key in self._keys if key not in known]:
            before = self.stream[(turn + 1) * self.every - 1].context
            known |= {key: np.asarray(before[key]).reshape(-1)[-1] for key in missing}
        return _mark(Batch(batch.inputs, batch.targets, batch.ids, known), interleaved=True)


@dataclass(frozen=True)
class OneByOne(Wrapper):
    """The same samples in the same order, each a batch of its own."""

    @property
    def words(self) -> str:
        """`one by one`."""
        return "one by one"

    @cached_property
    def _within(self) -> np.ndarray:
        """Return `(batches,)`, how many samples there are up to the end of each batch of the stream within."""
        return np.cumsum(self.stream.sizes())

    def _own_sizes(self) -> np.ndarray:
        return np.ones(self._within[-1], np.int64)

    def _batch(self, index: int) -> Batch:
        outer = int(np.searchsorted(self._within, index, side="right"))
        row = index - (int(self._within[outer - 1]) if outer else 0)
        one = select(self._read(outer), slice(row, row + 1))
        return Batch(one.inputs.clone(), one.targets, one.ids, one.context)  # what is kept must not be changed

    def _read(self, outer: int) -> Batch:
        """A batch of the stream within; the last one is kept, since its samples come one after the other."""
        kept = self.__dict__.get("_kept")
        if kept is None or kept[0] != outer:
            kept = outer, self.stream[outer]
            self.__dict__["_kept"] = kept
        return kept[1]

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_kept"}


def wrap_stream(
    stream: Stream,
    clean: Stream | None = None,
    *,
    interleave: int | None = None,
    repeat: int | None = None,
    truncate: int | None = None,
    one_by_one: bool = False,
    name: str = "",
) -> Stream:
    """Return a stream with wrappers around it, in the order of the settings.

    They say after how many batches clean ones come, how many times all is repeated, after how many samples it ends, and
    whether each is a batch of its own. Without a name each wrapper adds its own words.
    """
    for key, value in (("interleave", interleave), ("repeat", repeat), ("truncate", truncate)):
        if value is not None:
            check_whole_number(f"{key} of the stream {stream.name!r}", value)
    if not isinstance(one_by_one, bool):
        raise HapteraError(f"one_by_one of the stream {stream.name!r} is {one_by_one!r}; true or false was expected")
    if interleave is not None:
        if clean is None:
            raise HapteraError(f"interleave of the stream {stream.name!r} needs clean data, and there is none")
        stream = Interleaved(stream, clean, interleave, name=name)
    if repeat is not None:
        stream = Repeated(stream, repeat, name=name)
    if truncate is not None:
        stream = Truncated(stream, truncate, name=name)
    return OneByOne(stream, name=name) if one_by_one else stream


def _mark(batch: Batch, interleaved: bool) -> Batch:
    return Batch(batch.inputs, batch.targets, batch.ids, {**batch.context, "interleaved": interleaved})
