"""Every interval that the package prints, each with a world whose truth is known, for the law of intervals.

Whoever writes a new formula adds a case here and its module to `MAKERS`; whoever uses `wilson`, `newcombe`,
`paired_interval`, `mean_of_units` or `resample.interval` as they are need not. Ends that are a least and a largest
value (over seeds or fits) are called that, and are not intervals.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr

from haptera import measures
from haptera.analyses.diagnosis.error_prediction import predict_error
from haptera.analyses.identify.identifiability import identifiability
from haptera.analyses.trends.robustness import prediction, robustness
from haptera.measures.corruptions import spearman_interval
from haptera.measures.pairs import newcombe, paired_interval
from haptera.outputs import Outputs
from haptera.statistics.comparison import compare_groups
from haptera.statistics.intervals import mean_of_units, wilson
from haptera.statistics.line import fit
from haptera.statistics.power_law import power_law
from haptera.statistics.resample import interval, over_examples, over_models
from haptera.statistics.stability import Distances, pair_distances, stability_indices
from haptera.table import tidy
from haptera.testing.intervals import LEAST, MOST
from haptera.theory.probit_models import ProbitModels
from haptera.tune.scores import ranking

Random = np.random.Generator
SEVERAL = 40
MAKERS = {
    "haptera.statistics.intervals": ("units", "share"),
    "haptera.measures.pairs": ("difference of shares",),
    "haptera.statistics.power_law": ("power law",),
    "haptera.measures.corruptions": ("rank correlation",),
    "haptera.statistics.resample": ("line",),
    "haptera.analyses.diagnosis.error_prediction": ("error of a new shift",),
    "haptera.statistics.comparison": ("groups",),
}
"""Module with a formula of its own -> how the names of its cases begin."""


@dataclass(frozen=True)
class Case:
    """An interval in a world whose truth is known.

    Attributes:
        interval: makes both ends of what was drawn.
        draw: makes data.
        truth: what should be between the ends, or a function of the data.
        least: the least share of the time.
        most: the largest; 1 where it is said to cover at least so much.
        quick: how many times data is drawn for a quick look; 0 where one time takes too long for that.
    """

    interval: Callable[..., tuple[Any, Any]]
    draw: Callable[[Random], tuple[Any, ...]]
    truth: Any
    least: float = LEAST
    most: float = MOST
    quick: int = 300


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
    for n in (3, 8):
        found[f"keypoints of {n} animals"] = Case(_keypoints, partial(_animals, n=n), np.exp(0.08), quick=SEVERAL)
        found[f"tuning on {n} corruptions"] = Case(_tuned, partial(_errors_of_settings, n=n), 0.3, quick=SEVERAL)
    for n in (3, 5, 20):
        found[f"power law, exponent of {n}"] = Case(partial(_power, name="exponent"), partial(_powers, n=n), 0.5)
    for n in (4, 8, 20):
        found[f"power law, correlation of {n}"] = Case(
            partial(_power, name="correlation"), partial(_powers, n=n), 0.5 / np.sqrt(0.34)
        )
    for n in (6, 12, 40):
        most = 1.0 if n == 6 else MOST  # there are few orders of six
        found[f"rank correlation of {n}"] = Case(_rank, partial(_ranked, n=n), 6 / np.pi * np.arcsin(0.4), most=most)
    found["error of a new shift, at 90 %"] = Case(_next_error, _known_shifts, _last, 0.88, 1.0, quick=SEVERAL)
    for n in (5, 8, 20):
        found[f"line, slope over {n} models"] = Case(_slope_over_models, partial(_trend, n=n), 0.9, quick=SEVERAL)
        found[f"line, new model after {n}"] = Case(_new_model, partial(_trend, n=n), lambda x, y: y[0], quick=SEVERAL)
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


def _known_shifts(random: Random) -> tuple[pd.DataFrame, float, float, float]:
    """Twelve corruptions at four severities, each off a plane in its own way; size, doubt and error of one more."""
    sizes = random.uniform(0.2, 2, (13, 4))
    doubt = 0.2 + 0.1 * sizes + random.normal(0, 0.02, sizes.shape)
    error = 0.1 + 0.1 * sizes + 0.5 * (doubt - 0.2) + random.normal(0, 0.02, (13, 1)) * sizes
    names = np.repeat([f"shift {place}" for place in range(12)], 4)
    known = {"shift": names} | {
        name: values[1:].ravel() for name, values in (("size", sizes), ("doubt", doubt), ("error", error))
    }
    return pd.DataFrame(known), float(sizes[0, 0]), float(doubt[0, 0]), float(error[0, 0])


def _next_error(known: pd.DataFrame, size: float, doubt: float, error: float) -> tuple[float, float]:
    found = predict_error(known, 0.1, size, doubt, (10**6, 10**6))
    return found.low, found.high


def _trend(random: Random, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Accuracies of n + 1 models on a probit line; the first is new."""
    u = random.uniform(-0.3, 1.6, n + 1)
    return ndtr(u), ndtr(0.9 * u - 0.3 + random.normal(0, 0.05, n + 1))


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
