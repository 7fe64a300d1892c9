"""What an analysis of dependencies found, in sentences with their numbers."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from haptera.analyses.dependencies.screening import Conjecture
from haptera.analyses.dependencies.verdict import COSTS_OTHERS, COSTS_OWN, DEPENDENCY, FAR, UNKNOWN
from haptera.report.section import Finding, answer, lead
from haptera.words import count

if TYPE_CHECKING:
    from haptera.analyses.dependencies.analysis import ClassDependencies

QUESTION = "Which classes have a dependency?"
WHY = {
    FAR: "are too far off",
    COSTS_OWN: "are close, but lose their own images",
    COSTS_OTHERS: "are close, but take the images of others",
    UNKNOWN: "are close, but have no images to tell what it costs",
}
"""Verdict -> what the sentence says of it."""
LISTED = 3
"""Classes named as examples."""
SHOWN_BY = {
    "verdict": "Every class", "few": "What a few classes suffice for",
    "strongest": "A class and those it is derived from", "edges": "Edges", "rank": "Spectrum",
    "redundant": "Classes", "lasso": "Every dependency of the lasso", "cost": "Classes",
    "removal": "Classes that go together", "cutting": "Edges worth cutting",
    "theorems": "At shares of λ_max", "conjecture": "Covariance",
}  # fmt: skip
"""Word of a finding -> the title of what shows it on the page."""
COARSE = ("float16", "bfloat16")
"""Formats whose rounding a reader should know of."""
DEFINITIONS = {
    "dependency": "definition 1: a class whose logit follows from at most K others, within ε of its root mean square "
    "for more than 1 − δ of the examples, and that keeps its own images and costs others none; ε, δ, K are settings. "
    "The K classes join one after the other, the one that lowers the error most next, fitted without shrinkage",
    "stable": "an edge that is found in at least the cut-off's share of random halves of the examples, each a choice "
    "of the q classes that say most; the cut-off keeps the expected number of edges that are found less often than a "
    "class drawn at random below what was asked, if the shares of such edges have one mode (Shah and Samworth, 2013)",
    "lasso": "a coefficient that is not 0 in min θᵀCθ + λ‖θ‖₁ with −1 for the class itself, C the mean of f fᵀ "
    "over the examples, not centred; α is λ/2, and in the unit `own` every logit is divided by its root mean square",
    "relaxed": "least squares on the classes that the lasso chose, without its shrinkage",
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
    halves = "" if analysis.fitted_on is None else "; fitted on one half, evaluated on the other"
    return f"{samples:,} examples, {classes:,} classes of {analysis.logits.path.name}{onto}{halves}"


def findings(analysis: "ClassDependencies") -> list[Finding]:
    """Return what is asked, in a word, and the answer."""
    rank, precision, classes = analysis.redundancy.rank, analysis.redundancy.precision, analysis.logits.shape[1]
    directions = "no class is exactly a combination of others"
    if rank < classes:
        directions = f"the null space has {count(classes - rank, 'direction')}"
    digits = f" to the digits of {precision}" if precision in COARSE else ""
    text = f"{rank:,} of {classes:,}{digits}: {directions}"
    told = [
        *_verdict(analysis),
        *_curve(analysis),
        *_strongest(analysis),
        *_edges(analysis),
        *answer("rank", "How many directions have the logits?", text, rank=rank, precision=precision),
        *_redundant(analysis),
        *_lasso(analysis),
        *_cost(analysis),
        *_removal(analysis),
        *_pairs(analysis),
        *_theorems(analysis),
        *_conjecture(analysis.conjecture),
    ]
    found = int((analysis.judgement.classes["verdict"] == DEPENDENCY).sum())
    numbers = {"verdict": f"{found:,} of {classes:,} classes", "rank": f"{rank:,} of {classes:,}"}
    shown = SHOWN_BY if len(analysis.edges) else SHOWN_BY | {"lasso": ""}  # there is no table of none
    return lead(told, {word: (numbers.get(word, ""), title) for word, title in shown.items()})


def _verdict(analysis: "ClassDependencies") -> list[Finding]:
    table, asked = analysis.judgement.classes, analysis.definition
    words = table["verdict"].value_counts()
    number, classes = int(words.get(DEPENDENCY, 0)), len(table)
    images = f", and keeps {100 * asked.keep:g} % of its images" if "images" in table else ""
    first = (
        f"{number:,} of {classes:,}: derived from at most {asked.at_most} others, off by less than {asked.epsilon:g} "
        f"of its size for {100 * (1 - asked.delta):g} % of the examples{images}"
    )
    others = {word: int(words[word]) for word in WHY if word in words}
    second = "; ".join(f"{many:,} {WHY[word]}" for word, many in others.items())
    numbers = {"dependencies": number, "classes": classes} | others
    return answer("verdict", QUESTION, first, second, verdict=numbers, classes=table)


def _curve(analysis: "ClassDependencies") -> list[Finding]:
    curve = analysis.judgement.curve
    rows = curve[curve["classes"].isin((1, 3, analysis.definition.at_most, 10, 20))].to_dict("records")
    if "own_after" in curve:
        parts = [f"{100 * row['own_after']:.1f} % from {row['classes']} ({row['dependencies']:,})" for row in rows]
        first = (
            f"of a class's own images {100 * curve['own_before'][0]:.1f} % are right; derived from few, in the mean "
        )
        text = f"{first}over classes, {', '.join(parts)}, in brackets how many classes have a dependency"
    else:
        parts = [f"{100 * row['relative_error']:.2g} % from {row['classes']}" for row in rows]
        text = f"of the square of a logit is left, in the median: {', '.join(parts)}"
    return answer("few", "Do a few classes suffice?", text, curve=curve)


def _strongest(analysis: "ClassDependencies") -> list[Finding]:
    table = analysis.judgement.classes
    left = 100 * table["relative_error"]
    texts = [
        f"{analysis.combination(at)} ({left[at]:.2g} % of its square is left; {table['verdict'][at]})"
        for at in analysis.ranking[:LISTED]
        if table["few"][at]
    ]
    return answer("strongest", "Which are the strongest?", *texts or ["none"])


def _edges(analysis: "ClassDependencies") -> list[Finding]:
    stability, question = analysis.stability, "Which edges can be trusted?"
    if stability is None:
        return []
    stable, drawn = stability.stable, stability.shares.nnz
    allowed = "" if stability.false_edges <= stability.allowed else f", more than the {stability.allowed:g} allowed"
    text = (
        f"{stable.nnz:,} edges are found in {100 * stability.cutoff:g} % or more of {2 * stability.pairs} halves, of "
        f"{drawn:,} found in any; of these at most {stability.false_edges:.2g} for each class are expected to be false"
        f"{allowed}"
    )
    numbers = {"stable": stable.nnz, "found": drawn, "cutoff": stability.cutoff, "false": stability.false_edges}
    rows = analysis.stable_edges
    return answer("edges", question, text, edges=numbers | {"halves": 2 * stability.pairs}, stable_edges=rows)


def _lasso(analysis: "ClassDependencies") -> list[Finding]:
    counts, lasso = analysis.dependencies.counts, analysis.lasso
    asked = f"at α {lasso.alpha:g}" if lasso.per_class is None else f"{lasso.per_class} for each class"
    unit = " of each class's square" * (lasso.unit == "own" and lasso.per_class is None)
    spread = f"{counts.mean():.1f} for each class ({counts.min()} to {counts.max()})"
    left, relaxed = (100 * np.median(found.relative_error) for found in (analysis.dependencies, analysis.relaxed))
    return answer(
        "lasso",
        "What does the lasso of the source find?",
        f"{asked}{unit} {counts.sum():,} dependencies, {spread}; optimal to "
        f"{analysis.dependencies.violation.max():.1g} of λ",
        f"{left:.2g} % of the square of a logit is left, in the median; {relaxed:.2g} % without shrinkage",
        **_numbers(analysis),
        left={"lasso": left / 100, "relaxed": relaxed / 100},
    )


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
    table, question = analysis.replacement, "What do the lasso's dependencies cost?"
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


def _removal(analysis: "ClassDependencies") -> list[Finding]:
    if (removal := analysis.removal) is None:
        return []
    text = (
        f"{len(removal.gone):,} of {analysis.logits.shape[1]:,} classes go together, {removal.free:,} of them at no "
        f"cost where that was decided; on other examples {100 * removal.before:.2f} % are right before and "
        f"{100 * removal.after:.2f} % after"
    )
    numbers = {"classes": len(removal.gone), "free": removal.free, "before": removal.before, "after": removal.after}
    order = removal.gone["class"].tolist()
    return answer("removal", "Which classes can go?", text, removal=numbers | {"order": order})


def _pairs(analysis: "ClassDependencies") -> list[Finding]:
    table, question = analysis.pairs, "Which edges are worth cutting?"
    if table.empty:
        return []
    names = analysis.names
    texts = [
        f"{names[row['class']]} on {names[row['on']]} (strength {row['strength']:.2g}, alike {row['similarity']:.2g})"
        for row in table.head(LISTED).to_dict("records")
    ]
    best = [[int(row["class"]), int(row["on"])] for row in table.head(10).to_dict("records")]
    by = analysis.asked.similarity
    told = "strong among classes, alike or not" if by == "none" else f"strong among classes that are unlike by {by}"
    return answer("cutting", question, f"{told}: {'; '.join(texts)}", worth_cutting=best)


def _theorems(analysis: "ClassDependencies") -> list[Finding]:
    table = analysis.theorems
    near, far = table.iloc[1], table.iloc[3]
    text = (
        f"theorem 3 rules out {100 * near['screened']:.3g} % of the pairs at {near['share']:g} of λ_max and "
        f"{100 * far['screened']:.3g} % at {far['share']:g}, {int(table['screened_wrongly'].sum()):,} of them wrongly; "
        f"theorem 2 is used up to {100 * table['slope'].max():.3g} % of its bound"
    )
    return answer("theorems", "What is known without solving?", text, theorems=table)


def _conjecture(tested: Conjecture) -> list[Finding]:
    wrong, known = tested.wrong, tested.dependencies
    text = f"was wrong for {wrong:,} of {known:,} dependencies ({100 * wrong / max(known, 1):.2g} %)"
    text = f"|C_ij| < λ/2 {text if known else 'had nothing to be wrong about'}"
    question = "Does a small covariance exclude a dependency?"
    return answer("conjecture", question, text, conjecture={"wrong": wrong, "dependencies": known})
