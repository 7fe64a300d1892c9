"""Simulate: replay a stream against a guard at a chosen rate, to see alarms and fall-backs before production does.

The guard gets batches as a service would, from one thread or from several, and, where asked for, the labels of some
images a while later. What it then logs is a log like any other; the true labels are used for nothing else.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from time import monotonic
from typing import Any

import numpy as np

from haptera.batch import Batch, Stream
from haptera.checks import check_number, check_whole_number
from haptera.correctness import correct
from haptera.errors import HapteraError
from haptera.live.guard import Guard


@dataclass(frozen=True)
class Replay:
    """How a stream is replayed.

    Args:
        rate: batches per second in all; 0 for as fast as possible.
        labels: share of the images whose labels arrive.
        delay: how many batches later.
        threads: that call the guard.
        seed: of which labels arrive.
    """

    rate: float = 0.0
    labels: float = 0.0
    delay: int = 50
    threads: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        check_number("rate", self.rate, least=0, below=float("inf"), what="a number of batches per second")
        check_number("labels", self.labels, least=0, most=1, what="a share")
        check_whole_number("delay", self.delay, 0, what="a number of batches")
        check_whole_number("threads", self.threads, 1, 64, what="a number of threads")
        check_whole_number("seed", self.seed, 0)


@dataclass(frozen=True)
class ReplaySummary:
    """What a replay came to.

    Attributes:
        batches: that were answered.
        seconds: that it took.
        accuracy: of the answers, by the labels of the stream; NaN without any.
    """

    batches: int
    seconds: float
    accuracy: float


def simulate(
    guard: Guard,
    streams: Stream | Sequence[Stream],
    replay: Replay | None = None,
    stop: threading.Event | None = None,
    progress: Callable[[int], object] | None = None,
) -> ReplaySummary:
    """Replay a stream, or several one after the other, against a guard.

    Args:
        guard: what answers.
        streams: what it is asked.
        replay: how fast, with which labels.
        stop: set by somebody to end it early.
        progress: told the number of batches after each.
    """
    replay = replay or Replay()
    every = [streams] if isinstance(streams, Stream) else list(streams)
    if replay.labels and any(stream.classes is not None for stream in every):
        raise HapteraError("labels of data with a mapping are not classes of the model; a guard cannot take them")
    return _Run(guard, every, replay, stop or threading.Event(), progress).go()


class _Run:
    """One replay; batches are dealt out to threads in order."""

    def __init__(
        self,
        guard: Guard,
        streams: Sequence[Stream],
        replay: Replay,
        stop: threading.Event,
        progress: Callable[[int], object] | None,
    ) -> None:
        self.guard, self.replay, self.stop, self.progress = guard, replay, stop, progress
        self._batches = chain.from_iterable(streams)
        self._mapped = any(stream.classes is not None for stream in streams)
        self._lock, self._began = threading.Lock(), monotonic()
        self._waiting: deque[tuple[np.ndarray, np.ndarray]] = deque()
        self._random = np.random.default_rng(replay.seed)
        self._dealt = self._images = self._answered = self._right = self._labelled = 0
        self._failure: Exception | None = None

    def go(self) -> ReplaySummary:
        """Answer all of it."""
        others = [threading.Thread(target=self._serve, daemon=True) for _ in range(self.replay.threads - 1)]
        for thread in others:
            thread.start()
        try:
            self._serve()
        except BaseException:  # an interruption ends the others after the batch that they are at
            self.stop.set()
            raise
        finally:
            for thread in others:
                thread.join()
        if self._failure is not None:
            raise self._failure
        share = self._right / self._labelled if self._labelled else float("nan")
        return ReplaySummary(self._answered, monotonic() - self._began, share)

    def _serve(self) -> None:
        try:
            for batch, first in self._deal():
                # Positions in the replay: a stream may show an image twice, and its label counts for each.
                ids = np.arange(first, first + len(batch))
                logits = self.guard(batch.inputs, ids=None if batch.targets is None else ids)
                self._note(batch, ids, logits)
        except Exception as error:  # told by `go`, whichever thread met it
            self._failure = self._failure or error
            self.stop.set()

    def _deal(self) -> Iterator[tuple[Batch, int]]:
        """Yield batches, each when its time has come, and how many images came before it."""
        while not self.stop.is_set():
            with self._lock:
                batch = next(self._batches, None)
                if batch is None:
                    return
                place, first = self._dealt, self._images
                self._dealt += 1
                self._images += len(batch)
            if self.replay.rate:
                wait = self._began + place / self.replay.rate - monotonic()
                if wait > 0 and self.stop.wait(wait):
                    return
            yield batch, first

    def _note(self, batch: Batch, ids: np.ndarray, logits: Any) -> None:
        """Count what is right, and have labels arrive."""
        with self._lock:
            self._answered += 1
            due = [] if batch.targets is None else self._label(ids, np.asarray(batch.targets), logits)
            if self.progress is not None:
                self.progress(self._answered)
        for known, targets in due:
            self.guard.label(known, targets)

    def _label(self, ids: np.ndarray, targets: np.ndarray, logits: Any) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the labels that arrive now."""
        if not self._mapped and getattr(logits, "ndim", 0) == 2:
            self._right += int(correct(logits.cpu().numpy(), targets).sum())
            self._labelled += len(targets)
        chosen = self._random.random(len(targets)) < self.replay.labels
        self._waiting.append((ids[chosen], targets[chosen]))
        due = [self._waiting.popleft() for _ in range(max(len(self._waiting) - self.replay.delay, 0))]
        return [(known, classes) for known, classes in due if len(known)]
