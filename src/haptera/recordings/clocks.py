"""Clocks: what is to be doubted of times, which are in seconds here and in milliseconds in many a file.

Spikes in milliseconds are a thousand times as rare, and labels in milliseconds hardly change from bin to bin: both fit
together somehow, and a decoder finds a label that stands still with ease. Neither is refused, for a unit may be nearly
silent and a label slow; a note says what to look at. It is a warning as well, as soon as it is known: a minute in
milliseconds is read as 17 hours, and fits of these take long before notes are printed. Cost: a sum.
"""

import logging
from collections.abc import Mapping, Sequence

import numpy as np

SILENT = 0.03
"""Spikes per second, the mean over units, below which a note asks for the unit of the times."""
SLOW = 10
"""Bins from one sample of a label to the next, above which a note does."""
LONG = 10.0
"""Seconds from sample to sample, above which a note does."""

log = logging.getLogger(__name__)


def doubt_of_step(step: float | None, source: str) -> tuple[str, ...]:
    """Return a note where samples are very long.

    >>> doubt_of_step(100.0, "a.csv"), doubt_of_step(0.1, "a.csv"), doubt_of_step(None, "a.csv")
    (('a sample is 100 s long; are times in seconds?',), (), ())
    """
    long = step is not None and step > LONG
    return _warned([f"a sample is {step:g} s long; are times in seconds?"] if long else [], source)


def doubt_of_rate(counts: np.ndarray, width: float, source: str) -> tuple[str, ...]:
    """Return a note where units hardly fire.

    Args:
        counts: spikes, `(bins, units)`.
        width: of a bin in seconds.
        source: where they are from, for the warning.
    """
    rate = float(counts.mean(dtype=float)) / width
    if rate >= SILENT:
        return ()
    note = f"units fire {rate:.2g} times a second on average; are times of spikes and labels in seconds, of one clock?"
    return _warned([note], source)


def doubt_of_steps(times: Mapping[str, np.ndarray], width: float, source: str) -> tuple[str, ...]:
    """Return a note for each label whose samples are much further apart than bins are.

    >>> doubt_of_steps({"x": np.arange(0.0, 9000.0, 100.0), "y": np.arange(0.0, 9.0, 0.1)}, 0.1, "a.csv")
    ('x has a value every 100 s, for bins of 0.1 s: what is between them is interpolated; are its times in seconds?',)
    """
    steps = {name: float(np.median(np.diff(stamps))) for name, stamps in times.items() if len(stamps) > 1}
    notes = [
        f"{name} has a value every {step:g} s, for bins of {width:g} s: what is between them is interpolated; are its "
        "times in seconds?"
        for name, step in steps.items()
        if step > SLOW * width
    ]
    return _warned(notes, source)


def _warned(notes: Sequence[str], source: str) -> tuple[str, ...]:
    """Return notes after warning of each."""
    for note in notes:
        log.warning("%s: %s", source, note)
    return tuple(notes)
