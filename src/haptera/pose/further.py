"""Further scores of poses: in pixels, as DeepLabCut prints them, as COCO counts them, and whether confidence is right.

`pixel_error` is the mean distance in pixels of the images as they are, within individuals first, like the normalised
error. `rmse` is what DeepLabCut prints under that name: the mean (not the root of the mean square) of the distances of
all keypoints together; `rmse_cutoff` is that of keypoints whose likelihood is at least the cut-off, `pcutoff` of a
project. `oks` is object keypoint similarity over the area of the animal, or of the box around its labels where no area
is known, and `average_precision` COCO's (`haptera.measures.average_precision`). `confidence_error` says how far the
likelihood is from the share of keypoints that are right, PCK, and `calibrated_confidence_error` how far it is after
calibration on other individuals (`haptera.pose.confidence`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from haptera.measures.average_precision import AveragePrecision, average_precision
from haptera.measures.keypoints import (
    PIXEL_THRESHOLD,
    PIXELS,
    SIGMA,
    THRESHOLD,
    find_normaliser,
    keypoint_distances,
    keypoint_rows,
    keypoint_scales,
    object_keypoint_similarity,
)
from haptera.outputs import ASIDE, Outputs
from haptera.pose.confidence import (
    Calibration,
    calibration_error,
    cross_calibrate,
    error_exponent,
    fit_calibration,
    reliability_rows,
)
from haptera.pose.matching import animal_areas
from haptera.table import Rows

CUTOFF = 0.6
"""DeepLabCut's own."""
CUTOFFS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
GIVEN, CALIBRATED = "as given", "calibrated"
LABELS = {
    "pixel_error": "pixels",
    "rmse": "RMSE",
    "rmse_cutoff": "RMSE of the likely",
    "oks": "OKS",
    "average_precision": "AP",
    "confidence_error": "confidence off by",
    "calibrated_confidence_error": "calibrated",
}
"""In the order of the summary."""
UNITS = {"oks": "area", "average_precision": "area"}
"""What divides errors in these measures; pixels are divided by nothing."""


@dataclass(frozen=True)
class Counting:
    """How keypoints are counted.

    Attributes:
        threshold: of PCK; 0.3, or 5 where errors are in pixels, if None.
        normalise: see `keypoint_scales`.
        cutoff: likelihood below which `rmse_cutoff` leaves a keypoint out.
        sigma: of OKS, how precisely a part can be labelled.
    """

    threshold: float | None = None
    normalise: str | None = None
    cutoff: float = CUTOFF
    sigma: float = SIGMA


@dataclass(frozen=True, eq=False)
class ConfidenceScores:
    """What the likelihood of a cell is worth.

    Attributes:
        calibration: fitted on all its keypoints, for other frames.
        bins: see `reliability_rows`, with the column `likelihood`, `as given` or `calibrated`.
        cutoffs: `cutoff`, `kept`, the share of keypoints that is at least as likely, `error` in pixels, and `right`.
        exponent: by what power errors fall with one minus the likelihood.
        before: calibration error of the likelihood as it is.
        after: that after calibration on other individuals.
        name: of the set of frames.
    """

    calibration: Calibration
    bins: pd.DataFrame
    cutoffs: pd.DataFrame
    exponent: float
    before: float
    after: float
    name: str = ""


def further_rows(
    outputs: Outputs,
    counting: Counting,
    *,
    areas: np.ndarray | None = None,
    factors: np.ndarray | None = None,
    precision: AveragePrecision | None = None,
) -> Rows:
    """Return rows of the further scores, for everybody and, where it makes sense, for each part and individual.

    Args:
        outputs: keypoints with labels, of one shift.
        counting: how keypoints are counted.
        areas: `(frames,)`, of each animal in square pixels of the frames.
        factors: `(frames, 2)`, by what x and y of the images as they are were multiplied.
        precision: of animals in frames; of one animal in each frame if left out.
    """
    assert outputs.targets is not None
    parts, individuals = _names(outputs)
    context = {key: values[0] for key, values in outputs.context.items() if key not in (*ASIDE, "individual")}
    predicted, labelled = outputs.arrays["keypoints"], outputs.targets
    likelihood = outputs.arrays.get("confidence")
    pixels = pixel_distances(predicted, labelled, factors)
    similar = object_keypoint_similarity(predicted, labelled, animal_areas(labelled, areas), counting.sigma)
    precision = precision or _alone(similar, likelihood)
    rows = keypoint_rows("pixel_error", pixels, individuals, parts, "log")
    rows += keypoint_rows("oks", similar[:, None], individuals, (), "share")
    rows += _rmse(pixels, parts, "rmse", None)
    if precision.animals:
        rows.append(_row("average_precision", precision.value, precision.animals))
    if likelihood is not None:
        rows += _rmse(np.where(likelihood >= counting.cutoff, pixels, np.nan), parts, "rmse_cutoff", counting.cutoff)
        if (found := confidence_scores(outputs, counting, factors)) is not None:
            n = int(found.bins.loc[found.bins["likelihood"] == GIVEN, "n"].sum())
            unit = {"normalise": found.calibration.normalise, "threshold": found.calibration.threshold}
            rows.append(_row("confidence_error", found.before, n) | unit)
            rows.append(_row("calibrated_confidence_error", found.after, n) | unit)
    return [context | {"normalise": UNITS.get(str(row["measure"]), PIXELS)} | row for row in rows]


def confidence_scores(
    outputs: Outputs, counting: Counting, factors: np.ndarray | None = None, name: str = ""
) -> ConfidenceScores | None:
    """Return what the likelihood says of the errors; None where there is none, or one keypoint only.

    Args:
        outputs: keypoints and confidence, with labels.
        counting: how keypoints are counted.
        factors: see `further_rows`.
        name: of the set of frames, to be remembered.
    """
    if "confidence" not in outputs.arrays or outputs.targets is None:
        return None
    parts, individuals = _names(outputs)
    labelled, predicted = outputs.targets, outputs.arrays["keypoints"]
    normalise = find_normaliser(parts, counting.normalise or outputs.provenance.get("normalise"))
    threshold = counting.threshold or (PIXEL_THRESHOLD if normalise == PIXELS else THRESHOLD)
    scales = keypoint_scales(labelled, individuals, parts, normalise)
    errors = keypoint_distances(predicted, labelled) / scales[:, None]
    likelihood = np.asarray(outputs.arrays["confidence"], float)
    known = np.isfinite(likelihood) & np.isfinite(errors)
    if known.sum() < 2:
        return None
    owners = np.repeat(individuals[:, None], len(parts), 1)[known]
    pixels = pixel_distances(predicted, labelled, factors)[known]
    own, apart = likelihood[known], errors[known]
    right = apart <= threshold
    calibrated = cross_calibrate(own, right, owners)
    bins = [
        reliability_rows(values, right, apart).assign(likelihood=name)
        for name, values in ((GIVEN, own), (CALIBRATED, calibrated))
    ]
    return ConfidenceScores(
        fit_calibration(own, right, threshold, normalise),
        pd.concat(bins, ignore_index=True),
        _cutoffs(own, pixels, right),
        error_exponent(own, apart)[1],
        calibration_error(own, right),
        calibration_error(calibrated, right),
        name,
    )


def pixel_distances(predicted: np.ndarray, labelled: np.ndarray, factors: np.ndarray | None = None) -> np.ndarray:
    """Return `(frames, parts)`: distances in pixels of the images as they are; see `keypoint_distances`."""
    if factors is None:
        return keypoint_distances(predicted, labelled)
    return keypoint_distances(predicted / factors[:, None], labelled / factors[:, None])


def _names(outputs: Outputs) -> tuple[Sequence[str], np.ndarray]:
    assert outputs.targets is not None
    parts = outputs.provenance.get("parts") or [str(k) for k in range(outputs.targets.shape[1])]
    return parts, outputs.context.get("individual", np.full(len(outputs), ""))


def _alone(similar: np.ndarray, likelihood: np.ndarray | None) -> AveragePrecision:
    """Return the average precision of one prediction for each animal."""
    known = np.isfinite(similar)
    sure = np.ones(len(similar)) if likelihood is None else np.nan_to_num(likelihood).mean(1)
    return average_precision([value.reshape(1, 1) for value in similar[known]], list(sure[known].reshape(-1, 1)))


def _rmse(pixels: np.ndarray, parts: Sequence[str], name: str, cutoff: float | None) -> Rows:
    """Return the mean of all distances, and of each part; no row where nothing counts."""
    groups: list[tuple[dict[str, str], np.ndarray]] = [({}, pixels)]
    groups += [({"part": part}, pixels[:, place]) for place, part in enumerate(parts)]
    more = {} if cutoff is None else {"cutoff": cutoff}
    return [
        _row(name, float(values[known].mean()), int(known.sum())) | place | more
        for place, values in groups
        if (known := np.isfinite(values)).any()
    ]


def _row(name: str, value: float, n: int) -> dict[str, Any]:
    return {"part": "", "individual": "", "measure": name, "value": value, "n": n, "missing": 0}


def _cutoffs(likelihood: np.ndarray, pixels: np.ndarray, right: np.ndarray) -> pd.DataFrame:
    rows = []
    for cutoff in CUTOFFS:
        kept = likelihood >= cutoff
        if kept.any():
            means = {"error": float(pixels[kept].mean()), "right": float(right[kept].mean())}
            rows.append({"cutoff": cutoff, "kept": float(kept.mean())} | means)
    return pd.DataFrame(rows, columns=["cutoff", "kept", "error", "right"])
