"""Probit models: simulated models whose accuracies lie on a known probit line, for tests and for trying things out.

Source: the generative model of Recht et al., "Do ImageNet classifiers generalize to ImageNet?", 2019, as section 5.3
of "Why do classifier accuracies show linear trends under distribution shift?" refers to it. An example has a
difficulty, normal with mean 0 and variance 1 under P, with mean `harder` and standard deviation `wider` under Q; a
model is right where its skill exceeds the difficulty plus noise of its own. The smaller the noise, the more similar
the models.
So accuracies are Φ(skill / √(1 + noise²)) under P and Φ((skill - harder) / √(wider² + noise²)) under Q.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr


@dataclass(frozen=True, eq=False)
class ProbitModels:
    """Models and a shift.

    Attributes:
        skills: `(models,)`.
        noise: standard deviation of what only one model finds hard.
        harder: by how much difficulty is larger under Q.
        wider: standard deviation of difficulty under Q.
        gains: `(models,)`, skill that a model has under Q only, which takes it off the line; none by default.
    """

    skills: np.ndarray
    noise: float = 0.7
    harder: float = 0.3
    wider: float = 1.2
    gains: np.ndarray | float = 0.0

    @property
    def slope(self) -> float:
        """Return that of the probit line."""
        return float(np.sqrt((1 + self.noise**2) / (self.wider**2 + self.noise**2)))

    @property
    def intercept(self) -> float:
        """Return that of the probit line."""
        return float(-self.harder / np.sqrt(self.wider**2 + self.noise**2))

    @property
    def accuracies(self) -> tuple[np.ndarray, np.ndarray]:
        """The true ones under P and under Q, each `(models,)`."""
        shifted = (self.skills + self.gains - self.harder) / np.sqrt(self.wider**2 + self.noise**2)
        return ndtr(self.skills / np.sqrt(1 + self.noise**2)), ndtr(shifted)

    def correct(self, reference: int, shifted: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Return whether each model is right, `(models, examples)`, on examples drawn from P and from Q."""
        generator = np.random.default_rng(seed)
        sides = []
        for n, mean, spread, gains in ((reference, 0.0, 1.0, 0.0), (shifted, self.harder, self.wider, self.gains)):
            difficulty = generator.normal(mean, spread, n) + self.noise * generator.normal(size=(len(self.skills), n))
            sides.append(difficulty < np.asarray(self.skills + gains)[:, None])
        return sides[0], sides[1]
