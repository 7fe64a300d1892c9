"""What an analysis of dependencies found, in sentences with their numbers."""

from typing import TYPE_CHECKING, Any

import numpy as np

from haptera.analyses.dependencies.screening import Conjecture
from haptera.report.section import Finding, answer

if TYPE_CHECKING:
    from haptera.analyses.dependencies.analysis import ClassDependencies

LISTED = 3
"""Classes named as examples."""
COARSE = ("float16", "bfloat16")
"""Formats whose rounding a reader should know of."""
TERMS = 4
"""Terms of a combination that are written out."""
DEFINITIONS = {
    "dependency": "a coefficient that is not 0 in min θᵀCθ + λ‖θ‖₁ with −1 for the class itself, C the mean of f fᵀ "
    "over the examples, not centred; α is λ/2",
    "fitted on, evaluated on": "unless all examples are taken for both, dependencies are found on one half of them, "
    "drawn at random, and errors and accuracies are those on the other half; rank and redundancy are those of all",
    "error": "θᵀCθ, the mean square by which the derived logit is off; relative to the mean square of the logit",
    "redundancy": "R, the error that is left when all others may be used without a penalty; 0 in the null space",
    "off by": "the mean absolute error of the derived logit, relative to the mean absolute logit",
    "replaced": "the derived logit takes the place of the own one, for one class at a time",
    "optimal to": "the largest violation of the optimality conditions, as a share of λ",
    "conjecture": "that a pair with |C_ij| < λ/2 has no dependency; a rule of thumb, not a theorem",
}
COSTS = {
    "mean_error": "mean_error",
    "accuracy": "accuracy_derived",
    "positives": "images",
    "own_positive_accuracy": "own_accuracy",
    "positive_accuracy": "own_accuracy_derived",
}
"""Columns of a replacement -> what JSON calls them."""


def headline(analysis: "ClassDependencies") -> str:
    """Return how much data there was, and what was asked."""
    samples, classes = analysis.logits.shape
    onto = f" onto the {analysis.onto.shape[1]:,} of {analysis.onto.path.name}" if analysis.onto else ""
    lasso = analysis.lasso
    asked = f"α {lasso.alpha:g}" if lasso.per_class is None else f"{lasso.per_class} dependencies for each class"
    halves = "" if analysis.fitted_on is None else "; fitted on one half, evaluated on the other"
    return f"{samples:,} examples, {classes:,} classes of {analysis.logits.path.name}{onto}; {asked}{halves}"


def findings(analysis: "ClassDependencies") -> list[Finding]:
    """Return what is asked, in a word, and the answer."""
    rank = {"rank": analysis.redundancy.rank, "precision": analysis.redundancy.precision}
    return [
        *answer("rank", "How many directions have the logits?", _rank(analysis), **rank),
        *answer("found", "How many dependencies are there?", _count(analysis), **_dependencies(analysis)),
        *answer("strongest", "Which are the strongest?", *_strongest(analysis)),
        *_redundant(analysis),
        *_cost(analysis),
        *_conjecture(analysis.conjecture),
    ]


def notes(analysis: "ClassDependencies") -> list[str]:
    """Return what a reader must know before trusting the rest."""
    samples, classes = analysis.logits.shape
    told = []
    if samples < classes:
        told.append(
            f"There are fewer examples ({samples:,}) than classes ({classes:,}), so every class is a combination of "
            "others whatever the network is; take more examples."
        )
    if analysis.too_few:
        told.append(
            f"All examples are fitted on, and the cost is measured on the same ones, because half of {samples:,} "
            f"examples is less than {classes:,} classes."
        )
    if analysis.saved:
        told.append(
            f"The file holds {analysis.saved}, not logits: rows sum to 1{', as exp' * (analysis.saved != 'softmax')}; "
            "scale and sign of logits matter here, so save the outputs of the last layer."
        )
    loose = int((analysis.dependencies.violation > 1e-8).sum())
    if loose:
        told.append(f"λ is too small for float64: {loose:,} solutions violate their conditions by more than 1e-8 of λ.")
    if not analysis.dependencies.coefficients.nnz:
        top = float(analysis.lasso.alpha_max_.max())
        told.append(f"No class depends on any other at this α; the largest α with a dependency is {top:.3g}.")
    return told


def _dependencies(analysis: "ClassDependencies") -> dict[str, Any]:
    """Return every class with those it depends on, and what it costs to derive it; null where it has no images."""
    solved, table = analysis.dependencies, analysis.replacement
    costs = table[[name for name in COSTS if name in table]].rename(columns=COSTS).to_dict("records")
    rows = [
        {
            "class": target,
            "on": [list(edge) for edge in solved.on(target)],
            "error": solved.error[target],
            "relative_error": solved.relative_error[target],
            "redundancy": analysis.redundancy.value[target],
        }
        | cost
        for target, cost in enumerate(costs)
    ]
    fitted_on = "all" if analysis.fitted_on is None else "half"
    count = {"count": solved.counts.sum(), "count_per_class": solved.counts.mean()}
    numbers = {"fitted_on": fitted_on, "kkt_violation": solved.violation.max(), "dependencies": rows} | count
    numbers |= {"names": analysis.logits.names} if analysis.logits.names else {}
    return numbers | ({"onto_names": analysis.onto.names} if analysis.onto and analysis.onto.names else {})


def combination(analysis: "ClassDependencies", target: int, terms: int = TERMS) -> str:
    """Return a class as a sum of others, such as `macaw ≈ 0.41 ostrich − 0.2 bittern`."""
    edges = analysis.dependencies.on(target)
    parts = [f"{'−' if value < 0 else '+'} {abs(value):.2g} {analysis.names[on]}" for on, value in edges[:terms]]
    more = f" and {len(edges) - terms} more" if len(edges) > terms else ""
    return f"{analysis.target_names[target]} ≈ {' '.join(parts).removeprefix('+ ') or '0'}{more}"


def _rank(analysis: "ClassDependencies") -> str:
    rank, classes = analysis.redundancy.rank, analysis.logits.shape[1]
    digits = f" to the digits of {analysis.redundancy.precision}" if analysis.redundancy.precision in COARSE else ""
    if rank == classes:
        return f"{rank:,} of {classes:,}{digits}: no class is exactly a combination of others"
    missing = classes - rank
    return f"{rank:,} of {classes:,}{digits}: the null space has {missing:,} direction{'' if missing == 1 else 's'}"


def _count(analysis: "ClassDependencies") -> str:
    counts = analysis.dependencies.counts
    spread = f"{counts.mean():.1f} for each class ({counts.min()} to {counts.max()})"
    return f"{counts.sum():,} dependencies, {spread}; optimal to {analysis.dependencies.violation.max():.1g} of λ"


def _strongest(analysis: "ClassDependencies") -> list[str]:
    relative = np.where(analysis.dependencies.counts > 0, analysis.dependencies.relative_error, np.inf)
    best = [int(place) for place in np.argsort(relative, kind="stable")[:LISTED] if np.isfinite(relative[place])]
    return [f"{combination(analysis, at)} ({100 * relative[at]:.2g} % of its square is left)" for at in best] or [
        "none"
    ]


def _redundant(analysis: "ClassDependencies") -> list[Finding]:
    redundancy, question = analysis.redundancy, "Which classes have the least of their own?"
    inside, count = int((redundancy.value == 0).sum()), len(redundancy.value)
    if inside:
        text = f"{inside:,} of {count:,} classes have nothing of their own"
        return answer("redundant", question, text, redundant={"nothing_left": inside, "classes": count})
    least = [int(place) for place in np.argsort(redundancy.relative, kind="stable")[:LISTED]]
    shares = {analysis.target_names[place]: redundancy.relative[place] for place in least}
    unsure = int((~redundancy.reliable).sum())
    digits = redundancy.precision if redundancy.precision in COARSE else "float64"
    edge = f"; {unsure:,} of these shares are at the edge of {digits}" if unsure else ""
    names = ", ".join(f"{name} {100 * share:.2g} %" for name, share in shares.items())
    return answer(
        "redundant", question, f"least of their own, as a share of the square: {names}{edge}", redundant=shares
    )


def _cost(analysis: "ClassDependencies") -> list[Finding]:
    table, question = analysis.replacement, "What does it cost to derive a class?"
    off = table["relative_mean_error"].dropna().median()
    cost: dict[str, Any] = {"off_by": off}
    first = f"a derived logit is off by {100 * off:.1f} % of the mean logit, in the median over classes"
    if "accuracy" not in table:
        return answer("cost", question, first, "without targets there is no accuracy", cost=cost)
    seen = table[table["positives"] > 0]
    before, after = seen["own_positive_accuracy"], seen["positive_accuracy"]
    worst = seen.iloc[int((before - after).to_numpy().argmax())]
    name = analysis.target_names[int(worst["class"])]
    own, drop = float(table["own_accuracy"].iloc[0]), table["own_accuracy"] - table["accuracy"]
    lost = f"falls by {100 * drop.max():.2f} points at most" if drop.max() > 0 else "never falls"
    own_images = (
        f"of a class's own images {100 * before.mean():.1f} % are right before and {100 * after.mean():.1f} % after it "
        f"is derived, in the mean over {len(seen):,} classes; most is lost by {name}: "
        f"{100 * worst['own_positive_accuracy']:.1f} % before, {100 * worst['positive_accuracy']:.1f} % after, of "
        f"{int(worst['positives']):,}"
    )
    all_images = (
        f"of all images {100 * own:.2f} % are right; that stays or rises for {int((drop <= 0).sum()):,} of "
        f"{len(table):,} classes, one derived at a time, and {lost}"
    )
    cost |= {"own_accuracy": before.mean(), "own_accuracy_derived": after.mean(), "largest_drop": drop.max()}
    return answer("cost", question, first, own_images, all_images, accuracy=own, cost=cost)


def _conjecture(tested: Conjecture) -> list[Finding]:
    wrong, count = tested.wrong, tested.dependencies
    text = f"was wrong for {wrong:,} of {count:,} dependencies ({100 * wrong / max(count, 1):.2g} %)"
    text = f"|C_ij| < λ/2 {text if count else 'had nothing to be wrong about'}"
    question = "Does a small covariance exclude a dependency?"
    return answer("conjecture", question, text, conjecture={"wrong": wrong, "dependencies": count})
