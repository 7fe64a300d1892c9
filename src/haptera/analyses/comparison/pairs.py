"""Pairs: cells of two studies that have the same names, compared on the images that both have.

Images are the same where their ids are. In a stream that shows images again and again an id is a place in the stream,
so there the sample, shift and severity say which image it is, and one that comes twice under the same is left out. The
interval of a difference of accuracies is Bonett and Price's for pairs, that of other measures Student's.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from haptera.measures.images import image_names, scores_of
from haptera.measures.pairs import paired_interval
from haptera.outputs import Outputs
from haptera.run.ledger import Ledger
from haptera.run.matching import load_cell, match_cells
from haptera.statistics.intervals import mean_of_units

NAMES = ["model", "stream", "part", "adapter", "seed"]
NUMBERS = ["one", "other", "difference", "low", "high", "images", "only_one", "only_other", "other_labels"]


def compare_cells(one: Ledger, other: Ledger) -> tuple[pd.DataFrame, int]:
    """Return a row for each cell that both have and each measure, and how many cells only one of them has.

    `difference` is the other minus the one, on `images` that both have; `other_labels` of them have other labels.
    """
    first, second = match_cells(one, other)
    rows = []
    for names in first.keys() & second.keys():
        ours, theirs = load_cell(one, first[names]), load_cell(other, second[names])
        if ours is not None and theirs is not None:
            rows += [dict(zip(NAMES, names, strict=True)) | row for row in compare_outputs(ours, theirs)]
    frame = pd.DataFrame(rows, columns=[*NAMES, "measure", *NUMBERS])
    return frame.sort_values([*NAMES, "measure"], ignore_index=True), len(first.keys() ^ second.keys())


def compare_outputs(one: Outputs, other: Outputs) -> Iterator[dict[str, object]]:
    """Yield a row for each measure that both outputs allow, on the images that both have."""
    ours, theirs = image_names(one), image_names(other)
    once, again = (np.flatnonzero(~names.duplicated(keep=False)) for names in (ours, theirs))
    found = theirs[again].get_indexer(ours[once])
    first, second = once[found >= 0], again[found[found >= 0]]
    if not len(first):
        return
    counts = {"images": len(first), "only_one": len(one) - len(first), "only_other": len(other) - len(first)}
    counts["other_labels"] = 0
    if one.targets is not None and other.targets is not None:
        counts["other_labels"] = int((one.targets[first] != other.targets[second]).sum())
    scores, others = scores_of(one), scores_of(other)
    for measure in scores.keys() & others.keys():
        a, b = scores[measure][first], others[measure][second]
        low, high = _interval(a, b)
        numbers = {"one": float(a.mean()), "other": float(b.mean()), "difference": float((b - a).mean())}
        yield {"measure": measure, **numbers, "low": low, "high": high, **counts}


def _interval(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """Return the 95 % interval of the mean difference of pairs."""
    n = len(a)
    if set(np.unique([a, b])) <= {0.0, 1.0}:
        return paired_interval(int((b > a).sum()), int((a > b).sum()), n)
    if n < 2:
        return float("nan"), float("nan")
    return mean_of_units(b - a).ends
