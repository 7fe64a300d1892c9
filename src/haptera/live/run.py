"""LiveRun: the analysis of a guard's log: what shifted when, what it cost, what the adapter did, what it took."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from haptera.analysis import Analysis
from haptera.live import page
from haptera.live.findings import DEFINITIONS, Episode, episodes, findings
from haptera.live.history import LONG, SHORT, History, clock, number
from haptera.report.section import Finding, Section
from haptera.words import count, duration

FEWEST = 50
"""Labels of images that both models answered, below which nobody can say which is better."""


class LiveRun(Analysis):
    """What a log says.

    Args:
        history: its rows, thinned.
        about: what its `live.json` says about model, adapter, reference and settings.
        thumbnails: the folder of frames near alarms, if they were kept.
        notes: what a reader must know, such as rows that could not be read.
    """

    kind: ClassVar[str] = "live"
    definitions: ClassVar[Mapping[str, str]] = DEFINITIONS
    notes: Sequence[str]

    def __init__(
        self,
        history: History,
        about: Mapping[str, Any] | None = None,
        thumbnails: Path | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        self.history, self.about, self.thumbnails = history, dict(about or {}), thumbnails
        moved = f"the clock was set back by {duration(history.set_back)}; later times are moved on by as much"
        self.notes = [*notes, *self.remarks, *([moved] if history.set_back else [])]

    @property
    def model(self) -> str:
        """Return the name of the model."""
        return str(self.about.get("model") or self.about.get("name") or "model")

    @property
    def adapter(self) -> str:
        """Return the name of the adapter; an empty one where there is none."""
        return str(self.about.get("adapter") or "")

    @property
    def title(self) -> str:
        """Return the heading of the page."""
        return f"{self.model}, live"

    @property
    def settings(self) -> Mapping[str, Any]:
        """Return what the log says about the guard."""
        return self.about

    @property
    def remarks(self) -> list[str]:
        """Return what the guard said it cannot tell."""
        told = self.about.get("remarks")
        return [str(each) for each in told] if isinstance(told, list) else []

    @property
    def reference_accuracy(self) -> float:
        """Return the accuracy on the reference; NaN where nobody knows."""
        profile = self.about.get("profile")
        return number(profile.get("accuracy") if isinstance(profile, Mapping) else None)

    @property
    def recovered(self) -> float:
        """Return by how much the adapted model is better, by labels of images that both answered; NaN for too few.

        Of the last shift, where there was one.
        """
        labels = self.history.labels()
        if self.episodes:
            labels = labels[self.episodes[-1].holds(labels)]
        compared = labels["compared"].sum()
        return float(labels["gained"].sum() / compared) if compared >= FEWEST else float("nan")

    @property
    def span(self) -> float:
        """Return how many seconds the run lasts."""
        return self.history.last - self.history.first

    @cached_property
    def episodes(self) -> list[Episode]:
        """Return the shifts, in order."""
        return episodes(self.history)

    def headline(self) -> str:
        """Return how much was seen, and when."""
        history = self.history
        if not history.steps:
            return f"{self.model}: an empty log"
        batches = count(history.steps, "batch").replace("batchs", "batches")
        when = f"from {clock(history.first, LONG)} to {clock(history.last, max(self.span, SHORT))}"
        return f"{batches}, {count(history.images, 'image')} {when}"

    @cached_property
    def _findings(self) -> list[Finding]:
        return findings(self)

    def findings(self) -> list[Finding]:
        """Return the answers; the first says what shifted when."""
        return self._findings

    def sections(self) -> list[Section | None]:
        """Return the shift, accuracy, adapter and service along time, the events, and frames near alarms."""
        return page.sections(self)

    @property
    def known(self) -> set[str]:
        """Return which numbers of steps the log has any of."""
        frame = self.history.frame()
        return {str(name) for name in frame.select_dtypes("number") if np.isfinite(frame[name]).any()}
