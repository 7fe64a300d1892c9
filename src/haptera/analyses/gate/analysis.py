"""Gate: may this candidate replace the model before it?

    gate = haptera.gate("candidate", baseline="released")
    gate.passed, gate.comparisons

Two trained networks are never equal, so "fell" must mean more than noise: the same images, image by image, with
intervals that hold together for all comparisons (`decide`), and a tolerance. Beside them, bars that hold whatever came
before.
Cost: reads the outputs of both studies once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from haptera.analyses.gate import bars as bar_room
from haptera.analyses.gate import decide as decide_room
from haptera.analyses.gate import findings as finding_room
from haptera.analyses.gate import page as page_room
from haptera.analysis import Analysis, numbers_table
from haptera.report.section import Finding, Picture, Section
from haptera.words import count


@dataclass(frozen=True)
class Effort:
    """What a quick gate had to run.

    Attributes:
        answers: how many answers of the candidate were asked for.
        every: how many a whole study would have taken.
        seconds: how long that took; 0 where answers were read.
        why: why it stopped.
        order: the cells that were looked at first.
    """

    answers: int
    every: int
    seconds: float
    why: str
    order: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class Gate(Analysis):
    """Say whether a candidate may replace the model before it.

    Attributes:
        candidate: the name of the study in question.
        baseline: the name of the study before; empty where there are bars alone.
        comparisons: a row for each comparison, `decide.COLUMNS`.
        bars: a row for each value that a bar is about, `bars.COLUMNS`.
        worst: images that lost most under what fell, `decide.WORST`.
        measure: what was compared.
        critical: how many standard errors intervals reach.
        tolerance: how much may be lost.
        effort: what a quick gate had to run; None for a whole one.
        pictures: thumbnails of the worst images.
    """

    kind: ClassVar[str] = "gate"
    definitions: ClassVar[Mapping[str, str]] = {
        "fell": "the interval of the paired difference lies below minus the tolerance as a whole",
        "lower": "the interval lies below 0, but not below minus the tolerance",
        "within noise": "the interval holds 0",
        "better": "the interval lies above 0",
        "cleared": "a quick gate is sure that it did not fall by the drop that must not slip through",
        "undecided": "a quick gate stopped before it was certain",
    }
    candidate: str
    baseline: str
    comparisons: pd.DataFrame
    bars: pd.DataFrame
    worst: pd.DataFrame
    measure: str = "accuracy"
    critical: float = float("nan")
    tolerance: float = 0.0
    effort: Effort | None = None
    pictures: Sequence[Picture] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    failures: Sequence[str] = ()
    folder: Path | None = None

    @property
    def title(self) -> str:
        """Return the verdict in a few words."""
        verdict = "passes" if self.passed else "fails"
        return f"{self.candidate} {verdict} against {self.baseline or 'its bars'}"

    @property
    def fallen(self) -> pd.DataFrame:
        """The comparisons that fell."""
        return self.comparisons[self.comparisons["verdict"] == decide_room.FELL]

    @property
    def missed(self) -> pd.DataFrame:
        """The values that missed their bar."""
        return self.bars[self.bars["verdict"] == bar_room.MISSED]

    @property
    def passed(self) -> bool:
        """Return whether nothing fell, every bar is reached, and everything could be compared."""
        return self.fallen.empty and self.missed.empty and not self.failures

    @property
    def objections(self) -> list[str]:
        """What a command ends with 1 for."""
        told = [finding.sentence for finding in self.findings() if finding.word in ("FAIL", "bars")]
        return [] if self.passed else told

    def headline(self) -> str:
        """Return how much was compared."""
        images = int(self.comparisons["images"].max()) if len(self.comparisons) else 0
        told = (
            f"{count(len(self.comparisons), 'comparison')} on up to {count(images, 'image')}" if images else self.title
        )
        return f"{self.title}: {told}" if images else told

    def findings(self) -> list[Finding]:
        """Return the verdict and what stands behind it."""
        return finding_room.findings(self)

    def table(self) -> pd.DataFrame:
        """Return every number of the findings, then every comparison and every value of a bar."""
        compared = self.comparisons.rename(columns={"difference": "value"}).assign(finding="comparison")
        compared = compared.assign(measure=compared["measure"] + " difference")
        bars = self.bars.assign(finding="bar").drop(columns="bar")
        parts = [numbers_table(self.findings()), *(frame for frame in (compared, bars) if len(frame))]
        return pd.concat(parts, ignore_index=True)

    def sections(self) -> list[Section]:
        """Return the comparisons, the bars and the worst images."""
        return page_room.sections(self)
