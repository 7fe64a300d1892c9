"""Dependencies of a saved network: read the logits in batches, solve, and describe what was found.

The logits are read once for the second moment, and once more where derived logits are compared with their own.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from holdfast.dependencies.files import LogitsFile
from holdfast.errors import HoldfastError
from holdfast.measures.covariance_lasso import CovarianceLasso, Dependencies
from holdfast.measures.redundancy import Redundancy
from holdfast.measures.replacement import replacement_of_stream
from holdfast.measures.screening import Conjecture, Screening
from holdfast.measures.second_moment import SecondMoment


@dataclass(frozen=True, eq=False)
class Analysis:
    """What is known about a network, or about one network onto another.

    Attributes:
        logits: the network that explains.
        onto: the network that is explained, if it is another.
        lasso: fitted.
    """

    logits: LogitsFile
    onto: LogitsFile | None
    lasso: CovarianceLasso

    @property
    def dependencies(self) -> Dependencies:
        """The solutions."""
        return self.lasso.dependencies_

    @property
    def names(self) -> list[str]:
        """Of the classes that explain; their numbers where nobody named them."""
        return self.logits.names or [str(place) for place in range(self.logits.shape[1])]

    @property
    def target_names(self) -> list[str]:
        """Of the classes that are explained."""
        if self.onto is None or (self.onto.names is None and self.onto.shape[1] == self.logits.shape[1]):
            return self.names
        return self.onto.names or [str(place) for place in range(self.onto.shape[1])]

    @cached_property
    def redundancy(self) -> Redundancy:
        """Of every class that is explained."""
        return Redundancy.of(self.lasso.moment_)

    @cached_property
    def screening(self) -> Screening:
        """The bounds of the source."""
        return Screening(self.lasso.moment_, self.redundancy)

    @cached_property
    def conjecture(self) -> Conjecture:
        """How often conjecture 1 was wrong."""
        return self.screening.conjecture(self.dependencies)

    @cached_property
    def replacement(self) -> pd.DataFrame:
        """Table 1 for every class; reads the logits once more."""
        return replacement_of_stream(self._batches(), self.dependencies)

    @property
    def targets(self) -> np.ndarray | None:
        """Of the samples, as classes that are explained."""
        if self.onto is None:
            return self.logits.targets
        if self.onto.targets is None and self.onto.shape[1] == self.logits.shape[1]:
            return self.logits.targets
        return self.onto.targets

    def _batches(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
        first, targets = 0, self.targets
        for logits in self.logits if self.onto is None else zip(self.logits, self.onto, strict=True):
            rows, own = (logits, logits) if isinstance(logits, np.ndarray) else logits
            yield rows, own, None if targets is None else targets[first : first + len(rows)]
            first += len(rows)


def analyse(path: Path, onto: Path | None = None, *, alpha: float = 0.25, per_class: int | None = None) -> Analysis:
    """Dependencies among the classes of a network, or of those of another network on them.

    Args:
        path: an `.npz` with logits, a cell of a study, or the folder of a study with one such cell.
        onto: the same for the network whose logits are to be derived; on the same samples, in the same order.
        alpha: λ/2.
        per_class: instead of alpha, how many dependencies to keep for each class.
    """
    logits = LogitsFile(path)
    other = None if onto is None else LogitsFile(onto)
    if other is not None:
        _check_pair(logits, other)
    lasso = CovarianceLasso(alpha, per_class=per_class)
    try:
        moment = SecondMoment.of_stream(logits if other is None else zip(logits, other, strict=True))
    except HoldfastError as error:
        raise HoldfastError(f"{logits.path}{f' onto {other.path}' if other else ''}: {error}") from error
    return Analysis(logits, other, lasso.fit_moment(moment))


def _check_pair(logits: LogitsFile, other: LogitsFile) -> None:
    if logits.shape[0] != other.shape[0]:
        raise HoldfastError(
            f"{other.path} has {other.shape[0]:,} samples, {logits.path} has {logits.shape[0]:,}; "
            "the same samples in the same order were expected"
        )
    same_classes = logits.shape[1] == other.shape[1]
    if same_classes and logits.names and other.names and logits.names != other.names:
        place = next(place for place in range(len(other.names)) if logits.names[place] != other.names[place])
        raise HoldfastError(
            f"class {place} is {logits.names[place]!r} in {logits.path} and {other.names[place]!r} in {other.path}; "
            "the same classes in the same order were expected"
        )
    if same_classes and logits.targets is not None and other.targets is not None:
        differ = int((logits.targets != other.targets).sum())
        if differ:
            raise HoldfastError(
                f"targets of {differ:,} of {len(other.targets):,} samples differ between {logits.path} and "
                f"{other.path}; the same samples in the same order were expected"
            )
