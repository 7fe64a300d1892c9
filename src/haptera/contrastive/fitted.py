"""What a fitted estimator tells about its model, by the names that scikit-learn's conventions give such attributes."""

import numpy as np
from torch import nn

from haptera.contrastive.loss import InfoNCE
from haptera.contrastive.model import Model
from haptera.recordings.windows import Offset


class FittedAttributes:
    """Attributes of an estimator that has been fitted.

    Attributes:
        model_: encoders, losses and what happened while they learnt.
    """

    model_: Model

    @property
    def encoders_(self) -> list[nn.Module]:
        """Return the encoders, one for each session."""
        return self.model_.encoders

    @property
    def losses_(self) -> list[InfoNCE]:
        """Return the loss of behaviour or time; with `hybrid` that of time after it."""
        return self.model_.losses

    @property
    def offset_(self) -> Offset:
        """Return the window."""
        return self.model_.offset

    @property
    def n_sessions_(self) -> int:
        """Return how many sessions the model knows."""
        return len(self.model_.encoders)

    @property
    def n_iter_(self) -> int:
        """Return the number of steps done."""
        return len(self.model_.loss_history)

    @property
    def loss_history_(self) -> np.ndarray:
        """Return the loss of each step."""
        return np.array(self.model_.loss_history)

    @property
    def goodness_of_fit_history_(self) -> np.ndarray:
        """Return the loss of each step minus that of a constant embedding, in nats; lower is better."""
        return np.array(self.model_.goodness_of_fit_history)

    @property
    def jacobian_history_(self) -> np.ndarray:
        """Return the mean squared norm of the Jacobian in each step that had the Jacobian term, as it was estimated."""
        return np.array(self.model_.jacobian_history)

    @property
    def validation_history_(self) -> dict[int, float]:
        """Return step -> goodness of fit of held-out samples."""
        return dict(self.model_.validation_history)

    @property
    def temperature_(self) -> float:
        """Return the temperature of the first loss, as it is now."""
        return self.model_.losses[0].temperature
