"""The fit of the latents themselves: what the loss would be of an encoder that inverts the process.

A row of tables 6.1 and 6.2 may miss its score for two reasons, which this tells apart. A loss above that of the latents
was not trained to its end. A loss below it prefers another embedding, and training longer leads away from the latents:
theorem 3 promises them only where the model's law is that of the pairs and the marginal uniform.
Cost: about a dozen evaluations of the loss of some thousand pairs, no training.
"""

import math

import numpy as np
import torch
from scipy.optimize import minimize_scalar

from holdfast.embed.loss import InfoNCE
from holdfast.embed.processes import Process

PAIRS = 8192
"""References by which it is estimated, or one batch if that is more."""
BATCHES = 64
"""At most, where batches are small."""
RANGE = 10.0
"""The best size is looked for from a tenth of the first guess to ten times that."""


def latents_fit(process: Process, loss: InfoNCE, batch_size: int, guess: float, seed: int = 0) -> float:
    """The loss of the true latents at their best size, minus that of a constant embedding.

    Args:
        process: makes the pairs.
        loss: of the model.
        batch_size: pairs, and as many negatives, as in training.
        guess: the size near which the best one is looked for.
        seed: of the pairs.
    """
    random = np.random.default_rng([seed, 3])
    batches = []
    for _ in range(min(max(PAIRS // batch_size, 1), BATCHES)):
        parts = (*process.pairs(batch_size, random), process.latents(batch_size, random))
        batches.append([torch.from_numpy(part).float() for part in parts])

    def value(log_size: float) -> float:
        size = math.exp(log_size)
        with torch.no_grad():
            values = [loss(*(size * part for part in batch)).item() for batch in batches]
        return float(np.mean(values)) - loss.chance(batch_size)

    ends = math.log(guess / RANGE), math.log(guess * RANGE)
    return float(minimize_scalar(value, bounds=ends, method="bounded", options={"xatol": 0.02}).fun)
