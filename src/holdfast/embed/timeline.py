"""Timeline: sessions and trials laid end to end, and the samples whose window lies inside one of them.

Samplers and encoders name a sample by its place on the timeline. Nothing here grows with the number of samples: samples
that may be drawn are kept as ranges.
"""

from collections.abc import Sequence

import numpy as np

from holdfast.embed.windows import Offset
from holdfast.errors import HoldfastError


class Ranges:
    """Half-open ranges of integers to draw from, each integer as likely as any other.

    >>> ranges = Ranges(np.array([0, 10]), np.array([2, 13]))
    >>> len(ranges), ranges.all().tolist()
    (5, [0, 1, 10, 11, 12])
    """

    def __init__(self, starts: np.ndarray, stops: np.ndarray) -> None:
        some = stops > starts
        self.starts, counts = starts[some], (stops - starts)[some]
        self._ends = counts.cumsum()

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def draw(self, count: int, random: np.random.Generator) -> np.ndarray:
        """As many as `count`, with replacement."""
        return self._at(random.integers(len(self), size=count))

    def all(self) -> np.ndarray:
        """Each of them once, in order."""
        return self._at(np.arange(len(self)))

    def _at(self, order: np.ndarray) -> np.ndarray:
        which = np.searchsorted(self._ends, order, side="right")
        before = np.concatenate([[0], self._ends[:-1]])
        return self.starts[which] + order - before[which]


class Timeline:
    """Where sessions and trials begin and end, and which samples may be drawn.

    Args:
        lengths: samples of each session.
        offset: the window, which has to lie inside a trial.
        trials: for each session a number for each sample that changes where a new trial begins, or None.
        share: only this part of every session, such as (0.8, 1.0), in order to hold samples out.

    Attributes:
        starts: place of each session's first sample, and the end of the last.
        valid: for each session the samples with a whole window.
        left_out: trials that are shorter than the window.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        offset: Offset,
        trials: Sequence[np.ndarray | None] | None = None,
        share: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        self.offset = offset
        self.starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        self._segments: list[tuple[np.ndarray, np.ndarray]] = []
        self.valid: list[Ranges] = []
        self.left_out = 0
        for session, length in enumerate(lengths):
            changes = trials[session] if trials is not None else None
            inner = np.empty(0, int) if changes is None else np.flatnonzero(changes[1:] != changes[:-1]) + 1
            edges = np.concatenate([[0], inner, [length]]).astype(np.int64)
            first, last = round(share[0] * length), round(share[1] * length)
            begin, end = np.clip(edges[:-1], first, last), np.clip(edges[1:], first, last)
            begin, end = (side[begin < end] + self.starts[session] for side in (begin, end))
            whole = end - begin >= len(offset)
            self.left_out += int((~whole).sum())
            if not whole.any():
                part = "" if share == (0.0, 1.0) else f", of which {last - first} are used here"
                trial = "" if changes is None else f" in {len(edges) - 1} trials"
                raise HoldfastError(
                    f"session {session} has {length} samples{trial}{part}; a window needs {len(offset)} in a row"
                )
            self._segments.append((begin, end))
            self.valid.append(Ranges(begin + offset.left, end - offset.right + 1))

    @property
    def sessions(self) -> int:
        """How many."""
        return len(self.valid)

    def session_of(self, places: np.ndarray) -> np.ndarray:
        """The session of each place."""
        return np.searchsorted(self.starts, places, side="right") - 1

    def with_successor(self, session: int, step: int) -> Ranges:
        """Samples of a session whose successor after `step` samples is in the same trial, both with whole windows."""
        begin, end = self._segments[session]
        return Ranges(begin + self.offset.left, end - self.offset.right + 1 - step)

    def differences(self, step: int) -> Ranges:
        """Samples of all sessions whose successor after `step` samples is in the same trial, whatever their windows."""
        begin, end = (np.concatenate(sides) for sides in zip(*self._segments, strict=True))
        return Ranges(begin, end - step)
