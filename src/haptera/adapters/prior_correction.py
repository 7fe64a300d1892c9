"""Prior correction: predictions are weighted by how often each class seems to occur in the batch.

Source: Marsden et al. 2024 (ROID), section "prior correction". The class prior p̂ is the mean prediction of the batch,
smoothed more the fewer images there are: (p̂ + γ) / (1 + γ C), γ = max(1/n, 1/C) / max p̂. Class probabilities are
multiplied by it. It goes around any adapter, or none; with a `window`, the prior is that of the last predictions.

    adapted = PriorCorrection(Tent)(model)

Differs: outputs stay logits, of the normalised product. The public code multiplies the logits themselves, which depends
on what was added to all of them: `scale="logits"`. What `release` returns does not know the other images of its batch
and corrects nothing.
Cost: two passes over the logits.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from haptera.adapters.base import Adapter, all_finite
from haptera.adapters.passes import check_logits
from haptera.adapters.wrapper import Wrapper
from haptera.errors import check_keys

SCALES = ("probabilities", "logits", "none")
Make = Callable[..., Adapter]


class BatchPrior(Wrapper):
    """An adapter whose predictions are corrected by the class prior of the batch.

    Args:
        model: as the method takes it.
        method: an adapter class, or a partial of one.
        scale: what is multiplied by the prior: `probabilities`, `logits` as in the public code, or `none`.
        settings: of the method.
    """

    def __init__(self, model: nn.Module, method: Make, scale: str = SCALES[0], **settings: Any) -> None:
        check_keys("prior_correction", [str(scale)], SCALES)
        super().__init__(method(model, **settings))
        self.scale = scale
        self.memory["recent"] = None

    def predict(self, inputs: torch.Tensor) -> torch.Tensor:
        """The inner prediction, corrected."""
        return self.correct(self.inner.predict(inputs))

    def correct(self, outputs: torch.Tensor) -> torch.Tensor:
        """Weight logits `(batch, classes)` by the smoothed prior of all of them and the recent ones."""
        if self.scale == "none" or not len(outputs):
            return outputs
        logits = check_logits(outputs, "PriorCorrection")
        if not all_finite(logits):
            return outputs
        prior = smooth_prior(self._together(logits).softmax(1))
        return logits * prior if self.scale == "logits" else logits.log_softmax(1) + prior.log()

    def parent(self, model: nn.Module) -> Adapter:
        """The inner adapter's parent, corrected as well."""
        return self._around(self.inner.parent(model))

    def predictor(self) -> Adapter:
        """What the inner adapter predicts with, corrected as well."""
        return self._around(self.inner.predictor())

    @property
    def parent_label(self) -> str:
        """The inner adapter's with the setting that makes this of it, such as `none:prior_correction=logits`."""
        label = self.inner.parent_label
        if self.scale == "none" or "prior_correction=" in label:
            return label
        return f"{label}{',' if ':' in label else ':'}prior_correction={self.scale}"

    def _around(self, still: Adapter) -> Adapter:
        return BatchPrior(still.model, lambda _: still, self.scale)

    def _through(self, inputs: torch.Tensor, learn: bool = False) -> torch.Tensor:
        outputs = super()._through(inputs, learn)
        corrected = self.correct(outputs)
        if corrected is not outputs and (learn or not self.frozen):
            self.memory["recent"] = self._together(outputs) if self.innermost.window else None
        return corrected

    def _together(self, outputs: torch.Tensor) -> torch.Tensor:
        """The outputs with recent ones before them, up to the window."""
        recent, window = self.memory["recent"], self.innermost.window
        if recent is None or len(outputs) >= window:
            return outputs
        return torch.cat([recent.to(outputs), outputs])[-window:]


def smooth_prior(probabilities: torch.Tensor) -> torch.Tensor:
    """Return the smoothed class prior `(classes,)` of predictions `(batch, classes)`.

    >>> smooth_prior(torch.tensor([[1.0, 0.0], [1.0, 0.0]]))
    tensor([0.7500, 0.2500])
    """
    mean = probabilities.mean(0)
    smoothing = max(1 / len(probabilities), 1 / len(mean)) / mean.max()
    return (mean + smoothing) / (1 + smoothing * len(mean))


def PriorCorrection(method: Make, scale: str = SCALES[0]) -> Make:  # noqa: N802 - reads as the noun it makes
    """A method with corrected predictions; what comes back takes a model, as the method does."""
    return partial(BatchPrior, method=method, scale=scale)
