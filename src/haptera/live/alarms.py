"""Alarms: a promise about false alarms over the whole life of a stream, that holds however often one looks.

Every signal has a conformal martingale (`haptera.statistics.sequential`) whose capital reaches k / α by chance with
probability at most α / k, ever; with k signals, the chance of any false alarm is at most α. The r-th alarm gets the
share 1 / (r (r + 1)) of α, and these shares sum to 1. With promise `rate` a signal's threshold is 2 k `horizon`: a
false alarm within n images has probability at most n / (2 `horizon`), so that the mean time to the next one is at least
`horizon` images.
What is promised holds for images that are exchangeable with those of the reference: drawn independently from the same
source, or shuffled. Frames of a video are not: neighbours are alike, and a scene looks like evidence. `thin` looks at
every so-many-th image alone; the promise then holds as far as images so far apart are exchangeable, in the reference
and in the stream. A second alarm is exact up to this: when it was armed depends a little on the reference.
An alarm stays until the stream is back: until moving averages of ranks, over four times the images that it took from
the change to the alarm, are within `LIMIT` deviations of the first half of the reference, for every signal.
Cost: about half a millisecond for a batch of 64 and seven signals. Holds a few kB.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from haptera.checks import check_number, check_whole_number
from haptera.errors import HapteraError, unknown
from haptera.live.profile import Profile
from haptera.live.recovery import Recovery
from haptera.live.signals import EARLY, PIXELS
from haptera.live.timeline import Timeline
from haptera.statistics.sequential import PROMISES, ConformalMartingale

FOLLOW = (*PIXELS, *EARLY)
"""The signals that count unless others are named: those that adaptation cannot change."""


@dataclass(frozen=True)
class Alarm:
    """A change of the stream, or its end.

    Attributes:
        kind: `alarm`, the stream has changed; `cleared`, it is back.
        step: at which it was noticed.
        time: of that step, in seconds, as `update` was told.
        signal: the name of the signal that shows it most.
        since: the step at which the change began, as far as can be told.
        since_time: the time of that step.
        evidence: the capital of this signal's bets, which chance multiplies by more than x with probability 1 / x; 0
            where it is cleared.
        level: the share of the promise that this alarm may cost.
        sentence: all of this for people.
        images: how many have come since the change; where it is cleared, those over which the stream is back.
    """

    kind: str
    step: int
    time: float
    signal: str
    since: int
    since_time: float
    evidence: float
    level: float
    sentence: str
    images: int = 0


class Alarms:
    """Sequential tests of every signal against the reference; may be looked at after every batch.

    Args:
        profile: the reference; None to take the first `warmup` images of the stream.
        alpha: with promise `life`, the chance of any false alarm, ever.
        promise: `life`; or `rate`, false alarms at most once in `horizon` images on average.
        signals: names of those that count; by default all of the profile that adaptation cannot change.
        warmup: images that serve as the reference where there is no profile.
        horizon: images in which a promise of `rate` allows one false alarm on average.
        thin: look at every so-many-th image alone, for streams whose neighbours are alike, such as video.
        seed: of the random ties.

    Attributes:
        active: the alarm that was raised and is not cleared yet, or None.
        evidence: signal -> its evidence now.
        threshold: what evidence must reach.
        remarks: what these alarms cannot tell, as sentences.
    """

    def __init__(
        self,
        profile: Profile | None = None,
        *,
        alpha: float = 0.05,
        promise: str = "life",
        signals: Sequence[str] | None = None,
        warmup: int = 1000,
        horizon: int = 1_000_000,
        thin: int = 1,
        seed: int = 0,
    ) -> None:
        check_number("alpha", alpha, above=0, below=1, what="a chance")
        if promise not in PROMISES:
            raise unknown("promise", promise, PROMISES)
        check_whole_number("warmup", warmup, 100, what="a number of images")
        check_whole_number("horizon", horizon, what="a number of images")
        check_whole_number("thin", thin)
        self.alpha, self.promise, self.warmup, self.horizon, self.thin = alpha, promise, warmup, horizon, thin
        self.seed, self._asked = seed, None if signals is None else tuple(signals)
        self.active: Alarm | None = None
        self._raised, self._offset = 0, 0
        self._names: tuple[str, ...] = ()
        self._warm: dict[str, np.ndarray] = {}
        self._tests: ConformalMartingale | None = None
        self._recovery: Recovery | None = None
        self._times = Timeline()
        self.remarks: tuple[str, ...] = ()
        if profile is not None:
            self._follow(profile.scores)
        else:
            self.remarks = (f"without a profile, the first {warmup} images are the reference, shifted or not",)
        if thin > 1:
            self.remarks += (f"the promise is about every {thin}th image, as if those were independent",)

    @property
    def threshold(self) -> float:
        """What the evidence of a signal must reach for an alarm."""
        signals = max(len(self._names), 1)
        return signals / self.level if self.promise == "life" else 2.0 * signals * self.horizon

    @property
    def level(self) -> float:
        """The chance that the next alarm may be false; with promise `rate`, within one image."""
        if self.promise == "rate":
            return 1 / (2 * self.horizon)
        return self.alpha / ((self._raised + 1) * (self._raised + 2))

    @property
    def evidence(self) -> dict[str, float]:
        """The evidence of every signal that is followed; empty while there is no reference yet."""
        values = () if self._tests is None else self._tests.evidence().tolist()
        return dict(zip(self._names, values, strict=False))

    def update(self, scores: Mapping[str, np.ndarray], step: int, time: float) -> Alarm | None:
        """Look at the images of a step.

        Args:
            scores: signal -> `(images,)`; signals that the alarms do not follow are left aside, missing ones wait.
            step: its number, never smaller than before.
            time: in seconds; only reported.

        Returns:
            An alarm when the stream has changed, once for each change; one of kind `cleared` when it is back.
        """
        scores, images = self._thin(scores)
        if not images:
            return None
        if self._tests is None:
            self._warm_up(scores)
            return None
        rows = [row for row, name in enumerate(self._names) if name in scores]
        if not rows:
            return None
        values = np.stack([scores[self._names[row]] for row in rows])
        if self.active is not None:
            return self._look_back(values, np.array(rows), step, time)
        self._times.add(int(self._tests.seen.max()), step, time)
        peaks = self._tests.update(values, None if len(rows) == len(self._names) else np.array(rows))
        best = int(peaks.argmax())
        if not peaks[best] >= self.threshold:
            return None
        return self._raise(rows[best], float(peaks[best]), step, time)

    def state(self) -> dict[str, Any]:
        """Return everything that changes, as plain numbers, texts, lists, dictionaries and NumPy arrays."""
        return {
            "settings": self._settings(),
            "names": list(self._names),
            "raised": self._raised,
            "offset": self._offset,
            "active": None if self.active is None else asdict(self.active),
            "times": self._times.state(),
            "warm": {name: values.copy() for name, values in self._warm.items()},
            "tests": None if self._tests is None else self._tests.state(),
            "recovery": None if self._recovery is None else self._recovery.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state, to the same numbers; a state of other settings is refused."""
        settings = state.get("settings")
        for name in self.state():
            if name not in state:
                raise HapteraError(f"the state has no {name!r}; it is not that of alarms")
        if settings != self._settings():
            raise HapteraError(f"the state is of alarms with {settings}; these have {self._settings()}")
        warm = {str(name): np.asarray(values, float) for name, values in state["warm"].items()}
        if state["tests"] is not None and (self._tests is None or not self._names):
            self._follow(warm)
        if list(self._names) != list(state["names"]) and state["tests"] is not None:
            raise HapteraError(f"the state follows {state['names']}; these alarms follow {list(self._names)}")
        self._raised, self._offset, self._warm = int(state["raised"]), int(state["offset"]), warm
        self._begin()
        if self._tests is not None and state["tests"] is not None:
            self._tests.restore(state["tests"])
        self.active = None if state["active"] is None else Alarm(**state["active"])
        self._times.restore(state["times"])
        self._recovery = None if state["recovery"] is None else Recovery.of_state(state["recovery"], self._first)

    def _settings(self) -> dict[str, Any]:
        known = ("alpha", "promise", "warmup", "horizon", "thin", "seed")
        return {name: getattr(self, name) for name in known}

    def _thin(self, scores: Mapping[str, np.ndarray]) -> tuple[dict[str, np.ndarray], int]:
        """Return the scores of the images that are looked at, and how many these are."""
        own = {name: np.asarray(values, float) for name, values in scores.items() if self._counts(name)}
        sizes = {values.shape for values in own.values()}
        if len(sizes) > 1 or any(len(size) != 1 for size in sizes):
            shapes = ", ".join(f"{name} {values.shape}" for name, values in own.items())
            raise HapteraError(f"scores of one step have shapes {shapes}; (images,), the same for all, was expected")
        images = sizes.pop()[0] if sizes else 0
        first = -self._offset % self.thin
        self._offset = (self._offset + images) % self.thin
        kept = {name: values[first :: self.thin] for name, values in own.items()}
        return kept, len(range(first, images, self.thin))

    def _counts(self, name: str) -> bool:
        """Say whether a signal counts."""
        return name in (self._names or (FOLLOW if self._asked is None else self._asked))

    def _warm_up(self, scores: Mapping[str, np.ndarray]) -> None:
        """Add images to the reference; begin when there are enough."""
        names = set(self._warm or scores) & set(scores)  # a signal that is missing once is left out
        before = {name: self._warm.get(name, np.zeros(0)) for name in names}
        self._warm = {name: np.concatenate([before[name], scores[name]]) for name in sorted(names)}
        if self._warm and len(next(iter(self._warm.values()))) >= self.warmup:
            self._follow(self._warm)

    def _follow(self, scores: Mapping[str, np.ndarray]) -> None:
        """Take the scores of the reference, in the order that images are kept or came in."""
        asked = [name for name in FOLLOW if name in scores] if self._asked is None else self._asked
        for name in asked:
            if name not in scores:
                raise unknown("signal", name, scores)
        usable = [name for name in asked if np.isfinite(scores[name]).any() and np.ptp(scores[name]) > 0]
        if not usable:
            raise HapteraError(f"none of the signals {', '.join(asked) or 'of the profile'} varies over the reference")
        self._names = tuple(usable)
        self._reference = np.stack([np.asarray(scores[name], float) for name in usable])
        self._first = np.sort(np.array_split(self._reference, 2, axis=1)[0], axis=1)
        self._begin()

    def _begin(self) -> None:
        """Arm the tests anew; the reference alone is counted again."""
        if self._names:
            self._tests = ConformalMartingale(
                self._reference, promise=self.promise, seed=self.seed * 1_000_003 + self._raised
            )
            self._times = Timeline()

    def _raise(self, row: int, evidence: float, step: int, time: float) -> Alarm:
        assert self._tests is not None
        image, direction = self._tests.change(row)
        seen, (since, since_time) = int(self._tests.seen[row]), self._times.at(image)
        name = self._names[row].replace("_", " ")
        sentence = (
            f"the stream has changed since step {since}, about {seen - image:,} images ago: {name} is {direction} than "
            f"in the reference; evidence {evidence:.3g}, {self.threshold:,.0f} was needed"
        )
        facts = (self._names[row], since, since_time, evidence, self.level, sentence, self.thin * (seen - image))
        self.active = Alarm("alarm", step, time, *facts)
        self._raised += 1
        self._recovery = Recovery(self._first, seen - image)
        return self.active

    def _look_back(self, values: np.ndarray, rows: np.ndarray, step: int, time: float) -> Alarm | None:
        """Say whether the stream is back; if so, arm the tests anew."""
        assert self._recovery is not None
        assert self.active is not None
        if not self._recovery.update(values, rows):
            return None
        before, self.active = self.active, None
        images = self.thin * self._recovery.window
        sentence = (
            f"the stream is back since step {step}: every signal is as in the reference over "
            f"{self._recovery.window:,} images; the alarm of step {before.step} ends"
        )
        self._begin()
        self._recovery = None
        return Alarm("cleared", step, time, before.signal, before.step, before.time, 0.0, self.level, sentence, images)
