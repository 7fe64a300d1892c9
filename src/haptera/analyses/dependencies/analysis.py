"""ClassDependencies: the logits of a saved network read in batches, dependencies solved and judged, and what they cost.

Dependencies are fitted on one half of the examples, drawn at random, and what they cost is measured on the other. Rank
and redundancy describe all of them. The logits are read once for the second moments, once for the verdict, and once
more where the lasso's logits are compared with their own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from haptera.analyses.dependencies import DependencySettings, applications, frames, page
from haptera.analyses.dependencies import findings as answers
from haptera.analyses.dependencies.covariance_lasso import CovarianceLasso, Dependencies
from haptera.analyses.dependencies.examples import Examples
from haptera.analyses.dependencies.files import LogitsFile
from haptera.analyses.dependencies.redundancy import Redundancy
from haptera.analyses.dependencies.replacement import replacement_of_stream
from haptera.analyses.dependencies.screening import Conjecture, Screening
from haptera.analyses.dependencies.second_moment import SecondMoment
from haptera.analyses.dependencies.similarity import similarity_file
from haptera.analyses.dependencies.stability import GROUPS, Stability
from haptera.analyses.dependencies.theorems import theorems_table
from haptera.analyses.dependencies.verdict import DEPENDENCY, Definition, FewClasses, Judgement, judge
from haptera.analyses.dependencies.wordnet import wordnet_folder, wordnet_similarity
from haptera.analysis import Analysis
from haptera.checks import check_number, check_whole_number
from haptera.errors import HapteraError

ALPHA = {"own": 0.05, "logit": 0.25}
"""Unit -> α where none is given."""
TERMS = 4
"""Terms of a combination that are written out."""
MOST = 20
"""Classes along the curve of what a few cost."""


@dataclass(frozen=True, eq=False)
class ClassDependencies(Analysis):
    """Which classes of a network, or of another network, can be derived from a few classes of the first.

    Attributes:
        examples: the logits, of one network or of two, and which of them were fitted on.
        asked: what was asked.
        lasso: fitted.
        moment: of all examples.
        stability: how often each edge is found in halves of what was fitted on; None where nobody asked.
        saved: what the file holds, if these are not logits: `softmax` or `log-softmax`; else empty.
    """

    kind: ClassVar[str] = "dependencies"
    definitions: ClassVar[Mapping[str, str]] = answers.DEFINITIONS
    headline = answers.headline
    findings = answers.findings
    sections = page.sections
    edges = cached_property(frames.edges)
    few_edges = cached_property(frames.few_edges)
    stable_edges = cached_property(frames.stable_edges)
    paths = frames.paths
    pairs = cached_property(applications.pairs)
    removal = cached_property(applications.removal)
    examples: Examples
    asked: DependencySettings
    lasso: CovarianceLasso
    moment: SecondMoment
    stability: Stability | None = None
    saved: str = ""

    @property
    def logits(self) -> LogitsFile:
        """Return the logits that explain."""
        return self.examples.logits

    @property
    def onto(self) -> LogitsFile | None:
        """Return the logits that are explained, if they are of another network."""
        return self.examples.onto

    @property
    def fitted_on(self) -> np.ndarray | None:
        """Return which examples were fitted on; None where all were, and all are evaluated."""
        return self.examples.fitted_on

    @property
    def definition(self) -> Definition:
        """Return what is called a dependency."""
        return definition_of(self.asked)

    @property
    def title(self) -> str:
        """Return the names of the files."""
        onto = f" onto {self.onto.path.name}" if self.onto else ""
        return f"Dependencies: {self.logits.path.name}{onto}"

    @property
    def settings(self) -> dict[str, Any]:
        """Return what was asked, and how much data there was."""
        samples, classes = self.logits.shape
        count: dict[str, Any] = (
            {"per class": self.lasso.per_class} if self.lasso.per_class else {"alpha": self.lasso.alpha}
        )
        count |= {"unit": self.lasso.unit} | vars(self.definition)
        count |= {"resamples": self.asked.resamples, "false edges": self.asked.false_edges}
        count |= {"similarity": self.asked.similarity}
        fitted = {"fitted on": "all" if self.fitted_on is None else "one half, evaluated on the other"}
        onto = {"onto": str(self.onto.path)} if self.onto else {}
        files = {"logits": str(self.logits.path)} | onto
        return files | {"examples": samples, "classes": classes} | count | fitted | {"seed": self.asked.seed}

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
        if self.examples.too_few:
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
        if self.asked.similarity == "wordnet" and (unknown := self.by_name[1]):
            first = ", ".join(unknown[:3])
            told.append(f"WordNet does not know {len(unknown):,} of the names ({first}); their edges are not ranked.")
        return told

    @cached_property
    def by_name(self) -> tuple[np.ndarray, list[str]]:
        """How near the names of the classes are in WordNet, and those that it does not know."""
        return wordnet_similarity(self.names)

    @cached_property
    def evaluation(self) -> SecondMoment:
        """The second moment of what is evaluated."""
        return self.moment if self.fitted_on is None else self.moment.without(self.lasso.moment_)

    @cached_property
    def dependencies(self) -> Dependencies:
        """The lasso's solutions, with the errors that they make on the examples that were not fitted on."""
        found = self.lasso.dependencies_
        return found if self.fitted_on is None else found.on_moment(self.evaluation)

    @cached_property
    def relaxed(self) -> Dependencies:
        """Least squares on the classes that the lasso chose, with the errors on what was not fitted on."""
        return self.lasso.dependencies_.relaxed(self.lasso.moment_).on_moment(self.evaluation)

    @cached_property
    def few(self) -> FewClasses:
        """The first classes that say most about each class."""
        return FewClasses(self.lasso.moment_, max(MOST, self.definition.at_most))

    @cached_property
    def first_few(self) -> Dependencies:
        """The few that are judged, with the errors on what was fitted on."""
        return self.few.at(self.definition.at_most)

    @cached_property
    def judgement(self) -> Judgement:
        """Every class judged by definition 1, and what a few classes cost; reads the logits once more."""
        return judge(self.few, self.examples.batches(), self.evaluation, self.definition)

    @property
    def names(self) -> list[str]:
        """Return the names of the classes that explain; their numbers where nobody named them."""
        return self.examples.names

    @property
    def target_names(self) -> list[str]:
        """Return the names of the classes that are explained."""
        return self.examples.target_names

    @property
    def targets(self) -> np.ndarray | None:
        """Return the targets of the samples, as classes that are explained."""
        return self.examples.targets

    @cached_property
    def redundancy(self) -> Redundancy:
        """Return the redundancy of every class that is explained."""
        return Redundancy.of(self.moment)

    @cached_property
    def screening(self) -> Screening:
        """The bounds of the source, for the moment that was fitted."""
        known = self.fitted_on is None and self.lasso.unit == "logit"
        return Screening(self.lasso.solved_, self.redundancy if known else None)

    @cached_property
    def theorems(self) -> pd.DataFrame:
        """Theorems 2 and 3 and conjecture 1 at some shares of λ_max, compared with the solutions."""
        return theorems_table(self.screening)

    @cached_property
    def conjecture(self) -> Conjecture:
        """How often conjecture 1 was wrong."""
        return self.screening.conjecture(self.lasso.dependencies_)

    @cached_property
    def replacement(self) -> pd.DataFrame:
        """Table 1 for every class, on the examples that were not fitted on; reads the logits once more."""
        return replacement_of_stream(self.examples.batches(), self.dependencies)

    @cached_property
    def ranking(self) -> list[int]:
        """Return the classes that are explained, those with a dependency first, then those derived best."""
        table = self.judgement.classes
        return np.lexsort((table["relative_error"], table["verdict"] != DEPENDENCY)).tolist()

    @cached_property
    def classes(self) -> pd.DataFrame:
        """One row for each class that is explained: its errors, its redundancy, and what `replacement` says."""
        found, redundancy = self.dependencies, self.redundancy
        columns = {"class": np.arange(len(found)), "dependencies": found.counts, "error": found.error}
        columns |= {"relative_error": found.relative_error, "redundancy": redundancy.value}
        columns |= {"relative_redundancy": redundancy.relative, "reliable": redundancy.reliable}
        columns |= {"null_mass": redundancy.null_mass} if self.onto is None else {}
        return pd.DataFrame(columns).join(self.replacement.drop(columns="class"))

    def combination(self, target: int, terms: int = TERMS) -> str:
        """Return a class as a sum of others, such as `macaw ≈ 0.41 ostrich − 0.2 bittern`."""
        edges = self.first_few.on(target)
        parts = [f"{'−' if value < 0 else '+'} {abs(value):.2g} {self.names[on]}" for on, value in edges[:terms]]
        more = f" and {len(edges) - terms} more" if len(edges) > terms else ""
        return f"{self.target_names[target]} ≈ {' '.join(parts).removeprefix('+ ') or '0'}{more}"


def analyse(path: Path, onto: Path | None, asked: DependencySettings) -> ClassDependencies:
    """Read one file of logits or two, and solve; `dependencies` explains the arguments."""
    if asked.alpha is not None and asked.per_class is not None:
        raise HapteraError("alpha and per_class are two ways to say how many dependencies to keep; give one of them")
    check_whole_number("resamples", asked.resamples, least=0)
    similarity_file(asked.similarity)
    if asked.similarity == "wordnet":
        wordnet_folder()
    if asked.remove is not None:
        check_number("remove", asked.remove, least=0, most=1, what="a share of the examples")
    check_number("false_edges", asked.false_edges, above=0)
    definition = definition_of(asked)
    alpha = ALPHA.get(asked.unit, 1.0) if asked.alpha is None else asked.alpha
    lasso = CovarianceLasso(alpha, per_class=asked.per_class, unit=asked.unit)
    examples = Examples.read(path, onto, asked.fit_on, asked.seed)
    where = f"{examples.logits.path}{f' onto {examples.onto.path}' if examples.onto else ''}"
    try:
        groups, rest, saved = examples.moments(GROUPS if asked.resamples else 1, asked.seed)
    except HapteraError as error:
        raise HapteraError(f"{where}: {error}") from error
    stability = None
    if asked.resamples and len(groups) > 1:
        stability = Stability.of(groups, definition.at_most, asked.resamples, asked.false_edges, asked.seed)
    fitted = reduce(add, groups)
    groups.clear()  # each is as large as the moment itself
    moment = fitted if rest is None else fitted + rest
    return ClassDependencies(examples, asked, lasso.fit_moment(fitted), moment, stability, saved)


def definition_of(asked: DependencySettings) -> Definition:
    """Return what is called a dependency by these settings."""
    return Definition(asked.at_most, asked.epsilon, asked.delta, asked.keep)
