"""Models whose accuracies are known, for tests and for trying things out.

Probit models lie on a known probit line. Source: the generative model of Recht et al., "Do ImageNet classifiers
generalize to ImageNet?", 2019, as section 5.3 of "Why do classifier accuracies show linear trends under distribution
shift?" refers to it. An example has a difficulty, normal with mean 0 and variance 1 under P, with mean `harder` and
standard deviation `wider` under Q; a model is right where its skill exceeds the difficulty plus noise of its own. The
smaller the noise, the more similar the models. So accuracies are Φ(skill / √(1 + noise²)) under P and
Φ((skill - harder) / √(wider² + noise²)) under Q.

`RightTogether` prescribes who is right. Source: section 2.2 of the same. The events "exactly these models are right"
are disjoint, so they can have any probabilities that add up to one, and a table of them is all that accuracies,
dominance and closeness depend on. Both examples of the section are here. (Example 1 speaks of the line of f1 and f2;
the residual it gives, .2, is the one to the line of f1 and f3.)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import ndtr

from haptera.checks import check_number, check_whole_number
from haptera.errors import HapteraError

MOST_MODELS = 9
ROUNDING = 1e-9


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


@dataclass(frozen=True)
class RightTogether:
    """A distribution, as far as which models are right on it.

    Attributes:
        probabilities: models that are right -> how likely; `"13"` means the first and the third and no other. What is
            missing to one is the probability that none is right.
        models: how many there are.

    >>> RightTogether({"123": 0.6, "23": 0.1, "3": 0.1}).accuracies.round(6).tolist()
    [0.6, 0.7, 0.8]
    """

    probabilities: Mapping[str, float]
    models: int = 3

    def __post_init__(self) -> None:
        check_whole_number("models", self.models, 1, MOST_MODELS)
        names, total = "123456789"[: self.models], sum(self.probabilities.values())
        for right, probability in self.probabilities.items():
            if not right or set(right) - set(names) or len(set(right)) < len(right):
                raise HapteraError(f"{right!r} is not an event; some of the models {names}, each once, were expected")
            check_number(f"the probability of the event {right!r}", probability, least=0)
        if total > 1 + ROUNDING:
            raise HapteraError(f"the probabilities add up to {total}; 1 at most was expected")

    @property
    def accuracies(self) -> np.ndarray:
        """Return `(models,)`."""
        return np.array([self._likely(str(i + 1), "") for i in range(self.models)])

    def dominance(self, worse: int, better: int) -> float:
        """Return how likely the one model is right and the other wrong; models count from 1."""
        return self._likely(str(worse), str(better))

    def correct(self, examples: int) -> np.ndarray:
        """`(models, examples)`, whether each is right, each event as often as it is likely, to the nearest example."""
        rights = list(self.probabilities)
        exact = np.array([self.probabilities[right] * examples for right in rights])
        times = np.floor(exact + ROUNDING).astype(int)
        missing = round(exact.sum()) - times.sum()
        times[np.argsort(times - exact, kind="stable")[:missing]] += 1
        table = np.array([[str(i + 1) in right for right in rights] for i in range(self.models)], bool)
        correct = np.zeros((self.models, examples), bool)
        correct[:, : times.sum()] = np.repeat(table.reshape(self.models, -1), times, axis=1)
        return correct

    def _likely(self, right: str, wrong: str) -> float:
        likely = (p for event, p in self.probabilities.items() if right in event and (not wrong or wrong not in event))
        return float(sum(likely))


def ordered(accuracies: Sequence[float]) -> RightTogether:
    """Models each of which is right wherever a worse one is.

    >>> ordered([0.6, 0.7, 0.8]).dominance(1, 3)
    0.0
    """
    levels = np.append(np.sort(np.asarray(accuracies, float))[::-1], 0.0)
    rank = np.argsort(-np.asarray(accuracies, float), kind="stable")
    events = {"".join(sorted(str(i + 1) for i in rank[: k + 1])): levels[k] - levels[k + 1] for k in range(len(rank))}
    return RightTogether({event: float(likely) for event, likely in events.items()}, len(rank))


def independent(accuracies: Sequence[float]) -> RightTogether:
    """Models that make their mistakes independently of each other."""
    size = len(accuracies)
    events = {}
    for right in (chosen for k in range(1, size + 1) for chosen in combinations(range(size), k)):
        factors = [accuracy if i in right else 1 - accuracy for i, accuracy in enumerate(accuracies)]
        events["".join(str(i + 1) for i in right)] = float(np.prod(factors))
    return RightTogether(events, size)


def residual(p: RightTogether, q: RightTogether) -> float:
    """Return how far the middle one of three models under P is from the line of the two others, upright."""
    low, middle, high = np.argsort(p.accuracies, kind="stable")
    x, y = p.accuracies, q.accuracies
    return float(abs(y[low] + (y[high] - y[low]) * (x[middle] - x[low]) / (x[high] - x[low]) - y[middle]))


EXAMPLE_1 = (
    RightTogether({"123": 0.6, "23": 0.1, "3": 0.1}),
    RightTogether({"123": 0.5, "23": 0.4, "3": 0.0}),
)
"""P and Q for which three models are ordered, and yet far from a line, because P and Q are not close."""

EXAMPLE_2 = (
    independent([0.6, 0.7, 0.8]),
    RightTogether({"123": 0.336, "12": 0.053, "13": 0.2, "23": 0.15, "1": 0.057, "2": 0.034, "3": 0.14}),
)
"""P and Q that are (.31, .38, .005, .008)-close, and yet three models are far from a line: they are not ordered."""
