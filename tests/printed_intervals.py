"""Every interval that the package prints, each with a world whose truth is known, for the law of intervals.

Whoever writes a new formula adds a case here and its module to `MAKERS`; whoever uses `wilson`, `newcombe`,
`paired_interval`, `mean_of_units` or `resample.interval` as they are need not. Ends that are a least and a largest
value (over seeds or fits) are called that, and are not intervals.
"""

from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from tests.interval_case import SEVERAL, Case, Random
from tests.intervals_of_models import cases_of_models

from haptera import measures
from haptera.measures.corruptions import spearman_interval
from haptera.measures.pairs import newcombe, paired_interval
from haptera.outputs import Outputs
from haptera.statistics.groups import means_of_groups
from haptera.statistics.intervals import mean_of_units, wilson
from haptera.statistics.power_law import power_law
from haptera.statistics.simultaneous import simultaneous_intervals
from haptera.testing.intervals import MOST
from haptera.tune.scores import ranking

MAKERS = {
    "haptera.statistics.intervals": ("units", "share"),
    "haptera.statistics.groups": ("groups of units",),
    "haptera.measures.pairs": ("difference of shares",),
    "haptera.statistics.power_law": ("power law",),
    "haptera.measures.corruptions": ("rank correlation",),
    "haptera.statistics.resample": ("line",),
    "haptera.statistics.explained": ("R²",),
    "haptera.analyses.trends.estimates": ("accuracy without labels",),
    "haptera.statistics.spread": ("accuracy of one model without labels",),
    "haptera.statistics.comparison": ("groups",),
    "haptera.statistics.simultaneous": ("twelve differences",),
}
"""Module with a formula of its own -> how the names of its cases begin."""


def cases() -> dict[str, Case]:
    """Name -> case."""
    found: dict[str, Case] = {}
    for n in (5, 20, 500):
        found[f"share of {n}"] = Case(lambda count, n, p: wilson(count, n), partial(_share, n=n), _last)
    for n in (20, 200):
        found[f"difference of shares of {n} and {n}"] = Case(_newcombe, partial(_two_shares, n=n), 0.2)
        found[f"difference of shares of the same {n}, as if of others"] = Case(
            _newcombe, partial(_same_samples, n=n), 0.2, most=1.0
        )
        found[f"difference of shares of the same {n}"] = Case(_paired, partial(_same_samples, n=n), 0.2)
        found[f"difference of shares of the same {n}, seldom"] = Case(
            lambda more, less, n: paired_interval(more, less, n), partial(_seldom, n=n), 0.03, most=1.0
        )
    found["class attraction of 300"] = Case(_attraction, _attracted, [0.2, -0.05, -0.05, -0.05, -0.05])
    for n in (30, 200):
        found[f"likelihood of {n}"] = Case(_mean_score, partial(_logits, n=n), _expected_likelihood)
    for n in (2, 3, 4, 5, 8, 20):
        found[f"units, {n} differences"] = Case(partial(_units, scale="plain"), partial(_plain_units, n=n), 0.3)
        found[f"units, {n} errors"] = Case(partial(_units, scale="log"), partial(_error_units, n=n), np.exp(0.125))
        found[f"units, {n} shares"] = Case(partial(_units, scale="share"), partial(_share_units, n=n), 0.8)
    for scale, draw, truth in (("plain", _plain_units, 0.3), ("log", _error_units, np.exp(0.125))):
        found[f"groups of units, {scale}"] = Case(partial(_grouped, scale=scale), partial(draw, n=4), truth)
    for n in (3, 8):
        found[f"keypoints of {n} animals"] = Case(_keypoints, partial(_animals, n=n), np.exp(0.08), quick=SEVERAL)
        found[f"tuning on {n} corruptions"] = Case(_tuned, partial(_errors_of_settings, n=n), 0.3, quick=SEVERAL)
    for n in (3, 5, 20):
        found[f"power law, exponent of {n}"] = Case(partial(_power, name="exponent"), partial(_powers, n=n), 0.5)
    for n in (4, 8, 20):
        found[f"power law, correlation of {n}"] = Case(
            partial(_power, name="correlation"), partial(_powers, n=n), 0.5 / np.sqrt(0.34)
        )
    for n in (60, 400):
        found[f"twelve differences of the same {n}"] = Case(_all_at_once, partial(_fates, n=n), 0.1, quick=SEVERAL)
    for n in (6, 12, 40):
        most = 1.0 if n == 6 else MOST  # there are few orders of six
        found[f"rank correlation of {n}"] = Case(_rank, partial(_ranked, n=n), 6 / np.pi * np.arcsin(0.4), most=most)
    return found | cases_of_models()


def _all_at_once(*differences: np.ndarray) -> tuple[float, float]:
    """Return ends that hold what all twelve differences share just where all twelve intervals do."""
    found = simultaneous_intervals(differences, [np.arange(len(differences[0]))] * len(differences))
    return float(found.low.max()), float(found.high.min())


def _fates(random: Random, n: int) -> tuple[np.ndarray, ...]:
    """Images that are lost (.05) or won (.15), mostly the same ones in all comparisons."""
    shared = random.random(n)
    fates = [np.where(random.random(n) < 0.7, shared, random.random(n)) for _ in range(12)]
    return tuple(np.where(fate < 0.05, -1.0, np.where(fate > 0.85, 1.0, 0.0)) for fate in fates)


def _last(*drawn: Any) -> Any:
    return drawn[-1]


def _share(random: Random, n: int) -> tuple[int, int, float]:
    p = random.uniform(0.02, 0.98)
    return random.binomial(n, p), n, p


def _newcombe(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    n = len(one)
    return newcombe(*((side.mean(), *wilson(float(side.sum()), n)) for side in (one, other)))


def _two_shares(random: Random, n: int) -> tuple[np.ndarray, np.ndarray]:
    return random.random(n) < 0.8, random.random(n) < 0.6


def _same_samples(random: Random, n: int) -> tuple[np.ndarray, np.ndarray]:
    hard = random.random(n)
    return hard < 0.8, np.where(random.random(n) < 0.2, random.random(n) < 0.6, hard < 0.6)


def _outputs(right: np.ndarray) -> Outputs:
    n = len(right)
    return Outputs({"labels": np.where(right, 0, 1)}, ids=np.arange(n), targets=np.zeros(n, int))


def _paired(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    _, low, high = measures.difference(_outputs(one), _outputs(other))
    return low, high


def _seldom(random: Random, n: int) -> tuple[float, float, int]:
    more, less, _ = random.multinomial(n, [0.04, 0.01, 0.95])
    return more, less, n


def _attracted(random: Random) -> tuple[Outputs]:
    targets = random.integers(0, 5, 300)
    return (Outputs({"labels": np.where(random.random(300) < 0.25, 0, targets)}, np.arange(300), targets),)


def _attraction(outputs: Outputs) -> tuple[list[float], list[float]]:
    rows = {row["class"]: row for row in measures.class_attraction(outputs)}
    return tuple([rows[label][end] if label in rows else np.nan for label in range(5)] for end in ("low", "high"))  # type: ignore[return-value]


def _logits(random: Random, n: int) -> tuple[Outputs]:
    logits = 2 * random.normal(size=(n, 3)) + [1.5, 0, 0]
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    targets = (shares.cumsum(1) > random.random((n, 1))).argmax(1)
    return (Outputs({"logits": logits.astype(np.float32)}, ids=np.arange(n), targets=targets),)


def _scores(outputs: Outputs) -> list[dict[str, Any]]:
    return [measures.negative_log_likelihood(outputs)[0], measures.brier_score(outputs)[0]]


def _mean_score(outputs: Outputs) -> tuple[list[float], list[float]]:
    rows = _scores(outputs)
    return [row["low"] for row in rows], [row["high"] for row in rows]


def _expected_likelihood(outputs: Outputs) -> list[float]:
    return _likelihood_of_many()


@cache
def _likelihood_of_many() -> list[float]:
    return [row["value"] for row in _scores(*_logits(np.random.default_rng(1), 300_000))]


def _units(values: np.ndarray, scale: str) -> tuple[float, float]:
    return mean_of_units(values, scale).ends


def _grouped(values: np.ndarray, scale: str) -> tuple[float, float]:
    """The interval of the second of two groups."""
    both = np.concatenate([2 * values[:3] + 1, values])
    found = means_of_groups(both, np.repeat([0, 1], [3, len(values)]), np.full(len(both), scale))
    return float(found.low[1]), float(found.high[1])


def _plain_units(random: Random, n: int) -> tuple[np.ndarray]:
    return (random.normal(0.3, 1, n),)


def _error_units(random: Random, n: int) -> tuple[np.ndarray]:
    return (np.exp(random.normal(0, 0.5, n)),)


def _share_units(random: Random, n: int) -> tuple[np.ndarray]:
    return (random.beta(8, 2, n),)


def _animals(random: Random, n: int) -> tuple[Outputs]:
    """Ten frames of each of n animals, whose errors differ by a factor, in a box of one pixel."""
    labels = np.tile([[0.0, 0.0], [1.0, 1.0]], (10 * n, 1, 1))
    who = np.repeat(np.arange(n).astype(str), 10)
    size = np.repeat(np.exp(random.normal(0, 0.4, n)), 10)[:, None, None]
    return (Outputs({"keypoints": labels + size * [1.0, 0.0]}, np.arange(10 * n), labels, context={"individual": who}),)


def _keypoints(outputs: Outputs) -> tuple[float, float]:
    row = measures.normalised_error(outputs)[0]
    return row["low"], row["high"]


def _errors_of_settings(random: Random, n: int) -> tuple[pd.DataFrame]:
    shifts = pd.Index([f"shift {place}" for place in range(n)], name="shift")
    return (pd.DataFrame({0: random.beta(6, 14, n), 1: random.beta(16, 4, n)}, index=shifts),)


def _tuned(units: pd.DataFrame) -> tuple[float, float]:
    table = ranking(units, [{"lr": 1}, {"lr": 2}], ["lr=1", "lr=2"])
    row = table[table["setting"] == "lr=1"].iloc[0]
    return row["low"], row["high"]


def _powers(random: Random, n: int) -> tuple[np.ndarray, np.ndarray]:
    a = random.normal(size=n)
    return np.exp(a), np.exp(0.5 * a + 0.3 * random.normal(size=n))


def _power(x: np.ndarray, y: np.ndarray, name: str) -> tuple[float, float]:
    law = power_law(x, y)
    return getattr(law, f"{name}_low"), getattr(law, f"{name}_high")


def _ranked(random: Random, n: int) -> tuple[np.ndarray, np.ndarray]:
    a = random.normal(size=n)
    return a, 0.8 * a + 0.6 * random.normal(size=n)


def _rank(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    value = float(np.corrcoef(a.argsort().argsort(), b.argsort().argsort())[0, 1])
    ends = spearman_interval(value, len(a))
    return ends.get("low", np.nan), ends.get("high", np.nan)
