"""Examples: the logits of one network, or of two on the same samples, read in batches, one half to fit on.

Dependencies are fitted on one half of the examples, drawn at random, and what they cost is measured on the other, for a
combination that was fitted to an example says little about the next one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from haptera.analyses.dependencies.files import LogitsFile
from haptera.analyses.dependencies.second_moment import SecondMoment, check_finite
from haptera.analyses.dependencies.stability import GroupMoments
from haptera.errors import HapteraError, unknown

FIT_ON = ("half", "all")
SUM = 0.01
"""By how much the sum of a thousand probabilities in float16 may be off."""


@dataclass(frozen=True, eq=False)
class Examples:
    """Logits on disk and which of them are fitted on.

    Attributes:
        logits: of the network that explains.
        onto: of the network that is explained, if it is another.
        fitted_on: `(examples,)`, whether each is fitted on; None where all are, and all are evaluated.
        too_few: whether all are taken because a half has fewer examples than there are classes.
    """

    logits: LogitsFile
    onto: LogitsFile | None
    fitted_on: np.ndarray | None
    too_few: bool

    @classmethod
    def read(cls, path: Path, onto: Path | None, fit_on: str, seed: int) -> "Examples":
        """Open one file or two, and draw the half."""
        if fit_on not in FIT_ON:
            raise unknown("fit_on", fit_on, FIT_ON)
        logits, other = LogitsFile(path), None if onto is None else LogitsFile(onto)
        if other is not None:
            _check_pair(logits, other)
        samples, classes = logits.shape
        too_few = fit_on == "half" and samples // 2 < classes
        half = None
        if fit_on == "half" and not too_few:  # drawn at random, for files are often in order of class
            half = np.random.default_rng(seed).permutation(samples) < samples // 2
        return cls(logits, other, half, too_few)

    @property
    def names(self) -> list[str]:
        """Return the names of the classes that explain; their numbers where nobody named them."""
        return self.logits.names or [str(place) for place in range(self.logits.shape[1])]

    @property
    def target_names(self) -> list[str]:
        """Return the names of the classes that are explained."""
        if self.onto is None or (self.onto.names is None and self.onto.shape[1] == self.logits.shape[1]):
            return self.names
        return self.onto.names or [str(place) for place in range(self.onto.shape[1])]

    @property
    def targets(self) -> np.ndarray | None:
        """Return the targets of the samples, as classes that are explained."""
        if self.onto is None:
            return self.logits.targets
        if self.onto.targets is None and self.onto.shape[1] == self.logits.shape[1]:
            return self.logits.targets
        return self.onto.targets

    def batches(self, fitted: bool = False) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
        """Batches of logits, logits to explain and targets, of what is evaluated, or of what is fitted on."""
        first, targets = 0, self.targets
        for rows, own in self._pairs():
            places = np.arange(first, first + len(rows))
            first += len(rows)
            kept = slice(None) if self.fitted_on is None else self.fitted_on[places] == fitted
            if len(rows[kept]):
                yield rows[kept], own[kept], None if targets is None else targets[places[kept]]

    def moments(self, groups: int, seed: int) -> tuple[list[SecondMoment], SecondMoment | None, str]:
        """Read everything once.

        Args:
            groups: of what is fitted on, drawn at random.
            seed: of the groups.

        Returns:
            The moment of each group, that of what is evaluated if it is something else, and what was saved instead of
            logits, `softmax` or `log-softmax`, if it was; else empty.
        """
        labels = np.random.default_rng([seed, groups]).permutation(self.logits.shape[0]) % groups
        if self.fitted_on is not None:
            fitted = np.flatnonzero(self.fitted_on)  # groups of one size within the half
            labels[fitted] = np.argsort(np.argsort(labels[fitted], kind="stable"), kind="stable") % groups
            labels[~self.fitted_on] = groups
        gathered, first = GroupMoments(groups + 1), 0
        kinds = dict.fromkeys(("softmax", "log-softmax"), True)
        for rows, own in self._pairs():
            check_finite("logits", rows, first)
            if self.onto is not None:
                check_finite("onto", own, first)
            gathered.add(rows, None if self.onto is None else own, labels[first : first + len(rows)])
            kinds = {kind: still and _is_probability(rows, kind) for kind, still in kinds.items()}
            first += len(rows)
        *parts, rest = gathered.finish()
        saved = next((kind for kind, still in kinds.items() if still), "")
        return [part for part in parts if part.samples], rest if rest.samples else None, saved

    def _pairs(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        if self.onto is None:
            yield from ((rows, rows) for rows in self.logits)
        else:
            yield from zip(self.logits, self.onto, strict=True)


def _is_probability(rows: np.ndarray, kind: str) -> bool:
    """Say whether rows are probabilities, or their logarithms, to the precision that they were stored in."""
    values = rows.astype(np.float64)
    if kind == "log-softmax":
        if values.max() > SUM:
            return False
        values = np.exp(values)
    return bool(values.min() >= 0 and values.max() <= 1 + SUM and (np.abs(values.sum(1) - 1) <= SUM).all())


def _check_pair(logits: LogitsFile, other: LogitsFile) -> None:
    if logits.shape[0] != other.shape[0]:
        raise HapteraError(
            f"{other.path} has {other.shape[0]:,} samples, {logits.path} has {logits.shape[0]:,}; "
            "the same samples in the same order were expected"
        )
    same_classes = logits.shape[1] == other.shape[1]
    if same_classes and logits.names and other.names and logits.names != other.names:
        place = next(place for place in range(len(other.names)) if logits.names[place] != other.names[place])
        raise HapteraError(
            f"class {place} is {logits.names[place]!r} in {logits.path} and {other.names[place]!r} in {other.path}; "
            "the same classes in the same order were expected"
        )
    if same_classes and logits.targets is not None and other.targets is not None:
        differ = int((logits.targets != other.targets).sum())
        if differ:
            raise HapteraError(
                f"targets of {differ:,} of {len(other.targets):,} samples differ between {logits.path} and "
                f"{other.path}; the same samples in the same order were expected"
            )
