"""Relative stability in a study: R, D and G of the logits, from a cell of the stream `stability`.

Source and definitions: `haptera.statistics.stability`; here as ratios of medians, which is what the source shows.
No rows for other streams, nor where only the best classes were kept.
"""

import numpy as np

from haptera.measures.facts import measure
from haptera.measures.windows import last_epoch
from haptera.outputs import Outputs
from haptera.statistics.stability import Distances, pair_distances, stability_indices
from haptera.table import Rows

PARTS = ("clean", "diffeo", "sphere_noise")
"""What the stream `stability` calls images as they are, deformed, and with noise."""


@measure(bounds=(0, float("inf")), higher_is_better=False)
def relative_stability(outputs: Outputs) -> Rows:
    """R: how far deformations move the logits, over how far noise of the same norm does; low is good (equation 4)."""
    return _rows(outputs, "R", "relative_stability")


@measure(bounds=(0, float("inf")))
def diffeo_stability(outputs: Outputs) -> Rows:
    """D: how far deformations move the logits, over how far apart two images are (equation 5)."""
    return _rows(outputs, "D", "diffeo_stability")


@measure(bounds=(0, float("inf")))
def noise_stability(outputs: Outputs) -> Rows:
    """G: how far noise moves the logits, over how far apart two images are (equation 5)."""
    return _rows(outputs, "G", "noise_stability")


def _rows(outputs: Outputs, index: str, name: str) -> Rows:
    outputs = last_epoch(outputs)
    distances = _distances(outputs)
    if distances is None:
        return []
    frame = stability_indices(distances)
    (row,) = frame[(frame["index"] == index) & (frame["aggregate"] == "median")].to_dict("records")
    if not np.isfinite(row["value"]):
        return []
    severity = float(np.max(outputs.context["severity"]))
    values = {"value": row["value"], "low": row["low"], "high": row["high"], "n": len(distances)}
    return [{"shift": "diffeo", "severity": severity, "measure": name} | values]


def _distances(outputs: Outputs) -> Distances | None:
    """Return those of the logits of the same samples in the three parts, in the order of the samples."""
    if "logits" not in outputs.arrays or not {"shift", "severity", "sample"} <= set(outputs.context):
        return None
    parts = []
    for part in PARTS:
        rows = np.flatnonzero(outputs.context["shift"] == part)
        parts.append(rows[np.argsort(outputs.context["sample"][rows], kind="stable")])
    samples = [outputs.context["sample"][rows] for rows in parts]
    if len(samples[0]) < 2 or not all(np.array_equal(samples[0], other) for other in samples[1:]):
        return None
    plain, deformed, noisy = (outputs.logits[rows].astype(np.float64) for rows in parts)
    moved, shaken = (((other - plain) ** 2).sum(1) for other in (deformed, noisy))
    return Distances(moved, shaken, pair_distances(plain), {"mean": 1.0, "median": 1.0})
