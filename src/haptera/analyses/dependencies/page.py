"""The page of an analysis of dependencies: the graph, coefficients against covariance, paths, spectrum, every class."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from haptera.analyses.dependencies.frames import (
    SHOWN,
    classes,
    coefficients_and_covariances,
    edges,
    paths,
    placed_edges,
    shown_classes,
)
from haptera.report.figure import Figure
from haptera.report.section import Listing, Section

if TYPE_CHECKING:
    from haptera.analyses.dependencies.analysis import ClassDependencies

EDGES, FEW_EDGES, MANY_CLASSES = 3, 1, 200
"""Largest coefficients of a class that the graph of all classes draws, and how many where there are many classes."""
MOST_ROWS = 60_000
LABELS = {
    "on": "depends on",
    "relative_error": "relative error",
    "relative_redundancy": "R / mean square",
    "null_mass": "part in the null space",
    "own_covariance": "mean square of the logit",
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


def sections(analysis: "ClassDependencies") -> list[Section]:
    """Return every section for which something is known."""
    makers = (graph_section, covariance_section, path_section, spectrum_section, classes_section)
    return [section for make in makers if (section := make(analysis)) is not None]


def graph_section(analysis: "ClassDependencies") -> Section | None:
    """A class and those it depends on; all classes; and the list behind both."""
    frame = edges(analysis)
    if frame.empty:
        return None
    first = {"class": analysis.target_names[shown_classes(analysis)[0]]}
    star: dict[str, Any] = {"select": ("class",), "start": first, "labels": LABELS}
    drawn = EDGES if len(analysis.dependencies) <= MANY_CLASSES else FEW_EDGES
    placed, left_out = placed_edges(analysis, frame, drawn)
    caption = (
        f"A line for {f'each of the {drawn} largest coefficients' if drawn > 1 else 'the largest coefficient'} of a "
        f"class; a node is larger the more others depend on it. Choose classes to see theirs alone.{left_out}"
    )
    graph: dict[str, Any] = {"value": ("coefficient",), "choose": "class", "ends": ("on", "on_x", "on_y")}
    graph["labels"] = LABELS | {"class": "dependencies of classe"}
    figures = (
        Figure("A class and those it depends on", STAR, frame.head(MOST_ROWS), "star", "on", "coefficient", **star),
        Figure("All classes", caption, placed, "graph", "x", "y", **graph),
    )
    rows = frame.sort_values("coefficient", key=abs, ascending=False, kind="stable").head(MOST_ROWS)
    cut = f" These are {MOST_ROWS:,} of {len(frame):,}." if len(frame) > MOST_ROWS else ""
    listing = Listing("Every dependency", f"The largest first.{cut}", rows, LABELS)
    return Section("Graph", "Which classes a logit can be derived from.", figures, (listing,))


def covariance_section(analysis: "ClassDependencies") -> Section:
    """Coefficient against covariance for some classes, with the line at λ/2 (the source's figure 3)."""
    caption = (
        f"A point is a pair of classes; the line is at λ/2. Shown are the {min(SHOWN, len(analysis.dependencies))} "
        "classes with the smallest relative error."
    )
    frame, title = coefficients_and_covariances(analysis), "Coefficient against covariance"
    layers: dict[str, Any] = {"color": ("layer",), "mark": "mark", "select": ("class",)}
    figure = Figure(
        title, caption, frame, "layers", "covariance", "coefficient", labels={"covariance": "|C_ij|"}, **layers
    )
    wrong = analysis.conjecture
    text = (
        f"Conjecture 1 expects no dependency left of the line. It excludes {wrong.excluded:,} of {wrong.pairs:,} pairs "
        f"and is wrong for {wrong.wrong:,} of {wrong.dependencies:,} dependencies."
    )
    return Section("Covariance", text, (figure,))


def path_section(analysis: "ClassDependencies") -> Section | None:
    """How coefficients grow while λ falls, and with them the error."""
    frame = paths(analysis)
    if frame.empty:
        return None
    more: dict[str, Any] = {"color": ("on",), "select": ("class",), "log_x": True}
    more["labels"] = LABELS | {"alpha": "α = λ/2", "on": "class"}
    figure = Figure("Coefficients along the path", PATH, frame, "line", "alpha", "coefficient", **more)
    return Section("Path", "Which classes join, and when, if fewer or more dependencies are kept.", (figure,))


def spectrum_section(analysis: "ClassDependencies") -> Section:
    """The eigenvalues of the second moment."""
    values = analysis.redundancy.spectrum
    with np.errstate(divide="ignore"):
        logs = np.log10(values)
    frame = pd.DataFrame({"place": np.arange(1, len(values) + 1), "log_value": logs, "value": values})
    frame["log_value"] = frame["log_value"].where(np.isfinite(frame["log_value"]))
    caption = f"The largest first; {analysis.redundancy.rank:,} of {len(values):,} are not within rounding of 0."
    labels = {"place": "place", "log_value": "eigenvalue, log₁₀", "value": "eigenvalue"}
    title = "Eigenvalues of the second moment"
    figure = Figure(title, caption, frame, "line", "place", "log_value", log_x=True, labels=labels)
    return Section("Spectrum", "In how many directions the logits vary, and how much.", (figure,))


def classes_section(analysis: "ClassDependencies") -> Section:
    """Everything that is known about every class, as a table."""
    listing = Listing("Classes", CLASSES, classes(analysis), LABELS)
    return Section("Classes", "Every class, with what is left of it.", (), (listing,))
