"""Corruptions x severities: `--shift all`, and tables with averages over severities and adapters as columns.

Source: thesis appendix D, "Horse-C": 15 corruptions at 5 severities; table D.5 has averages over severities with and
without adaptation side by side, tables D.7 and D.8 every severity. A mean over severities is the plain mean of the
scores at each, which are means over individuals; the last row is the mean over corruptions of these.
Cost: of the tables, nothing; of `--shift all`, 75 times that of the frames as they are, each cell kept when it is done.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from haptera.report.section import Finding, Listing, Section, answer, enlarge
from haptera.run.parts import make_shift
from haptera.shifts import Shift
from haptera.streams.published import USUAL, usual_order
from haptera.words import count

ALL = "all"
SEVERITIES = (1, 2, 3, 4, 5)
MEAN = "mean"
MEANS = "Means over severities"
FILE = "by_severity.csv"
CELL = ["model", "stream", "shift"]


def read_shifts(texts: Sequence[str]) -> list[Shift]:
    """Return shifts by what a person writes; `all` are the 15 corruptions at 5 severities, `all:3` at one.

    >>> len(read_shifts(["all"])), len(read_shifts(["all:3", "contrast:3", "contrast:5"]))
    (75, 16)
    """
    written: list[str] = []
    for text in texts:
        name, _, severity = text.partition(":")
        if name == ALL:
            wanted = [severity] if severity else SEVERITIES
            written += [f"{each}:{at}" for each in USUAL for at in wanted]
        else:
            written.append(text)
    return list(dict.fromkeys(make_shift(text) for text in written))


def has_severities(rows: pd.DataFrame) -> bool:
    """Say whether any shift was tried at several severities."""
    return bool((rows[rows["severity"] > 0].groupby("shift")["severity"].nunique() > 1).any())


def by_severity(rows: pd.DataFrame, measure: str = "normalised_error") -> pd.DataFrame:
    """Return `model`, `stream`, `shift`, `severity`, and a column for each adapter.

    The severity is text: a number, or `mean` over the severities of a shift. The shift `mean` is over all shifts.

    Args:
        rows: of the table; those of parts and individuals are left aside.
        measure: whose values.
    """
    own = rows[
        (rows["part"] == "") & (rows["individual"] == "") & (rows["measure"] == measure) & (rows["severity"] > 0)
    ]
    adapters = list(dict.fromkeys(own["adapter"]))
    wide = own.pivot_table(index=[*CELL, "severity"], columns="adapter", values="value", dropna=False)
    wide = wide.dropna(how="all")[adapters].rename(index=lambda value: f"{value:g}", level="severity")
    means = wide.groupby(level=CELL).mean()
    every = means.groupby(level=["model", "stream"]).mean().assign(shift=MEAN).set_index("shift", append=True)
    means = pd.concat([means, every]).assign(severity=MEAN).set_index("severity", append=True)
    together = pd.concat([wide, means]).reset_index()
    order = {name: place for place, name in enumerate([*usual_order(set(own["shift"])), MEAN])}
    together = together.sort_values("shift", key=lambda names: names.map(order), kind="stable")
    return together.sort_values(["model", "stream"], kind="stable", ignore_index=True).rename_axis(columns=None)


def corruption_findings(rows: pd.DataFrame) -> list[Finding]:
    """Return the mean error over corruptions and severities with each adapter; nothing without several severities."""
    if not has_severities(rows):
        return []
    table = by_severity(rows)
    adapters = list(table.columns[4:])
    last = table[table["shift"] == MEAN]
    words = [
        f"{row['stream']}: " + ", ".join(f"{adapter} {row[adapter]:.3f}" for adapter in adapters)
        for _, row in last.iterrows()
    ]
    shifts, severities = rows.loc[rows["severity"] > 0, ["shift", "severity"]].nunique()
    sentence = f"mean error over {count(shifts, 'corruption')} at {severities} severities: {'; '.join(words)}"
    numbers: dict[str, Any] = {"corruptions": int(shifts), "severities": int(severities)}
    told = answer("corruptions", "How bad are corruptions?", sentence, **numbers, mean_error=last.to_dict("records"))
    worst = last.sort_values(adapters[0]).iloc[-1]  # of several sets; one without a number comes last
    large = f"{worst['stream']}: " * (len(last) > 1) + f"error {worst[adapters[0]]:.3f}"
    return enlarge(told, large if np.isfinite(worst[adapters[0]]) else "", MEANS)


def corruption_lines(rows: pd.DataFrame) -> Iterator[str]:
    """Yield the means over severities as text, a line for each corruption, adapters as columns."""
    table = by_severity(rows)
    adapters = list(table.columns[4:])
    means = table[table["severity"] == MEAN]
    for (model, stream), own in means.groupby(["model", "stream"], sort=False):
        name = " · ".join(word for word in (str(model), str(stream), "mean error over severities") if word)
        yield f"{name:<44}" + "".join(f"  {adapter:>12}" for adapter in adapters)
        for _, row in own.iterrows():
            values = "".join(f"  {row[adapter]:>{max(12, len(adapter))}.3f}" for adapter in adapters)
            yield f"  {row['shift']:<42}{values}"


def corruption_section(rows: pd.DataFrame) -> Section | None:
    """Return both tables; None without several severities."""
    if not has_severities(rows):
        return None
    table = by_severity(rows)
    means = table[table["severity"] == MEAN].drop(columns="severity")
    caption = "Normalised error, the plain mean over severities; the last row is the mean over corruptions."
    every = table[table["severity"] != MEAN]
    return Section.of(
        "Corruptions",
        "What each corruption costs, adapters side by side.",
        Listing(MEANS, caption, means),
        Listing("Every severity", "Normalised error; intervals are among all values, below.", every),
    )
