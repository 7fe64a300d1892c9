"""Missing values of a signal: a channel that misses most of its values is left out, rather than most of the samples."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

PLACE = "place"
"""Column of the facts about channels: where each was before others were left out."""
COLUMN = "column"
"""Column of the facts about channels of a table: what each was called there."""
POOR = 0.5
"""Share of missing values beyond which a channel, rather than the samples, is left out."""


def without_empty_channels(
    signals: Mapping[str, np.ndarray],
) -> tuple[dict[str, np.ndarray], dict[str, pd.DataFrame], tuple[str, ...]]:
    """Return signals without channels that miss most of their values, the places of the others, and what to say."""
    kept, facts, notes = dict(signals), {}, []
    for name, signal in signals.items():
        if signal.ndim != 2 or signal.dtype.kind != "f" or not len(signal):
            continue
        poor = (~np.isfinite(signal)).mean(0) > POOR
        if poor.any() and not poor.all():
            kept[name] = signal[:, ~poor]
            facts[name] = pd.DataFrame({PLACE: np.flatnonzero(~poor)})
            some = ", ".join(map(str, np.flatnonzero(poor)[:10])) + ", ..." * (int(poor.sum()) > 10)
            notes.append(f"{int(poor.sum())} of {len(poor)} channels left out, which miss most of their values: {some}")
    return kept, facts, tuple(notes)
