"""Choice: what a search found, in tables, in words, and as a study file."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any

import pandas as pd

from haptera.run.study import RunSummary
from haptera.statistics.intervals import UnitMean
from haptera.tune.scores import SAME
from haptera.words import interval

SHOWN = 12


@dataclass(frozen=True)
class Choice:
    """What a search found.

    Attributes:
        out: the folder, an ordinary study.
        title: what was tuned on what.
        best: the chosen settings.
        table: everything tried, best first, and the unadapted model: `rank`, `setting`, the settings themselves,
            `error` with its interval, `behind` the best one with its interval. It is `tried.csv` in the folder.
        margin: how much less error than the next setting, with its interval; None where all others failed.
        control: for each corruption, what the choice on the others costs there; empty for streams that mix them. It is
            `leave_one_out.csv` in the folder.
        study_file: `chosen.toml` in the folder, for `haptera run`.
        remarks: what to know before believing the choice.
        cells: how many were run, found finished, and failed.
    """

    out: Path
    title: str
    best: dict[str, Any]
    table: pd.DataFrame
    margin: UnitMean | None
    control: pd.DataFrame
    study_file: Path
    remarks: list[str]
    cells: RunSummary

    def summary(self, *, control: bool = False) -> str:
        """Return the search in words and figures.

        Args:
            control: show what leaving out each corruption costs, and not its mean alone.
        """
        lines = [self.title, *_text(_tried(self.table.head(SHOWN)))]
        if (more := len(self.table) - SHOWN) > 0:
            lines.append(f"... and {more} more in {self.out / 'tried.csv'}")
            lines += _text(_tried(self.table.tail(1)))[1:] if self.table["setting"].iloc[-1] == "unadapted" else []
        first = self.table.iloc[0]
        lines += ["", f"chosen        {first['setting']}: mean error {first['error']:.4f}{self._margin()}"]
        lines += [f"note          {remark}" for remark in self.remarks]
        if len(self.control):
            lines.append(f"carries over  {self._carries_over()}")
            lines += _text(_folds(self.control)) if control else []
        return "\n".join(lines)

    def _margin(self) -> str:
        if self.margin is None or not round(self.margin.value, SAME):
            return ""
        verdict = "" if self.margin.clear or isnan(self.margin.ends[0]) else ": not clearly better"
        figures = f"{self.margin.value:.4f}{interval(*self.margin.ends, digits=4)}"
        return f", {figures} less than {self.table['setting'].iloc[1]}{verdict}"

    def _carries_over(self) -> str:
        regret = self.control["regret"]
        if not regret.max() > 0:
            return "chosen without a corruption, the same error as the best on it, each time"
        worst = self.control["left_out"].iloc[int(regret.argmax())]
        costs = f"{regret.mean():.4f} more error than the best on it, on average; at most {regret.max():.4f} ({worst})"
        return f"chosen without a corruption, {costs}"


def _tried(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table as the screen shows it: settings in one column, means and intervals in another."""
    return pd.DataFrame(
        {
            "rank": ["" if pd.isna(rank) else str(rank) for rank in table["rank"]],
            "setting": table["setting"],
            "error": _means(table, "error", "low", "high", missing="not all cells ran"),
            "behind the best": _means(table, "behind", "behind_low", "behind_high"),
        }
    )


def _folds(control: pd.DataFrame) -> pd.DataFrame:
    numbers = {name: control[name].map("{:.4f}".format) for name in ("error", "best_error", "regret", "unadapted")}
    return control.assign(**numbers).rename(columns={"left_out": "left out", "best_error": "best error"})


def _means(table: pd.DataFrame, mean: str, low: str, high: str, missing: str = "") -> list[str]:
    rows = zip(table[mean], table[low], table[high], strict=True)
    return [missing if isnan(value) else f"{value:.4f}{interval(*ends, digits=4)}" for value, *ends in rows]


def _text(frame: pd.DataFrame) -> list[str]:
    """Return a frame as lines, texts to the left."""
    columns = [[str(name), *map(str, frame[name])] for name in frame]
    widths = [max(map(len, column)) for column in columns]
    rows: Sequence[tuple[str, ...]] = list(zip(*columns, strict=True))
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
