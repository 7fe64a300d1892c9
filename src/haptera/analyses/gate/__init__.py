"""Gate: may this candidate replace the model before it? Not if it fell by more than noise, or misses a bar."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from haptera.checks import check_number
from haptera.errors import HapteraError, check_keys

if TYPE_CHECKING:
    from haptera.analyses.gate.analysis import Gate
    from haptera.data import CorruptedImages, Data
    from haptera.run.study import Study

STUDY_FILE = "study.toml"
"""What a folder that has not been run may hold."""


@dataclass(frozen=True)
class GateSettings:
    """What a gate asks.

    Attributes:
        bar: what must be reached, such as accuracy=0.8, accuracy@contrast=0.6 or accuracy@contrast:4=0.6.
        tolerance: a drop that is accepted even if it is certain.
        measure: accuracy, confidence or negative_log_likelihood of single images.
        model: which model of the study, if it has several.
        baseline_model: which model of the baseline, if it has several.
        quick: run a study file a few batches at a time, and stop as soon as the answer is certain.
        minutes: time for a quick gate, spent on the cells that tell most.
        drop: the drop that must not slip through a quick gate; smaller ones may.
    """

    bar: Sequence[str] = ()
    tolerance: float = 0.005
    measure: str = "accuracy"
    model: str | None = None
    baseline_model: str | None = None
    quick: bool = False
    minutes: float | None = None
    drop: float = 0.03

    def __post_init__(self) -> None:
        check_number("tolerance", self.tolerance, least=0, most=1)
        check_number("drop", self.drop, above=0, below=1)
        if self.minutes is not None:
            check_number("minutes", self.minutes, above=0)
        if self.fast and self.drop <= self.tolerance:
            raise HapteraError(f"drop is {self.drop:g}; more than the tolerance of {self.tolerance:g} was expected")
        if self.fast and (other := [bar for bar in self.bar if bar.partition("@")[0].partition("=")[0] != "accuracy"]):
            raise HapteraError(f"the bar {other[0]} needs a whole study; a quick gate sees accuracies alone")
        if self.fast and self.measure != "accuracy":
            raise HapteraError(f"measure is {self.measure!r}; a quick gate compares accuracies alone")

    @property
    def fast(self) -> bool:
        """Return whether the gate stops as soon as it is certain."""
        return self.quick or self.minutes is not None


def gate(
    study: "Path | str | Study",
    /,
    baseline: Path | str | None = None,
    *,
    data: "Data | CorruptedImages | None" = None,
    out: Path | None = None,
    progress: bool | None = None,
    **settings: Annotated[Any, GateSettings],
) -> "Gate":
    """Say whether a candidate may replace the model before it, image by image.

    Args:
        study: the folder of the candidate's study; for a quick gate also a study file, a folder with a study.toml, or a
            Study, of which only what is needed is run.
        baseline: the folder of the study of the model before; None where there are bars alone.
        data: the images, to show the worst ones.
        out: a folder where a quick gate keeps what it has run.
        progress: show a bar.
        **settings: fields of `GateSettings`.
    """
    from haptera.analyses.gate.opening import open_gate

    check_keys("setting of a gate", settings, [each.name for each in fields(GateSettings)])
    return open_gate(study, baseline, GateSettings(**settings), data, out, progress)
