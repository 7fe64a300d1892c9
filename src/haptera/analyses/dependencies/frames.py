"""The frames behind figures and tables: edges of the lasso, of the few, those that are stable, paths."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from haptera.analyses.dependencies.forward import refit
from haptera.analyses.dependencies.verdict import DEPENDENCY

if TYPE_CHECKING:
    from haptera.analyses.dependencies.analysis import ClassDependencies

SMALLEST = 3
"""Classes of a group."""
STEPS = 30
"""Values of α along a path."""


def edges(analysis: "ClassDependencies") -> pd.DataFrame:
    """One row for each dependency, the classes with the smallest relative error first."""
    target, on, value = analysis.dependencies.edges()
    order = np.lexsort((-np.abs(value), analysis.dependencies.relative_error[target]))
    columns = _name_ends(analysis, target, on) | {"coefficient": value}
    columns |= {"covariance": analysis.lasso.moment_.problems()[1][target, on]}
    columns |= {"relaxed": values_at(analysis.relaxed.coefficients, target, on)}
    columns |= {} if analysis.stability is None else {"share": values_at(analysis.stability.shares, target, on)}
    return pd.DataFrame(columns).iloc[order].reset_index(drop=True)


def few_edges(analysis: "ClassDependencies") -> pd.DataFrame:
    """One row for each class that one of the few is derived from, dependencies first, then by relative error."""
    target, on, value = analysis.first_few.edges()
    rows = analysis.judgement.classes.iloc[target]
    columns = _name_ends(analysis, target, on) | {"coefficient": value}
    columns |= {"lasso": values_at(analysis.lasso.dependencies_.coefficients, target, on)}
    if analysis.stability is not None:
        share = values_at(analysis.stability.shares, target, on)
        columns |= {"share": share, "stable": np.where(share >= analysis.stability.cutoff - 1e-9, "yes", "no")}
    columns |= {"verdict": rows["verdict"].to_numpy()}
    order = np.lexsort((-np.abs(value), rows["relative_error"], rows["verdict"] != DEPENDENCY))
    return pd.DataFrame(columns).iloc[order].reset_index(drop=True)


def stable_edges(analysis: "ClassDependencies") -> pd.DataFrame:
    """One row for each stable edge: both ends as numbers, its share, and its coefficient without shrinkage."""
    assert analysis.stability is not None
    matrix, right, _ = analysis.lasso.moment_.problems()
    refitted = refit(matrix, right, analysis.stability.order())
    stable = analysis.stability.stable
    target = np.repeat(np.arange(stable.shape[0]), np.diff(stable.indptr))
    columns = {"class": target, "on": stable.indices, "share": stable.data}
    return pd.DataFrame(columns | {"coefficient": values_at(refitted, target, stable.indices)})


def communities(edges: pd.DataFrame) -> dict[str, str]:
    """Return class -> its group, `1` the largest; classes in groups of fewer than three are in none."""
    import networkx as nx

    graph = nx.Graph()
    for one, other, value in zip(edges["class"], edges["on"], edges["coefficient"], strict=True):
        graph.add_edge(one, other, weight=abs(value) + graph.get_edge_data(one, other, {"weight": 0.0})["weight"])
    found = sorted(nx.community.louvain_communities(graph, seed=0), key=lambda group: (-len(group), min(group)))
    groups = [group for group in found if len(group) >= SMALLEST]
    return {name: str(place) for place, group in enumerate(groups, 1) for name in group}


def paths(analysis: "ClassDependencies", classes: Sequence[int]) -> pd.DataFrame:
    """Coefficients of some classes along α, with the relative error there; others that never join are left out."""
    top, least = analysis.lasso.alpha_max_[classes].max(), analysis.dependencies.lam[classes].min() / 2
    if top <= 0:
        return pd.DataFrame()
    alphas = np.geomspace(top, min(least / 4, top / 20), STEPS)
    solutions = list(analysis.lasso.path(alphas, classes))
    cube = np.stack([found.coefficients.toarray() for found in solutions])
    drawn = cube != 0
    drawn[:-1] |= cube[1:] != 0  # a line begins at the zero before it
    target, on, step = np.nonzero(drawn.transpose(1, 2, 0))
    columns = _name_ends(analysis, np.array(classes)[target], on) | {"alpha": alphas[step]}
    columns |= {"coefficient": cube[step, target, on]}
    return pd.DataFrame(
        columns | {"relative_error": np.array([each.relative_error for each in solutions])[step, target]}
    )


def _name_ends(analysis: "ClassDependencies", target: np.ndarray, on: np.ndarray) -> dict[str, np.ndarray]:
    targets, names = np.array(analysis.target_names, dtype=object), np.array(analysis.names, dtype=object)
    return {"class": targets[target], "on": names[on]}


def values_at(array: csr_array, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return some values of a sparse array; 0 where it has none."""
    found = array[rows, columns]
    return np.asarray(found.todense() if hasattr(found, "todense") else found, dtype=np.float64).ravel()
