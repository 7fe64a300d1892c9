"""What the further scores of poses say: a line in the summary, a finding, and a section of the page."""

import pandas as pd

from haptera.files.json import plain
from haptera.pose.further import GIVEN, LABELS, ConfidenceScores
from haptera.report.figure import Figure
from haptera.report.section import Finding, Listing, Section, answer, enlarge

RELIABILITY = "Share of right keypoints against likelihood"
FURTHER_DEFINITIONS = {
    "pixels": "mean distance in pixels of the images as they are, within each individual first",
    "RMSE": "what DeepLabCut prints under this name: the mean distance in pixels of all keypoints together; of the "
    "likely ones, of those whose likelihood is at least the cut-off",
    "OKS": "object keypoint similarity: the mean over labelled parts of exp(−d² / 2 s² k²), s² the area of the animal, "
    "or of the box around its labels, k twice sigma",
    "AP": "COCO’s average precision, the mean over thresholds of OKS from .5 to .95",
    "confidence off by": "expected calibration error: how far the likelihood of keypoints is from the share that is "
    "right by PCK, over 15 bins; calibrated is that after a fit to other individuals",
}


def further_line(rows: pd.DataFrame) -> str:
    """Return the further scores of a cell as one line; empty where there are none."""
    values = rows.drop_duplicates("measure").set_index("measure")
    words = []
    for measure, label in LABELS.items():
        if measure in values.index:
            row = values.loc[measure]
            cut = f" (≥ {row['cutoff']:g})" if measure == "rmse_cutoff" else ""
            words.append(f"{label}{cut} {row['value']:.3f}")
    return "   ".join(words)


def confidence_findings(found: ConfidenceScores | None) -> list[Finding]:
    """Return whether the likelihood can be believed."""
    if found is None:
        return []
    fitted = found.calibration
    unit = "pixels" if fitted.normalise == "pixels" else f"units of {fitted.normalise}"
    where = f"{found.name}: " if found.name else ""
    sentence = (
        f"{where}as given it is off by {found.before:.3f} (right is within {fitted.threshold:g} {unit}); calibrated on "
        f"other individuals, or on the other half of one, by {found.after:.3f}: slope {fitted.slope:.2f}, offset "
        f"{fitted.offset:.2f} of the log odds"
    )
    told = answer(
        "confidence", "Can the likelihood be believed?", sentence, off_by=found.before, calibrated_off_by=found.after,
        slope=fitted.slope, offset=fitted.offset, right_within=fitted.threshold, right_in_units_of=fitted.normalise,
        error_exponent=plain(found.exponent), reliability=plain(found.bins.to_dict("records")),
        cutoffs=plain(found.cutoffs.to_dict("records")),
    )  # fmt: skip
    return enlarge(told, f"off by {found.before:.3f}", RELIABILITY)


def confidence_section(found: ConfidenceScores | None) -> Section | None:
    """Return the reliability curve, errors against likelihood, and what cut-offs keep."""
    if found is None:
        return None
    labels = {"confidence": "likelihood", "right": "share that is right", "error": "median error", "n": "keypoints"}
    curve = Figure(
        RELIABILITY,
        "Each point is a bin of the likelihood, 15 in all, empty ones left out. On the dashed line keypoints are right "
        "as often as it says. Calibrated: after a fit of two numbers to other individuals.",
        found.bins, kind="line", x="confidence", y="right", color=("likelihood",),
        labels=labels, diagonal=True, limits=(0.0, 1.0),
    )  # fmt: skip
    own = found.bins[found.bins["likelihood"] == GIVEN].reset_index(drop=True)
    normalise = found.calibration.normalise
    unit = {"pixels": "pixels", "box": "roots of the area of the box around the labels"}.get(
        normalise, f"distances from {' to '.join(normalise.split(','))}"
    )
    errors = Figure(
        "Error against likelihood",
        f"Median of each bin, in {unit}. The line through both logarithms, of the "
        f"error and of one minus the likelihood, has the slope {found.exponent:.2f}: 0 says nothing of errors.",
        own, kind="line", x="confidence", y="error", color=("likelihood",), labels=labels,
    )  # fmt: skip
    cut = {"cutoff": "likelihood at least", "kept": "share kept", "error": "mean error, pixels", "right": "share right"}
    table = Listing("Cut-offs", "What is left of labelled keypoints, and how good it is.", found.cutoffs, cut)
    where = f" Frames: {found.name}, as they are, without adaptation." if found.name else ""
    text = f"Whether a part is where the network says, as often as its likelihood says.{where}"
    return Section("Confidence", text, (curve, errors), (table,))
