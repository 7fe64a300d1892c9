"""The page of an analysis of dependencies: verdict, graph, uses, the lasso with its paths, theorems, spectrum."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from haptera.analyses.dependencies.frames import communities
from haptera.report.figure import Figure, layer, place_nodes
from haptera.report.section import Listing, Section

if TYPE_CHECKING:
    from haptera.analyses.dependencies.analysis import ClassDependencies

SHOWN = 12
"""Classes whose every pair, and whose path, are on the page: those with the smallest relative error."""
EDGES, FEW_EDGES, MANY_CLASSES = 3, 1, 200
"""Largest coefficients of a class that the graph of all classes draws, and how many where there are many classes."""
MOST_NODES, MOST_ROWS = 1500, 60_000
LABELS = {
    "on": "depends on",
    "relative_error": "relative error",
    "relative_redundancy": "R / mean square",
    "null_mass": "part in the null space",
    "mean_error": "mean |error|",
    "relative_mean_error": "mean |error| / mean |logit|",
    "own_accuracy": "accuracy before",
    "accuracy": "accuracy, replaced",
    "positive_accuracy": "on its own examples, replaced",
    "own_positive_accuracy": "on its own examples, before",
    "few": "derived from",
    "epsilon": "ε",
    "delta": "δ",
    "own_before": "own images right, before",
    "own_after": "own images right, derived",
    "lost": "images lost / own",
    "share": "share of halves",
    "lasso": "in the lasso",
    "relaxed": "without shrinkage",
}
CURVE = {
    "own_before": "own images right, before",
    "own_after": "own images right, derived",
    "kept": "classes that keep their images",
    "close": "classes that are close",
    "dependencies": "classes with a dependency",
    "left": "what is left of a logit, median",
}
"""Columns of the curve -> what the figure calls them."""
FEW = "Classes join one after the other and are fitted without shrinkage; all shares are on examples not fitted on."
VERDICTS = (
    "Those with a dependency first. ε is the smallest share of the root mean square within which 1 − δ of the examples "
    "are; δ is the share beyond the ε that was asked. Intervals are Wilson's, 95 %."
)
EVERY = (
    "The few of every class, without shrinkage, and their coefficient in the lasso; the share of halves in which an "
    "edge was found again, and whether that is enough."
)
CUTTING = "Strong edges among unlike classes first: score is strength times (1 − similarity), which is by {by}."
THEOREMS = (
    "Theorem 3 rules pairs out, and must never be wrong; conjecture 1 is a rule of thumb. Theorem 2 bounds how far a "
    "derivative moves: shown is which part of the bound is used, 1 at most."
)
THEOREM_LABELS = {
    "share": "λ / λ_max",
    "dependencies": "dependencies of a class",
    "screened": "ruled out by theorem 3",
    "screened_wrongly": "of these wrongly",
    "excluded": "excluded by the conjecture",
    "excluded_wrongly": "dependencies wrongly excluded",
    "slope": "theorem 2, largest part used",
    "median_slope": "theorem 2, median part used",
}
MOST_PAIRS = 500
STAR = "Lines are wider for larger coefficients."
PATH = "From the α at which the first class joins, on the right, downwards."
CLASSES = "Those that can be derived best come first. Errors are explained under “What these words mean”, on top."


def sections(analysis: "ClassDependencies") -> list[Section | None]:
    """Return every section for which something is known."""
    first = (verdict_section, graph_section, cutting_section, classes_section)
    behind = (path_section, covariance_section, theorems_section, spectrum_section)
    return [make(analysis) for make in (*first, *behind)]


def verdict_section(analysis: "ClassDependencies") -> Section | None:
    """What a few classes cost, and every class with its verdict."""
    judgement, asked = analysis.judgement, analysis.definition
    curve = judgement.curve.assign(left=np.sqrt(judgement.curve["relative_error"]))
    if "dependencies" in curve:
        curve["dependencies"] /= len(judgement.classes)
    lines = {column: name for column, name in CURVE.items() if column in curve}
    long = curve.melt("classes", list(lines), "line", "share").assign(line=lambda rows: rows["line"].map(lines))
    style: dict[str, Any] = {"color": ("line",), "log_x": True, "limits": (0.0, 1.0)}
    style["labels"] = {"classes": "classes that a logit is derived from", "share": "share", "line": "line"}
    table = judgement.classes.assign(combination=[analysis.combination(at) for at in judgement.classes["class"]])
    table["class"] = analysis.target_names
    rows = table.iloc[analysis.ranking].reset_index(drop=True)
    first = ["class", "verdict", "combination"]
    rows = rows[[*first, *(name for name in rows if name not in first)]]
    text = (
        f"A dependency is a class that follows from at most {asked.at_most} others, off by less than "
        f"{asked.epsilon:g} of its root mean square for {100 * (1 - asked.delta):g} % of the examples, that keeps "
        f"{100 * asked.keep:g} % of its own images, and takes no more than the rest from others."
    )
    return Section.of(
        "Verdict",
        text,
        Figure("What a few classes suffice for", FEW, long, "line", "classes", "share", **style),
        Listing("Every class", VERDICTS, rows, LABELS),
    )


def graph_section(analysis: "ClassDependencies") -> Section | None:
    """A class and those it is derived from; all classes; and the lists behind both."""
    if (frame := analysis.few_edges).empty:
        return None
    known = "stable" in frame and bool((frame["stable"] == "yes").any())
    trusted = frame[frame["stable"] == "yes"] if known else frame
    drawn = EDGES if len(analysis.target_names) <= MANY_CLASSES else FEW_EDGES
    strongest = trusted.groupby("class", sort=False).head(drawn)[["class", "on", "coefficient"]]
    names = list(dict.fromkeys([*strongest["class"], *strongest["on"], *analysis.target_names]))
    nodes = place_nodes(strongest, names[:MOST_NODES])
    nodes["group"] = nodes["class"].map(communities(trusted))
    left_out = f" Of {len(names):,} classes, those with the smallest errors are drawn." * (len(names) > MOST_NODES)
    caption = (
        f"An arrow for {f'each of the {drawn} largest' if drawn > 1 else 'the largest'} "
        f"{'stable ' if known else ''}{'coefficients' if drawn > 1 else 'coefficient'} of a class, from the class to "
        "the one that it is derived from; a node is larger the more others depend on it, and colours are groups of "
        f"classes that hang together (Louvain).{left_out} Choose classes to see theirs alone."
    )
    star: dict[str, Any] = {"select": ("class",), "start": {"class": frame["class"].iloc[0]}, "labels": LABELS}
    graph: dict[str, Any] = {"value": ("coefficient",), "choose": "class", "ends": ("on", "on_x", "on_y")}
    graph |= {"labels": LABELS | {"class": "dependencies of classe"}, "color": ("group",)}
    rows = analysis.edges.sort_values("coefficient", key=abs, ascending=False, kind="stable").head(MOST_ROWS)
    cut = f" These are {MOST_ROWS:,} of {len(analysis.edges):,}." if len(analysis.edges) > MOST_ROWS else ""
    return Section.of(
        "Graph",
        "Which classes a logit can be derived from.",
        Figure("A class and those it is derived from", STAR, frame, "star", "on", "coefficient", **star),
        Figure("All classes", caption, nodes, "graph", "x", "y", **graph),
        Listing("Edges", EVERY, frame, LABELS),
        Listing("Every dependency of the lasso", f"The largest first.{cut}", rows, LABELS),
    )


def cutting_section(analysis: "ClassDependencies") -> Section | None:
    """Edges worth cutting, and classes that can go."""
    rows = analysis.pairs.head(MOST_PAIRS)
    names = dict(enumerate(analysis.names))
    if not rows.empty:
        rows = rows.assign(**{"class": rows["class"].map(names), "on": rows["on"].map(names)})
    gone = pd.DataFrame() if analysis.removal is None else analysis.removal.gone
    if not gone.empty:
        on = [" ".join(names[place] for place in places) for places in gone["on"]]
        gone = pd.DataFrame({"class": gone["class"].map(names), "on": on, "accuracy": gone["accuracy"]})
    return Section.of(
        "Uses",
        "Which edges to cut in training, and which classes can go.",
        Listing("Edges worth cutting", CUTTING.format(by=analysis.asked.similarity), rows, LABELS),
        Listing("Classes that go together", "In the order in which they go; each costs the least then.", gone, LABELS),
    )


def theorems_section(analysis: "ClassDependencies") -> Section | None:
    """Theorems 2 and 3 and the conjecture on these logits."""
    text = "What the bounds of the source say before anything is solved, compared with the solutions."
    return Section.of("Theorems", text, Listing("At shares of λ_max", THEOREMS, analysis.theorems, THEOREM_LABELS))


def covariance_section(analysis: "ClassDependencies") -> Section | None:
    """Coefficient against covariance for some classes, with the line at λ/2 (the source's figure 3)."""
    found, moment = analysis.dependencies, analysis.lasso.solved_
    left_out, covariance, parts = moment.left_out(), np.abs(moment.problems()[1]), {}
    for target in analysis.ranking[:SHOWN]:
        values = found.coefficients[[target]].toarray()[0]
        kinds = np.where(values != 0, "dependency", "none")
        pairs = layer("point", kinds, on=analysis.names, covariance=covariance[target], coefficient=values)
        ends = [min(values.min(), 0.0), max(values.max(), 0.0)]
        line = layer("line", "λ/2", covariance=found.lam[target] / 2, coefficient=ends)
        parts[analysis.target_names[target]] = pd.concat([pairs[pairs.index != left_out[target]], line])
    frame = pd.concat(parts, names=["class"]).reset_index("class")
    shown = f"Shown are the {len(parts)} classes with the smallest relative error."
    caption = f"A point is a pair of classes; the line is at λ/2. {shown}"
    style: dict[str, Any] = {"select": ("class",), "labels": {"covariance": "|C_ij|"}}
    wrong = analysis.conjecture
    text = (
        f"Conjecture 1 expects no dependency left of the line. It excludes {wrong.excluded:,} of {wrong.pairs:,} pairs "
        f"and is wrong for {wrong.wrong:,} of {wrong.dependencies:,} dependencies."
    )
    title = "Coefficient against covariance"
    return Section.of("Covariance", text, Figure(title, caption, frame, "layers", "covariance", "coefficient", **style))


def path_section(analysis: "ClassDependencies") -> Section | None:
    """How coefficients grow while λ falls, and with them the error."""
    style: dict[str, Any] = {"color": ("on",), "select": ("class",), "log_x": True}
    style["labels"] = LABELS | {"alpha": "α = λ/2", "on": "class"}
    if (frame := analysis.paths(analysis.ranking[:SHOWN])).empty:
        return None
    figure = Figure("Coefficients along the path", PATH, frame, "line", "alpha", "coefficient", **style)
    return Section.of("Path", "Which classes join, and when, if fewer or more dependencies are kept.", figure)


def spectrum_section(analysis: "ClassDependencies") -> Section | None:
    """The eigenvalues of the second moment."""
    values = analysis.redundancy.spectrum
    shown = np.where(values > 0, values, np.nan)  # no other value has a logarithm
    frame = pd.DataFrame({"place": np.arange(1, len(values) + 1), "value": shown})
    caption = f"The largest first; {analysis.redundancy.rank:,} of {len(values):,} are not within rounding of 0."
    style: dict[str, Any] = {"log_x": True, "log_y": True, "labels": {"value": "eigenvalue"}}
    title = "Eigenvalues of the second moment"
    figure = Figure(title, caption, frame, "line", "place", "value", **style)
    return Section.of("Spectrum", "In how many directions the logits vary, and how much.", figure)


def classes_section(analysis: "ClassDependencies") -> Section | None:
    """Everything that is known about every class, as a table."""
    frame = analysis.classes.assign(reliable=np.where(analysis.redundancy.reliable, "yes", "no"))
    frame["class"] = analysis.target_names
    rows = frame.sort_values("relative_error", kind="stable", ignore_index=True)
    return Section.of(
        "Lasso",
        "Every class as the lasso derives it, with what is left of it.",
        Listing("Classes", CLASSES, rows, LABELS),
    )
