"""Calibration: how often one fixed model is right under every ordered pair of shifts at every pair of severities.

Source: thesis chapter 4, "Calibration to desired baseline accuracy". `haptera.run.calibrate` measures, keeps and
reads it. A path through the matrix of a pair leads from one corruption alone to the next one alone, at a steady
difficulty.
Source: thesis appendix C, algorithms 1 and 2. It starts at severities (s1, 0), moves by s1 − step or s2 + step and
ends when s1 is 0. Three rules choose it:

- `text`: of all paths from all starts the one whose mean accuracy is nearest the target, exactly. Accuracies are
  counts, so the reachable sums at a cell are the bits of one integer, and a step shifts and joins them.
- `code`: the public generator. From the end backwards, every cell goes on by the move after which the mean of the rest,
  itself included, is nearer, ties to s2 + step; of all starts but (0, 0) the one whose mean is nearest. It differs from
  `text`, since the nearest mean of a whole path need not be made of nearest means.
- `steady`: ours. The least mean squared deviation from the target along the path, by a dynamic programme.

Cost for 21 x 21: about 50 ms (`text`), 1 ms (`code`), 10 ms (`steady`).
"""

from dataclasses import dataclass, field

import numpy as np

from haptera.checks import check_number
from haptera.errors import HapteraError, check_keys
from haptera.files.fingerprint import fingerprint

DIFFICULTIES = {"easy": 0.447, "medium": 0.223, "hard": 0.025}
"""Shares of the way from chance to clean accuracy: 34, 17 and 2 % for a ResNet-50 with 76.1 % among 1,000 classes."""
FINEST = 1000
"""The most steps of severity that a grid can have."""
Path = list[tuple[int, int]]
RULES = ("steady", "text", "code")


@dataclass(frozen=True)
class Calibration:
    """What was measured.

    Attributes:
        counts: (first shift, second shift) -> `(grid, grid)` int, right answers at severities (row, column) x step.
        samples: out of how many.
        step: between severities.
        clean: right answers on clean data.
        classes: how many the model chooses from.
        flip: whether images were mirrored at random, as the stream does.
        crop: by which share of the side they were moved at random.
        prints: fingerprints of the model and of the data.
    """

    counts: dict[tuple[str, str], np.ndarray]
    samples: int
    step: float
    clean: int
    classes: int
    flip: bool
    crop: float
    prints: dict[str, str] = field(default_factory=dict)

    @property
    def shifts(self) -> list[str]:
        """The names of the shifts, in order."""
        return list(dict.fromkeys(first for first, _ in self.counts))

    def target(self, difficulty: str | float) -> float:
        """Return the accuracy of a difficulty, which has a name or is an accuracy itself."""
        if isinstance(difficulty, str):
            check_keys("difficulty", [difficulty], DIFFICULTIES)
            chance = 1 / self.classes
            return chance + DIFFICULTIES[difficulty] * (self.clean / self.samples - chance)
        check_number("difficulty", difficulty, least=0, most=1, what=f"{', '.join(DIFFICULTIES)}, or an accuracy")
        return float(difficulty)

    def out_of_reach(self, difficulty: str | float, near: float = 0.05) -> list[str]:
        """Return shifts that alone never make it as hard as that; a walk is easier where it begins or ends with one."""
        lowest = {first: counts[:, 0].min() / self.samples for (first, _), counts in self.counts.items()}
        return [name for name, accuracy in lowest.items() if accuracy > self.target(difficulty) + near]

    def fingerprint(self) -> str:
        """Return what changes when any count or setting does."""
        settings = (self.samples, self.step, self.clean, self.classes, self.flip, self.crop, self.prints)
        return fingerprint({" ".join(pair): matrix for pair, matrix in self.counts.items()}, settings)


def severity_grid(step: float) -> np.ndarray:
    """Return the severities of a calibration, from 0 to 5."""
    points = round(5 / step) if step > 5 / FINEST else 0
    if points < 1 or abs(points * step - 5) > 1e-9:
        raise HapteraError(f"step is {step}; a number that divides 5, such as 0.25, 0.5 or 1, was expected")
    return np.linspace(0, 5, points + 1)


def find_path(counts: np.ndarray, samples: int, target: float, rule: str = "steady") -> Path:
    """Return the path by a rule through `(grid, grid)` counts of right answers at severities (row, column)."""
    check_keys("rule", [rule], RULES)
    return {"steady": _steady, "text": _text, "code": _code}[rule](counts, samples, target)


def _text(counts: np.ndarray, samples: int, target: float) -> Path:
    grid = len(counts)
    best: tuple[float, int, int, int] | None = None
    tables = []
    for start in range(grid):
        reach = _reachable(counts, start)
        tables.append(reach)
        for end in range(grid):
            length = start + end + 1
            total = _nearest_bit(reach[0][end], target * samples * length)
            if total is not None:
                deviation = abs(total / (samples * length) - target)
                if best is None or deviation < best[0]:
                    best = deviation, start, end, total
    assert best is not None
    _, start, end, total = best
    return _trace(counts, tables[start], start, end, total)


def _reachable(counts: np.ndarray, start: int) -> list[list[int]]:
    """Return for each cell the sums of the paths to it from (start, 0), as the bits of an integer."""
    grid = len(counts)
    reach = [[0] * grid for _ in range(start + 1)]
    for row in range(start, -1, -1):
        for column in range(grid):
            if row == start and column == 0:
                arrive = 1
            else:
                arrive = reach[row + 1][column] if row < start else 0
                if column and row:  # a path has ended once row 0 is reached, it does not move along it
                    arrive |= reach[row][column - 1]
            reach[row][column] = arrive << int(counts[row, column])
    return reach


def _nearest_bit(bits: int, wanted: float) -> int | None:
    """The position of the set bit nearest to a number."""
    if not bits:
        return None
    below = bits & ((1 << (int(wanted) + 1)) - 1)
    low = below.bit_length() - 1
    above = bits >> (int(wanted) + 1)
    high = int(wanted) + (above & -above).bit_length() if above else None
    candidates = [place for place in (low if below else None, high) if place is not None]
    return min(candidates, key=lambda place: abs(place - wanted))


def _trace(counts: np.ndarray, reach: list[list[int]], start: int, column: int, total: int) -> Path:
    """A path to (0, column) with this sum, backwards."""
    row, path = 0, [(0, column)]
    total -= int(counts[0, column])
    while (row, column) != (start, 0):
        if row < start and (reach[row + 1][column] >> total) & 1:
            row += 1
        else:
            column -= 1
        path.append((row, column))
        total -= int(counts[row, column])
    return path[::-1]


def _code(counts: np.ndarray, samples: int, target: float) -> Path:
    grid = len(counts)
    totals, lengths = counts.astype(np.int64), np.ones(counts.shape, np.int64)
    onward: dict[tuple[int, int], tuple[int, int]] = {}

    def distance(cell: tuple[int, int], own: int = 0, steps: int = 0) -> float:
        """Return how far the mean from a cell on, with some steps before it, is from the target."""
        return abs(float((totals[cell] + own) / (samples * (lengths[cell] + steps))) - target)

    for row in range(1, grid):
        for column in range(grid - 1, -1, -1):
            own, moves = int(counts[row, column]), [(row, column + 1), (row - 1, column)]
            best = min(moves[column + 1 == grid :], key=lambda cell: distance(cell, own, 1))
            onward[row, column] = best
            totals[row, column], lengths[row, column] = own + totals[best], 1 + lengths[best]
    path = [min(((start, 0) for start in range(1, grid)), key=distance)]
    while path[-1][0]:
        path.append(onward[path[-1]])
    return path


def _steady(counts: np.ndarray, samples: int, target: float) -> Path:
    grid = len(counts)
    cost = (counts / samples - target) ** 2
    best: tuple[float, Path] | None = None
    for start in range(grid):
        least = np.full((start + 1, grid), np.inf)
        least[start] = np.cumsum(cost[start]) if start else np.where(np.arange(grid) == 0, cost[0], np.inf)
        for row in range(start - 1, -1, -1):
            for column in range(grid):
                from_left = least[row, column - 1] if column and row else np.inf
                least[row, column] = min(least[row + 1, column], from_left) + cost[row, column]
        means = least[0] / (start + np.arange(grid) + 1)
        end = int(np.argmin(means))
        if best is None or means[end] < best[0]:
            best = float(means[end]), _back(least, start, end)
    assert best is not None
    return best[1]


def _back(least: np.ndarray, start: int, column: int) -> Path:
    row, path = 0, [(0, column)]
    while (row, column) != (start, 0):
        left = least[row, column - 1] if column and row else np.inf
        up = least[row + 1, column] if row < start else np.inf
        row, column = (row + 1, column) if up <= left else (row, column - 1)
        path.append((row, column))
    return path[::-1]
