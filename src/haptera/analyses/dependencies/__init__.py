"""Dependencies: which classes a saved network derives from others, from its logits alone, without torch."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from haptera.errors import check_keys

if TYPE_CHECKING:
    from haptera.analyses.dependencies.analysis import ClassDependencies
    from haptera.analyses.dependencies.before_after import BeforeAfter
    from haptera.analyses.dependencies.trial import NewClassTrial

__all__ = ["DependencySettings", "compare_cut", "dependencies", "learn_new_classes"]


@dataclass(frozen=True, kw_only=True)
class DependencySettings:
    """What is called a dependency, how edges are found, and how far to trust them.

    Attributes:
        at_most: from how many others a class may be derived.
        epsilon: how far a derived logit may be off, as a share of the root mean square of the logit.
        delta: the share of examples for which it may be further off.
        keep: the share of its own images that a class must keep, of those that were right.
        resamples: random halves in which the edges are found again, for the stability of each; 0 for none.
        false_edges: the expected number of false edges for each class that stable edges may hold.
        alpha: λ/2 of the lasso; 0.05 by default in units of each class, 0.25 in logits.
        per_class: instead, how many dependencies of the lasso to keep for each class.
        unit: of alpha: each class's own root mean square (own), which no rescaling of the logits changes, or the
            source's (logit).
        remove: the share of accuracy that may be lost for classes that go together; none are removed by default.
        similarity: of classes, for the question which edges make no sense: confusion, features (an array of the file),
            wordnet (by the names of the classes), FILE.npz with a matrix `similarity`, or none.
        fit_on: one half of the examples, and the other half says what it costs (half); or both on all (all), which is
            also done where a half has fewer examples than there are classes.
        seed: of the halves.
    """

    at_most: int = 5
    epsilon: float = 0.3
    delta: float = 0.1
    keep: float = 0.8
    resamples: int = 50
    false_edges: float = 0.1
    alpha: float | None = None
    per_class: int | None = None
    unit: str = "own"
    remove: float | None = None
    similarity: str = "confusion"
    fit_on: str = "half"
    seed: int = 0


def dependencies(
    logits: Path,
    onto: Path | None = None,
    **settings: Annotated[Any, DependencySettings],
) -> "ClassDependencies":
    """Say which classes can be derived from a few others, which edges to trust, and what it costs.

    Args:
        logits: an .npz with logits (and targets and classes if known), a cell of a study, or a study with one cell.
        onto: derive the logits of this network, on the same samples in the same order, from those of the first.
        settings: `at_most`, `epsilon`, `delta`, `keep`, `resamples`, `false_edges`, `alpha`, `per_class`, `unit`,
            `remove`, `similarity`, `fit_on` and `seed`, as `DependencySettings`.
    """
    from haptera.analyses.dependencies.analysis import analyse

    check_keys("setting of dependencies", settings, DependencySettings.__dataclass_fields__)
    return analyse(Path(logits), None if onto is None else Path(onto), DependencySettings(**settings))


def learn_new_classes(
    logits: Path, *, new: int = 50, runs: int = 5, sparse: float = 1e-3, ridge: float = 1e-4, seed: int = 0
) -> "NewClassTrial":
    """Take classes away from a network and learn them again from the logits that are left, or from its features.

    Args:
        logits: an .npz with logits and targets, and features if there are any; targets beyond its columns are classes
            that the network never saw.
        new: how many classes are taken away.
        runs: how often, each time others.
        sparse: weight of the ℓ₁ penalty of the sparse method.
        ridge: weight of the squared penalty of all methods.
        seed: of the classes and of the examples that are learnt from.
    """
    from haptera.analyses.dependencies.trial import learn

    return learn(Path(logits), new, runs, sparse, ridge, seed)


def compare_cut(
    before: Path,
    after: Path,
    *,
    pair: tuple[str, str],
    unseen: tuple[Path, Path] | None = None,
    alpha: float = 0.05,
    unit: str = "own",
) -> "BeforeAfter":
    """Compare a network before and after a dependency was cut, from the logits of both on the same images.

    Args:
        before: an .npz with logits and targets.
        after: the same of the network that was trained with the penalty.
        pair: the class and the one that it depends on, by name or number.
        unseen: logits of both networks on images of classes that they do not know.
        alpha: of the lasso.
        unit: of alpha: own or logit.
    """
    from haptera.analyses.dependencies.before_after import compare

    return compare(Path(before), Path(after), pair, unseen, alpha, unit)
