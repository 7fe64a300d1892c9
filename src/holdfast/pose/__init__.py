"""Pose: keypoints of animals, on individuals that were never seen and under corruption.

The scores are measures: `holdfast.measures.normalised_error` and `pck`.
"""

from holdfast.deeplabcut import KeypointTable, read_deeplabcut
from holdfast.pose.augment import augmented
from holdfast.pose.backbone import EfficientNetLite0, Small
from holdfast.pose.coco import read_coco
from holdfast.pose.data import PoseData
from holdfast.pose.drawn import drawn_animals
from holdfast.pose.evaluate import PoseStudy, evaluate, moved_keypoints
from holdfast.pose.loss import pose_loss
from holdfast.pose.model import PoseModel
from holdfast.pose.opening import open_pose
from holdfast.pose.predict import Poses, predict
from holdfast.pose.splits import Split, leave_species_out, split_individuals
from holdfast.pose.targets import decode, make_targets
from holdfast.pose.training import fit
from holdfast.pose.transfer import ErrorTrend, error_trend

__all__ = [
    "EfficientNetLite0",
    "ErrorTrend",
    "KeypointTable",
    "PoseData",
    "PoseModel",
    "PoseStudy",
    "Poses",
    "Small",
    "Split",
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
    "split_individuals",
]
