"""Evidence that an adapted model is worse than the unadapted one on the same images, which may be looked at any time.

Source: testing by betting (Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", 2024,
section 4; Ramdas et al., "Game-theoretic statistics and safe anytime-valid inference", 2023). With d = 1 where only
the adapted model is right, -1 where only the unadapted one is, else 0, and a margin m, the wealth of a bet is the
product of 1 - λ (d + m). While the mean of d, given the past, is at least -m, the expected wealth never grows, and by
Ville's inequality it ever reaches 1 / alpha with probability at most alpha.
Here the wealth is a mean over some λ and over the moments at which a bet begins, the k-th with weight 1 / (k (k + 1)):
an adapter that was better for a week and then collapses is found as soon as one that collapses at once, but for
the logarithm of k². The weights sum to 1, so the promise holds for all of it.
Cost: a few numbers of memory, whatever the length of the stream.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from haptera.checks import check_number

BETS = np.array([0.05, 0.2, 0.5, 0.9])
"""Shares of the largest bet that cannot lose everything."""
MOST = 1e100


class PairedEvidence:
    """The wealth of somebody who bets that the adapted model is worse by more than a margin.

    Args:
        margin: the share of images by which the adapted model may be worse.
        alpha: the probability of a false verdict, ever.
    """

    def __init__(self, margin: float = 0.0, alpha: float = 0.01) -> None:
        check_number("margin", margin, least=0, below=1, what="a share")
        check_number("alpha", alpha, above=0, below=1, what="a probability")
        self.margin, self.alpha = margin, alpha
        self.restart()

    def restart(self) -> None:
        """Forget everything."""
        self._wealth, self._looks, self._sum, self._images = np.zeros(len(BETS)), 0, 0.0, 0

    def update(self, differences: np.ndarray) -> bool:
        """Add some images, each with 1, 0 or -1; say whether the adapted model is worse."""
        if not len(differences):
            return self.worse
        self._looks += 1
        begin = 1 / (self._looks * (self._looks + 1))
        gains = 1 - np.outer(BETS / (1 + self.margin), np.asarray(differences, float) + self.margin)
        self._wealth = np.minimum((self._wealth + begin) * gains.prod(1), MOST)
        self._sum, self._images = self._sum + float(np.sum(differences)), self._images + len(differences)
        return self.worse

    @property
    def value(self) -> float:
        """The e-value."""
        return float(self._wealth.mean()) + 1 / (self._looks + 1)

    @property
    def worse(self) -> bool:
        """Whether there is enough evidence."""
        return self.value >= 1 / self.alpha

    @property
    def difference(self) -> float:
        """Accuracy of the adapted model less that of the unadapted one, so far; NaN without images."""
        return self._sum / self._images if self._images else float("nan")

    def state(self) -> dict[str, Any]:
        """Return everything that changes."""
        return {"wealth": self._wealth.copy(), "looks": self._looks, "sum": self._sum, "images": self._images}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._wealth, self._looks = np.array(state["wealth"], float), int(state["looks"])
        self._sum, self._images = float(state["sum"]), int(state["images"])
