"""Paths through a calibration matrix: from one corruption alone to the next one alone, at a steady difficulty.

Source: thesis appendix C, algorithms 1 and 2. A path starts at severities (s1, 0), moves by s1 − step or s2 + step and
ends when s1 is 0. Three rules choose it:

- `text`: of all paths from all starts the one whose mean accuracy is nearest the target, exactly. Accuracies are
  counts, so the reachable sums at a cell are the bits of one integer, and a step shifts and joins them.
- `code`: the public generator. From the end backwards, every cell goes on by the move after which the mean of the rest,
  itself included, is nearer, ties to s2 + step; of all starts but (0, 0) the one whose mean is nearest. It differs from
  `text`, since the nearest mean of a whole path need not be made of nearest means.
- `steady`: ours. The least mean squared deviation from the target along the path, by a dynamic programme.

Cost for 21 x 21: about 50 ms (`text`), 1 ms (`code`), 10 ms (`steady`).
"""

import numpy as np

from haptera.errors import unknown

Path = list[tuple[int, int]]
RULES = ("steady", "text", "code")


def find_path(counts: np.ndarray, samples: int, target: float, rule: str = "steady") -> Path:
    """The path by a rule.

    Args:
        counts: `(grid, grid)` int, how many of the samples the model got right at severities (row, column).
        samples: how many there were.
        target: the accuracy to stay near.
        rule: `steady`, `text` or `code`.
    """
    check_rule(rule)
    return {"steady": _steady, "text": _text, "code": _code}[rule](counts, samples, target)


def check_rule(rule: str) -> None:
    """Refuse a rule that does not exist."""
    if rule not in RULES:
        raise unknown("rule", rule, RULES)


def mean_along(counts: np.ndarray, samples: int, path: Path) -> float:
    """The mean accuracy of a path."""
    return sum(int(counts[cell]) for cell in path) / (samples * len(path))


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
