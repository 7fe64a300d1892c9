"""Scores of a table of predictions against labels: frames are joined by video and file name, parts by their names.

Both are in pixels of the images as they are, so no image is opened.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from holdfast.deeplabcut import KeypointTable, read_deeplabcut
from holdfast.measures import normalised_error, pck
from holdfast.outputs import Outputs
from holdfast.pose.coco import CocoLabels, read_coco_labels
from holdfast.pose.data import PoseData
from holdfast.pose.joining import joined
from holdfast.table import measured, tidy


def score_table(
    predictions: Path,
    labels: Path | PoseData,
    *,
    scorer: str | None = None,
    individual: str | None = None,
    threshold: float | None = None,
    normalise: str | None = None,
) -> pd.DataFrame:
    """The tidy table with measures `normalised_error` and `pck`.

    Args:
        predictions: a table of DeepLabCut.
        labels: a table or project of DeepLabCut, a `.json` of COCO, or frames whose labels are in pixels of the images
            as they are.
        scorer: whose labels, where there are several.
        individual: what says whose image it is in a file of COCO; see `read_coco_labels`.
        threshold: of PCK.
        normalise: see `keypoint_scales`.
    """
    said = read_deeplabcut(predictions)
    truth: PoseData | CocoLabels | KeypointTable
    if isinstance(labels, PoseData):
        truth = labels
    else:
        truth = read_coco_labels(labels, individual) if labels.suffix == ".json" else read_deeplabcut(labels, scorer)
    keypoints, places = joined(said, truth.parts, np.asarray(truth.files), str(predictions))
    outputs = Outputs(
        {"keypoints": keypoints},
        ids=places,
        targets=truth.keypoints[places],
        context={"individual": truth.individuals[places]},
        provenance={"parts": list(truth.parts), "normalise": normalise, "model": said.scorer, "seed": None},
    )
    return tidy(measured(outputs, [normalised_error, lambda found: pck(found, threshold)]))
