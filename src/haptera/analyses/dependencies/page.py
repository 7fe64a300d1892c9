"""The page of an analysis of dependencies: the graph, coefficients against covariance, paths, spectrum, every class."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from haptera.analyses.dependencies.findings import combination
from haptera.analyses.dependencies.page_graph import LABELS, SHOWN, graph_section, shown_classes
from haptera.report.figure import Figure
from haptera.report.section import Listing, Section

if TYPE_CHECKING:
    from haptera.analyses.dependencies.analysis import ClassDependencies

STEPS = 30


def sections(analysis: "ClassDependencies") -> list[Section]:
    """Return every section for which something is known."""
    makers = (graph_section, covariance_section, path_section, spectrum_section, classes_section)
    return [section for make in makers if (section := make(analysis)) is not None]


def covariance_section(analysis: "ClassDependencies") -> Section:
    """Coefficient against covariance for some classes, with the line at λ/2 (the source's figure 3)."""
    figure = Figure(
        "Coefficient against covariance",
        f"A point is a pair of classes; the line is at λ/2. Shown are the {min(SHOWN, len(analysis.dependencies))} "
        "classes with the smallest relative error.",
        coefficients_and_covariances(analysis),
        kind="layers",
        x="covariance",
        y="coefficient",
        color=("layer",),
        mark="mark",
        select=("class",),
        labels={"covariance": "|C_ij|"},
    )
    wrong = analysis.conjecture
    text = (
        f"Conjecture 1 expects no dependency left of the line. It excludes {wrong.excluded:,} of {wrong.pairs:,} pairs "
        f"and is wrong for {wrong.wrong:,} of {wrong.dependencies:,} dependencies."
    )
    return Section("Covariance", text, (figure,))


def coefficients_and_covariances(analysis: "ClassDependencies") -> pd.DataFrame:
    """Every pair of the classes shown, and two ends of the line at λ/2."""
    _, right, _ = analysis.lasso.moment_.problems()
    left_out = analysis.lasso.moment_.left_out()
    parts = []
    for target in shown_classes(analysis):
        coefficient = analysis.dependencies.coefficients[[target]].toarray()[0]
        pairs = pd.DataFrame(
            {
                "class": analysis.target_names[target],
                "mark": "point",
                "layer": np.where(coefficient != 0, "dependency", "none"),
                "on": analysis.names,
                "covariance": np.abs(right[target]),
                "coefficient": coefficient,
            }
        )
        pairs = pairs.drop(index=left_out[target]) if left_out[target] >= 0 else pairs
        half = analysis.dependencies.lam[target] / 2
        ends = [min(coefficient.min(), 0.0), max(coefficient.max(), 0.0)]
        line = {"class": analysis.target_names[target], "mark": "line", "layer": "λ/2", "covariance": half}
        parts += [pairs, pd.DataFrame([line | {"coefficient": end} for end in ends])]
    return pd.concat(parts, ignore_index=True)


def path_section(analysis: "ClassDependencies") -> Section | None:
    """How coefficients grow while λ falls, and with them the error."""
    frame = paths(analysis)
    if frame.empty:
        return None
    figure = Figure(
        "Coefficients along the path",
        "From the α at which the first class joins, on the right, downwards.",
        frame,
        kind="line",
        x="alpha",
        y="coefficient",
        color=("on",),
        select=("class",),
        log_x=True,
        labels=LABELS | {"alpha": "α = λ/2", "on": "class"},
    )
    return Section("Path", "Which classes join, and when, if fewer or more dependencies are kept.", (figure,))


def paths(analysis: "ClassDependencies") -> pd.DataFrame:
    """The coefficients of the classes shown along α, with the error there; classes that never join are left out."""
    chosen = shown_classes(analysis)
    top = float(analysis.lasso.alpha_max_[chosen].max())
    least = float(analysis.dependencies.lam[chosen].min()) / 2
    if top <= 0:
        return pd.DataFrame()
    alphas = np.geomspace(top, min(least / 4, top / 20), STEPS)
    solutions = list(analysis.lasso.path(alphas, chosen))
    cube = np.stack([found.coefficients.toarray() for found in solutions])
    drawn = cube != 0
    drawn[:-1] |= cube[1:] != 0  # a line begins at the zero before it
    target, on, place = np.nonzero(drawn.transpose(1, 2, 0))
    return pd.DataFrame(
        {
            "class": np.array(analysis.target_names, dtype=object)[np.array(chosen)[target]],
            "on": np.array(analysis.names, dtype=object)[on],
            "alpha": alphas[place],
            "coefficient": cube[place, target, on],
            "relative_error": np.array([found.relative_error for found in solutions])[place, target],
        }
    )


def spectrum_section(analysis: "ClassDependencies") -> Section:
    """The eigenvalues of the second moment."""
    values = analysis.redundancy.spectrum
    with np.errstate(divide="ignore"):
        logs = np.log10(values)
    frame = pd.DataFrame({"place": np.arange(1, len(values) + 1), "log_value": logs, "value": values})
    frame["log_value"] = frame["log_value"].where(np.isfinite(frame["log_value"]))
    figure = Figure(
        "Eigenvalues of the second moment",
        f"The largest first; {analysis.redundancy.rank:,} of {len(values):,} are not within rounding of 0.",
        frame,
        kind="line",
        x="place",
        y="log_value",
        log_x=True,
        labels={"place": "place", "log_value": "eigenvalue, log₁₀", "value": "eigenvalue"},
    )
    return Section("Spectrum", "In how many directions the logits vary, and how much.", (figure,))


def classes_section(analysis: "ClassDependencies") -> Section:
    """Everything that is known about every class, as a table."""
    caption = "Those that can be derived best come first. Errors are explained under “What these words mean”, on top."
    return Section(
        "Classes",
        "Every class, with what is left of it.",
        (),
        (Listing("Classes", caption, classes(analysis), LABELS),),
    )


def classes(analysis: "ClassDependencies") -> pd.DataFrame:
    """One row for each class, the smallest relative error first."""
    found, redundancy = analysis.dependencies, analysis.redundancy
    frame = pd.DataFrame(
        {
            "class": analysis.target_names,
            "dependencies": found.counts,
            "combination": [combination(analysis, target) for target in range(len(found))],
            "error": found.error,
            "relative_error": found.relative_error,
            "redundancy": redundancy.value,
            "relative_redundancy": redundancy.relative,
            "reliable": np.where(redundancy.reliable, "yes", "no"),
        }
    )
    if analysis.onto is None:
        frame["null_mass"] = redundancy.null_mass
    table = analysis.replacement.drop(columns="class")
    return frame.join(table).sort_values("relative_error", kind="stable", ignore_index=True)
