"""Judge: what the witnesses of `haptera.live.safety` are asked after each answer, and what is worth an event.

Signs of collapse at every step, anchor images every `anchor_every` steps or when a sign is not clear, labels when they
arrive; and beside them what is not a matter of safety: batches that were not learnt from, resets of the adapter's own.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from haptera.adapters.base import Adapter
from haptera.live.anchors import Anchors
from haptera.live.safety import Decision, Safety
from haptera.live.settings import GuardSettings
from haptera.live.signs import probabilities
from haptera.live.turn import Turn, logits_of

MANY = 100
"""Batches in a row that were not learnt from, after which the guard says so again."""


CLOSELY = 4
"""How many times as many anchors are asked to confirm a sign."""


class Judge:
    """Decides after each answer; an adapter that it sends away is reset.

    Args:
        adapter: or None.
        safety: which model answers.
        anchors: or None.
        settings: of the guard.

    Attributes:
        resets: how often the adapter was reset, by the guard and by itself.
        skipped: batches that were not learnt from.
    """

    def __init__(
        self, adapter: Adapter | None, safety: Safety, anchors: Anchors | None, settings: GuardSettings
    ) -> None:
        self.adapter, self.safety, self.anchors, self.settings = adapter, safety, anchors, settings
        self.skipped = self._in_a_row = self._resets = self._own = self._own_before = 0

    @property
    def resets(self) -> int:
        """How often the adapter was reset, by the guard and by itself."""
        return self._resets + self._own_before + self._own

    def judge(self, turn: Turn, step: int) -> list[Decision]:
        """Return what is decided about the adapter after it answered; it is then carried out."""
        if self.adapter is None:
            return []
        decision = None
        if turn.failure:
            decision, turn.adapted = self.safety.fall(turn.failure), None
        elif turn.adapted is not None and not turn.puzzle:
            decision = self._look_for_signs(turn, step)
            if decision is None and self.settings.anchor_every and step % self.settings.anchor_every == 0:
                self._look_at_anchors(step)
                decision = self.safety.verdict()
        decisions = (decision, self.safety.advance(len(turn.inputs), turn.learnt))
        return [self._carry_out(each) for each in decisions if each is not None]

    def judge_labels(self) -> list[Decision]:
        """Return what is decided after labels arrived."""
        decision = None if self.adapter is None else self.safety.verdict()
        return [] if decision is None else [self._carry_out(decision)]

    def notes(self, turn: Turn) -> list[Decision]:
        """Return what else is worth an event: batches begin not to be learnt from, the adapter has reset itself."""
        found = []
        self._in_a_row = self._in_a_row + 1 if turn.skipped else 0
        self.skipped += turn.skipped
        if turn.skipped and (self._in_a_row == 1 or self._in_a_row % MANY == 0):
            why = turn.puzzle or "the adapter met values that are not finite"
            batches = f"{self._in_a_row} batches in a row were" if self._in_a_row > 1 else "a batch was"
            sentence = f"{batches} predicted and not learnt from: {why}"
            found.append(Decision("skipped", sentence, {"in_a_row": self._in_a_row}))
        own = int(turn.report.get("resets", self._own))
        if own > self._own:
            found.append(Decision("reset", "the adapter reset itself", {"resets": self.resets + own - self._own}))
        self._own = own
        return found

    def state(self) -> dict[str, Any]:
        """Return everything that changes."""
        counts = {"skipped": self.skipped, "in_a_row": self._in_a_row, "resets": self._resets, "own": self._own}
        return counts | {"own_before": self._own_before, "safety": self.safety.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self.skipped, self._in_a_row, self._resets = state["skipped"], state["in_a_row"], state["resets"]
        self._own, self._own_before = state["own"], state["own_before"]
        self.safety.restore(state["safety"])

    def _carry_out(self, decision: Decision) -> Decision:
        if self.adapter is not None and decision.event != "return":
            self.adapter.reset()
            self._resets += 1
            self._own_before, self._own = self._own_before + self._own, 0  # its own count begins anew
        return decision

    def _look_for_signs(self, turn: Turn, step: int) -> Decision | None:
        adapted = logits_of(turn.adapted)
        if adapted is None:
            return None
        unadapted = logits_of(turn.unadapted)
        others = None if unadapted is None else probabilities(unadapted)
        sign = self.safety.look(probabilities(adapted), others)
        if sign is None:
            return None
        if self.anchors is not None and self._look_at_anchors(step, CLOSELY) > -self.settings.anchor_margin:
            self.safety.signs.dismiss()
            return None
        return self.safety.fall(sign.sentence, sign.numbers)

    def _look_at_anchors(self, step: int, times: int = 1) -> float:
        """Compare both models on anchors, if there are any; return the difference of their accuracies."""
        if self.anchors is None or self.adapter is None:
            return 0.0
        seed = (self.settings.seed, step)
        draws = [self.anchors.compare(self.adapter, self.settings.anchor_images, (*seed, n)) for n in range(times)]
        differences = np.concatenate(draws)
        self.safety.anchors.update(differences)
        return float(differences.mean())
