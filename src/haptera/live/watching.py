"""Watching: what a guard knows about the stream, without a word about which model should answer.

Bundles the signals of every image, the alarms about them, the place of the shift and the predicted accuracy; each is
described in its own file. Signals are taken by hooks while the model that answers runs, so that they cost no pass.
At a change point, and where the stream is back, windows begin anew: numbers of a window that holds both are of neither.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np

from haptera.adapters.base import Adapter
from haptera.live.accuracy import Accuracy, AccuracyEstimate
from haptera.live.alarms import Alarm, Alarms
from haptera.live.place import LayerStatistics, ShiftWindow
from haptera.live.profile import Profile
from haptera.live.settings import GuardSettings
from haptera.live.signals import Signals, network_of

SAMPLE, QUIET_EVERY, ALARM_EVERY, CLOSE_EVERY = 16, 16, 4, 2
"""Images of a step whose moments are taken at every layer, and steps between two of which they are: while nothing has
changed, while an alarm lasts, and for `CLOSELY` steps after it is raised or cleared."""
CLOSELY = 64
PLACE = 5
"""Samples between looks at the place of the shift, which needs all of them; soon after a change, all are looked at."""


@dataclass(frozen=True)
class View:
    """What is known after a step: size, place and nearest known corruption of the shift, predicted accuracy, alarm."""

    size: float
    where: str
    nearest: str
    accuracy: AccuracyEstimate
    alarm: Alarm | None


class Watching:
    """Follows a stream through the models that answer it.

    Args:
        models: name -> what answers.
        profile: the reference, or None.
        settings: of the guard.
    """

    def __init__(
        self,
        models: Mapping[str, Adapter],
        profile: Profile | None,
        settings: GuardSettings,
    ) -> None:
        self._signals = {name: Signals(model, profile, sample=SAMPLE) for name, model in models.items()}
        self.alarms = Alarms(profile, alpha=settings.alpha, warmup=settings.warmup, seed=settings.seed)
        self.accuracy = Accuracy(profile, window=settings.window)
        self._window = None if profile is None or profile.moments is None else ShiftWindow(profile)
        self._network = network_of(next(iter(models.values()))) if profile is None else None
        self._layers = None if self._network is None else LayerStatistics.of_network(self._network)
        self.remarks = (*self.alarms.remarks, *(profile.remarks if profile is not None else self._unknown()))
        self._place: tuple[float, str, str] = (nan, "", "")
        self._looks = self._samples = self._close = 0

    def look(self, name: str, logits: np.ndarray | None, images: int, step: int, time: float) -> View:
        """Take what was seen while a model answered a batch.

        Args:
            name: of the model.
            logits: `(images, classes)` that were served; None where outputs are something else.
            images: in the batch.
            step: its number.
            time: of the wall clock.
        """
        scores = self._signals[name].take(images)
        moments = self._signals[name].take_moments()
        self.forget()
        self._meet(moments)
        whole = self._layers is None or moments.keys() >= set(self._layers.names)
        if self._window is not None and moments and whole:
            self._window.update(moments)
            if self._close or self._samples % PLACE == 0 or np.isnan(self._place[0]):
                place = self._window.place()
                self._place = (place.size, place.where, place.nearest)
            self._samples += 1
        if logits is not None:
            self.accuracy.update(logits, None if np.isnan(self._place[0]) else self._place[0])
        finite = {signal: values for signal, values in scores.items() if np.isfinite(values).all()}
        alarm = self.alarms.update(finite, step, time)
        if alarm is not None:
            self._begin(alarm)
        self._looks += 1
        self._close = CLOSELY if alarm is not None else max(self._close - 1, 0)
        self._choose_sample()
        size, where, nearest = self._place
        return View(size, where, nearest, self.accuracy.estimate(), alarm)

    def _begin(self, alarm: Alarm) -> None:
        """Leave out of all windows what came before a change: the accuracy and the place are those of the new data."""
        self.accuracy.begin(alarm.images)
        if self._window is not None:
            self._window.begin()
        self._place = (nan, "", "")

    def _unknown(self) -> tuple[str, ...]:
        """Return what cannot be told without a profile."""
        size = "the model has no BatchNorm layers with statistics: the size of a shift, and where it is, are not known"
        if self._layers is not None:
            size = (
                "without a profile, the size of a shift is its distance from the statistics in the BatchNorm layers, "
                "those of training: ordinary images have a size as well; a change of it tells"
            )
        return size, "without a profile, accuracy is not predicted, only mean confidence is shown; a shift has no name"

    def _meet(self, moments: Mapping[str, np.ndarray]) -> None:
        """Begin a window of the layers that the first batch met, where there is no profile."""
        if self._window is None and self._layers is not None and self._network is not None and moments:
            self._layers = LayerStatistics.of_network(self._network, moments)
            self._window = None if self._layers is None else ShiftWindow(self._layers)

    def _choose_sample(self) -> None:
        """Take moments in some steps alone, since they cost more than all else that hooks do."""
        every = CLOSE_EVERY if self._close else QUIET_EVERY if self.alarms.active is None else ALARM_EVERY
        watched = self._window is not None or self._layers is not None
        for signals in self._signals.values():
            signals.sample = SAMPLE if watched and self._looks % every == 0 else 0

    def forget(self) -> None:
        """Leave aside what hooks saw in passes that were not an answer."""
        for signals in self._signals.values():
            signals.take(0)
            signals.take_moments()

    def state(self) -> dict[str, Any]:
        """Return everything that changes."""
        window = None if self._window is None else self._window.state()
        own = {"place": list(self._place), "looks": self._looks, "window": window}
        own |= {"samples": self._samples, "close": self._close}
        own["layers"] = [] if self._window is None or self._layers is None else list(self._layers.names)
        return own | {"alarms": self.alarms.state(), "accuracy": self.accuracy.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self.alarms.restore(state["alarms"])
        self.accuracy.restore(state["accuracy"])
        size, where, nearest = state["place"]
        self._place, self._looks = (size, where, nearest), state["looks"]
        self._samples, self._close = state["samples"], state["close"]
        self._meet(dict.fromkeys(state["layers"], np.zeros(0)))
        if self._window is not None and state["window"] is not None:
            self._window.restore(state["window"])
        self._choose_sample()

    def close(self) -> None:
        """Remove the hooks."""
        for signals in self._signals.values():
            signals.close()
