"""Check: one question about a set-up, its answer in a sentence, and how much it matters."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from haptera.report.section import Finding

FINE, WARNING, ERROR, UNKNOWN = "fine", "warning", "error", "unknown"
"""An error is where a result would mean nothing; unknown is where the images or the model do not allow an answer."""
VERDICTS = (ERROR, WARNING, UNKNOWN, FINE)


@dataclass(frozen=True)
class Check:
    """One answer.

    Attributes:
        word: what it is about, such as `scale`; also the name of its numbers.
        question: the same in full.
        verdict: one of `VERDICTS`.
        sentence: the answer, with its number, and what to do where something is wrong.
        numbers: name -> what the sentence says, unrounded; JSON-like.
    """

    word: str
    question: str
    verdict: str
    sentence: str
    numbers: Mapping[str, Any] = field(default_factory=dict)

    @property
    def complaint(self) -> bool:
        """Say whether somebody should do something about it."""
        return self.verdict in (ERROR, WARNING)

    def finding(self) -> Finding:
        """Return the check as an answer: the sentence after its verdict where it is not fine, and all its numbers."""
        told = self.sentence if self.verdict == FINE else f"{self.verdict}: {self.sentence}"
        return Finding(self.word, self.question, told, {self.word: {"verdict": self.verdict, **self.numbers}})
