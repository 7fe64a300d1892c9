"""Layout: where the nodes of a graph go, so that those that belong together stand together.

Springs pull the ends of an edge together and all nodes push each other away (Fruchterman and Reingold, 1991), from a
start that the spectrum of the graph gives. Repeatable. Cost: nodes² for each of some steps.
"""

import numpy as np

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
