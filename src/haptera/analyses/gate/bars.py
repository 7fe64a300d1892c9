"""Bars: what a measure of the candidate must reach, whatever the model before did.

`accuracy=0.8` holds for every shift and severity, `accuracy@contrast=0.6` for one shift, `accuracy@contrast:4=0.6` for
one severity of it. Any measure of the table will do; of one that should be small, the bar is an upper one. The value
itself counts, not its interval: whoever sets a bar leaves room for noise. A quick gate, which does not see every
answer, stops when a bar is certain to be held or missed; what it saw whole, it decides by the value as well.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from haptera import catalog
from haptera.errors import HapteraError, unknown
from haptera.measures.facts import fact

BAR = re.compile(r"(?P<measure>[\w.-]+)(?:@(?P<shift>[^=:]+)(?::(?P<severity>[^=]+))?)?=(?P<limit>[^=]+)")
COLUMNS = ["model", "stream", "adapter", "seed", "shift", "severity", "measure", "value", "low", "high", "bar"]
COLUMNS += ["verdict"]
HELD, MISSED = "held", "missed"


@dataclass(frozen=True)
class Bar:
    """A limit of a measure.

    Attributes:
        measure: its name in the table.
        limit: what it must reach.
        shift: where; None for every shift.
        severity: where; None for every severity.
    """

    measure: str
    limit: float
    shift: str | None = None
    severity: float | None = None

    @classmethod
    def parse(cls, text: str) -> "Bar":
        """Read a bar as people write it.

        >>> Bar.parse("accuracy@contrast:4=0.6")
        Bar(measure='accuracy', limit=0.6, shift='contrast', severity=4.0)
        """
        match = BAR.fullmatch(text.strip())
        expected = "measure=0.8, measure@shift=0.8 or measure@shift:severity=0.8"
        if not match:
            raise HapteraError(f"the bar {text!r} cannot be read; {expected} was expected")
        numbers = {}
        for name in ("limit", "severity"):
            try:
                numbers[name] = None if match[name] is None else float(match[name])
            except ValueError as error:
                raise HapteraError(f"the bar {text!r} has the {name} {match[name]!r}; a number was expected") from error
        limit = numbers["limit"]
        if limit is None or limit != limit:
            raise HapteraError(f"the bar {text!r} has no limit; {expected} was expected")
        return cls(match["measure"], limit, match["shift"], numbers["severity"])

    @property
    def text(self) -> str:
        """Return the bar as it is written."""
        where = f"@{self.shift}" if self.shift else ""
        where += f":{self.severity:g}" if self.severity is not None else ""
        return f"{self.measure}{where}={self.limit:g}"

    def rows(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of a study's table that the bar is about; an error where there are none."""
        measures = sorted(set(table["measure"]))
        if self.measure not in measures:
            raise unknown("measure of a bar", self.measure, measures)
        own = table[(table["measure"] == self.measure) & table["value"].notna() & table["step"].isna()]
        if self.shift is not None:
            shifts = sorted({str(name) for name in own["shift"].dropna() if name})
            if self.shift not in shifts:
                raise unknown(f"shift of the bar {self.text}", self.shift, shifts)
            own = own[own["shift"] == self.shift]
        if self.severity is not None:
            known = sorted(own["severity"].dropna().unique())
            own = own[own["severity"] == self.severity]
            if own.empty:
                found = ", ".join(f"{each:g}" for each in known) or "none"
                raise HapteraError(f"the bar {self.text} has no such severity; the study has {found}")
        if own.empty:
            raise HapteraError(f"the bar {self.text} is about nothing: the study has no value of {self.measure}")
        return own


def bars_of(bars: Sequence[Bar], shift: str, severity: float) -> list[Bar]:
    """Return the bars that are about one severity of a shift."""
    return [bar for bar in bars if bar.shift in (None, shift) and bar.severity in (None, severity)]


def check_places(bars: Sequence[Bar], places: Sequence[tuple[str, float]]) -> None:
    """Refuse bars that are about none of some pairs of a shift and a severity."""
    for bar in bars:
        if bar.shift is not None and bar.shift not in {shift for shift, _ in places}:
            raise unknown(f"shift of the bar {bar.text}", bar.shift, sorted({shift for shift, _ in places if shift}))
        if not any(bars_of([bar], *place) for place in places):
            own = sorted(severity for shift, severity in places if bar.shift in (None, shift) and severity == severity)
            found = ", ".join(f"{each:g}" for each in dict.fromkeys(own)) or "none"
            raise HapteraError(f"the bar {bar.text} has no such severity; the study has {found}")


def check_bars(table: pd.DataFrame, bars: Sequence[Bar]) -> pd.DataFrame:
    """Return a row for each value that a bar is about, with its verdict.

    Args:
        table: of the candidate's study.
        bars: what it must reach.
    """
    frames = []
    for bar in bars:
        own = bar.rows(table)
        known = catalog.entries("measures")
        higher = fact(catalog.find("measures", bar.measure), "higher_is_better") if bar.measure in known else True
        missed = own["value"] > bar.limit if higher is False else own["value"] < bar.limit
        frames.append(own.assign(bar=bar.text, verdict=missed.map({True: MISSED, False: HELD})))
    if not frames:
        return pd.DataFrame(columns=COLUMNS)
    return pd.concat(frames, ignore_index=True).reindex(columns=COLUMNS)
