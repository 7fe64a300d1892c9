"""The page of an analysis of dependencies: the graph, coefficients against covariance, paths, spectrum, every class."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

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
}
STAR = "Lines are wider for larger coefficients."
PATH = "From the α at which the first class joins, on the right, downwards."
CLASSES = "Those that can be derived best come first. Errors are explained under “What these words mean”, on top."


def sections(analysis: "ClassDependencies") -> list[Section | None]:
    """Return every section for which something is known."""
    makers = (graph_section, covariance_section, path_section, spectrum_section, classes_section)
    return [make(analysis) for make in makers]


def graph_section(analysis: "ClassDependencies") -> Section | None:
    """A class and those it depends on; all classes; and the list behind both."""
    if (frame := analysis.edges).empty:
        return None
    drawn = EDGES if len(analysis.dependencies) <= MANY_CLASSES else FEW_EDGES
    strongest = frame.groupby("class", sort=False).head(drawn)[["class", "on", "coefficient"]]
    names = list(dict.fromkeys([*strongest["class"], *strongest["on"], *analysis.target_names]))
    nodes = place_nodes(strongest, names[:MOST_NODES])
    left_out = f" Of {len(names):,} classes, those with the smallest relative errors are drawn." * (
        len(names) > MOST_NODES
    )
    caption = (
        f"A line for {f'each of the {drawn} largest coefficients' if drawn > 1 else 'the largest coefficient'} of a "
        f"class; a node is larger the more others depend on it. Choose classes to see theirs alone.{left_out}"
    )
    star: dict[str, Any] = {"select": ("class",), "start": {"class": frame["class"].iloc[0]}, "labels": LABELS}
    graph: dict[str, Any] = {"value": ("coefficient",), "choose": "class", "ends": ("on", "on_x", "on_y")}
    graph["labels"] = LABELS | {"class": "dependencies of classe"}
    rows = frame.sort_values("coefficient", key=abs, ascending=False, kind="stable").head(MOST_ROWS)
    cut = f" These are {MOST_ROWS:,} of {len(frame):,}." if len(frame) > MOST_ROWS else ""
    return Section.of(
        "Graph",
        "Which classes a logit can be derived from.",
        Figure("A class and those it depends on", STAR, frame.head(MOST_ROWS), "star", "on", "coefficient", **star),
        Figure("All classes", caption, nodes, "graph", "x", "y", **graph),
        Listing("Every dependency", f"The largest first.{cut}", rows, LABELS),
    )


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
    logs = np.log10(values, out=np.full(len(values), np.nan), where=values > 0)
    frame = pd.DataFrame({"place": np.arange(1, len(values) + 1), "log_value": logs, "value": values})
    caption = f"The largest first; {analysis.redundancy.rank:,} of {len(values):,} are not within rounding of 0."
    labels = {"place": "place", "log_value": "eigenvalue, log₁₀", "value": "eigenvalue"}
    title = "Eigenvalues of the second moment"
    figure = Figure(title, caption, frame, "line", "place", "log_value", log_x=True, labels=labels)
    return Section.of("Spectrum", "In how many directions the logits vary, and how much.", figure)


def classes_section(analysis: "ClassDependencies") -> Section | None:
    """Everything that is known about every class, as a table."""
    frame = analysis.classes.assign(reliable=np.where(analysis.redundancy.reliable, "yes", "no"))
    frame.insert(2, "combination", frame["class"].map(analysis.combination))
    frame["class"] = analysis.target_names
    rows = frame.sort_values("relative_error", kind="stable", ignore_index=True)
    return Section.of("Classes", "Every class, with what is left of it.", Listing("Classes", CLASSES, rows, LABELS))
