"""The graph of dependencies: a class in the middle of those it depends on, all classes, and the list behind both.

Cost of the layout, by networkx: nodes² for each of some steps.
"""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from haptera.report.figure import Figure
from haptera.report.section import Listing, Section

if TYPE_CHECKING:
    from haptera.analyses.dependencies.analysis import ClassDependencies

SHOWN = 12
"""Classes whose every pair, and whose path, are on the page: those with the smallest relative error."""
EDGES, FEW_EDGES, MANY_CLASSES = 3, 1, 200
"""Largest coefficients of a class that the graph of all classes draws, and how many where there are many classes."""
MOST_NODES = 1500
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


def graph_section(analysis: "ClassDependencies") -> Section | None:
    """A class and those it depends on; and all classes."""
    frame = edges(analysis)
    if frame.empty:
        return None
    first = analysis.target_names[shown_classes(analysis)[0]]
    star = Figure(
        "A class and those it depends on",
        "Lines are wider for larger coefficients.",
        frame.head(MOST_ROWS),
        kind="star",
        x="on",
        y="coefficient",
        select=("class",),
        start={"class": first},
        labels=LABELS,
    )
    drawn = EDGES if len(analysis.dependencies) <= MANY_CLASSES else FEW_EDGES
    placed, left_out = placed_edges(analysis, frame, drawn)
    everything = Figure(
        "All classes",
        f"A line for {f'each of the {drawn} largest coefficients' if drawn > 1 else 'the largest coefficient'} of a "
        f"class; a node is larger the more others depend on it. Choose classes to see theirs alone.{left_out}",
        placed,
        kind="graph",
        x="x",
        y="y",
        value=("coefficient",),
        choose="class",
        ends=("on", "on_x", "on_y"),
        labels=LABELS | {"class": "dependencies of classe"},
    )
    listing = Listing(
        "Every dependency",
        f"The largest first.{_cut(len(frame))}",
        frame.sort_values("coefficient", key=abs, ascending=False, kind="stable").head(MOST_ROWS),
        LABELS,
    )
    return Section("Graph", "Which classes a logit can be derived from.", (star, everything), (listing,))


def edges(analysis: "ClassDependencies") -> pd.DataFrame:
    """One row for each dependency, the classes with the smallest relative error first."""
    target, on, value = analysis.dependencies.edges()
    _, right, _ = analysis.lasso.moment_.problems()
    frame = pd.DataFrame(
        {
            "class": np.array(analysis.target_names, dtype=object)[target],
            "on": np.array(analysis.names, dtype=object)[on],
            "coefficient": value,
            "covariance": right[target, on],
        }
    )
    order = np.lexsort((-np.abs(value), analysis.dependencies.relative_error[target]))
    return frame.iloc[order].reset_index(drop=True)


def placed_edges(analysis: "ClassDependencies", frame: pd.DataFrame, drawn: int) -> tuple[pd.DataFrame, str]:
    """The largest coefficients of each class, with the places of both ends; and what was left out."""
    strongest = frame.groupby("class", sort=False).head(drawn)[["class", "on", "coefficient"]]
    names = list(dict.fromkeys([*strongest["class"], *strongest["on"], *analysis.target_names]))
    left_out = ""
    if len(names) > MOST_NODES:
        left_out = f" Of {len(names):,} classes, those with the smallest relative errors are drawn."
        names = names[:MOST_NODES]
        strongest = strongest[strongest["class"].isin(names) & strongest["on"].isin(names)]
    number = {name: place for place, name in enumerate(names)}
    ends = np.column_stack([strongest[side].map(number).to_numpy(int) for side in ("class", "on")])
    size = strongest["coefficient"].abs().to_numpy()
    places = layout(len(names), ends, size / max(size.max(initial=0), 1e-300))
    lonely = [name for name in names if name not in set(strongest["class"])]
    rows = pd.concat([strongest, pd.DataFrame({"class": lonely, "on": None, "coefficient": np.nan})], ignore_index=True)
    for side, prefix in (("class", ""), ("on", "on_")):
        at = rows[side].map(number)
        for axis, name in enumerate("xy"):
            rows[prefix + name] = at.map(
                lambda place, axis=axis: np.nan if place != place else places[int(place), axis]
            )
    return rows, left_out


def shown_classes(analysis: "ClassDependencies") -> list[int]:
    """The classes with dependencies and the smallest relative error; any, where none has dependencies."""
    relative = np.where(analysis.dependencies.counts > 0, analysis.dependencies.relative_error, np.inf)
    return [int(place) for place in np.argsort(relative, kind="stable")[:SHOWN]]


def _cut(rows: int) -> str:
    return f" These are {MOST_ROWS:,} of {rows:,}." if rows > MOST_ROWS else ""


def layout(nodes: int, ends: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return positions `(nodes, 2)` in [-1, 1], nearer where edges are; the same for the same graph.

    Args:
        nodes: how many.
        ends: `(edges, 2)`, the nodes of each edge.
        weights: `(edges,)`, positive.
    """
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(nodes))
    graph.add_weighted_edges_from((*pair, weight) for pair, weight in zip(ends.tolist(), weights.tolist(), strict=True))
    places = nx.spring_layout(graph, seed=0)
    return np.array([places[node] for node in range(nodes)]).reshape(nodes, 2)
