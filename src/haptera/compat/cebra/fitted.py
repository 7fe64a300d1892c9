"""Solver: what notebooks read from `solver_` and `state_dict_` of that package's estimator."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from haptera.contrastive.estimator import ContrastiveEmbedding


@dataclass(frozen=True)
class Solver:
    """The loss of every step, and the weights.

    Attributes:
        embedding: haptera's estimator.
        n_features: channels; a list for several sessions.
    """

    embedding: ContrastiveEmbedding
    n_features: Any

    @property
    def history(self) -> list[float]:
        """The loss of every step."""
        return self.embedding.loss_history_.tolist()

    @property
    def log(self) -> dict[str, list[float]]:
        """`total`, the loss of every step, and `temperature` where it was constant or was written down."""
        log = {"total": self.history}
        temperatures = getattr(self.embedding, "temperature_history_", None)
        if temperatures is not None:
            log["temperature"] = list(map(float, temperatures))
        elif self.embedding.temperature_mode == "constant":
            log["temperature"] = [self.embedding.temperature_] * len(self.history)
        return log

    @property
    def model(self) -> nn.Module:
        """The encoder, or a list of them."""
        encoders = self.embedding.encoders_
        return encoders[0] if len(encoders) == 1 else nn.ModuleList(encoders)

    @property
    def criterion(self) -> nn.Module:
        """The loss that it learnt by."""
        return self.embedding.model_.losses[0]

    def state_dict(self) -> dict[str, Any]:
        """Return weights and histories under the names of that package; `pos` and `neg` are not written down."""
        return {
            "model": self.model.state_dict(),
            "criterion": self.criterion.state_dict(),
            "loss": torch.tensor(self.history),
            "log": self.log,
            "n_features": self.n_features,
        }
