"""Measures: plain functions from outputs, or from the table, to rows. NumPy and pandas, no torch."""

from haptera.measures.accuracy import accuracy, accuracy_over_steps, error, expected_accuracy, top5_accuracy
from haptera.measures.averages import clean_accuracy, mean_accuracy, mean_over_seeds
from haptera.measures.calibration import (
    brier_score,
    expected_calibration_error,
    negative_log_likelihood,
    reliability,
)
from haptera.measures.classes import (
    class_attraction,
    filtered_error,
    largest_class_share,
    mean_prediction_entropy,
    outside_mapping,
)
from haptera.measures.collapse import collapse
from haptera.measures.corruptions import family_error, mce, mde, mean_error, rank_correlation
from haptera.measures.effective import effective_robustness
from haptera.measures.facts import measure
from haptera.measures.gain import adaptation_gain, forgetting, learning_gain, mean_gain, recovered
from haptera.measures.keypoints import (
    Mean,
    box_sides,
    find_normaliser,
    head_lengths,
    keypoint_distances,
    keypoint_rows,
    keypoint_scales,
    mean_over_individuals,
    normalised_error,
    object_keypoint_similarity,
    pck,
)
from haptera.measures.margins import adapter_margin, matched_accuracy, model_margin
from haptera.measures.pairs import difference, rows_of
from haptera.measures.relative_stability import diffeo_stability, noise_stability, relative_stability
from haptera.measures.shift_means import shift_margin, shift_mean
from haptera.measures.steps import (
    idle_steps,
    peak_bytes,
    records,
    relative_bytes,
    relative_seconds,
    seconds_per_image,
)
from haptera.measures.visits import visit_error
from haptera.measures.walks import benchmark_accuracy, walk_accuracy

__all__ = [
    "Mean",
    "accuracy",
    "accuracy_over_steps",
    "adaptation_gain",
    "adapter_margin",
    "benchmark_accuracy",
    "box_sides",
    "brier_score",
    "class_attraction",
    "clean_accuracy",
    "collapse",
    "diffeo_stability",
    "difference",
    "effective_robustness",
    "error",
    "expected_accuracy",
    "expected_calibration_error",
    "family_error",
    "filtered_error",
    "find_normaliser",
    "forgetting",
    "head_lengths",
    "idle_steps",
    "keypoint_distances",
    "keypoint_rows",
    "keypoint_scales",
    "largest_class_share",
    "learning_gain",
    "matched_accuracy",
    "mce",
    "mde",
    "mean_accuracy",
    "mean_error",
    "mean_gain",
    "mean_over_individuals",
    "mean_over_seeds",
    "mean_prediction_entropy",
    "measure",
    "model_margin",
    "negative_log_likelihood",
    "noise_stability",
    "normalised_error",
    "object_keypoint_similarity",
    "outside_mapping",
    "pck",
    "peak_bytes",
    "rank_correlation",
    "records",
    "recovered",
    "relative_bytes",
    "relative_seconds",
    "relative_stability",
    "reliability",
    "rows_of",
    "seconds_per_image",
    "shift_margin",
    "shift_mean",
    "top5_accuracy",
    "visit_error",
    "walk_accuracy",
]
