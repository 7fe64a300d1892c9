"""What an analysis of dependencies is for: which classes can go, and which edges are worth cutting.

Source: "Neural Dependencies Emerging from Learning Massive Categories", sections 2.1 and 3.3. Classes go on some of the
examples that were fitted on, and what is lost is counted on the others.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from haptera.analyses.dependencies.cutting import pairs_worth_cutting
from haptera.analyses.dependencies.frames import values_at
from haptera.analyses.dependencies.replacement import removable, without
from haptera.analyses.dependencies.similarity import (
    confusion_similarity,
    feature_similarity,
    given_similarity,
    similarity_file,
)
from haptera.correctness import correct
from haptera.errors import HapteraError
from haptera.files.npz import member, open_npz

if TYPE_CHECKING:
    from haptera.analyses.dependencies.analysis import ClassDependencies

DECIDING = 3000
"""Examples on which it is decided which classes go."""


@dataclass(frozen=True, eq=False)
class Removal:
    """Classes that go together.

    Attributes:
        gone: as `removable` returns it.
        before: accuracy on what is evaluated.
        after: the same with all of them derived from classes that are left.
        free: how many of them go without any loss on the examples on which that was decided.
    """

    gone: pd.DataFrame
    before: float
    after: float
    free: int


def removal(analysis: "ClassDependencies") -> Removal | None:
    """Return which classes can go for the accuracy that may be lost; None where nobody asked."""
    drop = analysis.asked.remove
    if drop is None:
        return None
    if analysis.onto is not None:
        raise HapteraError("remove takes classes from one network; leave onto away")
    if analysis.targets is None:
        raise HapteraError(f"remove needs targets, and {analysis.logits.path} has none")
    fitted = [(rows, targets) for rows, _, targets in analysis.examples.batches(fitted=True) if targets is not None]
    every = max(sum(len(rows) for rows, _ in fitted) // DECIDING, 1)
    logits, targets = (np.concatenate([batch[part][::every] for batch in fitted]) for part in (0, 1))
    gone = removable(logits, targets, analysis.lasso, drop=drop)
    own = correct(logits, targets).mean()
    right = after = samples = 0
    for rows, _, labels in analysis.examples.batches():
        if labels is None:
            continue
        right += int(correct(rows, labels).sum())
        after += int(correct(without(rows, gone), labels).sum())
        samples += len(rows)
    free = int((gone["accuracy"] >= own - 1e-12).cumprod().sum())
    return Removal(gone, right / samples, after / samples, free)


def pairs(analysis: "ClassDependencies") -> pd.DataFrame:
    """Return the lasso's edges worth cutting first, stable ones alone where there are any; empty between networks.

    Columns are those of `pairs_worth_cutting`, and `share`.
    """
    if analysis.onto is not None:
        return pd.DataFrame()
    table = pairs_worth_cutting(analysis.lasso, similarity(analysis))
    if analysis.stability is None:
        return table
    share = values_at(analysis.stability.shares, table["class"].to_numpy(), table["on"].to_numpy())
    stable = share >= analysis.stability.cutoff - 1e-9
    table = table.assign(share=share)
    return table[stable].reset_index(drop=True) if stable.any() else table


def similarity(analysis: "ClassDependencies") -> np.ndarray | None:
    """Return how alike classes are, as was asked; None where there is nothing to tell it from."""
    kind, classes, targets = analysis.asked.similarity, analysis.logits.shape[1], analysis.targets
    if (path := similarity_file(kind)) is not None:
        return given_similarity(path, classes)
    if kind == "wordnet":
        return analysis.by_name[0]
    if kind == "none" or (kind == "confusion" and targets is None):
        return None
    if kind == "confusion":
        return confusion_similarity(analysis.examples.batches(), classes)
    with open_npz(analysis.logits.path) as file:
        if "features" not in file.files or targets is None:
            missing = "array features" if "features" not in file.files else "targets"
            raise HapteraError(f"{analysis.logits.path} has no {missing}, which similarity by features needs")
        return feature_similarity(member(file, "features", analysis.logits.path), targets, classes)
