"""Topology: how many parts, rings and hollows an embedding has, and the angle around its ring.

Source: thesis chapter 7, "Topological Analysis": persistent cohomology up to dimension 2 of points drawn from the
embedding; a class counts if it lives longer than the longest over embeddings that were trained with shuffled labels;
the ring is (1, 1, 0), a sphere (1, 0, 1). Circular coordinates after de Silva, Morozov and Vejdemo-Johansson (2009):
the longest class of H1, as integers, smoothed to a harmonic cochain by least squares, integrated to an angle for each.
Where this differs: of 1,000 points drawn, as in the source, those farthest from each other are kept, for H2 costs the
fourth power of their number (150 take a second on one core, 400 take 13) and rare places must not look like gaps.
Lifespans are in units of the spread of each embedding, since those of shuffled labels shrink towards a point; and the
threshold of rings and hollows is the longest bar of either kind in the null, since such embeddings are often flat and
have no hollow at all. The source has 500 shuffled embeddings. Needs ripser (the extra `topology`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import lsqr
from scipy.spatial import cKDTree

from haptera.errors import HapteraError

DRAWN, POINTS = 1000, 150
PRIME = 47


@dataclass(frozen=True, eq=False)
class Persistence:
    """Classes of an embedding.

    Attributes:
        bars: `dimension`, `birth`, `death` (infinite for the one part that is left), `lifespan`, in units of the
            spread of the points (the root of their mean squared distance from the middle).
        largest: the distance at which everything is filled in; the lifespan of what never dies is cut there.
    """

    bars: pd.DataFrame
    largest: float

    def longest(self, dimension: int, rank: int = 0) -> float:
        """The lifespan of the longest class, or of the one of another rank; 0 where there is none."""
        lives = np.sort(self.bars.loc[self.bars["dimension"] == dimension, "lifespan"].to_numpy())[::-1]
        return float(lives[rank]) if rank < len(lives) else 0.0


def persistence(embedding: np.ndarray, *, dimension: int = 2, points: int = POINTS, seed: int = 0) -> Persistence:
    """Cohomology of points drawn from an embedding.

    Args:
        embedding: `(samples, dimensions)`.
        dimension: the highest.
        points: how many are kept of those drawn.
        seed: of the draw.
    """
    drawn = _unit_spread(_draw_points(embedding, points, seed))
    diagrams = _ripser(drawn, dimension, cocycles=False)["dgms"]
    largest = float(max((diagram[np.isfinite(diagram)].max() for diagram in diagrams if len(diagram)), default=0.0))
    rows = [(place, *map(float, bar)) for place, diagram in enumerate(diagrams) for bar in diagram]
    bars = pd.DataFrame(rows, columns=["dimension", "birth", "death"])
    return Persistence(bars.assign(lifespan=bars["death"].clip(upper=largest) - bars["birth"]), largest)


def betti_numbers(found: Persistence, null: Sequence[Persistence], *, dimension: int = 2) -> tuple[int, ...]:
    """How many parts, rings and hollows live longer than any of the null.

    In dimension 0 the one part that never dies always counts, and the null is its longest finite bar.
    """
    if not null:
        raise HapteraError("Betti numbers need embeddings of shuffled labels to compare with; none was given")
    numbers = [1 + int((_finite(found) > max(_finite(each).max(initial=0.0) for each in null)).sum())]
    longest = max(each.longest(place) for each in null for place in range(1, dimension + 1))
    for place in range(1, dimension + 1):
        lives = found.bars.loc[found.bars["dimension"] == place, "lifespan"]
        numbers.append(int((lives > longest).sum()))
    return tuple(numbers)


def _finite(found: Persistence) -> np.ndarray:
    bars = found.bars[(found.bars["dimension"] == 0) & np.isfinite(found.bars["death"])]
    return bars["lifespan"].to_numpy()


def circular_coordinates(embedding: np.ndarray, *, points: int = POINTS, seed: int = 0) -> np.ndarray:
    """The angle of every sample around the longest ring, from 0 to 2π, up to direction and origin.

    Args:
        embedding: `(samples, dimensions)`.
        points: how many are kept to find the ring; the others get the angle of the nearest of them.
        seed: of the draw.
    """
    drawn = _draw_points(embedding, points, seed)
    found = _ripser(drawn, 1, cocycles=True)
    bars = found["dgms"][1]
    if not len(bars):
        raise HapteraError("the embedding has no ring: there is no class in H1")
    lives = bars[:, 1] - bars[:, 0]
    longest = int(lives.argmax())
    birth, death = (float(end) for end in bars[longest])
    # Just below its death the class still lives, and the most edges help to smooth it.
    reach = birth + 0.9 * (min(death, float(found["dperm2all"].max())) - birth)
    angle = _angles(found["cocycles"][1][longest], found["dperm2all"], reach)
    return angle[np.asarray(cKDTree(drawn).query(embedding)[1])]


def _angles(cocycle: np.ndarray, distances: np.ndarray, reach: float) -> np.ndarray:
    """The cocycle, lifted to integers and made harmonic over the edges no longer than `reach`, as angles of points."""
    count = len(distances)
    integers = np.zeros((count, count))
    values = np.where(cocycle[:, 2] > PRIME // 2, cocycle[:, 2] - PRIME, cocycle[:, 2]).astype(float)
    first, second = cocycle[:, 0].astype(int), cocycle[:, 1].astype(int)
    integers[first, second], integers[second, first] = values, -values
    tail, head = np.nonzero(np.triu(distances <= reach, 1))
    edges = np.arange(len(tail))
    boundary = csr_matrix(
        (np.concatenate([-np.ones(len(tail)), np.ones(len(tail))]), (np.tile(edges, 2), np.concatenate([tail, head]))),
        shape=(len(tail), count),
    )
    turns = lsqr(boundary, integers[tail, head], atol=1e-10, btol=1e-10)[0]
    return np.mod(2 * np.pi * turns, 2 * np.pi)


def _ripser(points: np.ndarray, dimension: int, *, cocycles: bool) -> dict:
    try:
        from ripser import ripser
    except ImportError as error:
        raise HapteraError("topology needs ripser: pip install 'haptera[topology]'") from error
    found: dict = ripser(
        np.asarray(points, float), maxdim=dimension, do_cocycles=cocycles, coeff=PRIME if cocycles else 2
    )
    return found


def _draw_points(embedding: np.ndarray, points: int, seed: int) -> np.ndarray:
    """Random points, and of these the ones farthest from each other, each the farthest from all before it."""
    if min(len(embedding), points) < 10:
        raise HapteraError(f"{min(len(embedding), points)} points; topology needs ten or more")
    some = np.asarray(embedding[np.random.default_rng(seed).permutation(len(embedding))[:DRAWN]], float)
    kept = [0]
    away = ((some - some[0]) ** 2).sum(1)
    while len(kept) < min(points, len(some)):
        kept.append(int(away.argmax()))
        away = np.minimum(away, ((some - some[kept[-1]]) ** 2).sum(1))
    return some[kept]


def _unit_spread(points: np.ndarray) -> np.ndarray:
    spread = np.sqrt(((points - points.mean(0)) ** 2).sum(1).mean())
    if not spread > 0:
        raise HapteraError("all points of the embedding are the same; it has no topology")
    return points / spread
