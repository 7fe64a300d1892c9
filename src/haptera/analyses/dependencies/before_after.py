"""Before and after: what became of a network in which a dependency was cut, from the logits of both.

Source: "Neural Dependencies Emerging from Learning Massive Categories", section 3.3, table 3: accuracy, the coefficient
of the pair and, with samples of unseen classes, AUPR. The term for the training loop is
`haptera.losses.DependencyPenalty`; `examples/cut_a_dependency.py` is a whole recipe.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from haptera.analyses.dependencies.cutting import CutState, cut_state
from haptera.analyses.dependencies.files import LogitsFile
from haptera.analysis import Analysis
from haptera.errors import HapteraError, unknown
from haptera.report.section import Finding, Listing, Section, answer

LABELS = {"low": "lower end", "high": "upper end", "moment": "E[f_i f_j]", "aupr": "AUPR of unseen classes"}


@dataclass(frozen=True, eq=False)
class BeforeAfter(Analysis):
    """A pair of classes in a network before and after it was cut.

    Attributes:
        files_read: the logits before and after.
        pair: the class and the one it depends on, by name.
        states: of the network before and after.
        alpha: of the lasso.
        unit: of alpha.
    """

    kind: ClassVar[str] = "cut"
    definitions: ClassVar[Mapping[str, str]] = {
        "coefficient": "of the second class in the lasso of the first, in the unit and at the α of the settings",
        "AUPR": "area under the precision-recall curve for telling images of unseen classes by −max softmax",
    }
    files_read: tuple[Path, Path]
    pair: tuple[str, str]
    states: tuple[CutState, CutState]
    alpha: float
    unit: str

    @property
    def title(self) -> str:
        """Return the names of the classes."""
        return f"Cut: {self.pair[0]} on {self.pair[1]}"

    @property
    def settings(self) -> dict[str, Any]:
        """Return what was asked."""
        before, after = map(str, self.files_read)
        return {"before": before, "after": after, "pair": list(self.pair), "alpha": self.alpha, "unit": self.unit}

    def headline(self) -> str:
        """Return the pair and the files."""
        return f"{self.pair[0]} on {self.pair[1]}, {self.files_read[0].name} before and {self.files_read[1].name} after"

    def findings(self) -> list[Finding]:
        """Return table 3."""
        before, after = self.states
        text = f"the coefficient was {before.coefficient:.3g} and is {after.coefficient:.3g}; E[f_i f_j] was "
        text += f"{before.moment:.3g} and is {after.moment:.3g}"
        accuracy = (
            f"{100 * before.accuracy:.2f} % ({100 * before.low:.2f} to {100 * before.high:.2f}) before, "
            f"{100 * after.accuracy:.2f} % ({100 * after.low:.2f} to {100 * after.high:.2f}) after"
        )
        found = answer("edge", "Was the dependency cut?", text, before=asdict(before), after=asdict(after))
        found += answer("accuracy", "What did it cost?", accuracy)
        if before.aupr is not None and after.aupr is not None:
            told = f"AUPR {100 * before.aupr:.2f} % before, {100 * after.aupr:.2f} % after"
            found += answer("unseen", "Are unseen classes told apart better?", told)
        return found

    def sections(self) -> list[Section | None]:
        """Return the two rows of table 3."""
        rows = pd.DataFrame([asdict(state) for state in self.states])
        rows.insert(0, "network", ["before", "after"])
        return [Section.of("Cut", "The source's table 3.", Listing("Networks", "One row each.", rows, LABELS))]


def compare(
    before: Path, after: Path, pair: tuple[str, str], unseen: tuple[Path, Path] | None, alpha: float, unit: str
) -> BeforeAfter:
    """Compare two networks; `compare_cut` explains the arguments."""
    files = [LogitsFile(Path(path)) for path in (before, after)]
    names = files[0].names or [str(place) for place in range(files[0].shape[1])]
    if files[0].shape[1] != files[1].shape[1]:
        raise HapteraError(f"{files[1].path} has {files[1].shape[1]} classes, {files[0].path} has {files[0].shape[1]}")
    places = []
    for name in pair:
        if name in names:
            places.append(names.index(name))
        elif name.isdigit() and int(name) < len(names):
            places.append(int(name))
        else:
            raise unknown("class", name, names)
    others = [None, None] if unseen is None else [np.concatenate(list(LogitsFile(Path(path)))) for path in unseen]
    states = []
    for file, other in zip(files, others, strict=True):
        if file.targets is None:
            raise HapteraError(f"{file.path} has no targets, and accuracy needs them")
        chosen = (places[0], places[1])
        rows = np.concatenate(list(file))
        states.append(cut_state(rows, file.targets, chosen, alpha=alpha, unseen=other, unit=unit))
    paths = (files[0].path, files[1].path)
    return BeforeAfter(paths, (names[places[0]], names[places[1]]), (states[0], states[1]), alpha, unit)
