"""Recording: named signals with the labels, trials and times of their samples, all of the same length.

    recording = read_recording("mouse.nwb", signal="spikes", labels=["head_direction"], bin=0.1)
    train, test = recording.split(0.3)
    ContrastiveEmbedding().fit(train.signal(), *train.targets("head_direction"))

A recording is cut into blocks where a trial ends or time jumps. Smoothing stays inside a block, and so do pairs in
time. Slicing makes a new recording that shares the arrays.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from haptera.checks import check_number
from haptera.errors import HapteraError, unknown
from haptera.recordings.label import Label, estimator_targets, missing_values
from haptera.recordings.missing import COLUMN, PLACE, without_empty_channels

JUMP = 1.5
"""Samples further apart than so many usual steps belong to different blocks."""


@dataclass(frozen=True, eq=False)
class Recording:
    """Signals and what goes with them.

    Attributes:
        signals: name -> `(samples, channels)`.
        labels: name -> label.
        trials: `(samples,)`, the trial of each sample, or None.
        times: `(samples,)` in seconds, rising, the middle of each sample; or None where nobody knows.
        channels: name of a signal -> a row for each of its channels, such as the area of a unit.
        source: where it is from, for messages.
        notes: what was done while reading, in words.
        gaps: `(samples,)`, True where samples just before this one were left out; None is nowhere.
    """

    signals: Mapping[str, np.ndarray]
    labels: Mapping[str, Label] = field(default_factory=dict)
    trials: np.ndarray | None = None
    times: np.ndarray | None = None
    channels: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    source: str = "the recording"
    notes: tuple[str, ...] = ()
    gaps: np.ndarray | None = None

    @classmethod
    def from_arrays(
        cls,
        signals: Mapping[str, np.ndarray],
        labels: "Mapping[str, np.ndarray | tuple[np.ndarray, str | None]] | None" = None,
        *,
        trials: np.ndarray | None = None,
        times: np.ndarray | None = None,
        source: str = "the recording",
    ) -> "Recording":
        """A recording from plain arrays; samples without a label or a trial are left out, with a note.

        Args:
            signals: name -> `(samples, channels)`.
            labels: name -> values, or values and their kind, as `Label.of` takes them.
            trials: `(samples,)`, the trial of each.
            times: `(samples,)` in seconds.
            source: where it is from, for messages.

        >>> counts = {"spikes": np.array([[0], [1], [2], [3]])}
        >>> found = Recording.from_arrays(counts, {"x": np.array([0.1, np.nan, 0.2, 0.3])})
        >>> len(found), found.notes, found.blocks.tolist()
        (3, ('1 of 4 samples left out: 1 without x',), [0, 1, 1])
        """
        given = {name: value if isinstance(value, tuple) else (value, None) for name, value in (labels or {}).items()}
        signals, channels, notes = without_empty_channels(signals)
        length = len(next(iter(signals.values()), ()))
        absent = {f"without {name}": missing_values(np.asarray(values)) for name, (values, _) in given.items()}
        absent |= {} if trials is None else {"outside of trials": missing_values(np.asarray(trials))}
        holes = {f"without a value of {name}": signal for name, signal in signals.items() if signal.dtype.kind == "f"}
        absent |= {what: bad for what, signal in holes.items() if (bad := missing_values(signal)).any()}
        if any(len(one) != length for one in (*absent.values(), *signals.values())):  # the recording says which
            absent = {}
        lost = np.any([np.zeros(length, bool), *absent.values()], axis=0)
        if length and lost.all():
            raise HapteraError(f"{source}: every sample is {' or '.join(absent)}")
        rows = np.flatnonzero(~lost) if lost.any() else slice(None)
        found = {
            name: Label.of(_present(np.asarray(values), rows), kind, name) for name, (values, kind) in given.items()
        }
        recording = cls(
            {name: signal[rows] for name, signal in signals.items()},
            found,
            None if trials is None else np.asarray(trials)[rows],
            None if times is None else np.asarray(times)[rows],
            channels,
            source,
            notes,
        )
        if isinstance(rows, slice):
            return recording
        counts = ", ".join(f"{int(some.sum()):,} {what}" for what, some in absent.items() if some.any())
        note = f"{int(lost.sum()):,} of {length:,} samples left out: {counts}"
        return replace(recording, notes=(*notes, note), gaps=_breaks(rows))

    def __post_init__(self) -> None:
        if not self.signals:
            raise HapteraError(f"{self.source} has no signal")
        for name, signal in self.signals.items():
            self._check_signal(name, signal)
        first = next(iter(self.signals))
        others: dict[str, int] = {f"signal {name!r}": len(signal) for name, signal in self.signals.items()}
        others |= {f"label {name!r}": len(label) for name, label in self.labels.items()}
        others |= {"trials": len(self.trials)} if self.trials is not None else {}
        others |= {"times": len(self.times)} if self.times is not None else {}
        for what, length in others.items():
            if length != len(self):
                raise HapteraError(
                    f"{self.source}: {what} has {length:,} samples, signal {first!r} has {len(self):,}; "
                    "the same length was expected"
                )
        for name, label in self.labels.items():
            if missing := int(label.missing.sum()):
                raise HapteraError(
                    f"{self.source}: label {name!r} is not a number in {missing:,} samples; "
                    "Recording.from_arrays leaves such samples out"
                )
        if self.times is not None and not (np.diff(self.times) > 0).all():
            raise HapteraError(f"{self.source}: times do not rise from sample to sample")

    def _check_signal(self, name: str, signal: np.ndarray) -> None:
        if signal.ndim != 2 or 0 in signal.shape or signal.dtype.kind not in "fiub":
            raise HapteraError(
                f"{self.source}: signal {name!r} is {signal.dtype} {signal.shape}; numbers (samples, channels) expected"
            )
        if signal.dtype.kind == "f" and (bad := ~np.isfinite(signal)).any():
            row, column = np.argwhere(bad)[0]
            raise HapteraError(
                f"{self.source}: signal {name!r} has {int(bad.sum()):,} values that are not finite, the first in "
                f"sample {row:,}, channel {column:,}"
            )

    def __len__(self) -> int:
        return len(next(iter(self.signals.values())))

    def __getitem__(self, rows: slice | np.ndarray) -> "Recording":
        """The samples of a slice, of a mask or of numbers; where numbers jump, a new block begins."""
        gaps = None if self.gaps is None else self.gaps[rows]
        if not isinstance(rows, slice):
            jumps = _breaks(np.arange(len(self))[rows])
            gaps = jumps if gaps is None else gaps | jumps
        return replace(
            self,
            signals={name: signal[rows] for name, signal in self.signals.items()},
            labels={name: label[rows] for name, label in self.labels.items()},
            trials=None if self.trials is None else self.trials[rows],
            times=None if self.times is None else self.times[rows],
            gaps=gaps,
        )

    def signal(self, name: str | None = None) -> np.ndarray:
        """A signal `(samples, channels)`; the only one if none is named."""
        if name is None and len(self.signals) > 1:
            raise HapteraError(f"{self.source} has signals {', '.join(self.signals)}; name one of them")
        name = next(iter(self.signals)) if name is None else name
        if name not in self.signals:
            raise unknown(f"signal of {self.source}", name, self.signals)
        return self.signals[name]

    def label(self, name: str) -> Label:
        """A label by name."""
        if name not in self.labels:
            raise unknown(f"label of {self.source}", name, self.labels)
        return self.labels[name]

    def targets(self, *names: str) -> list[np.ndarray]:
        """Labels as the `*y` of an estimator: numbers side by side, angles on the circle, classes apart."""
        return estimator_targets([self.label(name) for name in names])

    @property
    def step(self) -> float | None:
        """Usual time from a sample to the next, in seconds."""
        return float(np.median(np.diff(self.times))) if self.times is not None and len(self.times) > 1 else None

    @property
    def blocks(self) -> np.ndarray:
        """Return the number of the block of every sample; a new one begins with a trial and after a gap."""
        begins = np.zeros(len(self), bool) if self.gaps is None else self.gaps.copy()
        begins[:1] = False
        if self.trials is not None:
            begins[1:] |= self.trials[1:] != self.trials[:-1]
        if self.times is not None and self.step is not None:
            begins[1:] |= np.diff(self.times) > JUMP * self.step
        return np.cumsum(begins)

    def split(self, held: float = 0.3) -> tuple["Recording", "Recording"]:
        """The first part and the last one, cut once: neighbours in time must not stand on both sides.

        Args:
            held: the share of samples in the last part; with trials, the cut is moved to the nearest end of one.
        """
        check_number("held", held, above=0, below=1, what="a share")
        cut = round(len(self) * (1 - held))
        if self.trials is not None:
            ends = np.flatnonzero(self.trials[1:] != self.trials[:-1]) + 1
            if not len(ends):
                raise HapteraError(f"{self.source} has a single trial; a part cannot be held out by trials")
            cut = int(ends[np.abs(ends - cut).argmin()])
        if not 0 < cut < len(self):
            raise HapteraError(f"{self.source} has {len(self):,} samples; too few to hold {held:g} of them out")
        return self[:cut], self[cut:]

    def of_trials(self, trials: Iterable[object]) -> "Recording":
        """The samples of these trials."""
        if self.trials is None:
            raise HapteraError(f"{self.source} has no trials")
        wanted = list(trials)
        known = set(self.trials.tolist())
        if strange := [trial for trial in wanted if trial not in known]:
            raise HapteraError(f"{self.source} has no trial {strange[0]!r}; it has {len(known):,} of them")
        return self[np.isin(self.trials, np.array(wanted))]

    def only_channels(self, signal: str, **columns: object) -> "Recording":
        """Only the channels whose facts are these, such as `location="adn"`."""
        self.signal(signal)  # says so if there is none
        facts = self.channels.get(signal)
        if facts is None:
            raise HapteraError(f"{self.source}: nothing is known about the channels of {signal!r}")
        kept = np.ones(len(facts), bool)
        for column, value in columns.items():
            if column not in facts:
                raise unknown(f"column of the channels of {signal!r}", column, map(str, facts.columns))
            found = facts[column].astype(str)
            if str(value) not in set(found):
                raise unknown(f"{column} of the channels of {signal!r}", str(value), set(found))
            kept &= (found == str(value)).to_numpy()
        if not kept.any():
            raise HapteraError(f"{self.source}: no channel of {signal!r} is all of {columns}")
        return self.with_channels(signal, kept)

    def with_channels(self, signal: str, kept: np.ndarray) -> "Recording":
        """Only some channels of a signal.

        Args:
            signal: its name.
            kept: `(channels,)`, True for those that stay.
        """
        values, facts = self.signal(signal), self.channels.get(signal)
        if facts is None:
            facts = pd.DataFrame(index=range(values.shape[1]))
        if PLACE not in facts:
            facts = facts.assign(**{PLACE: np.arange(len(facts))})
        channels = {**self.channels, signal: facts[kept].reset_index(drop=True)}
        return replace(self, signals={**self.signals, signal: values[:, kept]}, channels=channels)

    def with_columns(self, signal: str, columns: Sequence[str]) -> "Recording":
        """Return it with the names that the channels of a signal had as columns of a table, those left out included."""
        facts = self.channels.get(signal, pd.DataFrame({PLACE: range(len(columns))}))
        named = facts.assign(**{COLUMN: [columns[place] for place in facts[PLACE]]})
        return replace(self, channels={**self.channels, signal: named})

    def channel_noun(self, signal: str | None = None) -> str:
        """`units` where something is known about them beside their places and columns, else `channels`."""
        facts = self.channels.get(next(iter(self.signals)) if signal is None else signal)
        return "units" if facts is not None and set(facts) - {PLACE, COLUMN} else "channels"

    def channel_names(self, signal: str | None = None) -> list[str]:
        """Ids or columns of the channels where the recording has them and they differ, else their places, from 0."""
        name = next(iter(self.signals)) if signal is None else signal
        facts = self.channels.get(name)
        if facts is not None:
            for column in ("id", COLUMN, PLACE):
                if column in facts and facts[column].is_unique:
                    return facts[column].astype(str).tolist()
        return [str(place) for place in range(self.signal(name).shape[1])]


def _breaks(rows: np.ndarray) -> np.ndarray:
    """Say of every row whether it does not follow the one before; the least step between rows is the usual one."""
    steps = np.diff(rows)
    usual = steps.min(initial=np.iinfo(np.int64).max, where=steps > 0)
    return np.concatenate([np.zeros(min(len(rows), 1), bool), steps != usual])


def _present(values: np.ndarray, rows: "slice | np.ndarray") -> np.ndarray:
    """The values that are there; whole numbers that are floats only because some were missing are integers again."""
    if isinstance(rows, slice) or len(values) <= rows[-1]:
        return values
    values = values[rows]
    whole = values.dtype.kind == "f" and (values == np.round(values)).all() and np.abs(values).max() < 2**53
    return values.astype(np.int64) if whole else values
