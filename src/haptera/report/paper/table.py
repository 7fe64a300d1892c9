"""PaperTable: adapters by shifts as papers print them, with the best, the second and the winner's margin.

Every number is a row of the table of results: `shift_mean` and `shift_margin` (of `error`, or of another measure), each
over seeds where there are several, and `published_error` for what others have printed. Nothing is computed here but
which of the printed numbers is the smallest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Any

import pandas as pd

from haptera import catalog
from haptera import table as tables
from haptera.errors import HapteraError, check_keys
from haptera.families import FAMILIES, HELD_OUT
from haptera.measures import mean_over_seeds, shift_margin, shift_mean
from haptera.measures.facts import fact
from haptera.measures.shift_means import FADES, MIRRORED, direction
from haptera.report.paper.published import MEASURE as PUBLISHED
from haptera.report.paper.published import printed_order
from haptera.report.study.cells import NONE, led_by, read
from haptera.words import join_names

MEAN = "mean"
USUAL = tuple(shift for shifts in FAMILIES.values() for shift in shifts)
"""Shifts in the order in which papers print them."""


@dataclass(frozen=True)
class Cell:
    """One number.

    Attributes:
        value: in the unit of the measure.
        sd: standard deviation over seeds; NaN with one.
        rank: 1 for the best of its column, 2 for the second, 0 for others; numbers that are printed alike rank alike.
    """

    value: float
    sd: float = nan
    rank: int = 0


@dataclass(frozen=True)
class Row:
    """One adapter.

    Attributes:
        name: the adapter.
        cells: one for each column of the table, the mean last; None where it was not measured.
        source: who published the row; empty for what was measured here.
    """

    name: str
    cells: tuple[Cell | None, ...]
    source: str = ""


@dataclass(frozen=True)
class PaperTable:
    """One model in one stream.

    Attributes:
        stream: its name.
        model: its name.
        of: the measure.
        shifts: the columns before the mean.
        rows: adapters in order, those that were published last.
        seeds: the most that an adapter has.
        severities: such as `severity 5` or `severities 1 to 5`; empty where shifts have none.
        margin: how far the best is ahead, a sentence; empty where only one adapter has a mean.
        notes: which shifts and published results are not shown and why, a sentence each.
        digits: decimals that are printed.
    """

    stream: str
    model: str
    of: str
    shifts: tuple[str, ...]
    rows: tuple[Row, ...]
    seeds: int
    severities: str
    margin: str
    notes: tuple[str, ...]
    digits: int

    @property
    def percent(self) -> bool:
        """Whether values are shares, which are printed in per cent."""
        return is_share(self.of)

    def number(self, value: float) -> str:
        """Return a value as it is printed, without a sign of per cent."""
        return f"{(100 if self.percent else 1) * value:.{self.digits}f}"

    @property
    def title(self) -> str:
        """What the numbers are, and of what, such as `Error in % of resnet in the stream continual at severity 5`."""
        unit = " in %" if self.percent else ""
        place = f" in the stream {self.stream}" if self.stream else ""
        words = self.of.replace("_", " ")
        return (
            f"{words[:1].upper()}{words[1:]}{unit} of {self.model}{place}{self.severities and ' at '}{self.severities}"
        )

    @property
    def caption(self) -> str:
        """The title, how to read the table, and the margin."""
        told = [f"{self.title}.", "Best in bold, second underlined."]
        if self.seeds > 1:
            told.append(f"Means over {self.seeds} seeds, ± their standard deviation.")
        if any(row.source for row in self.rows):
            told.append("Rows below the second rule are published results and are not ranked.")
        return " ".join([*told, self.margin]).strip()


@dataclass(frozen=True)
class Choice:
    """What of a study is shown.

    Attributes:
        of: the measure.
        streams: names; all by default.
        models: names; all by default.
        adapters: names in the order of the rows; all by default.
        digits: decimals; 1 for per cent and 3 for other units by default.
        published: whether published results whose protocol fits are shown below.
    """

    of: str = "error"
    streams: Sequence[str] = ()
    models: Sequence[str] = ()
    adapters: Sequence[str] = ()
    digits: int | None = None
    published: bool = True


def paper_tables(table: pd.DataFrame, choice: Choice | None = None, order: Sequence[str] = ()) -> list[PaperTable]:
    """Return a table for each stream and model that has the measure under shifts.

    Args:
        table: of a study.
        choice: what is shown; everything by default.
        order: adapters in the order of the study, for the rows; else by name, the unadapted model first.
    """
    choice = choice or Choice()
    check_keys("measure", [choice.of], catalog.entries("measures"))
    direction(choice.of)
    if choice.adapters:
        table = _only(table, choice.adapters)
    table = with_means(table, choice.of)
    means = _of(read(table, "shift_mean"), choice.of)
    if means.empty:
        raise HapteraError(f"no adapter has {choice.of} under a shift, so there is nothing to print")
    for name, wanted in (("stream", choice.streams), ("model", choice.models)):
        check_keys(name, wanted, means[name].unique())
        means = means[means[name].isin(wanted)] if wanted else means
    rows = list(choice.adapters) or led_by([NONE, *order] if NONE not in order else order, means["adapter"].unique())
    names = means[["stream", "model"]].drop_duplicates().sort_values(["stream", "model"])
    places = zip(names["stream"].astype("str"), names["model"].astype("str"), strict=True)
    return [_table(table, means, stream, model, rows, choice) for stream, model in places]


def _only(table: pd.DataFrame, adapters: Sequence[str]) -> pd.DataFrame:
    """Return the rows of some adapters and what is published, without what compares them with others."""
    names = table["adapter"].astype("str").replace("", NONE)
    check_keys("adapter", adapters, names.unique())
    kept = names.isin(adapters) & ~table["measure"].str.startswith("shift_m")
    return table[kept | (table["measure"] == PUBLISHED)]


def with_means(table: pd.DataFrame, of: str) -> pd.DataFrame:
    """Return a table with the rows that a paper's table reads, where it lacks them."""
    known = table["measure"] == "shift_mean"
    if "of" in table and (table.loc[known, "of"] == of).any():
        return table
    table = tables.decoded(table)
    more = shift_mean(table, of=of) + shift_margin(table, of=of)
    return tables.join(table, more + mean_over_seeds(tables.tidy(more)))


def is_share(of: str) -> bool:
    """Return whether a measure lies between 0 and 1."""
    return bool(fact(catalog.find("measures", of), "bounds") == (0, 1))


def _of(rows: pd.DataFrame, of: str) -> pd.DataFrame:
    rows = tables.decoded(rows[rows["of"] == of] if "of" in rows else rows[:0])
    return rows.assign(adapter=rows["adapter"].replace("", NONE))


def _table(
    table: pd.DataFrame, means: pd.DataFrame, stream: str, model: str, adapters: Sequence[str], choice: Choice
) -> PaperTable:
    own = means[(means["stream"] == stream) & (means["model"] == model)]
    met = led_by(USUAL, (shift for shift in own["shift"].unique() if shift))
    shifts = tuple([shift for shift in met if shift not in HELD_OUT] or met)
    digits = (1 if is_share(choice.of) else 3) if choice.digits is None else choice.digits
    columns = [own["adapter"], own["shift"], own["value"], own["sd"] if "sd" in own else own["value"] * nan]
    cells = {(str(name), str(shift)): Cell(value, sd) for name, shift, value, sd in zip(*columns, strict=True)}
    present = [name for name in adapters if name in set(own["adapter"])]
    rows = [Row(name, tuple(cells.get((name, shift)) for shift in (*shifts, ""))) for name in present]
    printed, notes = _published(table, stream, model, shifts, choice.of) if choice.published else ([], [])
    return PaperTable(
        stream=stream,
        model=model,
        of=choice.of,
        shifts=shifts,
        rows=(*_ranked(rows, choice.of, digits), *printed),
        seeds=int(own["seeds"].max()) if "seeds" in own and own["seeds"].notna().any() else 1,
        severities=_severities(table, stream, model, choice.of),
        margin=_margin(table, stream, model, choice.of, digits),
        notes=(*_left_out(met, shifts), *notes),
        digits=digits,
    )


def _left_out(met: Sequence[str], shifts: Sequence[str]) -> list[str]:
    """Name the shifts that are no columns, so that nobody takes this mean for the mean over all of them."""
    hidden = [shift for shift in met if shift not in shifts]
    if not hidden:
        return []
    verb = "is a held-out shift" if len(hidden) == 1 else "are held-out shifts"
    return [f"{join_names(hidden)} {verb}, on which settings are chosen, and left out here, of the mean as well."]


def _ranked(rows: Sequence[Row], of: str, digits: int) -> list[Row]:
    """Rank the numbers of each column as they are printed; a column with one number has no best."""
    sign, places = direction(of), digits + (2 if is_share(of) else 0)
    ranks: list[dict[float, int]] = []
    for column in zip(*(row.cells for row in rows), strict=True):
        printed = [round(cell.value, places) for cell in column if cell is not None]
        best = sorted(set(printed), key=lambda value: -sign * value)[:2]
        ranks.append({value: place for place, value in enumerate(best, 1)} if len(printed) > 1 else {})
    return [
        Row(row.name, tuple(_with_rank(cell, own, places) for cell, own in zip(row.cells, ranks, strict=True)))
        for row in rows
    ]


def _with_rank(cell: Cell | None, ranks: dict[float, int], places: int) -> Cell | None:
    return None if cell is None else Cell(cell.value, cell.sd, ranks.get(round(cell.value, places), 0))


def _severities(table: pd.DataFrame, stream: str, model: str, of: str) -> str:
    known = table["measure"].isin([of, MIRRORED.get(of, of)])
    rows = table[known & (table["stream"] == stream) & (table["model"] == model)]
    levels = sorted(level for level in rows["severity"].dropna().unique() if level > 0)
    if not levels or rows["shift"].str.contains(FADES, regex=False).any():
        return ""
    return f"severity {levels[0]:g}" if len(levels) == 1 else f"severities {levels[0]:g} to {levels[-1]:g}"


def _margin(table: pd.DataFrame, stream: str, model: str, of: str, digits: int) -> str:
    """Say how far the best is ahead."""
    rows = _of(table[table["measure"] == "shift_margin"], of)
    rows = rows[(rows["stream"] == stream) & (rows["model"] == model)]
    if rows.empty:
        return ""
    row = rows.iloc[0]
    if row["tied"] > 0:
        return f"{row['adapter']} and {row['against']} tie on average."
    factor, unit = (100, " points") if is_share(of) else (1, "")
    side = "above" if direction(of) > 0 else "below"
    text = f"{row['adapter']} is {factor * row['value']:.{digits + 1}f}{unit} {side} {row['against']} on average"
    if not isnan(row["low"]):
        how = margin_source(row["seeds"], row.get("images", nan))
        low, high = (f"{factor * row[end]:.{digits + 1}f}".replace("-", "−") for end in ("low", "high"))
        text += f" (95 % interval {low} to {high}, {how})"
    return f"{text}."


def margin_source(seeds: float, images: float) -> str:
    """Return what the interval of a margin is over."""
    if seeds > 1:
        return f"paired over {seeds:g} seeds"
    return "of two shares, for there is one seed" if isnan(images) else f"paired over {images:,.0f} images, one seed"


def _published(
    table: pd.DataFrame, stream: str, model: str, shifts: Sequence[str], of: str
) -> tuple[list[Row], list[str]]:
    """Return published rows, and why others are not shown."""
    rows = table[(table["measure"] == PUBLISHED) & (table["stream"] == stream) & (table["model"] == model)]
    if rows.empty or of not in MIRRORED:
        return [], []
    found, notes = [], [str(reason) for reason in rows["reason"].dropna().unique()] if "reason" in rows else []
    shown = rows[rows["value"].notna()].reindex(columns=["source", "adapter", "shift", "value"])
    for (source, adapter), own in shown.groupby(["source", "adapter"], sort=False):
        values = {str(shift): float(value) for shift, value in zip(own["shift"], own["value"], strict=True)}
        found.append(Row(str(adapter), tuple(_printed(values.get(shift), of) for shift in (*shifts, "")), str(source)))
    places = printed_order()
    return sorted(found, key=lambda row: places.get((row.source, row.name), len(places))), notes


def _printed(value: float | Any, of: str) -> Cell | None:
    return None if value is None else Cell(value if of == "error" else 1 - value)
