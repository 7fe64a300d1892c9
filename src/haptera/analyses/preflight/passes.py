"""Passes: does a model answer as in evaluation, the same twice, and about each image alone?

haptera sets every model to evaluation mode. A network can still normalise by its batch or drop out at random, where its
own code says so; then the layers tell, or the answers do.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn

from haptera.analyses.preflight.check import ERROR, FINE, UNKNOWN, WARNING, Check
from haptera.analyses.preflight.probe import Probe
from haptera.errors import HapteraError, first_line
from haptera.modules import unwrap
from haptera.words import count, shorten

IMAGES = 16
"""That are passed again, and alone."""
CHANGE = {torch.float16: 0.1, torch.bfloat16: 0.3}
"""How much answers may differ by rounding, in standard deviations of all logits."""
ROUNDING = 2e-3
OUTPUTS = "Are the outputs logits?"
MODE = "Is it in evaluation mode?"
REPEATABLE = "Does it say the same twice?"
BATCH = "Does the answer about an image depend on the others?"
NORMALISES = (nn.modules.batchnorm._BatchNorm, nn.modules.instancenorm._InstanceNorm)
DRAWS = (nn.modules.dropout._DropoutNd,)


def check_outputs_are_logits(logits: np.ndarray) -> Check:
    """Look at what the model returned."""
    bad = int((~np.isfinite(logits)).any(1).sum())
    numbers = {"images": len(logits), "classes": logits.shape[1], "not_finite": bad}
    size = f"{logits.shape[1]:,} for each of {count(len(logits), 'image')}"
    if bad:
        verdict = ERROR if bad == len(logits) else WARNING
        told = f"{bad} of {count(len(logits), 'answer')} are NaN or infinite: look at the precision and at the inputs"
        return Check("outputs", OUTPUTS, verdict, told, numbers)
    if logits.min() >= 0 and np.abs(logits.sum(1) - 1).max() < 1e-3:
        told = f"{size}, and each time they sum to 1: these are probabilities; return what comes before the softmax"
        return Check("outputs", OUTPUTS, WARNING, told, numbers)
    if len(logits) > 1 and np.ptp(logits, 0).max() <= 1e-6 * max(float(np.abs(logits).max()), 1e-6):
        told = f"{size}, and the same for every image: the network does not look at them"
        return Check("outputs", OUTPUTS, ERROR, told, numbers)
    return Check("outputs", OUTPUTS, FINE, size, numbers)


def check_passes(model: nn.Module, probe: Probe, images: torch.Tensor) -> list[Check]:
    """Pass a few images together, again, and one by one.

    Args:
        model: as it came.
        probe: the same, set to evaluation.
        images: as the model gets them.
    """
    images = images[:IMAGES]
    with _working_in_training(probe.model) as working:
        once = probe.logits(images, len(images))
    again = probe.logits(images, len(images), seed=1)
    mode = _mode(model, probe, images, once, working)
    return [mode, _repeatable(probe, once, again), _batch(probe, images, once, again)]


def _mode(model: nn.Module, probe: Probe, images: torch.Tensor, logits: np.ndarray, working: set[str]) -> Check:
    """Say whether the model came in training mode and answers otherwise there, or works in it all the same."""
    modules = dict(unwrap(model).named_modules())
    training = sum(module.training for module in modules.values())
    numbers = {"modules": len(modules), "training": training, "working_in_training": len(working)}
    if working:
        told = (
            f"{count(len(working), 'layer')} ({shorten(sorted(working))}) normalise by the batch or drop out at random "
            "although the model was set to evaluation: look for train() in its forward"
        )
        return Check("mode", MODE, WARNING, told, numbers)
    numbers["changed"] = changed = _changed_in_training(model, probe, images, logits) if training else 0
    if changed:
        told = (
            f"{training:,} of {count(len(modules), 'module')} came in training mode, in which {changed} of "
            f"{count(len(logits), 'answer')} are others; haptera works on a copy in evaluation mode, so call eval() "
            "before you compare with numbers of your own"
        )
        return Check("mode", MODE, WARNING, told, numbers)
    told = f"{len(modules) - training:,} of {count(len(modules), 'module')} are in evaluation mode"
    told += ", and the others do nothing else in training" if training else ""
    return Check("mode", MODE, FINE, told, numbers)


def _changed_in_training(model: nn.Module, probe: Probe, images: torch.Tensor, logits: np.ndarray) -> int:
    """Return how many answers are others, by more than rounding, in the mode in which the model came."""
    as_it_came = Probe(model, probe.batch_size, evaluation=False)
    off = np.abs(as_it_came.logits(images) - logits).max(1) / max(float(logits.std()), 1e-12)
    return int((off > allowed(probe)).sum())


@contextmanager
def _working_in_training(model: nn.Module) -> Iterator[set[str]]:
    """Collect the layers that do something else in training, and are called in that mode."""
    found: set[str] = set()

    def look(name: str, layer: Any) -> None:
        acts = isinstance(layer, NORMALISES) or (isinstance(layer, DRAWS) and layer.p > 0)
        if acts and layer.training:
            found.add(name)

    hooks = [
        module.register_forward_pre_hook(lambda layer, _, name=name: look(name, layer))
        for name, module in model.named_modules()
        if isinstance(module, (*NORMALISES, *DRAWS))
    ]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


def _repeatable(probe: Probe, once: np.ndarray, again: np.ndarray) -> Check:
    """Compare two passes, each with random numbers of its own."""
    differ, changed = _difference(once, again)
    numbers = {"images": len(once), "difference": differ, "changed": changed}
    if differ > allowed(probe):
        told = (
            f"two passes over the same {count(len(once), 'image')} differ by up to {differ:.2g} deviations of the "
            f"logits, and {changed} of the answers are others: something in the model draws at random; its numbers "
            "change from run to run"
        )
        return Check("repeatable", REPEATABLE, WARNING, told, numbers)
    told = f"two passes over {count(len(once), 'image')} differ by {differ:.1g} deviations of the logits at most"
    return Check("repeatable", REPEATABLE, FINE, told, numbers)


def _batch(probe: Probe, images: torch.Tensor, once: np.ndarray, again: np.ndarray) -> Check:
    """Compare images together with the same one by one; what differs in any case does not count."""
    words = "alone"
    try:
        apart = probe.logits(images, 1)
    except (HapteraError, RuntimeError, ValueError, IndexError) as error:
        if len(images) < 4:
            told = f"it cannot be judged: one image alone is refused ({first_line(error)})"
            return Check("batch", BATCH, UNKNOWN, told, {"images": len(images)})
        apart, words = probe.logits(images, 2), "two by two"
    (differ, changed), (by_chance, _) = _difference(once, apart), _difference(once, again)
    numbers = {"images": len(images), "difference": differ, "changed": changed}
    if differ > max(allowed(probe), 3 * by_chance):
        told = (
            f"the logits of {count(len(images), 'image')} together and {words} differ by up to {differ:.2g} of their "
            f"deviations, and {changed} of the answers are others: the network normalises by the batch; results depend "
            "on the batch size and on the order"
        )
        return Check("batch", BATCH, WARNING, told, numbers)
    told = f"{count(len(images), 'image')} {words} give the same logits as together, but for {differ:.1g} deviations"
    return Check("batch", BATCH, FINE, told, numbers)


def allowed(probe: Probe) -> float:
    """Return the difference that rounding explains."""
    kinds = {tensor.dtype for tensor in probe.model.parameters()}
    return max((CHANGE.get(kind, ROUNDING) for kind in kinds), default=ROUNDING)


def _difference(one: np.ndarray, two: np.ndarray) -> tuple[float, int]:
    """Return the largest difference in standard deviations of the logits, and how many answers are others."""
    off = np.abs(one.astype(float) - two.astype(float))
    scale = max(float(np.nanstd(one)), 1e-12) if np.isfinite(one).any() else 1.0
    largest = float(np.nanmax(off)) / scale if np.isfinite(off).any() else 0.0
    return largest, int((one.argmax(1) != two.argmax(1)).sum())
