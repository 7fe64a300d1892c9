"""Pose: keypoints of animals, on individuals that were never seen and under corruption.

The scores are measures: `haptera.measures.normalised_error` and `pck`.
"""

from haptera.files.deeplabcut import KeypointTable, read_deeplabcut
from haptera.pose.analysis import PoseScores, score, score_predictions
from haptera.pose.backbone import EfficientNetLite0, ErrorTrend, Small, error_trend
from haptera.pose.coco import read_coco
from haptera.pose.data import PoseData
from haptera.pose.drawn import drawn_animals
from haptera.pose.evaluate import evaluate, moved_keypoints
from haptera.pose.model import PoseModel, decode, make_targets
from haptera.pose.opening import open_pose
from haptera.pose.predict import Poses, predict
from haptera.pose.splits import Split, leave_species_out, split_individuals
from haptera.pose.training import Training, augmented, fit, pose_loss

__all__ = [
    "EfficientNetLite0",
    "ErrorTrend",
    "KeypointTable",
    "PoseData",
    "PoseModel",
    "PoseScores",
    "Poses",
    "Small",
    "Split",
    "Training",
    "augmented",
    "decode",
    "drawn_animals",
    "error_trend",
    "evaluate",
    "fit",
    "leave_species_out",
    "make_targets",
    "moved_keypoints",
    "open_pose",
    "pose_loss",
    "predict",
    "read_coco",
    "read_deeplabcut",
    "score",
    "score_predictions",
    "split_individuals",
]
