"""Signs of collapse: an adapted model that says one class more often, or fewer classes, than the unadapted one.

Source: the entropy of the mean prediction and the share of the largest class follow thesis appendix C, as
`haptera.adapters.reset.Collapsed` does. Differs: there the limits are fixed; here both models answer the same images,
so that limits can be narrow (`experiments/live_safety.py`): an adapter that is well differs by .01 or .02, and one that
says .1 more of a class, or has lost a fifth of a nat, has begun to forget.
Looking costs passes of the unadapted model. So both models answer every batch for `images` images at the
beginning, then once in a while, and whenever the adapted model's recent answers are less even than usual; in between
only the adapted one answers. What is usual follows answers that become more even soon, and others slowly; until then
looks are frequent, since the unadapted model may merely have been as bad as a collapsed one for the time being.
A stream that shows one class for longer than a look, to an unadapted model that hardly sees it, can look like a
collapse; anchors tell the two apart, and so does a longer look.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp
from typing import Any

import numpy as np

PER_CLASS = 4
"""Images of a look for each class, at least: with fewer, sharp answers alone make a mean prediction less even."""
SOON, SLOWLY = 2000, 20_000
"""Images in which what is usual follows answers that become more even, and less even."""
AGAIN = 1
"""Lengths of a look between two of them, while answers are less even than usual."""


@dataclass(frozen=True)
class Sign:
    """What was seen, for people, and the numbers behind the sentence."""

    sentence: str
    numbers: Mapping[str, float]


class RecentMean:
    """The mean of recent values, older ones with smaller weights."""

    def __init__(self, images: int) -> None:
        self.images, self.seen = images, 0
        self.value: np.ndarray | None = None

    def add(self, values: np.ndarray) -> None:
        """Add `(images, classes)`."""
        mean, n = values.mean(0), len(values)
        self.seen += n
        share = max(n / self.seen, 1 - exp(-n / self.images))
        self.value = mean if self.value is None else (1 - share) * self.value + share * mean

    def state(self) -> dict[str, Any]:
        """Return everything that changes."""
        return {"images": self.images, "seen": self.seen, "value": self.value}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self.images, self.seen = int(state["images"]), int(state["seen"])
        self.value = None if state["value"] is None else np.array(state["value"])


class Signs:
    """Looks at the answers of both models.

    Args:
        largest: how much more of one class is a sign.
        lost: how many nats of entropy less.
        images: of a look.
        compare: share of the images that are looked at though nothing is suspicious.

    Attributes:
        looking: whether the unadapted model should answer the next batch, too.
    """

    def __init__(self, largest: float, lost: float, images: int, compare: float) -> None:
        self.largest, self.lost, self.images, self.compare = largest, lost, images, compare
        self.restart()

    def restart(self) -> None:
        """Begin with a look."""
        self.looking, self._rest, self._was_odd = True, 0.0, False
        self._usual: list[float] | None = None  # share of the largest class, entropy
        self._recent = RecentMean(self.images)
        self._begin_pairs()

    def look(self, adapted: np.ndarray, unadapted: np.ndarray | None, strictness: float = 1.0) -> Sign | None:
        """Add a batch of probabilities.

        Args:
            adapted: `(images, classes)`.
            unadapted: the same, where the unadapted model answered the whole batch, or None.
            strictness: limits are divided by it.
        """
        images = max(self.images, PER_CLASS * adapted.shape[1])
        self._recent.images = images
        self._recent.add(adapted)
        self._follow(len(adapted))
        if unadapted is None:
            if not self.looking and self._due_again(len(adapted)):
                self.looking = True
                self._begin_pairs()
            return None
        for pair, values in zip(self._pairs, (adapted, unadapted), strict=True):
            pair.images = images
            pair.add(values)
        if self._pairs[0].seen < images:
            return None
        sign = self._compare(strictness)
        if sign is None and self.looking:
            self.dismiss()
        return sign

    def dismiss(self) -> None:
        """End a look that found nothing, or nothing that another witness confirms."""
        routine = self._recent.images / self.compare if self.compare else float("inf")
        self._was_odd = self._odd()
        self.looking, self._rest = False, AGAIN * self._recent.images if self._was_odd else routine
        self._begin_pairs()

    def state(self) -> dict[str, Any]:
        """Return everything that changes."""
        means = {"recent": self._recent, "adapted": self._pairs[0], "unadapted": self._pairs[1]}
        usual = None if self._usual is None else list(self._usual)
        numbers = {"looking": self.looking, "rest": self._rest, "odd": self._was_odd, "usual": usual}
        return {name: mean.state() for name, mean in means.items()} | numbers

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        means = {"recent": self._recent, "adapted": self._pairs[0], "unadapted": self._pairs[1]}
        for name, mean in means.items():
            mean.restore(state[name])
        self.looking, self._rest, self._was_odd = state["looking"], state["rest"], state["odd"]
        self._usual = None if state["usual"] is None else list(state["usual"])

    def _begin_pairs(self) -> None:
        self._pairs = (RecentMean(self.images), RecentMean(self.images))

    def _follow(self, images: int) -> None:
        """Let what is usual follow recent answers."""
        assert self._recent.value is not None
        recent = [float(self._recent.value.max()), entropy(self._recent.value)]
        if self._usual is None or self._recent.seen <= self._recent.images:
            self._usual = recent
        for place, sign in enumerate((1, -1)):
            step = recent[place] - self._usual[place]
            self._usual[place] += (1 - exp(-images / (SLOWLY if sign * step > 0 else SOON))) * step

    def _odd(self) -> bool:
        """Say whether recent answers are half way from what is usual to a sign."""
        assert self._recent.value is not None
        assert self._usual is not None
        excess, lost = float(self._recent.value.max()) - self._usual[0], self._usual[1] - entropy(self._recent.value)
        return excess > self.largest / 2 or lost > self.lost / 2

    def _due_again(self, images: int) -> bool:
        """Say whether it is time for another look: by the clock, or at once when answers begin to be odd."""
        self._rest -= images
        before, self._was_odd = self._was_odd, self._odd()
        return self._rest <= 0 or (self._was_odd and not before)

    def _compare(self, strictness: float) -> Sign | None:
        adapted, unadapted = (mean.value for mean in self._pairs)
        assert adapted is not None
        assert unadapted is not None
        excess, lost = float(adapted.max() - unadapted.max()), entropy(unadapted) - entropy(adapted)
        if strictness * excess <= self.largest and strictness * lost <= self.lost:
            return None
        numbers = {"largest": float(adapted.max()), "largest_unadapted": float(unadapted.max())}
        numbers |= {"classes": exp(entropy(adapted)), "classes_unadapted": exp(entropy(unadapted))}
        return Sign(
            f"of the same recent images the adapted model gives {numbers['largest']:.0%} to class "
            f"{int(adapted.argmax())} (the unadapted one at most {numbers['largest_unadapted']:.0%}), and speaks of "
            f"{numbers['classes']:.1f} classes (it of {numbers['classes_unadapted']:.1f})",
            numbers,
        )


def entropy(mean: np.ndarray) -> float:
    """Return the entropy of a distribution in nats."""
    positive = mean[mean > 0]
    return abs(float((positive * np.log(positive)).sum()))


def probabilities(logits: np.ndarray) -> np.ndarray:
    """Return the softmax of `(images, classes)`."""
    shifted = np.exp(logits - logits.max(1, keepdims=True))
    return shifted / shifted.sum(1, keepdims=True)
