"""Compare: in what do two studies differ, and what does that do to their numbers?

    comparison = haptera.compare("audit", "audit-of-the-paper")
    comparison.protocol, comparison.cells

"Why are my numbers off?" has a short list of answers: other weights, other images, another order or batch size, a reset
that was or was not done, another version. Whatever of it the folders of two studies know is compared, and then what
both found, image by image, so that a small difference of many images is not taken for chance, nor chance for a
difference. Cost: reads the outputs of the cells that both have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from haptera.analyses.comparison.pairs import compare_cells
from haptera.analyses.comparison.protocols import facts_of, protocol_differences, subjects_of_one
from haptera.analysis import Analysis
from haptera.measures.pairs import NONE
from haptera.report.figure import Figure
from haptera.report.section import Finding, Listing, Section, answer, enlarge
from haptera.run.cells import open_study
from haptera.words import count, shorten

SHOWN = 5
PROTOCOL = "Settings in which the two differ; an empty field is where only the other study says something."
CELLS = (
    "Cells that both studies have, on the images that both have: {other} minus {one}, with the 95 % interval for pairs."
)
CHANGES, DIFFERENCES, TABLE = "Change of each cell", "Differences", "Cells"
SECOND = ("fingerprint", "date")
"""Settings that tell a reader little, so the sentence names others before them."""


@dataclass(frozen=True, eq=False)
class Comparison(Analysis):
    """Say in what two studies differ.

    Attributes:
        one: the name of the first study.
        other: the name of the second.
        protocol: settings in which they differ: `about`, `setting`, `one`, `other`.
        compared: how many settings were compared.
        cells: a row for each cell and measure that both have.
        unmatched: how many cells only one of them has.
        settings: the folders.
        alone: what only one of them has anything about -> the name of that study.
    """

    kind: ClassVar[str] = "compare"
    definitions: ClassVar[Mapping[str, str]] = {
        "difference": "the second study minus the first, on the images that both have",
        "clear": "the 95 % interval of the difference does not hold 0",
    }
    one: str
    other: str
    protocol: pd.DataFrame
    compared: int
    cells: pd.DataFrame
    unmatched: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    alone: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Return what was compared."""
        return f"{self.one} and {self.other}"

    def headline(self) -> str:
        """Return how much was compared."""
        return f"{count(self.compared, 'setting')} and {count(self._matched, 'cell')} of {self.one} and {self.other}"

    @property
    def _matched(self) -> int:
        return len(self.cells[["model", "stream", "part", "adapter", "seed"]].drop_duplicates())

    def findings(self) -> list[Finding]:
        """Return in what the protocols differ, whether the images are the same, and each measure."""
        numbers = {"settings_compared": self.compared, "settings_different": len(self.protocol)}
        told = f"{len(self.protocol)} of {count(self.compared, 'setting')} differ" + self._examples()
        made = answer("protocol", "In what were they made differently?", told, **numbers)
        made = enlarge(made, count(len(self.protocol), "setting"), DIFFERENCES if len(self.protocol) else "")
        made += self._images()
        for measure, rows in self.cells.groupby("measure", sort=True):
            made += _measure(str(measure), rows)
        return made

    def _examples(self) -> str:
        rows = list(dict.fromkeys(map(self._difference, self._telling())))
        return f": {shorten(rows, SHOWN)}" if rows else ""

    def _difference(self, row: Any) -> str:
        """Return a difference in words; everything about what only one study has is one difference."""
        if name := self.alone.get(row.about):
            return f"{row.about} in {name} only"
        return f"{row.setting} of {row.about} ({row.one or 'unsaid'}, {row.other or 'unsaid'})"

    def _telling(self) -> Sequence[Any]:
        """Return differences, those that tell a reader little last."""
        order = self.protocol.assign(hidden=self.protocol["setting"].isin(SECOND))
        return list(order.sort_values("hidden", kind="stable").itertuples())

    def _images(self) -> list[Finding]:
        cells = self.cells.drop_duplicates(["model", "stream", "part", "adapter", "seed"])
        sums = {name: int(cells[name].sum()) for name in ("images", "only_one", "only_other", "other_labels")}
        numbers = {f"paired_{name}": value for name, value in sums.items()}
        numbers |= {"cells_in_both": self._matched, "cells_in_one_only": self.unmatched}
        told = f"{count(self._matched, 'cell')} of both have {sums['images']:,} answers about the same images"
        if sums["only_one"] or sums["only_other"]:
            told += f"; {sums['only_one']:,} and {sums['only_other']:,} are about images of one study only"
        if sums["other_labels"]:
            told += f"; {sums['other_labels']:,} of the same images have other labels"
        if self.unmatched:
            told += f"; {count(self.unmatched, 'cell')} are in one study only"
        found = answer("images", "Are the images the same?", told, **numbers)
        return enlarge(found, count(self._matched, "cell"), TABLE) if self._matched else found

    def sections(self) -> list[Section]:
        """Return both tables."""
        made = [
            Section.of("Protocol", "How they were made.", Listing(DIFFERENCES, PROTOCOL, self.protocol, self._names)),
            Section.of(
                "Numbers", "What they found.", self._changes(), Listing(TABLE, self._caption, self.cells, self._names)
            ),
        ]
        return [section for section in made if section is not None]

    @property
    def _names(self) -> dict[str, str]:
        return {"one": self.one, "other": self.other}

    @property
    def _caption(self) -> str:
        return CELLS.format(one=self.one, other=self.other)

    def _changes(self) -> Figure | None:
        """Return the difference of every cell, a point each; None where there is no cell."""
        if self.cells.empty:
            return None
        adapters = sorted(self.cells["adapter"].unique(), key=lambda name: name != NONE)
        return Figure(
            CHANGES, f"{self._caption} A cell whose bar does not meet 0 has changed.", self.cells, "scatter",
            x="part", y="difference", low="low", high="high", color=("adapter",), palette=tuple(adapters),
            select=("measure", "model", "adapter"),
            start={"measure": "accuracy"} if (self.cells["measure"] == "accuracy").any() else {},
            labels=self._names,
        )  # fmt: skip


def _measure(measure: str, rows: pd.DataFrame) -> list[Finding]:
    """Return what the difference does to one measure."""
    clear = rows[(rows["low"] > 0) | (rows["high"] < 0)]
    largest = rows.iloc[int(rows["difference"].abs().to_numpy().argmax())]
    numbers: dict[str, Any] = {"mean_difference": float(rows["difference"].mean()), "cells": len(rows)}
    numbers |= {"clear": len(clear), "largest": float(largest["difference"])}
    numbers |= {"largest_interval": [float(largest["low"]), float(largest["high"])]}
    scale, unit = (100, " points") if measure in ("accuracy", "confidence") else (1, "")
    mean = f"{_signed(scale * numbers['mean_difference'])}{unit}"
    told = f"{mean} on average, clear in {len(clear)} of {len(rows)}"
    where = f"{largest['model']} · {largest['part']} · {largest['adapter']}"
    if not rows["difference"].any():
        told = f"no difference in {count(len(rows), 'cell')}"
    else:
        low, high, most = (_signed(scale * largest[name]) for name in ("low", "high", "difference"))
        told += f"; most in {where}: {most}{unit}" + (f" ({low} to {high})" if pd.notna(largest["low"]) else "")
    word = measure.replace("_", " ")
    found = answer(word, f"What does it do to {word}?", told, **{f"{measure}_change": numbers})
    return enlarge(found, mean if rows["difference"].any() else "none", CHANGES)


def _signed(number: float) -> str:
    return f"{number:+.2f}".replace("-", "−")


def compare_studies(one: Path, other: Path) -> Comparison:
    """Compare two studies.

    Args:
        one: the folder of a study.
        other: the folder of another.
    """
    first, second = open_study(one), open_study(other)
    facts = facts_of(first), facts_of(second)
    protocol, compared = protocol_differences(*facts)
    cells, unmatched = compare_cells(first, second)
    names = (one.resolve().name, other.resolve().name)
    if names[0] == names[1]:
        names = (str(one), str(other))
    settings = {"one": str(one), "other": str(other)}
    return Comparison(*names, protocol, compared, cells, unmatched, settings, subjects_of_one(names, facts))
