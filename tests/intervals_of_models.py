"""Intervals about shifts, models, embeddings and studies, for `tests/printed_intervals.py`."""

from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr
from tests.interval_case import SEVERAL, Case, Random

from haptera import measures
from haptera.analyses.identify.identifiability import identifiability
from haptera.analyses.trends.estimates import student_prediction
from haptera.analyses.trends.robustness import prediction, robustness
from haptera.analyses.trends.verdict import judge
from haptera.measures.combination import SIZE, combine
from haptera.measures.label_free import ESTIMATES
from haptera.statistics.comparison import compare_groups
from haptera.statistics.intervals import wilson
from haptera.statistics.line import fit
from haptera.statistics.resample import interval, over_examples, over_models
from haptera.statistics.stability import Distances, pair_distances, stability_indices
from haptera.table import tidy
from haptera.theory.known_models import ProbitModels


def cases_of_models() -> dict[str, Case]:
    """Name -> case."""
    found: dict[str, Case] = {}
    for n, choose_on in ((4, "holdout"), (15, "holdout"), (4, "all"), (8, "all"), (15, "all")):
        found[f"accuracy of one model without labels, {choose_on}, tried on {n} corruptions"] = Case(
            partial(_next_accuracy, choose_on=choose_on),
            partial(_known_shifts, n=n, told_exactly=4 if choose_on == "holdout" else 0),
            lambda *drawn: drawn[-1],
            quick=SEVERAL,
        )
    for n in (4, 8, 15):
        found[f"accuracy of one model without labels, estimators of many slopes, {n} corruptions"] = Case(
            partial(_next_accuracy, choose_on="all"),
            partial(_many_slopes, n=n),
            lambda *drawn: drawn[-1],
            quick=SEVERAL,
        )
    for n in (5, 6, 7, 8, 20):
        found[f"line, slope over {n} models"] = Case(_slope_over_models, partial(_trend, n=n), 0.9, quick=SEVERAL)
        found[f"line, new model after {n}"] = Case(_new_model, partial(_trend, n=n), lambda x, y: y[0], quick=SEVERAL)
    for n in (5, 8, 30):
        found[f"R² of {n} models"] = Case(_explained, partial(_straight, n=n), _expected_explained)
    for n in (4, 12):
        for corrected in (True, False):
            found[f"accuracy without labels after {n} sets, corrected {corrected}"] = Case(
                partial(_without_labels, corrected=corrected), partial(_sets, n=n, corrected=corrected), 0.5
            )
    for n in (4, 8):
        found[f"line, robustness of {n} models over examples"] = Case(
            _robustness, partial(_right, n=n), lambda models, *_: _left_out(models), quick=SEVERAL
        )
        found[f"line, robustness of {n} models by counts alone"] = Case(
            _effective, partial(_right, n=n), lambda models, *_: _left_out(models), most=1.0, quick=15
        )
    for n in (20, 60):
        found[f"stability of {n} images"] = Case(
            _stability, partial(_distances, n=n), _expected_stability, quick=SEVERAL
        )
    for n in (60, 200):
        found[f"identifiability of {n}"] = Case(
            _correlation, partial(_latents, n=n), _expected_correlation, quick=SEVERAL
        )
    for name, truth in (("mean_error", 0.4), ("mean_gain", 0.1), ("mean_error_over_seeds", 0.4)):
        found[f"study, {name}"] = Case(partial(_of_study, name=name), _study, truth, most=1.0, quick=0)
    found["groups, all pairs at once"] = Case(_tukey, _groups, 0.0, quick=0)
    return found


def _known_shifts(random: Random, n: int, told_exactly: int) -> tuple[pd.DataFrame, dict[str, float], float]:
    """Hold-out corruptions that are told exactly, and n + 1 that are off what is told, more where more is lost."""
    told = random.uniform(0.3, 0.8, told_exactly + n + 1)
    held = np.arange(len(told)) < told_exactly
    loss = 0.9 - told
    off = 0.1 * (np.median(loss[held] if held.any() else loss) + loss) * random.normal(size=len(told)) * ~held
    rows = pd.DataFrame(dict.fromkeys(ESTIMATES, told) | {SIZE: loss, "accuracy": told + off, "holdout": held})
    rows["shift"], new = rows.index.astype(str), rows.iloc[-1]
    return rows.iloc[:-1], {name: float(new[name]) for name in (*ESTIMATES, SIZE)}, float(new["accuracy"])


def _many_slopes(random: Random, n: int) -> tuple[pd.DataFrame, dict[str, float], float]:
    """n + 1 corruptions at three severities; each estimator has its slope and its errors, alike at all severities."""
    loss = random.uniform(0.2, 0.7, n + 1)[:, None] * np.arange(1, 4) / 3
    room = 0.15 + loss
    shared, by_size = random.normal(size=(2, n + 1, 1))
    rows: dict[str, Any] = {"shift": np.repeat(np.arange(n + 1).astype(str), 3), "holdout": False}
    for name in ESTIMATES:
        off = 0.075 * shared + random.uniform(0.05, 0.3) * random.normal(size=(n + 1, 1))
        rows[name] = (0.9 - random.uniform(0.4, 1.2) * (loss + room * off)).ravel()
    rows |= {SIZE: (loss * np.exp(0.3 * by_size)).ravel(), "accuracy": (0.9 - loss).ravel()}
    known, new = pd.DataFrame(rows).iloc[:-3], pd.DataFrame(rows).iloc[-1 - random.integers(3)]
    return known, {name: float(new[name]) for name in (*ESTIMATES, SIZE)}, float(new["accuracy"])


def _next_accuracy(
    known: pd.DataFrame, estimates: dict[str, float], truth: float, choose_on: str
) -> tuple[float, float]:
    found = combine(known, dict.fromkeys(ESTIMATES, 0.9) | {SIZE: 0.0, "accuracy": 0.9}, 10**9, choose_on)
    assert found is not None
    return found.interval(found.accuracy(estimates), 10**9)


def _trend(random: Random, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Accuracies of n + 1 models on a probit line; the first is new."""
    u = random.uniform(-0.3, 1.6, n + 1)
    return ndtr(u), ndtr(0.9 * u - 0.3 + random.normal(0, 0.05, n + 1))


def _straight(random: Random, n: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Accuracies of n models on a straight line, and the scatter around it."""
    x, scatter = random.uniform(0.3, 0.9, n), float(np.exp(random.uniform(np.log(0.005), np.log(0.15))))
    return x, 0.1 + 0.8 * x + random.normal(0, scatter, n), scatter


def _explained(x: np.ndarray, y: np.ndarray, scatter: float) -> tuple[float, float]:
    found = judge(x, y, "linear")
    return found.low, found.high


def _expected_explained(x: np.ndarray, y: np.ndarray, scatter: float) -> float:
    along = 0.64 * x.var()
    return float(along / (along + scatter**2))


def _sets(random: Random, n: int, corrected: bool) -> tuple[np.ndarray, ...]:
    """Errors on n sets and one more, in proportion to what is lost; the true accuracy of the last is .5."""
    scales = random.uniform(0.02, 0.06, n + 1)
    errors = scales * (0.5 * corrected + random.normal(size=n + 1))
    return np.array([0.5 + errors[-1]]), errors[:-1, None], scales[:-1, None], scales[-1:]


def _without_labels(*drawn: np.ndarray, corrected: bool) -> tuple[np.ndarray, np.ndarray]:
    return student_prediction(*drawn, corrected)[1:]


def _slope_over_models(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x, y = x[1:], y[1:]
    draws = over_models(x, y, draws=400)
    again = fit(x, y, "probit", weights=draws.weights)
    return interval(fit(x, y, "probit").line.slope, again.line.slope, draws.units)


def _new_model(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    row = prediction(x[1:], y[1:], x[:1], over_models(x[1:], y[1:], draws=400), "probit").iloc[0]
    return row["new_low"], row["new_high"]


def _right(random: Random, n: int) -> tuple[ProbitModels, np.ndarray, np.ndarray]:
    models = ProbitModels(random.uniform(-0.3, 1.6, n), gains=random.normal(0, 0.1, n))
    return models, *models.correct(600, 500, int(random.integers(2**31)))


def _left_out(models: ProbitModels) -> np.ndarray:
    return fit(*models.accuracies, "probit").left_out


def _robustness(models: ProbitModels, reference: np.ndarray, shifted: np.ndarray) -> tuple[Any, Any]:
    draws = over_examples(reference, shifted, draws=200)
    found = robustness(reference.mean(1), shifted.mean(1), kind="probit", n=(600, 500), draws=draws)
    found = found.sort_values("model", key=lambda names: names.astype(int))
    return found["effective_low"].to_numpy(), found["effective_high"].to_numpy()


def _effective(models: ProbitModels, reference: np.ndarray, shifted: np.ndarray) -> tuple[Any, Any]:
    sides = (("clean", 0.0, reference), ("fog", 3.0, shifted))
    rows = [
        {"model": f"{place:02}", "shift": shift, "severity": severity, "value": own.mean(), "n": len(own)}
        for shift, severity, side in sides
        for place, own in enumerate(side)
    ]
    table = pd.DataFrame(rows).assign(stream="s", adapter="none", measure="accuracy", seed=0)
    table = table.assign(step=np.nan, low=np.nan, high=np.nan)
    found = sorted(measures.effective_robustness(table), key=lambda row: row["model"])
    return [row["low"] for row in found], [row["high"] for row in found]


def _distances(random: Random, n: int) -> tuple[Distances]:
    outputs = random.normal(size=(n, 4)) * np.exp(0.3 * random.normal(size=(n, 1)))
    deformed, noisy = (np.exp(spread * random.normal(size=n)) for spread in (0.5, 0.4))
    noise = {"mean": 1.0, "median": 1.0}
    return (Distances(deformed, noisy, pair_distances(outputs), noise),)


def _stability(distances: Distances) -> tuple[np.ndarray, np.ndarray]:
    found = stability_indices(distances, draws=200)
    return found["low"].to_numpy(), found["high"].to_numpy()


def _expected_stability(distances: Distances) -> np.ndarray:
    return _stability_of_many()


@cache
def _stability_of_many() -> np.ndarray:
    return stability_indices(*_distances(np.random.default_rng(1), 5_000), draws=0)["value"].to_numpy()


def _latents(random: Random, n: int) -> tuple[np.ndarray, np.ndarray]:
    latents = random.uniform(size=(n, 3))
    return latents, latents + 0.2 * random.normal(size=(n, 3))


def _correlation(latents: np.ndarray, embedding: np.ndarray) -> tuple[float, float]:
    score = identifiability(latents, embedding, resamples=200).mcc
    return score.low, score.high


def _expected_correlation(latents: np.ndarray, embedding: np.ndarray) -> float:
    return float(np.sqrt((1 / 12) / (1 / 12 + 0.04)))


def _study(random: Random) -> tuple[pd.DataFrame]:
    """The table of two adapters on the same 100 images under three shifts, with two seeds of noise."""
    hard, rows = random.random(100), []
    for seed, shift, (adapter, accuracy) in product(
        (0, 1), ("fog", "snow", "contrast"), (("none", 0.5), ("tent", 0.6))
    ):
        right = int((np.where(random.random(100) < 0.3, random.random(100), hard) < accuracy).sum())
        low, high = wilson(right, 100)
        row = {"adapter": adapter, "shift": shift, "seed": seed, "n": 100}
        rows.append(row | {"measure": "accuracy", "value": right / 100, "low": low, "high": high})
        rows.append(row | {"measure": "error", "value": 1 - right / 100, "low": 1 - high, "high": 1 - low})
    return (tidy([row | {"model": "m", "stream": "s", "severity": 3.0} for row in rows]),)


def _of_study(table: pd.DataFrame, name: str) -> tuple[float, float]:
    plain = name.removesuffix("_over_seeds")
    rows = getattr(measures, plain)(table)
    if plain != name:
        rows = measures.mean_over_seeds(tidy(rows))
    own = next(row for row in rows if row["adapter"] == "tent" and not row.get("shift"))
    return own["low"], own["high"]


def _groups(random: Random) -> tuple[pd.DataFrame]:
    return (pd.DataFrame({"group": np.repeat(list("abc"), 4), "score": random.normal(np.repeat([0, 1, 2], 4))}),)


def _tukey(frame: pd.DataFrame) -> tuple[float, float]:
    """Both ends 0 where all differences are held at once, and 1 where one is not."""
    pairs = compare_groups(frame, "score", ["group"]).pairs
    true = pairs["one"].map("abc".index) - pairs["other"].map("abc".index)
    held = bool(((pairs["low"] <= true) & (true <= pairs["high"])).all())
    return (0.0, 0.0) if held else (1.0, 1.0)
