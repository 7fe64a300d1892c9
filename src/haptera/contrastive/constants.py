"""Channels that never change in training: nothing can be learnt about them, and what they do later must not count.

A silent neuron that fires for the first time in new data meets weights that no gradient has touched. So a channel that
was constant in training keeps that value wherever the model is used, and a warning says so.
Cost: one look at the data; a copy of it where such a channel changes.
"""

import logging

import numpy as np

from haptera.recordings.preparation import varies

log = logging.getLogger("haptera")


def constant_channels(signal: np.ndarray) -> dict[int, float]:
    """Return the channels of `(samples, channels)` that have one value, and that value.

    >>> constant_channels(np.array([[0, 5], [1, 5]]))
    {1: 5.0}
    """
    return {int(channel): float(signal[0, channel]) for channel in np.flatnonzero(~varies(signal))}


def hold(signal: np.ndarray, constants: dict[int, float]) -> np.ndarray:
    """Return a signal whose channels have these values all the time; the signal itself where they do already."""
    changed = [channel for channel, value in constants.items() if (signal[:, channel] != value).any()]
    if not changed:
        return signal
    log.warning("%s never changed in training, and is held at the value that it had there", name_channels(changed))
    held = np.array(signal)
    held[:, changed] = [constants[channel] for channel in changed]
    return held


def name_channels(channels: "list[int] | np.ndarray") -> str:
    """Return channels in words, the first ten of them."""
    some = ", ".join(map(str, channels[:10])) + ", ..." * (len(channels) > 10)
    return f"channel{'s' * (len(channels) > 1)} {some}"
