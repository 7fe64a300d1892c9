"""Crop: are image files cut as in training?

A network that was trained on larger or smaller things than it is shown sees other frequencies. So the statistics that
its layers keep from training tell, a mean over all of them, long before accuracy does; for other networks labels tell.
Cost: a pass for each crop that is tried.
"""

from typing import Any

import numpy as np

from haptera.analyses.preflight.check import FINE, UNKNOWN, WARNING, Check
from haptera.analyses.preflight.evidence import gain
from haptera.analyses.preflight.inputs import Trial
from haptera.analyses.preflight.normalisation import Setup
from haptera.analyses.preflight.probe import Probe, Reached, draw_weights
from haptera.analyses.preflight.sample import Sample
from haptera.data import Data

CROPS = (0.75, 0.875, 0.95, 1.0)
NEARER = 0.02
"""How much nearer another crop must bring the statistics, a mean over layers."""
SHARE, DRAWS = 0.7, 0.95
"""As for the scale, but less strict: a mean over layers is steadier, and a crop changes less than a scale."""
CROP = "Are image files cut as in training?"


def check_crop(probe: Probe, data: Data, sample: Sample, setup: Setup) -> tuple[Check, dict[float, Trial]]:
    """Read the same images with other crops.

    Args:
        probe: the model.
        data: where the images come from.
        sample: those that are looked at.
        setup: the likeliest way to hand them to the model.
    """
    if data.crop is None:
        return Check("crop", CROP, FINE, "no images are cut", {"tried": 0}), {}
    now, trials, answers, same = data.crop, {}, {}, True
    for crop in dict.fromkeys([now, *CROPS]):
        images = data.with_crop(crop).images(sample.positions)
        same = same and bool((images == sample.images).all())
        answers[crop], trials[crop] = _try(probe, sample.with_images(setup(images)), setup)
    if same:
        return Check("crop", CROP, FINE, "the files have the size already", {"tried": 0}), {}
    return _verdict(now, sample, trials, answers), trials


def _try(probe: Probe, sample: Sample, setup: Setup) -> tuple[np.ndarray, Trial]:
    logits, layers = probe.every(sample.images)
    told = [layer for layer in layers if layer.trained and len(layer.moments) == len(sample)]
    distance, draws = _mean_distance(told, len(sample)) if told else (float("nan"), np.empty(0))
    return logits, Trial(setup, distance, draws, sample.accuracy(logits))


def _mean_distance(layers: list[Reached], images: int) -> tuple[float, np.ndarray]:
    weights = draw_weights(images)
    draws: np.ndarray = np.mean([layer.distance(weights) for layer in layers], axis=0)
    return float(np.mean([layer.distance()[0] for layer in layers])), draws


def _verdict(now: float, sample: Sample, trials: dict[float, Trial], answers: dict[float, np.ndarray]) -> Check:
    there, keeps = trials[now], not np.isnan(trials[now].distance)
    if not keeps and sample.targets is None:
        told = "it cannot be judged: the network keeps no statistics from training, and the images have no labels"
        return Check("crop", CROP, UNKNOWN, told, {"crop": now, "tried": len(trials) - 1})

    def merit(crop: float) -> float:
        return -trials[crop].distance if keeps else float(trials[crop].accuracy or 0.0)

    best = max(trials, key=merit)
    found = gain(sample, answers[now], answers[best])
    clear = (
        trials[best].fits_better(there, NEARER, SHARE, DRAWS)
        if keeps
        else found is not None and found.clear(len(trials))
    )
    numbers: dict[str, Any] = {"crop": now, "likeliest": best, "tried": len(trials) - 1}
    parts = []
    if keeps:
        numbers |= {"distance": there.distance, "likeliest_distance": trials[best].distance}
        parts.append(f"statistics of all layers are {there.distance:.3f} off at crop {now:g}")
        parts[0] += (
            f" and {trials[best].distance:.3f} at {best:g}" if best != now else f", the nearest of {len(trials)}"
        )
    if found is not None:
        numbers |= {"accuracy": found.before, "likeliest_accuracy": found.after}
        more = f" and {found.after:.1%} at {best:g}" if best != now else ""
        parts.append(f"accuracy is {found.before:.1%} at crop {now:g}{more}")
    told = "; ".join(parts) + (f": give --crop {best:g}" if clear else "")
    return Check("crop", CROP, WARNING if clear else FINE, told, numbers)
