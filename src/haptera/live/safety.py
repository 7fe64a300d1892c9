"""Safety: when the unadapted model answers in the place of the adapted one, and when the adapter may come back.

    adapted ──(a sign of collapse, worse on labels or anchors, an error)──► quarantine: the adapter is reset and rests
       ▲                                                                        │ `quarantine` images, twice as many
       └── return: nothing of the kind ── probation: it adapts beside the ◄─────┘ after each further fall-back
                                          served model; another sign sends it back

Three witnesses, of which the first needs nothing: signs of collapse (`haptera.live.signs`); anchor images, with labels
or with the unadapted model's answers in their place, on which both models are compared every so many steps; and labels
that arrive late. The last two collect evidence that may be looked at at any time (`haptera.live.evidence`). Where
there are anchors, a sign counts only if they confirm it.
An adapter that was sent away after n images is from then on reset every n / 4, the lesson of RDumb; it must stay well,
by limits half as wide, for 2 n images on probation before it serves again. One that collapses at its old pace does so
where nobody is served by it. What no witness sees is an adapted model that is somewhat worse and as varied as before,
without anchors and without labels.
Cost: while on probation, and in shadow mode, every batch goes through both models.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from haptera.live.evidence import PairedEvidence
from haptera.live.settings import GuardSettings
from haptera.live.signs import Sign, Signs

ADAPTED, QUARANTINE, PROBATION = "adapted", "quarantine", "probation"
LIFE = 4
"""An adapter that was sent away is reset after one in so many of the images that it had learnt from."""
STRICT = 2.0
"""Limits on probation are divided by this."""
LONGEST = 64
"""A quarantine grows to so many times its first length."""


@dataclass(frozen=True)
class Decision:
    """Something that the guard does: the name of the event, the sentence and the numbers of its row."""

    event: str
    sentence: str
    numbers: Mapping[str, Any] = field(default_factory=dict)


class Safety:
    """Decides which model answers; knows numbers, not models.

    Args:
        settings: of the guard.

    Attributes:
        phase: `adapted`, `quarantine` or `probation`.
        falls: how often the adapter was sent away.
        signs: of collapse.
        labels: evidence of labels that arrived late.
        anchors: evidence of anchor images.
    """

    def __init__(self, settings: GuardSettings) -> None:
        self.settings, self.phase, self.falls = settings, ADAPTED, 0
        self.signs = Signs(settings.largest, settings.lost, settings.look, settings.compare)
        self.labels = PairedEvidence(0.0, settings.worse)
        self.anchors = PairedEvidence(settings.anchor_margin, settings.worse)
        self._learnt = self._age = self._left = self._proof = self._life = 0

    @property
    def adapts(self) -> bool:
        """Whether the adapter gets batches."""
        return self.phase != QUARANTINE

    @property
    def serves(self) -> bool:
        """Whether the adapter's answers are served."""
        return self.phase == ADAPTED and not self.settings.shadow

    @property
    def compares(self) -> bool:
        """Whether the unadapted model answers as well."""
        return not self.serves or self.signs.looking

    def look(self, adapted: np.ndarray, unadapted: np.ndarray | None) -> Sign | None:
        """Look at the probabilities of a batch; the unadapted model's are there where it was asked."""
        return self.signs.look(adapted, unadapted, STRICT if self.phase == PROBATION else 1.0)

    def verdict(self) -> Decision | None:
        """Return what anchors and labels say against the adapted model."""
        for evidence, what in ((self.anchors, "anchor images"), (self.labels, "images whose labels arrived")):
            if evidence.worse:
                numbers = {"evidence": evidence.value, "difference": evidence.difference}
                return self.fall(
                    f"on {what} its accuracy differs by {evidence.difference:+.3f} from the unadapted model's "
                    f"(evidence {evidence.value:.3g}, {1 / evidence.alpha:.0f} is enough)",
                    numbers,
                )
        return None

    def fall(self, why: str, numbers: Mapping[str, Any] | None = None) -> Decision:
        """Send the adapter away; the guard resets it."""
        served, self.phase, self.falls = self.phase == ADAPTED, QUARANTINE, self.falls + 1
        self._left = self.settings.quarantine * min(2 ** (self.falls - 1), LONGEST)
        self._proof = max(self.settings.probation, 2 * self._learnt, self._proof)
        life = max(self._age // LIFE, 1) if self._age else 0
        self._life = min(self._life, life) if self._life and life else self._life or life
        learnt, self._learnt, self._age = self._learnt, 0, 0
        self._restart()
        what = "the unadapted model answers" if served else "the adapter does not come back from probation"
        sentence = f"{what}: {why}; the adapter is reset and rests for {self._left:,} images"
        facts = {"learnt": learnt, "quarantine": self._left, "probation": self._proof, "falls": self.falls}
        return Decision("fallback" if served else "reset", sentence, facts | dict(numbers or {}))

    def advance(self, images: int, learnt: bool) -> Decision | None:
        """Count the images of a batch; say so when the adapter comes back."""
        self._learnt += images if learnt else 0
        self._age += images if learnt else 0
        if self.phase == QUARANTINE:
            self._left -= images
            if self._left <= 0:
                self.phase, self._left = PROBATION, self._proof
                self._restart()
        elif self.phase == PROBATION and learnt:
            self._left -= images
            if self._left <= 0:
                self.phase = ADAPTED
                sentence = (
                    f"the adapted model answers again: it stayed well beside the served one for {self._proof:,} images"
                )
                return Decision("return", sentence, {"probation": self._proof, "falls": self.falls})
        if self._life and self._age >= self._life:
            age, self._age = self._age, 0
            sentence = f"the adapter is reset after {age:,} images, since it was sent away after {LIFE} times as many"
            return Decision("reset", sentence, {"learnt": age})
        return None

    def state(self) -> dict[str, Any]:
        """Return everything that changes."""
        own = {"phase": self.phase, "falls": self.falls, "learnt": self._learnt, "left": self._left}
        own |= {"age": self._age, "life": self._life}
        parts = {"signs": self.signs.state(), "labels": self.labels.state(), "anchors": self.anchors.state()}
        return own | parts | {"proof": self._proof}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self.phase, self.falls, self._learnt = state["phase"], state["falls"], state["learnt"]
        self._left, self._proof, self._age, self._life = (state[name] for name in ("left", "proof", "age", "life"))
        self.signs.restore(state["signs"])
        self.labels.restore(state["labels"])
        self.anchors.restore(state["anchors"])

    def _restart(self) -> None:
        self.signs.restart()
        self.labels.restart()
        self.anchors.restart()
