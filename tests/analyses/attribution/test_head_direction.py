"""The head-direction recording: cells that are tuned rank above those that are not."""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from haptera.analyses.attribution import DecoyTest
from haptera.analyses.attribution.carriers import carriers
from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.recordings.reading import read_recording

DATA = Path(os.environ.get("HAPTERA_DATA", Path.home() / ".cache" / "haptera"))
BINS = 36


def tuning(signal: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """R² of each cell's mean in bins of the angle, found on one half of the time and scored on the other."""
    places = (angle / (2 * np.pi) * BINS).astype(int).clip(0, BINS - 1)
    half = len(angle) // 2
    scores = []
    for learn, score in ((slice(half), slice(half, None)), (slice(half, None), slice(half))):
        count = np.maximum(np.bincount(places[learn], minlength=BINS), 1)
        curves = np.stack([np.bincount(places[learn], cell, BINS) / count for cell in signal[learn].T], 1)
        left = ((signal[score] - curves[places[score]]) ** 2).sum(0)
        scores.append(1 - left / ((signal[score] - signal[learn].mean(0)) ** 2).sum(0))
    return np.mean(scores, 0)


@pytest.mark.real
@pytest.mark.parametrize("shuffled", [False, True], ids=["true label", "shuffled label"])
def test_tuned_cells_rank_above_untuned_ones_and_not_with_a_shuffled_label(shuffled):
    recording = read_recording(DATA / "head-direction.nwb", "spikes", ["head_direction"], bin=0.1)
    signal, (label,) = recording.signal(), recording.targets("head_direction")
    tuned = tuning(signal, recording.label("head_direction").values) > 0.1
    if shuffled:
        label = np.random.default_rng(0).permutation(label)
    settings = ContrastiveEmbedding(
        "offset10-model", output_dimension=3, max_iterations=300, learning_rate=1e-3, temperature=0.5,
        time_offsets=10, jacobian_weight=0.1,
    )  # fmt: skip
    found = carriers(settings, signal, label, test=DecoyTest(fits=2, copies=4))
    value = found.table["value"].to_numpy()
    p = mannwhitneyu(value[tuned], value[~tuned], alternative="greater").pvalue
    if shuffled:
        assert not found.channels
        assert p > 0.01
    else:
        assert set(np.flatnonzero(tuned)) <= set(found.channels)
        assert len(found.channels) <= tuned.sum() + 1  # one in twenty of those named may be there by chance
        assert p < 0.001
