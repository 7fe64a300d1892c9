"""Decide: which comparisons fell by more than noise and tolerance, and which images did it.

A comparison fell where its interval lies below minus the tolerance as a whole. The intervals hold together at 95 %, and
one side of them decides, so a candidate that is as good as the model before fails in at most 2.5 % of all releases,
however many comparisons there are. Cost: `statistics.simultaneous`.
"""

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd

from haptera.analyses.gate.pairs import LOWER_IS_BETTER, Pairs
from haptera.statistics.intervals import LEVEL
from haptera.statistics.simultaneous import simultaneous_intervals

FELL, LOWER, SAME, BETTER = "fell", "lower", "within noise", "better"
CLEARED, UNDECIDED, UNSEEN = "cleared", "undecided", "not looked at"
COLUMNS = ["model", "stream", "part", "adapter", "shift", "severity", "measure", "before", "after", "difference"]
COLUMNS += ["low", "high", "images", "lost", "won", "verdict"]
WORST = ["image", "fell_in", "shifts", "before", "after"]


def decide(pairs: Sequence[Pairs], measure: str, tolerance: float, level: float = LEVEL) -> tuple[pd.DataFrame, float]:
    """Return a row for each comparison, with its interval and verdict, and how many standard errors intervals reach.

    Args:
        pairs: the comparisons.
        measure: what is compared.
        tolerance: how much may be lost.
        level: the chance that all intervals hold what they should.
    """
    shares = measure not in LOWER_IS_BETTER
    found = simultaneous_intervals(
        [each.differences for each in pairs], [each.images for each in pairs], shares=shares, level=level
    )
    rows = []
    for place, each in enumerate(pairs):
        low, high = float(found.low[place]), float(found.high[place])
        numbers = {"difference": float(found.value[place]), "low": low, "high": high}
        rows.append(describe(each, measure) | numbers | {"verdict": verdict_of(low, high, measure, tolerance)})
    return pd.DataFrame(rows, columns=COLUMNS), found.critical


def describe(pairs: Pairs, measure: str) -> dict[str, object]:
    """Return what a comparison is about, and what was counted."""
    sign = -1 if measure in LOWER_IS_BETTER else 1
    counts = {"images": len(pairs.images), "lost": int((sign * pairs.differences < 0).sum())}
    counts["won"] = int((sign * pairs.differences > 0).sum())
    means = {"before": float(pairs.before.mean()), "after": float(pairs.after.mean())}
    return asdict(pairs.about) | {"measure": measure, **means, **counts}


def verdict_of(low: float, high: float, measure: str, tolerance: float) -> str:
    """Say what an interval of a difference means.

    >>> verdict_of(-0.09, -0.05, "accuracy", 0.01), verdict_of(-0.02, 0.01, "accuracy", 0.01)
    ('fell', 'within noise')
    """
    worst, best = (-high, -low) if measure in LOWER_IS_BETTER else (low, high)
    if best < -tolerance:
        return FELL
    if best < 0:
        return LOWER
    return BETTER if worst > 0 else SAME


def worst_images(pairs: Sequence[Pairs], verdicts: Sequence[str], measure: str) -> pd.DataFrame:
    """Return the images that lost most under what fell, those that lost under most shifts first.

    Columns are `image`, `fell_in` (how many comparisons), `shifts` (their names), and the mean scores there.
    """
    sign = -1 if measure in LOWER_IS_BETTER else 1
    frames = []
    for each, verdict in zip(pairs, verdicts, strict=True):
        here = sign * each.differences < 0
        if verdict == FELL and here.any():
            columns = {"image": each.images[here], "before": each.before[here], "after": each.after[here]}
            frames.append(pd.DataFrame(columns).assign(shifts=each.about.place or each.about.part))
    if not frames:
        return pd.DataFrame(columns=WORST)
    every = pd.concat(frames)
    groups = every.groupby("image", sort=True)
    worst = groups.agg(fell_in=("shifts", "size"), before=("before", "mean"), after=("after", "mean"))
    worst["shifts"] = groups["shifts"].agg(lambda names: ", ".join(dict.fromkeys(names)))
    worst["loss"] = sign * (worst["before"] - worst["after"]) * worst["fell_in"]
    ordered = worst.reset_index().sort_values(["loss", "image"], ascending=[False, True], ignore_index=True)
    return ordered[WORST]


def neighbours(comparisons: pd.DataFrame, verdict: str = FELL) -> list[pd.DataFrame]:
    """Return the comparisons of a verdict in groups: neighbouring severities of one shift are one.

    Those that are worst come first.
    """
    groups = []
    keys = ["model", "stream", "adapter", "shift"]
    for _, rows in comparisons.groupby(keys, sort=False, dropna=False):
        rows = rows.sort_values("severity")
        here = (rows["verdict"] == verdict).to_numpy()
        runs = np.cumsum(np.diff(here.astype(int), prepend=0) == 1)
        groups += [own for _, own in rows[here].groupby(runs[here], sort=False)]
    sign = -1 if len(comparisons) and comparisons["measure"].iloc[0] in LOWER_IS_BETTER else 1
    return sorted(groups, key=lambda rows: sign * float(rows["difference"].mean()))
