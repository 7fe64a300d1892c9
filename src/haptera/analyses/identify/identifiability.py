"""Identifiability: how far an embedding is the known latents, up to an affine map, or up to their order and sign.

Source: thesis chapter 6: R² of a linear regression from the embedding to the latents (affine identifiability, table
6.1), and the mean correlation coefficient, MCC, of each latent with the dimension that an optimal assignment gives it
(identifiability up to permutation, table 6.2). Here the regression and the assignment are found on one half of the
samples and scored on the other, each score has an interval by resampling held-out samples, and beside the MCC stands
that of random rotations of the true latents: an embedding that finds the latents but not their axes has about so
much.
A row may miss its score for two reasons, which the loss of the latents themselves tells apart, that of an encoder which
inverts the process. A loss above it was not trained to its end. A loss below it prefers another embedding, and training
longer leads away from the latents: theorem 3 promises them only where the model's law is that of the pairs and the
marginal uniform.
Cost: a regression, an assignment, and `RESAMPLES` weighted means; for the latents about a dozen evaluations of the loss
of some thousand pairs.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from scipy.optimize import linear_sum_assignment, minimize_scalar
from scipy.stats import rankdata

from haptera.analyses.identify.processes import Process
from haptera.checks import check_number
from haptera.contrastive.loss import InfoNCE
from haptera.errors import HapteraError
from haptera.statistics.resample import interval

RESAMPLES = 1000
ROTATIONS = 200
ENOUGH = 0.05
"""Share of the loss of the latents by which another one may differ and count as the same."""
COLLINEAR = 1e-6
"""Singular values below this share of the largest are not used by the regression."""
PAIRS = 8192
"""References by which it is estimated, or one batch if that is more."""
BATCHES = 64
"""The most batches, where they are small."""
RANGE = 10.0
"""The best size is looked for from a tenth of the first guess to ten times that."""


@dataclass(frozen=True)
class Score:
    """A score with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Identifiability:
    """What was found.

    Attributes:
        r2: of the affine map from embedding to latents, the mean over latents, on held-out samples.
        mcc: mean absolute Pearson correlation after the assignment, on held-out samples.
        mcc_spearman: the same with ranks.
        permutation: for each latent the dimension of the embedding assigned to it.
        rotation_mcc: mean MCC of random rotations of the latents.
        rotation_high: what 95 % of such rotations stay below.
        n: held-out samples.
    """

    r2: Score
    mcc: Score
    mcc_spearman: Score
    permutation: np.ndarray
    rotation_mcc: float
    rotation_high: float
    n: int

    def table(self) -> pd.DataFrame:
        """`measure`, `value`, `low`, `high`, `n`."""
        scores = {"r2": self.r2, "mcc": self.mcc, "mcc_spearman": self.mcc_spearman}
        rows = [{"measure": name, **vars(score), "n": self.n} for name, score in scores.items()]
        null = {"measure": "rotation_mcc", "value": self.rotation_mcc, "low": np.nan, "high": self.rotation_high}
        return pd.DataFrame([*rows, null | {"n": self.n}])


def identifiability(
    latents: np.ndarray, embedding: np.ndarray, *, held: float = 0.5, resamples: int = RESAMPLES, seed: int = 0
) -> Identifiability:
    """Compare an embedding with the latents behind it.

    Args:
        latents: `(samples, latents)`.
        embedding: `(samples, dimensions)`, at least as many dimensions as latents.
        held: share of the samples, at the end, on which everything is scored.
        resamples: by which intervals are found.
        seed: of resamples and rotations.

    >>> z = np.random.default_rng(0).uniform(size=(400, 3))
    >>> found = identifiability(z, 5 - 2 * z[:, [2, 0, 1]])
    >>> round(found.mcc.value, 3), found.permutation.tolist()
    (1.0, [1, 2, 0])
    """
    latents, embedding = _check(latents, embedding, held)
    cut = round(len(latents) * (1 - held))
    train, test = slice(None, cut), slice(cut, None)
    random = np.random.default_rng(seed)
    count = len(latents) - cut
    weights = random.multinomial(count, np.full(count, 1 / count), size=resamples) / count

    permutation = best_assignment(correlations(latents[train], embedding[train]))
    pairs = latents[test], embedding[test][:, permutation]
    ranks = rankdata(pairs[0], axis=0), rankdata(pairs[1], axis=0)
    null = rotation_mcc(np.corrcoef(latents.T), random)
    return Identifiability(
        _r2(latents, embedding, train, test, weights),
        _mcc(*pairs, weights),
        _mcc(*ranks, weights),
        permutation,
        float(null.mean()),
        float(np.quantile(null, 0.95)),
        count,
    )


def fit_verdict(fit: float, latents: float) -> str:
    """What the loss of an encoder says beside that of the latents: `reached`, `not reached`, `another embedding`.

    Args:
        fit: minus that of a constant embedding, as all losses here.
        latents: of the latents themselves, as `latents_fit` finds it; with NaN nothing is said.

    >>> fit_verdict(-0.08, -0.12), fit_verdict(-4.97, -4.94), fit_verdict(-1.0, -0.49)
    ('not reached', 'reached', 'another embedding')
    """
    if not (np.isfinite(fit) and np.isfinite(latents)):
        return ""
    if abs(fit - latents) <= ENOUGH * abs(latents):
        return "reached"
    return "not reached" if fit > latents else "another embedding"


def correlations(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Absolute Pearson correlations of the columns, `(columns of first, columns of second)`; 0 of a constant one."""
    parts = [part - part.mean(0) for part in (first, second)]
    norms = [np.linalg.norm(part, axis=0) for part in parts]
    return np.abs(parts[0].T @ parts[1]) / np.maximum(np.outer(*norms), 1e-300)


def best_assignment(sizes: np.ndarray) -> np.ndarray:
    """Return for each row the column that makes the sum largest, no column twice."""
    rows, columns = linear_sum_assignment(-sizes)
    return np.asarray(columns[np.argsort(rows)])


def rotation_mcc(correlation: np.ndarray, random: np.random.Generator, rotations: int = ROTATIONS) -> np.ndarray:
    """MCC of latents with random rotations of themselves, each scaled to the same spread.

    Args:
        correlation: of the latents, `(latents, latents)`.
        random: draws the rotations.
        rotations: how many.

    Returns:
        `(rotations,)`.
    """
    found = np.empty(rotations)
    for place in range(rotations):
        turn = np.linalg.qr(random.normal(size=correlation.shape))[0]
        spread = np.sqrt(np.einsum("ij,ik,kj->j", turn, correlation, turn))
        sizes = np.abs(correlation @ turn) / spread
        found[place] = sizes[np.arange(len(sizes)), best_assignment(sizes)].mean()
    return found


def _r2(latents: np.ndarray, embedding: np.ndarray, train: slice, test: slice, weights: np.ndarray) -> Score:
    spread = embedding[train].std(0)
    scaled = (embedding - embedding[train].mean(0)) / np.where(spread > 0, spread, 1.0)
    inputs = np.column_stack([scaled, np.ones(len(embedding))])
    # Dimensions that repeat others would otherwise get coefficients that explode on new samples.
    coefficients = np.linalg.lstsq(inputs[train], latents[train], rcond=COLLINEAR)[0]
    left = (latents[test] - inputs[test] @ coefficients) ** 2
    true = latents[test] - latents[test].mean(0)

    def score(weight: np.ndarray) -> np.ndarray:
        spread = weight @ true**2 - (weight @ true) ** 2
        return np.asarray((1 - weight @ left / spread).mean(-1))

    return _interval(score, weights)


def _mcc(first: np.ndarray, second: np.ndarray, weights: np.ndarray) -> Score:
    first, second = first - first.mean(0), second - second.mean(0)

    def score(weight: np.ndarray) -> np.ndarray:
        means = weight @ first, weight @ second
        together = weight @ (first * second) - means[0] * means[1]
        spreads = (weight @ first**2 - means[0] ** 2) * (weight @ second**2 - means[1] ** 2)
        return np.asarray((np.abs(together) / np.sqrt(np.maximum(spreads, 1e-300))).mean(-1))

    return _interval(score, weights)


def _interval(score, weights: np.ndarray) -> Score:  # type: ignore[no-untyped-def]
    count = weights.shape[1]
    value = float(score(np.full(count, 1 / count)))
    low, high = interval(np.asarray(value), score(weights), count)
    return Score(value, min(float(low), value), max(float(high), value))


def _check(latents: np.ndarray, embedding: np.ndarray, held: float) -> tuple[np.ndarray, np.ndarray]:
    latents, embedding = np.asarray(latents, float), np.asarray(embedding, float)
    if latents.ndim != 2 or embedding.ndim != 2 or len(latents) != len(embedding):
        raise HapteraError(
            f"latents have shape {latents.shape}, the embedding {embedding.shape}; (samples, latents) and "
            "(samples, dimensions) of the same samples were expected"
        )
    if embedding.shape[1] < latents.shape[1]:
        raise HapteraError(
            f"the embedding has {embedding.shape[1]} dimensions, and there are {latents.shape[1]} latents; at least as "
            "many were expected"
        )
    check_number("held", held, above=0, below=1, what="a share")
    if round(len(latents) * min(held, 1 - held)) < 2 * embedding.shape[1] + 2:
        raise HapteraError(
            f"{len(latents)} samples are too few for {embedding.shape[1]} dimensions and a held-out part"
        )
    for name, values in (("latents", latents), ("embedding", embedding)):
        if not np.isfinite(values).all():
            raise HapteraError(f"the {name} have {int((~np.isfinite(values)).sum())} values that are NaN or infinite")
    if (constant := np.flatnonzero(latents.std(0) < 1e-12)).size:
        raise HapteraError(f"latent {constant[0]} never changes; there is nothing to find")
    return latents, embedding


def latents_fit(process: Process, loss: InfoNCE, batch_size: int, guess: float, seed: int = 0) -> float:
    """The loss of the true latents at their best size, minus that of a constant embedding.

    Args:
        process: makes the pairs.
        loss: of the model.
        batch_size: pairs, and as many negatives, as in training.
        guess: the size near which the best one is looked for.
        seed: of the pairs.
    """
    random = np.random.default_rng([seed, 3])
    batches = []
    for _ in range(min(max(PAIRS // batch_size, 1), BATCHES)):
        parts = (*process.pairs(batch_size, random), process.latents(batch_size, random))
        batches.append([torch.from_numpy(part).float() for part in parts])

    def value(log_size: float) -> float:
        size = math.exp(log_size)
        with torch.no_grad():
            values = [loss(*(size * part for part in batch)).item() for batch in batches]
        return float(np.mean(values)) - loss.chance(batch_size)

    ends = math.log(guess / RANGE), math.log(guess * RANGE)
    return float(minimize_scalar(value, bounds=ends, method="bounded", options={"xatol": 0.02}).fun)
