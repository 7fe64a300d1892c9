"""Pose: keypoints of animals, on individuals that were never seen and under corruption.

The scores are measures: `haptera.measures.normalised_error` and `pck`.
"""

from haptera.files.deeplabcut import KeypointTable, read_deeplabcut
from haptera.pose.analysis import PoseScores, score
from haptera.pose.backbone import (
    EfficientNetLite0,
    EfficientNetLite1,
    EfficientNetLite2,
    ErrorTrend,
    Small,
    error_trend,
)
from haptera.pose.confidence import Calibration, load_calibration
from haptera.pose.data import PoseData
from haptera.pose.drawn import drawn_animals
from haptera.pose.evaluate import evaluate, moved_keypoints
from haptera.pose.further import Counting
from haptera.pose.individuals import name_individuals
from haptera.pose.keypoint_labels import KeypointLabels
from haptera.pose.labels import Labels, read_labels
from haptera.pose.model import PoseModel, decode, make_targets
from haptera.pose.network import Maps, PoseNetwork, as_network
from haptera.pose.opening import open_adapter, open_model, open_pose, read_coco
from haptera.pose.predict import Poses, predict
from haptera.pose.predictions import score_predictions
from haptera.pose.snapshots import load_snapshot
from haptera.pose.splits import Split, leave_species_out, split_individuals, split_time
from haptera.pose.training import Training, augmented, fit, pose_loss
from haptera.pose.vitpose import KeypointModel, load_keypoint_model

__all__ = [
    "Calibration",
    "Counting",
    "EfficientNetLite0",
    "EfficientNetLite1",
    "EfficientNetLite2",
    "ErrorTrend",
    "KeypointLabels",
    "KeypointModel",
    "KeypointTable",
    "Labels",
    "Maps",
    "PoseData",
    "PoseModel",
    "PoseNetwork",
    "PoseScores",
    "Poses",
    "Small",
    "Split",
    "Training",
    "as_network",
    "augmented",
    "decode",
    "drawn_animals",
    "error_trend",
    "evaluate",
    "fit",
    "leave_species_out",
    "load_calibration",
    "load_keypoint_model",
    "load_snapshot",
    "make_targets",
    "moved_keypoints",
    "name_individuals",
    "open_adapter",
    "open_model",
    "open_pose",
    "pose_loss",
    "predict",
    "read_coco",
    "read_deeplabcut",
    "read_labels",
    "score",
    "score_predictions",
    "split_individuals",
    "split_time",
]
