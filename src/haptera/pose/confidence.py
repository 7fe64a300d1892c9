"""Calibrated confidence of keypoints: how likely a part is where the network says, given the likelihood that it gives.

A keypoint is right if its error is at most the threshold of PCK. The likelihood of a network is a score, not that
probability. Two numbers make it one: p = σ(slope · logit(likelihood) + offset), the temperature 1 / slope of Guo et al.
(2017) with the offset of Platt (1999), fitted by maximum likelihood on held-out frames. How far probabilities are off
is the expected calibration error over 15 equal bins, as for classes (`haptera.measures.calibration`).
So that a figure is of animals that the fit has not seen, `cross_calibrate` fits on some individuals and says the
probabilities of the others, in turn; one individual alone is divided into its first and last frames.
How the size of errors falls with the likelihood is a line through both logarithms, log error = a + b log(1 − p).
Cost: some Newton steps on two numbers.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from haptera.errors import HapteraError
from haptera.files.atomic import write_text
from haptera.files.json import read_json
from haptera.files.schema import TEXT, check, number
from haptera.measures.calibration import BINS

FOLDS = 5
EDGE = 1e-6
"""Likelihoods are kept so far from 0 and 1, where their log odds end."""
RIDGE = 1e-3
"""Weight of a pull to slope 1 and offset 0, as of so many keypoints; it matters where all keypoints are right."""
STEPS = 50


@dataclass(frozen=True)
class Calibration:
    """From the likelihood of a network to the probability that a part is where it says.

    Attributes:
        slope: of the log odds; below 1, likelihoods are too far from a half.
        offset: of the log odds; below 0, likelihoods are too high.
        threshold: largest error of a part that counts as found.
        normalise: in what errors are counted.
    """

    slope: float = 1.0
    offset: float = 0.0
    threshold: float = 0.3
    normalise: str = ""

    def apply(self, likelihood: np.ndarray) -> np.ndarray:
        """Return probabilities; NaN stays."""
        return expit(self.slope * _log_odds(likelihood) + self.offset)

    def write(self, path: Path) -> None:
        """Write a JSON file, which `load_calibration` reads."""
        write_text(path, json.dumps(asdict(self)) + "\n")


def load_calibration(path: Path) -> Calibration:
    """Read what `Calibration.write` wrote."""
    kinds = {"slope": number(), "offset": number(), "threshold": number(0), "normalise": TEXT}
    content = check(read_json(path), kinds, f"{path}, a calibration of keypoints,")
    return Calibration(**{key: content[key] for key in kinds})


def fit_calibration(
    likelihood: np.ndarray, right: np.ndarray, threshold: float = 0.3, normalise: str = ""
) -> Calibration:
    """Return the calibration of most likelihood.

    Args:
        likelihood: `(keypoints,)`, as a network gives it.
        right: `(keypoints,)`, whether each is where it says.
        threshold: what was taken for right, to be remembered.
        normalise: in what errors were counted, to be remembered.
    """
    odds, truth = _log_odds(likelihood), np.asarray(right, float)
    if odds.shape != truth.shape or odds.ndim != 1 or not len(odds):
        raise HapteraError(f"likelihoods are {odds.shape} and right {truth.shape}; the same number of both expected")
    basis = np.stack([odds, np.ones(len(odds))], 1)
    start = coefficients = np.array([1.0, 0.0])
    loss = _loss(basis, truth, start, start)
    for _ in range(STEPS):
        p = expit(basis @ coefficients)
        slope = basis.T @ (p - truth) + RIDGE * (coefficients - start)
        curve = (basis * (p * (1 - p))[:, None]).T @ basis + RIDGE * np.eye(2)
        step = np.linalg.solve(curve, slope)
        while (after := _loss(basis, truth, coefficients - step, start)) > loss and np.abs(step).max() > EDGE:
            step = step / 2
        coefficients, gained, loss = coefficients - step, loss - after, after
        if gained < 1e-10 * max(1.0, abs(loss)):
            break
    return Calibration(float(coefficients[0]), float(coefficients[1]), threshold, normalise)


def _loss(basis: np.ndarray, truth: np.ndarray, coefficients: np.ndarray, start: np.ndarray) -> float:
    odds = basis @ coefficients
    return float((np.logaddexp(0, odds) - truth * odds).sum() + RIDGE / 2 * ((coefficients - start) ** 2).sum())


def _log_odds(likelihood: np.ndarray) -> np.ndarray:
    return logit(np.clip(np.asarray(likelihood, float), EDGE, 1 - EDGE))


def cross_calibrate(likelihood: np.ndarray, right: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return `(keypoints,)`: probabilities of each, fitted on keypoints of other groups.

    Args:
        likelihood: `(keypoints,)`.
        right: `(keypoints,)`.
        groups: `(keypoints,)`, the individual of each; of one alone, halves in the order given.
    """
    names, codes = np.unique(groups, return_inverse=True)
    folds = codes % FOLDS if len(names) > 1 else (np.arange(len(codes)) >= len(codes) / 2).astype(int)
    found = np.asarray(likelihood, float).copy()
    for fold in np.unique(folds):
        own = folds == fold
        if (~own).any():
            found[own] = fit_calibration(likelihood[~own], right[~own]).apply(likelihood[own])
    return found


def calibration_error(probability: np.ndarray, right: np.ndarray) -> float:
    """Return the distance of the share that is right from the mean probability, over bins, weighted by keypoints.

    >>> calibration_error(np.array([0.9, 0.9, 0.9, 0.9]), np.array([1, 1, 0, 0]))
    0.4
    """
    gap = np.bincount(_bins(probability), np.asarray(right, float) - probability, BINS)
    return float(np.abs(gap).sum() / len(probability))


def reliability_rows(probability: np.ndarray, right: np.ndarray, errors: np.ndarray) -> pd.DataFrame:
    """Return a row for each bin that has keypoints: `confidence`, `right`, `n`, and `error`, the median.

    There are no intervals, for keypoints of a frame are not independent.
    """
    rows = []
    for place in np.unique(own := _bins(probability)):
        inside = own == place
        means = {"confidence": float(probability[inside].mean()), "right": float(right[inside].mean())}
        rows.append(means | {"n": int(inside.sum()), "error": float(np.median(errors[inside]))})
    return pd.DataFrame(rows, columns=["confidence", "right", "n", "error"])


def error_exponent(likelihood: np.ndarray, errors: np.ndarray) -> tuple[float, float]:
    """Return a and b of log error = a + b log(1 − likelihood), by least squares; NaN where either does not vary.

    >>> a, b = error_exponent(np.array([0.0, 0.9, 0.99]), np.array([2.0, 0.2, 0.02]))
    >>> round(float(np.exp(a)), 6), round(b, 6)
    (2.0, 1.0)
    """
    x = np.log(1 - np.clip(likelihood, 0, 1 - EDGE))
    known = (errors > 0) & np.isfinite(errors) & np.isfinite(x)
    if known.sum() < 2 or np.ptp(x[known]) == 0:
        return np.nan, np.nan
    b, a = np.polyfit(x[known], np.log(errors[known]), 1)
    return float(a), float(b)


def _bins(probability: np.ndarray) -> np.ndarray:
    return np.minimum((np.asarray(probability) * BINS).astype(int), BINS - 1)
