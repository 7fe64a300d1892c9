"""What an analysis of dependencies found, in sentences with their numbers."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from haptera.analyses.dependencies.screening import Conjecture
from haptera.report.section import Finding, answer
from haptera.words import count

if TYPE_CHECKING:
    from haptera.analyses.dependencies.analysis import ClassDependencies

LISTED = 3
"""Classes named as examples."""
COARSE = ("float16", "bfloat16")
"""Formats whose rounding a reader should know of."""
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
    rank, precision, classes = analysis.redundancy.rank, analysis.redundancy.precision, analysis.logits.shape[1]
    directions = "no class is exactly a combination of others"
    if rank < classes:
        directions = f"the null space has {count(classes - rank, 'direction')}"
    digits = f" to the digits of {precision}" if precision in COARSE else ""
    text = f"{rank:,} of {classes:,}{digits}: {directions}"
    counts, left = analysis.dependencies.counts, 100 * analysis.dependencies.relative_error
    spread = f"{counts.mean():.1f} for each class ({counts.min()} to {counts.max()})"
    number = f"{counts.sum():,} dependencies, {spread}; optimal to {analysis.dependencies.violation.max():.1g} of λ"
    best = [at for at in analysis.ranking[:LISTED] if counts[at]]
    strongest = [f"{analysis.combination(at)} ({left[at]:.2g} % of its square is left)" for at in best]
    return [
        *answer("rank", "How many directions have the logits?", text, rank=rank, precision=precision),
        *answer("found", "How many dependencies are there?", number, **_numbers(analysis)),
        *answer("strongest", "Which are the strongest?", *strongest or ["none"]),
        *_redundant(analysis),
        *_cost(analysis),
        *_conjecture(analysis.conjecture),
    ]


def _numbers(analysis: "ClassDependencies") -> dict[str, Any]:
    """Return every class with those it depends on, and what it costs to derive it; null where it has no images."""
    found, onto = analysis.dependencies, analysis.onto
    rows = analysis.classes.assign(on=pd.Series([found.on(target) for target in range(len(found))], dtype=object))
    kept = ["class", "on", "error", "relative_error", "redundancy", *(name for name in COSTS if name in rows)]
    names = {"names": analysis.logits.names, "onto_names": onto and onto.names}
    numbers = {"fitted_on": "all" if analysis.fitted_on is None else "half", "kkt_violation": found.violation.max()}
    numbers |= {"count": found.counts.sum(), "count_per_class": found.counts.mean()}
    numbers |= {name: known for name, known in names.items() if known}
    return numbers | {"dependencies": rows[kept].rename(columns=COSTS)}


def _redundant(analysis: "ClassDependencies") -> list[Finding]:
    redundancy, question = analysis.redundancy, "Which classes have the least of their own?"
    inside, classes = int((redundancy.value == 0).sum()), len(redundancy.value)
    if inside:
        text = f"{inside:,} of {classes:,} classes have nothing of their own"
        return answer("redundant", question, text, redundant={"nothing_left": inside, "classes": classes})
    least = redundancy.relative.argsort(kind="stable")[:LISTED]
    shares = {analysis.target_names[place]: redundancy.relative[place] for place in least}
    unsure = int((~redundancy.reliable).sum())
    digits = redundancy.precision if redundancy.precision in COARSE else "float64"
    edge = f"; {unsure:,} of these shares are at the edge of {digits}" if unsure else ""
    names = ", ".join(f"{name} {100 * share:.2g} %" for name, share in shares.items())
    text = f"least of their own, as a share of the square: {names}{edge}"
    return answer("redundant", question, text, redundant=shares)


def _cost(analysis: "ClassDependencies") -> list[Finding]:
    table, question = analysis.replacement, "What does it cost to derive a class?"
    cost = {"off_by": table["relative_mean_error"].median()}
    first = f"a derived logit is off by {100 * cost['off_by']:.1f} % of the mean logit, in the median over classes"
    if "accuracy" not in table:
        return answer("cost", question, first, "without targets there is no accuracy", cost=cost)
    seen, drop = table[table["positives"] > 0], table["own_accuracy"] - table["accuracy"]
    before, after, own = seen["own_positive_accuracy"], seen["positive_accuracy"], table["own_accuracy"][0]
    worst = seen.iloc[int((before - after).to_numpy().argmax())]
    name = analysis.target_names[int(worst["class"])]
    own_images = (
        f"of a class's own images {100 * before.mean():.1f} % are right before and {100 * after.mean():.1f} % after it "
        f"is derived, in the mean over {len(seen):,} classes; most is lost by {name}: "
        f"{100 * worst['own_positive_accuracy']:.1f} % before, {100 * worst['positive_accuracy']:.1f} % after, of "
        f"{int(worst['positives']):,}"
    )
    lost = f"falls by {100 * drop.max():.2f} points at most" if drop.max() > 0 else "never falls"
    all_images = (
        f"of all images {100 * own:.2f} % are right; that stays or rises for {int((drop <= 0).sum()):,} of "
        f"{len(table):,} classes, one derived at a time, and {lost}"
    )
    cost |= {"own_accuracy": before.mean(), "own_accuracy_derived": after.mean(), "largest_drop": drop.max()}
    return answer("cost", question, first, own_images, all_images, accuracy=own, cost=cost)


def _conjecture(tested: Conjecture) -> list[Finding]:
    wrong, known = tested.wrong, tested.dependencies
    text = f"was wrong for {wrong:,} of {known:,} dependencies ({100 * wrong / max(known, 1):.2g} %)"
    text = f"|C_ij| < λ/2 {text if known else 'had nothing to be wrong about'}"
    question = "Does a small covariance exclude a dependency?"
    return answer("conjecture", question, text, conjecture={"wrong": wrong, "dependencies": known})
