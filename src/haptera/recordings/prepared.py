"""Preparation: what was done to a signal before an encoder learnt from it, so that it can be done to another one.

Channels that never changed in the training part are left out, the others are smoothed inside each block, then scaled by
the means and deviations of the training part. It stands in the header of a saved model as plain numbers.
Cost: that of smoothing.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from haptera.errors import HapteraError
from haptera.files.schema import FLAG, TEXT, check, list_of, number, optional, whole_number
from haptera.recordings.missing import COLUMN, PLACE
from haptera.recordings.preparation import Scaling, smooth
from haptera.recordings.recording import Recording

log = logging.getLogger("haptera")

NAMED = 5
"""Channels that a message names; of more, the first."""
NUMBERS = list_of(number())
FACTS = {
    "name": TEXT,
    "signal": TEXT,
    "channels": list_of(TEXT),
    "places": list_of(whole_number()),
    "of": whole_number(1),
    "bin": optional(number(0)),
    "smoothing": number(0),
    "causal": FLAG,
    "mean": optional(NUMBERS),
    "deviation": optional(NUMBERS),
    "labels": list_of(list_of(TEXT)),
    "classes": list_of(list_of(TEXT)),
}
LATER: dict[str, Any] = {"labels": [], "classes": []}
"""What files of earlier versions do not have."""


@dataclass(frozen=True, eq=False)
class Preparation:
    """How the signal of one session was prepared.

    Attributes:
        name: of the session.
        signal: its name in the recording.
        channels: names of the channels that were kept.
        places: where they were among all.
        of: how many channels there were.
        bin: seconds from sample to sample, if that is known.
        smoothing: standard deviation of a Gaussian, in samples; 0 for none.
        causal: whether smoothing looks back only.
        scaling: by the training part, or None.
        labels: name and kind of each label that encoders learnt from.
        classes: of each of these labels, in the order of their codes; none of a number or an angle.
    """

    name: str
    signal: str
    channels: tuple[str, ...]
    places: tuple[int, ...]
    of: int
    bin: float | None = None
    smoothing: float = 0.0
    causal: bool = False
    scaling: Scaling | None = None
    labels: tuple[tuple[str, str], ...] = ()
    classes: tuple[tuple[str, ...], ...] = ()

    def values(self, part: Recording) -> np.ndarray:
        """Return the prepared signal of a part, which has all channels; blocks are smoothed apart."""
        values = part.signal(self.signal)[:, list(self.places)]
        if self.smoothing:
            values = smooth(values, self.smoothing, part.blocks, causal=self.causal)
        return values if self.scaling is None else self.scaling(values)

    def apply(self, recording: Recording) -> Recording:
        """Return a recording of the same channels, prepared in the same way, the channels in the order they had.

        Channels are found by their ids or columns, in any order; by their places where the recording names none, or
        others, and has as many as there were.
        """
        name = self.signal if self.signal in recording.signals else next(iter(recording.signals))
        places = self._places(recording, name)
        facts = recording.channels.get(name, pd.DataFrame({PLACE: range(recording.signal(name).shape[1])}))
        chosen = replace(
            recording,
            signals={name: recording.signal(name)[:, places]},
            channels={**recording.channels, name: facts.iloc[places].reset_index(drop=True)},
        )
        own = replace(self, places=tuple(range(len(places))), signal=name)
        return replace(chosen, signals={name: own.values(chosen)})

    def _places(self, recording: Recording, name: str) -> list[int]:
        """Return where the channels of the session are in a recording."""
        count, facts = recording.signal(name).shape[1], recording.channels.get(name, ())
        # Without ids a name is only a place, which says nothing about another set of channels.
        told = {"id", COLUMN, PLACE} & set(facts)
        known = {one: place for place, one in enumerate(recording.channel_names(name))} if told else {}
        missing = [one for one in self.channels if one not in known]
        if not missing:
            return [known[one] for one in self.channels]
        if count != self.of or told == {PLACE}:
            some = (
                f"{len(missing)} of those that it used are not there by name"
                if told
                else "without names they cannot be told"
            )
            listed = f": {', '.join(missing[:NAMED])}" + ", ..." * (len(missing) > NAMED) if told else ""
            raise HapteraError(
                f"{recording.source} has {count} channels, session {self.name!r} of the model had {self.of}, and "
                f"{some}{listed}; a model reads the channels that it learnt from, and --adapt fits it to others"
            )
        if told:
            log.warning(
                "%s: %d of %d channels are called otherwise than in session %r of the model (%s was one); all are "
                "taken by their places",
                *(recording.source, len(missing), len(self.channels), self.name, missing[0]),
            )
        return list(self.places)

    def facts(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        fields = {key: value for key, value in vars(self).items() if key != "scaling"}
        scaling = {key: None if self.scaling is None else getattr(self.scaling, key).tolist() for key in SCALED}
        lists = {"channels": list(self.channels), "places": list(self.places)}
        lists |= {"labels": list(map(list, self.labels)), "classes": list(map(list, self.classes))}
        return fields | lists | scaling

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any], where: str) -> "Preparation":
        """Return what `facts` wrote, checked."""
        found = check(LATER | dict(facts), FACTS, where)
        places = tuple(found["places"])
        sizes = {len(places), len(found["channels"]), *(len(found[key]) for key in SCALED if found[key] is not None)}
        if len(sizes) > 1 or not places or max(places) >= found["of"]:
            raise HapteraError(f"{where}: places, channels and scaling do not fit {found['of']} channels")
        scaling = None
        if found["mean"] is not None and found["deviation"] is not None:
            scaling = Scaling(np.array(found["mean"], float), np.array(found["deviation"], float))
        if any(len(one) != 2 for one in found["labels"]):
            raise HapteraError(f"{where}: labels has {found['labels']}; the name and the kind of each were expected")
        fields = {key: found[key] for key in FACTS if key not in SCALED}
        labels = tuple((name, kind) for name, kind in found["labels"])
        classes = tuple(map(tuple, found["classes"]))
        tuples = {"places": places, "channels": tuple(found["channels"]), "labels": labels, "classes": classes}
        return cls(**fields | tuples | {"scaling": scaling})


SCALED = ("mean", "deviation")
