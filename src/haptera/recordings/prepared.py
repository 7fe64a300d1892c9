"""Preparation: what was done to a signal before an encoder learnt from it, so that it can be done to another one.

Channels that never changed in the training part are left out, the others are smoothed inside each block, then scaled by
the means and deviations of the training part. It stands in the header of a saved model as plain numbers.
Cost: that of smoothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from haptera.errors import HapteraError
from haptera.files.schema import FLAG, TEXT, check, list_of, number, optional, whole_number
from haptera.recordings.missing import PLACE
from haptera.recordings.preparation import Scaling, smooth
from haptera.recordings.recording import Recording

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
}


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

    def values(self, part: Recording) -> np.ndarray:
        """Return the prepared signal of a part, which has all channels; blocks are smoothed apart."""
        values = part.signal(self.signal)[:, list(self.places)]
        if self.smoothing:
            values = smooth(values, self.smoothing, part.blocks, causal=self.causal)
        return values if self.scaling is None else self.scaling(values)

    def apply(self, recording: Recording) -> Recording:
        """Return a recording of the same channels, prepared in the same way.

        The channels are found by their places if there are as many as there were, else by their names.
        """
        name = self.signal if self.signal in recording.signals else next(iter(recording.signals))
        every = recording.signal(name)
        places = list(self.places)
        if every.shape[1] != self.of:
            # Without ids a name is only a place, which says nothing about another set of channels.
            told = {"id", PLACE} & set(recording.channels.get(name, ()))
            known = {one: place for place, one in enumerate(recording.channel_names(name))} if told else {}
            if missing := [one for one in self.channels if one not in known]:
                raise HapteraError(
                    f"{recording.source} has {every.shape[1]} channels, session {self.name!r} of the model had "
                    f"{self.of}, and {len(missing)} of those that it used are not there: {', '.join(missing[:5])}"
                )
            places = [known[one] for one in self.channels]
        kept = np.zeros(every.shape[1], bool)
        kept[places] = True
        own = replace(self, places=tuple(np.flatnonzero(kept).tolist()), signal=name)
        return replace(recording.with_channels(name, kept), signals={name: own.values(recording)})

    def facts(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        fields = {key: value for key, value in vars(self).items() if key != "scaling"}
        scaling = {key: None if self.scaling is None else getattr(self.scaling, key).tolist() for key in SCALED}
        return fields | {"channels": list(self.channels), "places": list(self.places)} | scaling

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any], where: str) -> "Preparation":
        """Return what `facts` wrote, checked."""
        found = check(facts, FACTS, where)
        places = tuple(found["places"])
        sizes = {len(places), len(found["channels"]), *(len(found[key]) for key in SCALED if found[key] is not None)}
        if len(sizes) > 1 or not places or max(places) >= found["of"]:
            raise HapteraError(f"{where}: places, channels and scaling do not fit {found['of']} channels")
        scaling = None
        if found["mean"] is not None and found["deviation"] is not None:
            scaling = Scaling(np.array(found["mean"], float), np.array(found["deviation"], float))
        fields = {key: found[key] for key in FACTS if key not in SCALED}
        return cls(**fields | {"places": places, "channels": tuple(found["channels"]), "scaling": scaling})


SCALED = ("mean", "deviation")
