"""ROID: learn from sure and diverse samples, stay near the source by averaging weights, and correct the class prior.

Source: Marsden et al. 2024. It is `PriorCorrection(Ensemble(WeightedSLR))`; the three pieces say what they are.
Cost: as `WeightedSLR`.
"""

from typing import Annotated, Any

from torch import nn

from haptera.adapters.ensemble import Ensemble
from haptera.adapters.prior_correction import SCALES, BatchPrior
from haptera.adapters.weighted_slr import WeightedSLR


class ROID(BatchPrior):
    """Robust online adaptation for universal streams.

    Args:
        model: as `WeightedSLR` takes it.
        ensemble: the share of the adapted weights when they are averaged with the source's; 1 for no average.
        prior_correction: what the class prior multiplies: `probabilities`, `logits` as in the public code, or `none`.
        settings: of `WeightedSLR`.
    """

    def __init__(
        self,
        model: nn.Module,
        ensemble: float = 0.99,
        prior_correction: str = SCALES[0],
        **settings: Annotated[Any, WeightedSLR],
    ) -> None:
        super().__init__(model, Ensemble(WeightedSLR, ensemble), prior_correction, **settings)
