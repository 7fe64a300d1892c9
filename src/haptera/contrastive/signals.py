"""Signals: sessions and trials laid end to end on a timeline, windows of their samples, and points of an embedding.

Samplers and encoders name a sample by its place on the timeline, which knows the samples whose window lies inside one
trial. Nothing there grows with the number of samples: samples that may be drawn are kept as ranges.
An array stays where it is, on disk if it is a memory map. Where the windows of a batch have more samples than the
session itself (up to thirty times the batch for windows of ten), all points are computed in one convolution over the
whole session, and those of the batch are taken from it. On a CPU, an encoder that can do so convolves only the samples
that some window of the batch has, each once, laid end to end; what comes out where two stretches meet is not used.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import torch
from torch import nn

from haptera.contrastive.encoder import ConvolutionalEncoder, encode_sequence, encode_windows
from haptera.contrastive.stack import Pool
from haptera.errors import HapteraError
from haptera.recordings.windows import Offset

AT_ONCE = 2**14
"""Samples that are embedded together where no gradient is needed."""
CROWDED = 3
"""Samples of windows for each sample of a session, from which on nearly all of them are in some window."""


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
        """Draw `count` of them, with replacement."""
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
                raise HapteraError(
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


class Signal:
    """One session: `(samples, channels)`, of any type of number, and the windows of its samples."""

    def __init__(self, values: np.ndarray, offset: Offset, device: torch.device) -> None:
        self.values, self.offset, self.device = values, offset, device

    def __len__(self) -> int:
        return len(self.values)

    def windows(self, indices: np.ndarray) -> torch.Tensor:
        """`(indices, channels, length)`."""
        return _tensor(self.offset.windows(self.values, indices), self.device).transpose(1, 2)

    def samples(self, chosen: np.ndarray) -> torch.Tensor:
        """Some of it, `(channels, chosen)`."""
        found = self.values[chosen].astype(np.float32, copy=False)  # what is chosen is a copy already
        return torch.from_numpy(found).to(self.device).T

    @cached_property
    def sequence(self) -> torch.Tensor:
        """All of it, `(channels, samples)`."""
        return _tensor(self.values, self.device).T


def join_windows(starts: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the samples that windows have, each once and in order, and where in them every window begins.

    Args:
        starts: first samples of the windows.
        length: of a window.

    >>> join_windows(np.array([7, 0, 2]), 3)
    (array([0, 1, 2, 3, 4, 7, 8, 9]), array([5, 0, 2]))
    """
    first, which = np.unique(starts, return_inverse=True)
    counts = np.append(np.minimum(np.diff(first), length), length)
    places = counts.cumsum() - counts
    return np.repeat(first - places, counts) + np.arange(counts.sum()), places[which]


class Embedder:
    """Points for places on a timeline, with gradients; a step asks for `rows` places of each session."""

    def __init__(
        self, encoders: Sequence[nn.Module], signals: Sequence[Signal], timeline: Timeline, rows: float
    ) -> None:
        self.encoders, self._signals, self._timeline = encoders, signals, timeline
        self._whole, self._joined, self._pool = [], [], Pool()
        for encoder, signal in zip(encoders, signals, strict=True):
            covered = rows * len(signal.offset) / int(getattr(encoder, "stride", 1))
            self._whole.append(bool(getattr(encoder, "convolutional", False)) and len(signal) <= covered)
            by_products = bool(getattr(encoder, "by_products", False)) and signal.device.type == "cpu"
            self._joined.append(by_products and covered < CROWDED * len(signal))

    def __call__(self, places: np.ndarray) -> torch.Tensor:
        """`(places, dimensions)`."""
        if len(self._signals) == 1:
            return self._session(0, places)
        sessions = self._timeline.session_of(places)
        order = np.argsort(sessions, kind="stable")
        counts = np.bincount(sessions, minlength=len(self._signals))
        parts = np.split(places[order] - self._timeline.starts[sessions[order]], counts.cumsum()[:-1])
        points = torch.cat([self._session(number, part) for number, part in enumerate(parts) if len(part)])
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return points[torch.from_numpy(back).to(points.device)]

    def windows(self, places: np.ndarray) -> Iterator[tuple[nn.Module, torch.Tensor]]:
        """Return the encoder and the windows of each session that has some of the places."""
        sessions = self._timeline.session_of(places)
        for number in np.unique(sessions):
            local = places[sessions == number] - self._timeline.starts[number]
            yield self.encoders[number], self._signals[number].windows(local)

    def _session(self, number: int, indices: np.ndarray) -> torch.Tensor:
        encoder, signal = self.encoders[number], self._signals[number]
        if self._joined[number] and isinstance(encoder, ConvolutionalEncoder):
            starts = signal.offset.clamp(indices, len(signal)) - signal.offset.left
            chosen, begins = join_windows(starts, len(signal.offset))
            places = torch.from_numpy(begins)
            if self._whole[number]:
                return encoder.points(signal.sequence, places, chosen=torch.from_numpy(chosen), pool=self._pool)
            return encoder.points(signal.samples(chosen), places, pool=self._pool)
        if not self._whole[number]:
            return encode_windows(encoder, signal.windows(indices))
        rows = torch.from_numpy(indices - signal.offset.left).to(signal.device)
        return encode_sequence(encoder, signal.sequence, rows)


@torch.no_grad()
def embed(encoder: nn.Module, values: np.ndarray, offset: Offset, device: torch.device, pad: bool = True) -> np.ndarray:
    """Return the embedding of a signal, piece by piece.

    With `pad` its ends are repeated, so that there is a point for every sample; else there are `length − 1` less.
    """
    before, after = (offset.left, offset.right - 1) if pad else (0, 0)
    rows = len(values) + before + after - len(offset) + 1
    if rows < 1:
        raise HapteraError(f"{len(values)} samples are fewer than a window, which has {len(offset)}")
    was_training = encoder.training
    encoder.eval()
    found: np.ndarray | None = None
    for start in range(0, rows, AT_ONCE):
        stop = min(start + AT_ONCE, rows) + len(offset) - 1
        first, last = start - before, stop - before
        piece = _tensor(values[max(first, 0) : min(last, len(values))], device)
        ends = piece[:1].expand(max(-first, 0), -1), piece[-1:].expand(max(last - len(values), 0), -1)
        sequence = torch.cat([ends[0], piece, ends[1]]).T
        points = encode_sequence(encoder, sequence).cpu().numpy()
        if len(points) != (places := stop - start - len(offset) + 1):
            raise HapteraError(f"the encoder gives {len(points)} points for {places} windows; one each was expected")
        found = np.empty((rows, points.shape[1]), points.dtype) if found is None else found  # never held twice
        found[start : start + len(points)] = points
    encoder.train(was_training)
    assert found is not None
    return found


def _tensor(values: np.ndarray, device: torch.device) -> torch.Tensor:
    """32-bit numbers of our own, whatever the array was."""
    return torch.from_numpy(np.array(values, dtype=np.float32)).to(device)
