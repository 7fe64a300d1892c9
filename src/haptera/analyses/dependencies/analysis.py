"""ClassDependencies: the logits of a saved network read in batches, its dependencies solved, and what they cost.

Dependencies are fitted on one half of the examples, drawn at random, and what they cost is measured on the other, for a
combination that was fitted to an example says little about the next one. Rank and redundancy describe all of them.
The logits are read once for the second moments, and once more where derived logits are compared with their own.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from haptera.analyses.dependencies import findings as answers
from haptera.analyses.dependencies import page
from haptera.analyses.dependencies.covariance_lasso import CovarianceLasso, Dependencies
from haptera.analyses.dependencies.files import LogitsFile
from haptera.analyses.dependencies.redundancy import Redundancy
from haptera.analyses.dependencies.replacement import replacement_of_stream
from haptera.analyses.dependencies.screening import Conjecture, Screening
from haptera.analyses.dependencies.second_moment import SecondMoment
from haptera.analysis import Analysis
from haptera.errors import HapteraError, unknown

FIT_ON = ("half", "all")
ALPHA = 0.25
SUM = 0.01
"""By how much the sum of a thousand probabilities in float16 may be off."""
STEPS = 30
"""Values of α along a path."""
TERMS = 4
"""Terms of a combination that are written out."""


@dataclass(frozen=True, eq=False)
class ClassDependencies(Analysis):
    """Which classes of a network, or of another network, can be derived from a few classes of the first.

    Attributes:
        logits: the network that explains.
        onto: the network that is explained, if it is another.
        lasso: fitted.
        moment: of all examples.
        fitted_on: `(examples,)`, whether each was fitted on; None where all were, and all are evaluated.
        too_few: whether all were taken because a half has fewer examples than there are classes.
        saved: what the file holds, if these are not logits: `softmax` or `log-softmax`; else empty.
        seed: of the halves.
    """

    kind: ClassVar[str] = "dependencies"
    definitions: ClassVar[Mapping[str, str]] = answers.DEFINITIONS
    headline = answers.headline
    findings = answers.findings
    sections = page.sections
    logits: LogitsFile
    onto: LogitsFile | None
    lasso: CovarianceLasso
    moment: SecondMoment
    fitted_on: np.ndarray | None = None
    too_few: bool = False
    saved: str = ""
    seed: int = 0

    @property
    def title(self) -> str:
        """Return the names of the files."""
        onto = f" onto {self.onto.path.name}" if self.onto else ""
        return f"Dependencies: {self.logits.path.name}{onto}"

    @property
    def settings(self) -> dict[str, Any]:
        """Return what was asked, and how much data there was."""
        samples, classes = self.logits.shape
        count = {"per class": self.lasso.per_class} if self.lasso.per_class else {"alpha": self.lasso.alpha}
        fitted = {"fitted on": "all" if self.fitted_on is None else "one half, evaluated on the other"}
        onto = {"onto": str(self.onto.path)} if self.onto else {}
        files = {"logits": str(self.logits.path)} | onto
        return files | {"examples": samples, "classes": classes} | count | fitted | {"seed": self.seed}

    @property
    def notes(self) -> list[str]:
        """Return what a reader must know before trusting the rest."""
        samples, classes = self.logits.shape
        told = []
        if samples < classes:
            told.append(
                f"There are fewer examples ({samples:,}) than classes ({classes:,}), so every class is a combination "
                "of others whatever the network is; take more examples."
            )
        if self.too_few:
            told.append(
                f"All examples are fitted on, and the cost is measured on the same ones, because half of {samples:,} "
                f"examples is less than {classes:,} classes."
            )
        if self.saved:
            told.append(
                f"The file holds {self.saved}, not logits: rows sum to 1{', as exp' * (self.saved != 'softmax')}; "
                "scale and sign of logits matter here, so save the outputs of the last layer."
            )
        if loose := int((self.dependencies.violation > 1e-8).sum()):
            violate = f"{loose:,} solutions violate their conditions by more than 1e-8 of λ"
            told.append(f"λ is too small for float64: {violate}.")
        if not self.dependencies.coefficients.nnz:
            top = self.lasso.alpha_max_.max()
            told.append(f"No class depends on any other at this α; the largest α with a dependency is {top:.3g}.")
        return told

    @cached_property
    def dependencies(self) -> Dependencies:
        """The solutions, with the errors that they make on the examples that were not fitted on."""
        found = self.lasso.dependencies_
        return found if self.fitted_on is None else found.on_moment(self.moment.without(self.lasso.moment_))

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

    @cached_property
    def redundancy(self) -> Redundancy:
        """Return the redundancy of every class that is explained."""
        return Redundancy.of(self.moment)

    @cached_property
    def screening(self) -> Screening:
        """The bounds of the source, for the moment that was fitted."""
        return Screening(self.lasso.moment_, None if self.fitted_on is not None else self.redundancy)

    @cached_property
    def conjecture(self) -> Conjecture:
        """How often conjecture 1 was wrong."""
        return self.screening.conjecture(self.lasso.dependencies_)

    @cached_property
    def replacement(self) -> pd.DataFrame:
        """Table 1 for every class, on the examples that were not fitted on; reads the logits once more."""
        return replacement_of_stream(self._batches(), self.dependencies)

    @cached_property
    def ranking(self) -> list[int]:
        """Return the classes that are explained, those derived best first, those without dependencies last."""
        counts, relative = self.dependencies.counts, self.dependencies.relative_error
        return np.argsort(np.where(counts > 0, relative, np.inf), kind="stable").tolist()

    @cached_property
    def classes(self) -> pd.DataFrame:
        """One row for each class that is explained: its errors, its redundancy, and what `replacement` says."""
        found, redundancy = self.dependencies, self.redundancy
        columns = {"class": np.arange(len(found)), "dependencies": found.counts, "error": found.error}
        columns |= {"relative_error": found.relative_error, "redundancy": redundancy.value}
        columns |= {"relative_redundancy": redundancy.relative, "reliable": redundancy.reliable}
        columns |= {"null_mass": redundancy.null_mass} if self.onto is None else {}
        return pd.DataFrame(columns).join(self.replacement.drop(columns="class"))

    @cached_property
    def edges(self) -> pd.DataFrame:
        """One row for each dependency, the classes with the smallest relative error first."""
        target, on, value = self.dependencies.edges()
        order = np.lexsort((-np.abs(value), self.dependencies.relative_error[target]))
        columns = self._name_ends(target, on) | {"coefficient": value}
        columns |= {"covariance": self.lasso.moment_.problems()[1][target, on]}
        return pd.DataFrame(columns).iloc[order].reset_index(drop=True)

    def paths(self, classes: Sequence[int]) -> pd.DataFrame:
        """Coefficients of some classes along α, with the relative error there; others that never join are left out."""
        top, least = self.lasso.alpha_max_[classes].max(), self.dependencies.lam[classes].min() / 2
        if top <= 0:
            return pd.DataFrame()
        alphas = np.geomspace(top, min(least / 4, top / 20), STEPS)
        solutions = list(self.lasso.path(alphas, classes))
        cube = np.stack([found.coefficients.toarray() for found in solutions])
        drawn = cube != 0
        drawn[:-1] |= cube[1:] != 0  # a line begins at the zero before it
        target, on, step = np.nonzero(drawn.transpose(1, 2, 0))
        columns = self._name_ends(np.array(classes)[target], on) | {"alpha": alphas[step]}
        columns |= {"coefficient": cube[step, target, on]}
        return pd.DataFrame(
            columns | {"relative_error": np.array([each.relative_error for each in solutions])[step, target]}
        )

    def _name_ends(self, target: np.ndarray, on: np.ndarray) -> dict[str, np.ndarray]:
        targets, names = np.array(self.target_names, dtype=object), np.array(self.names, dtype=object)
        return {"class": targets[target], "on": names[on]}

    def combination(self, target: int, terms: int = TERMS) -> str:
        """Return a class as a sum of others, such as `macaw ≈ 0.41 ostrich − 0.2 bittern`."""
        edges = self.dependencies.on(target)
        parts = [f"{'−' if value < 0 else '+'} {abs(value):.2g} {self.names[on]}" for on, value in edges[:terms]]
        more = f" and {len(edges) - terms} more" if len(edges) > terms else ""
        return f"{self.target_names[target]} ≈ {' '.join(parts).removeprefix('+ ') or '0'}{more}"

    @property
    def targets(self) -> np.ndarray | None:
        """Return the targets of the samples, as classes that are explained."""
        if self.onto is None:
            return self.logits.targets
        if self.onto.targets is None and self.onto.shape[1] == self.logits.shape[1]:
            return self.logits.targets
        return self.onto.targets

    def _batches(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
        first, targets = 0, self.targets
        for logits in self.logits if self.onto is None else zip(self.logits, self.onto, strict=True):
            rows, own = (logits, logits) if isinstance(logits, np.ndarray) else logits
            places = np.arange(first, first + len(rows))
            first += len(rows)
            kept = slice(None) if self.fitted_on is None else ~self.fitted_on[places]
            if len(rows[kept]):
                yield rows[kept], own[kept], None if targets is None else targets[places[kept]]


def analyse(
    path: Path, onto: Path | None, alpha: float | None, per_class: int | None, fit_on: str, seed: int
) -> ClassDependencies:
    """Read one file of logits or two, and solve; `dependencies` explains the arguments."""
    if fit_on not in FIT_ON:
        raise unknown("fit_on", fit_on, FIT_ON)
    if alpha is not None and per_class is not None:
        raise HapteraError("alpha and per_class are two ways to say how many dependencies to keep; give one of them")
    logits = LogitsFile(path)
    other = None if onto is None else LogitsFile(onto)
    if other is not None:
        _check_pair(logits, other)
    lasso = CovarianceLasso(ALPHA if alpha is None else alpha, per_class=per_class)
    samples, classes = logits.shape
    too_few = fit_on == "half" and samples // 2 < classes
    half = None
    if fit_on == "half" and not too_few:  # drawn at random, for files are often in order of class
        half = np.random.default_rng(seed).permutation(samples) < samples // 2
    try:
        moment, fitted, saved = _moments(logits, other, half)
    except HapteraError as error:
        raise HapteraError(f"{logits.path}{f' onto {other.path}' if other else ''}: {error}") from error
    return ClassDependencies(logits, other, lasso.fit_moment(fitted), moment, half, too_few, saved, seed)


def _moments(
    logits: LogitsFile, other: LogitsFile | None, half: np.ndarray | None
) -> tuple[SecondMoment, SecondMoment, str]:
    """The moment of all examples, that of those to fit on, and what was saved instead of logits, if anything."""
    moment, fitted, first = SecondMoment(), SecondMoment(), 0
    kinds = dict.fromkeys(("softmax", "log-softmax"), True)
    for batch in logits if other is None else zip(logits, other, strict=True):
        rows, own = batch if isinstance(batch, tuple) else (batch, None)
        moment.add(rows, own)
        kinds = {kind: still and _is_probability(rows, kind) for kind, still in kinds.items()}
        if half is not None:
            kept = half[first : first + len(rows)]
            if kept.any():
                fitted.add(rows[kept], None if own is None else own[kept])
        first += len(rows)
    saved = next((kind for kind, still in kinds.items() if still), "")
    return moment, moment if half is None else fitted, saved


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
