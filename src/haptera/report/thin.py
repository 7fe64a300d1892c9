"""Thinning: so many points as a reader can see and a page can carry, without moving any mean."""

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
    line = rows.groupby(lines, observed=True, sort=True).ngroup().to_numpy()
    step = rows["step"].to_numpy(dtype=float)
    order = np.lexsort((step, line))
    line, step = line[order], step[order]
    rank, count = _ranks(line, step)
    each = min(max(most // max(int(line[-1]) + 1, 1), FEWEST), MOST_PER_LINE) if len(line) else 1
    points = np.where(count > each, rank * each // count, rank)
    rows = rows.iloc[order]
    return _weighted(rows, lines, line * (points.max(initial=0) + 1) + points), _most_windows(count, each)


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


def _weighted(rows: pd.DataFrame, lines: list[str], group: np.ndarray) -> pd.DataFrame:
    """Weighted means of rows that are sorted by group, as sums over slices."""
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    weight = rows["n"].to_numpy(dtype=float, na_value=np.nan)
    weight = np.where(weight > 0, weight, np.nan)
    known = bool(np.isfinite(weight).any())
    weight = np.where(np.isnan(weight), 1.0, weight)
    first = rows.iloc[starts]
    points = first[lines].reset_index(drop=True)
    ends = np.append(starts[1:], len(rows)) - 1
    points["step"] = rows["step"].to_numpy()[ends] if len(rows) else []
    codes = rows["shift"].astype("category").cat.codes.to_numpy()
    mixed = _reduce(np.minimum, codes, starts) != _reduce(np.maximum, codes, starts)
    points["shift"] = np.where(mixed, "several", first["shift"].astype("object"))
    for column in ("severity", "value", "low", "high"):
        values = rows[column].to_numpy(dtype=float, na_value=np.nan)
        present = np.where(np.isnan(values), 0.0, weight)
        with np.errstate(invalid="ignore"):  # 0 / 0 where nothing is known is NaN, as it should be
            points[column] = _reduce(np.add, np.nan_to_num(values) * present, starts) / _reduce(np.add, present, starts)
    seed = rows["seed"] if "seed" in rows else pd.Series(0, rows.index)
    seeds = seed.groupby([rows[name] for name in lines], observed=True).transform("nunique").clip(lower=1)
    total = _reduce(np.add, weight, starts) / seeds.to_numpy()[starts]  # another seed shows the same images
    points["n"] = pd.array(total.round().astype(int), "Int64") if known else pd.NA
    return points


def _reduce(function: np.ufunc, values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    return function.reduceat(values, starts) if len(values) else values
