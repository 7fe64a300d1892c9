"""Thinning: so many points as a reader can see and a page can carry, without moving any mean."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

FEWEST = 10
MOST_PER_LINE = 1_000


def bounded(frame: pd.DataFrame, by: str, most: int) -> tuple[pd.DataFrame, str]:
    """Whole values of a column, in order of appearance, while their rows fit; always the first.

    Returns:
        The frame, and a sentence that says what was left out ("" when nothing was).
    """
    if len(frame) <= most:
        return frame, ""
    sizes = frame.groupby(by, sort=False, observed=True).size()
    kept = sizes.index[(sizes.cumsum() <= most) | (np.arange(len(sizes)) == 0)]
    if len(kept) == len(sizes):
        return frame, ""
    sentence = f" This page has {len(kept):,} of {len(sizes):,} {by}s; the table file has all."
    return frame[frame[by].isin(kept)].reset_index(drop=True), sentence


def over_steps(rows: pd.DataFrame, lines: list[str], most: int) -> tuple[pd.DataFrame, int]:
    """Average neighbouring windows, and seeds, until at most `most` points are left in all.

    Every line (one combination of `lines`) may have the same number of points, at least `FEWEST` and at most
    `MOST_PER_LINE`; a point is the mean, weighted by n, of windows that follow each other, so the weighted mean of a
    line stays what it was. `low` and `high` are averaged alike, `n` is the sum over windows of one seed, `step` the
    last step, `severity` the mean, and `shift` is "several" where windows under different shifts met.

    Returns:
        The points, sorted by line and step, and how many windows went into one point at most.
    """
    block = blocks(rows, lines)
    step = rows["step"].to_numpy(dtype=float)
    order = block.order(step)
    line, step = block.numbers()[order], step[order]
    rank, count = _ranks(line, step)
    each = min(max(most // max(int(line[-1]) + 1, 1), FEWEST), MOST_PER_LINE) if len(line) else 1
    points = np.where(count > each, rank * each // count, rank)
    return _weighted(rows, lines, line, points, order), _most_windows(count, each)


@dataclass(frozen=True)
class Blocks:
    """Rows that follow each other and agree in some columns: in a table that a study wrote, all that agree.

    Attributes:
        starts: `(blocks,)`, the first row of each.
        lengths: `(blocks,)`, how many rows each has.
        number: `(blocks,)`, the place of its combination of values among all of them, sorted.
    """

    starts: np.ndarray
    lengths: np.ndarray
    number: np.ndarray

    def numbers(self) -> np.ndarray:
        """Return the number of each row."""
        return np.repeat(self.number, self.lengths)

    def whole(self, step: np.ndarray) -> bool:
        """Say whether each combination is in one block, whose steps ascend."""
        if len(self.number) > self.number.max(initial=-1) + 1:
            return False
        ascending = np.diff(step) > 0
        ascending[self.starts[1:] - 1] = True
        return bool(ascending.all())

    def order(self, step: np.ndarray) -> np.ndarray:
        """Return the rows by number and step: blocks put one after the other where they are whole, or sorted."""
        if not self.whole(step):
            return np.lexsort((step, self.numbers()))
        places = np.argsort(self.number)
        lengths = self.lengths[places]
        ahead = self.starts[places] - (np.cumsum(lengths) - lengths)
        return np.repeat(ahead, lengths) + np.arange(len(step))


def blocks(rows: pd.DataFrame, by: list[str]) -> Blocks:
    """Return the blocks of rows that agree in some columns."""
    combined = np.zeros(len(rows), dtype=np.int64)
    for name in by:
        codes = rows[name].astype("category").cat.codes.to_numpy()
        combined = combined * (int(codes.max(initial=0)) + 2) + codes + 1
    starts = np.flatnonzero(np.diff(combined, prepend=-1))
    return Blocks(
        starts, np.diff(starts, append=len(rows)), np.unique(combined[starts], return_inverse=True)[1].reshape(-1)
    )


def _ranks(line: np.ndarray, step: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the place of a row's step within its line, and how many there are, for rows sorted by line and step."""
    new_line = np.diff(line, prepend=-1) != 0
    new_step = new_line | (np.diff(step, prepend=np.nan) != 0)
    position = np.cumsum(new_step) - 1
    first = position[new_line][line]
    count = np.bincount(line[new_step])[line]
    return position - first, count


def _most_windows(count: np.ndarray, each: int) -> int:
    longest = int(count.max(initial=1))
    return -(-longest // each) if longest > each else 1


def _weighted(
    rows: pd.DataFrame, lines: list[str], line: np.ndarray, place: np.ndarray, order: np.ndarray
) -> pd.DataFrame:
    """Return weighted means of rows, in an order in which those of one place in a line are a slice."""
    starts = np.flatnonzero((np.diff(line, prepend=-1) != 0) | (np.diff(place, prepend=-1) != 0))
    weight = rows["n"].to_numpy(dtype=float, na_value=np.nan)[order]
    weight = np.where(weight > 0, weight, np.nan)
    known = bool(np.isfinite(weight).any())
    weight = np.where(np.isnan(weight), 1.0, weight)
    first, ends = order[starts], order[np.append(starts[1:], len(order))[: len(starts)] - 1]
    points = rows[lines].iloc[first].reset_index(drop=True)
    points["step"] = rows["step"].iloc[ends].to_numpy()
    shift = rows["shift"].astype("category")
    codes = shift.cat.codes.to_numpy()[order]
    mixed = _reduce(np.minimum, codes, starts) != _reduce(np.maximum, codes, starts)
    names = shift.iloc[first].reset_index(drop=True)
    if mixed.any():
        names = names.astype("object").mask(mixed, "several").astype("category")
    points["shift"] = names
    for column in ("severity", "value", "low", "high"):
        values = rows[column].to_numpy(dtype=float, na_value=np.nan)[order]
        missing = np.isnan(values)
        present = np.where(missing, 0.0, weight) if missing.any() else weight
        with np.errstate(invalid="ignore"):  # 0 / 0 where nothing is known is NaN, as it should be
            points[column] = _reduce(np.add, np.nan_to_num(values) * present, starts) / _reduce(np.add, present, starts)
    total = _reduce(np.add, weight, starts) / _seeds(rows, line, order)[starts]  # another seed shows the same images
    points["n"] = pd.array(total.round().astype(int), "Int64") if known else pd.NA
    return points


def _seeds(rows: pd.DataFrame, line: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return how many seeds the line of each row has, at least one."""
    if "seed" not in rows or not len(rows):
        return np.ones(len(rows))
    codes, values = pd.factorize(rows["seed"])
    if len(values) < 2:
        return np.ones(len(rows))
    known = codes[order] >= 0
    met = np.unique(line[known] * len(values) + codes[order][known]) // len(values)
    return np.maximum(np.bincount(met, minlength=int(line.max()) + 1), 1)[line]


def _reduce(function: np.ufunc, values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    return function.reduceat(values, starts) if len(values) else values
