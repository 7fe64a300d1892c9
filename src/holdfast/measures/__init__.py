"""Measures: plain functions from outputs, or from the table, to rows. NumPy and pandas, no torch."""

from holdfast.measures.accuracy import accuracy, accuracy_over_steps, error, seconds_per_image, top5_accuracy
from holdfast.measures.averages import clean_accuracy, mean_accuracy
from holdfast.measures.calibration import (
    brier_score,
    expected_calibration_error,
    negative_log_likelihood,
    reliability,
)
from holdfast.measures.classes import class_attraction, largest_class_share, mean_prediction_entropy, outside_mapping
from holdfast.measures.closeness import Closeness, closeness, density, events
from holdfast.measures.collapse import collapse
from holdfast.measures.comparison import GroupComparison, analyse_factors, compare_groups
from holdfast.measures.corruptions import family_error, mce, mde, mean_error
from holdfast.measures.cost import peak_bytes, relative_bytes, relative_seconds
from holdfast.measures.dominance import dominance, share_below, zeta
from holdfast.measures.effective import effective_robustness
from holdfast.measures.facts import measure
from holdfast.measures.few_units import UnitMean, mean_of_units
from holdfast.measures.frontier import frontier, frontiers, narrowest
from holdfast.measures.gain import adaptation_gain, forgetting, learning_gain, mean_gain, recovered
from holdfast.measures.guarantee import corollary, proposition, region, triplet_residuals
from holdfast.measures.keypoint_scales import box_sides, find_normaliser, head_lengths, keypoint_scales
from holdfast.measures.keypoints import (
    Mean,
    keypoint_distances,
    keypoint_rows,
    mean_over_individuals,
    normalised_error,
    pck,
)
from holdfast.measures.line import Fitted, Line, compare_fits, fit
from holdfast.measures.margins import adapter_margin, matched_accuracy, model_margin
from holdfast.measures.mean_over_seeds import mean_over_seeds
from holdfast.measures.object_keypoint_similarity import object_keypoint_similarity
from holdfast.measures.ownership import outliers, owners, tested_share
from holdfast.measures.pairs import difference, rows_of
from holdfast.measures.placing import place
from holdfast.measures.power_law import PowerLaw, log_average, over_seeds, power_law, power_laws
from holdfast.measures.prediction import prediction
from holdfast.measures.proportion import wilson
from holdfast.measures.ranks import rank_correlation
from holdfast.measures.records import idle_steps, records
from holdfast.measures.relative_stability import diffeo_stability, noise_stability, relative_stability
from holdfast.measures.representation import MinibatchCKA, linear_cka, unbiased_hsic
from holdfast.measures.resample import Draws, interval, over_examples, over_models
from holdfast.measures.residual_bound import ResidualBound, residual_bound, residual_bounds
from holdfast.measures.robustness import robustness
from holdfast.measures.stability import Distances, pair_distances, stability_indices
from holdfast.measures.triplets import Counts, count_triplets
from holdfast.measures.walk import expected_accuracy
from holdfast.measures.wedge import Curves, Wedge, as_wedge

__all__ = [
    "Closeness",
    "Counts",
    "Curves",
    "Distances",
    "Draws",
    "Fitted",
    "GroupComparison",
    "Line",
    "Mean",
    "MinibatchCKA",
    "PowerLaw",
    "ResidualBound",
    "UnitMean",
    "Wedge",
    "accuracy",
    "accuracy_over_steps",
    "adaptation_gain",
    "adapter_margin",
    "analyse_factors",
    "as_wedge",
    "box_sides",
    "brier_score",
    "class_attraction",
    "clean_accuracy",
    "closeness",
    "collapse",
    "compare_fits",
    "compare_groups",
    "corollary",
    "count_triplets",
    "density",
    "diffeo_stability",
    "difference",
    "dominance",
    "effective_robustness",
    "error",
    "events",
    "expected_accuracy",
    "expected_calibration_error",
    "family_error",
    "find_normaliser",
    "fit",
    "forgetting",
    "frontier",
    "frontiers",
    "head_lengths",
    "idle_steps",
    "interval",
    "keypoint_distances",
    "keypoint_rows",
    "keypoint_scales",
    "largest_class_share",
    "learning_gain",
    "linear_cka",
    "log_average",
    "matched_accuracy",
    "mce",
    "mde",
    "mean_accuracy",
    "mean_error",
    "mean_gain",
    "mean_of_units",
    "mean_over_individuals",
    "mean_over_seeds",
    "mean_prediction_entropy",
    "measure",
    "model_margin",
    "narrowest",
    "negative_log_likelihood",
    "noise_stability",
    "normalised_error",
    "object_keypoint_similarity",
    "outliers",
    "outside_mapping",
    "over_examples",
    "over_models",
    "over_seeds",
    "owners",
    "pair_distances",
    "pck",
    "peak_bytes",
    "place",
    "power_law",
    "power_laws",
    "prediction",
    "proposition",
    "rank_correlation",
    "records",
    "recovered",
    "region",
    "relative_bytes",
    "relative_seconds",
    "relative_stability",
    "reliability",
    "residual_bound",
    "residual_bounds",
    "robustness",
    "rows_of",
    "seconds_per_image",
    "share_below",
    "stability_indices",
    "tested_share",
    "top5_accuracy",
    "triplet_residuals",
    "unbiased_hsic",
    "wilson",
    "zeta",
]
