"""Scores of predictions that somebody else made: a table beside labels.

Both are in pixels of the images as they are, so no image is opened. Frames are joined by video and file name, parts by
name, and several animals in a frame by similarity (`haptera.pose.matching`).
"""

from functools import partial
from pathlib import Path
from typing import Any

from haptera.files.keypoints import KeypointTable
from haptera.measures import normalised_error, pck
from haptera.measures.average_precision import average_precision
from haptera.outputs import Outputs
from haptera.pose.analysis import PoseScores, units
from haptera.pose.data import PoseData
from haptera.pose.further import Counting, confidence_scores, further_rows
from haptera.pose.labels import Labels, read_labels, read_predictions
from haptera.pose.matching import BY_SIMILARITY, match_predictions
from haptera.table import measure_outputs, tidy


def score_predictions(
    predictions: Path,
    labels: Path | PoseData,
    *,
    scorer: str | None = None,
    individual: str | None = None,
    animals: str | None = None,
    match: str = BY_SIMILARITY,
    counting: Counting | None = None,
) -> PoseScores:
    """Score a table of predictions.

    Args:
        predictions: a table of DeepLabCut or Lightning Pose, of one or several animals in a frame, or an
            `.analysis.h5` or `.slp` of SLEAP.
        labels: what `read_labels` reads, or frames whose labels are in pixels of the images as they are.
        scorer: whose labels, where there are several.
        individual: how individuals are named; see `read_labels`.
        animals: of COCO's labels; see `read_labels`; those that the predictions are of by default.
        match: how animals in a frame are found in the labels: `oks` or `name`; see `match_predictions`.
        counting: how keypoints are counted.
    """
    said, counting = read_predictions(predictions), counting or Counting()
    if isinstance(labels, PoseData):
        table = KeypointTable(labels.keypoints, labels.parts, labels.files, animals=labels.animals)
        truth = Labels(table, labels.individuals, lambda _: [], areas=labels.areas)
    else:
        several = "all" if said.animals is not None and labels.suffix == ".json" else None
        truth = read_labels(labels, scorer=scorer, individual=individual, animals=animals or several)
    how: dict[str, Any] = {"areas": truth.areas, "sigma": counting.sigma, "by": match}
    found = match_predictions(said, truth.table, str(predictions), **how)
    outputs = Outputs(
        {"keypoints": found.keypoints} | ({} if found.confidence is None else {"confidence": found.confidence}),
        ids=found.places,
        targets=truth.table.keypoints[found.places],
        context={"individual": truth.individuals[found.places]},
        provenance={
            "parts": list(truth.table.parts),
            "normalise": counting.normalise,
            "model": said.scorer,
            "seed": None,
        },
    )
    areas = None if truth.areas is None else truth.areas[found.places]
    precision = average_precision(found.similarity, found.scores)
    further = partial(further_rows, counting=counting, areas=areas, precision=precision)
    rows = measure_outputs(outputs, [normalised_error, partial(pck, threshold=counting.threshold), further])
    scores = tidy(rows)
    settings = {"predictions": str(predictions), "frames": len(outputs)} | units(scores, counting)
    return PoseScores(
        f"Poses: {predictions.name}", settings, scores, counting.normalise is not None,
        confidence=confidence_scores(outputs, counting), extra=found.extra,
    )  # fmt: skip
