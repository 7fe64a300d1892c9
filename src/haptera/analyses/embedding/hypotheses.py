"""Hypotheses: which labels, and how many dimensions, a recording is best explained by.

Source: thesis chapter 7, figure 7.7: a fit for every combination of labels and dimensions, beside the same labels in a
random order; what fits best, and far better than shuffled, has structure in the signal. The goodness of fit is measured
on held-out samples too, where more dimensions and more labels do not fit better by themselves.
Cost: a fit for every row of the table.
"""

import logging
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.errors import HapteraError
from haptera.progress import Progress
from haptera.recordings.label import stacked
from haptera.recordings.preparation import varies
from haptera.recordings.recording import Recording

log = logging.getLogger("haptera")


def combined(labels: Sequence[str], most: int = 2) -> dict[str, tuple[str, ...]]:
    """Every label, and every combination of up to `most`, by a name.

    >>> list(combined(["position", "speed"]))
    ['position', 'speed', 'position + speed']
    """
    return {" + ".join(some): some for count in range(1, most + 1) for some in combinations(labels, count)}


def compare_hypotheses(
    recording: Recording,
    hypotheses: Mapping[str, Sequence[str]],
    *,
    dimensions: Sequence[int] = (3,),
    seeds: int = 1,
    held: float = 0.3,
    seed: int = 0,
    progress: bool | None = None,
    **settings: Any,
) -> pd.DataFrame:
    """Fit every hypothesis, with true labels and with shuffled ones.

    Args:
        recording: with one signal.
        hypotheses: name -> labels; as `combined` makes them.
        dimensions: of the embedding.
        seeds: fits of each; shuffles differ too.
        held: the share of samples, at the end, on which the fit is measured as well.
        seed: the first one.
        progress: show a bar; by default on a terminal.
        **settings: of the estimator.

    Returns:
        `hypothesis`, `dimensions`, `shuffled`, `seed`, and `trained` and `held_out`: goodness of fit in bits, more is
        better and 0 is nothing. The best on held-out samples comes first, shuffled ones last.
    """
    if not hypotheses:
        raise HapteraError("there is no hypothesis to compare; name labels for at least one")
    train, test = recording.split(held)
    name = next(iter(recording.signals))
    kept = varies(recording.signal()[: len(train)])
    if not kept.all():
        log.warning("%d of %d channels left out, which never change in the training part", (~kept).sum(), len(kept))
        train, test = train.with_channels(name, kept), test.with_channels(name, kept)
    grid = [
        (name, tuple(labels), count, shuffled, seed + place)
        for name, labels in hypotheses.items()
        for count in dimensions
        for shuffled in (False, True)
        for place in range(seeds)
    ]
    rows = []
    with Progress("hypotheses", len(grid), progress, unit="fits") as bar:
        for name, labels, count, shuffled, number in grid:
            model = ContrastiveEmbedding(**{**settings, "output_dimension": count, "random_state": number})
            scores = {}
            for part_name, part in (("trained", train), ("held_out", test)):
                order = np.random.default_rng(number).permutation(len(part)) if shuffled else slice(None)
                targets = stacked([part.label(label)[order] for label in labels])
                blocks = part.blocks if part.blocks.max() else None
                if part_name == "trained":
                    model.fit(part.signal(), *targets, trials=blocks)
                scores[part_name] = model.goodness_of_fit(part.signal(), *targets, trials=blocks, unit="bits")
            rows.append({"hypothesis": name, "dimensions": count, "shuffled": shuffled, "seed": number} | scores)
            bar.advance(f"{name}, {count} dimensions{', shuffled' if shuffled else ''}")
    frame = pd.DataFrame(rows)
    return frame.sort_values(["shuffled", "held_out"], ascending=[True, False], ignore_index=True)
