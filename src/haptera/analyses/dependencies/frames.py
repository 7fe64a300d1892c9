"""The frames behind the page of dependencies: edges and their places, coefficients, paths, and every class.

Cost of the layout, by networkx: nodes² for each of some steps.
"""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from haptera.analyses.dependencies.findings import combination

if TYPE_CHECKING:
    from haptera.analyses.dependencies.analysis import ClassDependencies

SHOWN = 12
"""Classes whose every pair, and whose path, are on the page: those with the smallest relative error."""
MOST_NODES = 1500
STEPS = 30


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
