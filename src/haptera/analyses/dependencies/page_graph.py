"""The graph of dependencies: a class in the middle of those it depends on, all classes, and the list behind both.

Layout: where the nodes of a graph go, so that those that belong together stand together.

Springs pull the ends of an edge together and all nodes push each other away (Fruchterman and Reingold, 1991), from a
start that the spectrum of the graph gives. Repeatable. Cost: nodes² for each of some steps.
"""

import numpy as np
import pandas as pd

from haptera.analyses.dependencies import Analysis
from haptera.report.figure import Figure
from haptera.report.section import Listing, Section

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


def graph_section(analysis: Analysis) -> Section | None:
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


def edges(analysis: Analysis) -> pd.DataFrame:
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


def placed_edges(analysis: Analysis, frame: pd.DataFrame, drawn: int) -> tuple[pd.DataFrame, str]:
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


def shown_classes(analysis: Analysis) -> list[int]:
    """The classes with dependencies and the smallest relative error; any, where none has dependencies."""
    relative = np.where(analysis.dependencies.counts > 0, analysis.dependencies.relative_error, np.inf)
    return [int(place) for place in np.argsort(relative, kind="stable")[:SHOWN]]


def _cut(rows: int) -> str:
    return f" These are {MOST_ROWS:,} of {rows:,}." if rows > MOST_ROWS else ""


STEPS = 80


def layout(nodes: int, ends: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Positions `(nodes, 2)` in [-1, 1].

    Args:
        nodes: how many.
        ends: `(edges, 2)`, the nodes of each edge.
        weights: `(edges,)`, positive.
    """
    if nodes < 2:
        return np.zeros((nodes, 2))
    pull = np.zeros((nodes, nodes), np.float32)
    np.add.at(pull, (ends[:, 0], ends[:, 1]), weights)
    pull = np.minimum(pull + pull.T, 1)
    place = _start(pull)
    spring = np.float32(1 / np.sqrt(nodes))
    for step in range(STEPS):
        apart = place[:, None, :] - place[None, :, :]
        distance = np.sqrt((apart**2).sum(2)) + np.float32(1e-6)
        force = spring**2 / distance**2 - pull * distance / spring
        moved = (apart * force[:, :, None]).sum(1)
        moved -= np.float32(0.15) * place  # keeps parts that no edge joins on the page
        length = np.sqrt((moved**2).sum(1, keepdims=True)) + np.float32(1e-9)
        place += moved / length * np.minimum(length, np.float32(0.12 * (1 - step / STEPS) + 0.002))
    place -= place.mean(0)
    return place / max(float(np.abs(place).max()), 1e-9)


def _start(pull: np.ndarray) -> np.ndarray:
    """The second and third eigenvector of the normalised graph, spread evenly, with a little noise."""
    degree = np.sqrt(pull.sum(1) + 1e-3)
    _, vectors = np.linalg.eigh((pull + 1e-3 / len(pull)) / np.outer(degree, degree))
    ranks = np.argsort(np.argsort(vectors[:, -3:], axis=0, kind="stable"), axis=0)[:, :2]
    noise = np.random.default_rng(0).uniform(-1, 1, ranks.shape)
    return (ranks / len(pull) * 2 - 1 + 0.05 * noise).astype(np.float32)
