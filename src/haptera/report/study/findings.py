"""Findings: which model holds up, where it breaks and what adapters change; every number is a row of the table.

- *Holds up best*: the largest `mean_accuracy` without an adapter, in the first of `cells.streams`. *Level* with the
  next: the interval of `model_margin` holds 0.
- *Breaks*: `accuracy` more than `BREAK` below the same model's `clean_accuracy`; *borderline* where that threshold lies
  within the interval of the cell.
- *Change*: `mean_gain` over shifted cells. *Within the interval*: its interval holds 0. *Harm*: a place (a shift, a
  stream, clean data) where the interval of `mean_gain` lies below 0.
- *Recovered*: `recovered` under the shift that costs the most.
- *Level with its parent*: the interval of `learning_gain` reaches down to 0.
- *Tie*: the best adapter changes exactly as much as another; it goes to the one that does not learn.
- *Learnt nothing*: `idle_steps`, the share of steps of which an adapter that learns kept no sample.
"""

import math
from dataclasses import dataclass

import pandas as pd

from haptera.measures.averages import met_by_all
from haptera.measures.margins import SAME, in_rank, learners
from haptera.report.study.cells import CLEAN, NONE, clean, led_by, means, read, shifted, streams

BREAK = 0.10
ROUNDING = 1e-9
IDLE = 0.5
"""An adapter that keeps nothing at more than this share of its steps hardly learns."""


@dataclass(frozen=True)
class Holding:
    """The model that holds up best.

    Attributes:
        who: The model, "with" its adapter if no model was measured without one.
        value: Mean accuracy over shifts.
        low: Lower end of its interval.
        high: Upper end of its interval.
        clean: Its accuracy on clean data, if that was measured.
        shifts: The shifts the mean is over.
        of: How many models were compared.
        stream: Where; None if there is only one stream with shifts.
        rival: The next best, if there is one.
        rival_value: Its mean accuracy.
        level: Whether the difference to the rival is within the interval.
        common: Whether all were measured on the same combinations.
        sd: Standard deviation over seeds; NaN with one.
        seeds: How many seeds.
    """

    who: str
    value: float
    low: float
    high: float
    clean: float | None
    shifts: tuple[str, ...]
    of: int
    stream: str | None
    rival: str | None
    rival_value: float
    level: bool
    common: bool
    sd: float
    seeds: int


@dataclass(frozen=True)
class Break:
    """A shift under which a model falls more than `BREAK` below clean.

    Attributes:
        shift: Its name.
        severity: The smallest at which it does; NaN where a shift has none.
        onward: Whether it does so at all larger severities too, and there are some.
        borderline: Whether the threshold lies within the interval of that cell.
    """

    shift: str
    severity: float
    onward: bool
    borderline: bool


@dataclass(frozen=True)
class Gain:
    """What one adapter changes.

    Attributes:
        adapter: Its name.
        cells: How many cells were compared.
        before: Mean accuracy without it.
        after: Mean accuracy with it.
        change: The difference.
        low: Lower end of its interval.
        high: Upper end of its interval.
        unclear: Whether that interval holds 0.
        shift: The shift that costs the most, if one costs enough to be worth recovering.
        recovered: Share of that cost which comes back.
        harm: Where accuracy falls by more than the interval -> by how much (negative); worst first.
        tied: Adapters that change exactly as much on as many cells.
        idle: Share of steps of which it kept nothing; NaN where it does not say.
        level: Its parent that does not learn, where it is not clearly better than that.
        parent: Its parent that does not learn, where that was run on as many cells.
        by_parent: What the parent alone changes; NaN without one.
    """

    adapter: str
    cells: int
    before: float
    after: float
    change: float
    low: float
    high: float
    unclear: bool
    shift: str | None
    recovered: float
    harm: dict[str, float]
    tied: tuple[str, ...]
    idle: float
    level: str | None
    parent: str | None
    by_parent: float


def model_order(table: pd.DataFrame, cells: pd.DataFrame) -> list[str]:
    """Every model, the one that holds up best first; those that cannot be ranked follow by name."""
    return led_by(_ranked(table, cells)["model"], table["model"].unique())


def holding(table: pd.DataFrame, cells: pd.DataFrame) -> Holding | None:
    """The model that holds up best; None without accuracy on shifted data."""
    ranked = _ranked(table, cells)
    if ranked.empty:
        return None
    best = ranked.iloc[0]
    rival = ranked.iloc[1] if len(ranked) > 1 else None
    unshifted = clean(table)
    same = (unshifted["model"] == best["model"]) & (unshifted["adapter"] == best["adapter"])
    rows, common = _comparable(cells)
    there = streams(cells)
    return Holding(
        who=str(best["who"]),
        value=float(best["value"]),
        low=float(best["low"]),
        high=float(best["high"]),
        clean=float(unshifted.loc[same, "value"].iloc[0]) if same.any() else None,
        shifts=tuple(sorted(rows.loc[rows["who"] == best["who"], "shift"].unique())),
        of=len(ranked),
        stream=there[0] if len(there) > 1 else None,
        rival=None if rival is None else str(rival["who"]),
        rival_value=float("nan") if rival is None else float(rival["value"]),
        level=_level(table, str(best["stream"])),
        common=common,
        sd=float(best["sd"]),
        seeds=1 if pd.isna(best["seeds"]) else int(best["seeds"]),
    )


def breaks(cells: pd.DataFrame, who: str, clean: float) -> list[Break]:
    """The shifts under which a model breaks, the one that needs the smallest severity first."""
    rows = _subjects(cells)
    found = []
    for shift, own in rows[rows["who"] == who].sort_values("severity").groupby("shift"):
        below = (clean - own["value"] > BREAK + ROUNDING).to_numpy()
        if not below.any():
            continue
        first = int(below.argmax())
        cell = own.iloc[first]
        borderline = bool(cell["low"] - ROUNDING < clean - BREAK < cell["high"] + ROUNDING)
        onward = first + 1 < len(own) and bool(below[first:].all())
        entry = Break(str(shift), float(cell["severity"]), onward, borderline)
        found.append((cell["severity"], cell["value"], entry))
    return [entry for *_, entry in sorted(found, key=lambda item: item[:2])]


def gains(table: pd.DataFrame) -> list[Gain]:
    """What every adapter changes, the largest gain first; of equal ones first what does not learn."""
    rows = read(table, "mean_gain")
    if not {"cells", "before", "after"} <= set(rows):
        return []
    overall = rows[(rows["shift"] == "") & (rows["stream"] == "")].set_index("adapter")
    back, idle, learnt = read(table, "recovered"), idle_shares(table), read(table, "learning_gain")
    parents, level = _parents(learnt), _parents(learnt[learnt["low"] <= 0])
    alone = {str(name): (float(row["value"]), row["cells"]) for name, row in overall.iterrows()}
    found = {}
    for adapter, row in overall.iterrows():
        shares = back[back["adapter"] == adapter]
        costliest = shares.sort_values(["lost", "shift"]).iloc[-1] if len(shares) else None
        equal = (overall["value"] - row["value"]).abs().round(SAME) == 0
        parent = parents.get(str(adapter))
        by_parent, cells = alone.get(parent or "", (math.nan, math.nan))
        same = overall.index[equal & (overall["cells"] == row["cells"]) & (overall.index != adapter)]
        found[str(adapter)] = Gain(
            adapter=str(adapter),
            cells=round(float(row["cells"])),
            before=float(row["before"]),
            after=float(row["after"]),
            change=float(row["value"]),
            low=float(row["low"]),
            high=float(row["high"]),
            unclear=bool(row["low"] <= 0 <= row["high"]),
            shift=None if costliest is None else str(costliest["shift"]),
            recovered=math.nan if costliest is None else float(costliest["value"]),
            harm=_harm(rows[rows["adapter"] == adapter]),
            tied=tuple(sorted(str(name) for name in same)),
            idle=idle.get(str(adapter), math.nan),
            level=level.get(str(adapter)),
            parent=parent if cells == row["cells"] else None,
            by_parent=by_parent if cells == row["cells"] else math.nan,
        )
    return [found[name] for name in in_rank(overall["value"], learners(table))]


def idle_shares(table: pd.DataFrame) -> dict[str, float]:
    """Adapter -> the share of steps of which it kept nothing, on average over its cells."""
    rows = read(table, "idle_steps")
    return {str(name): float(share) for name, share in rows.groupby("adapter")["value"].mean().items()}


def _parents(rows: pd.DataFrame) -> dict[str, str]:
    """Adapter that learns -> its parent that does not, of rows of `learning_gain`."""
    if "against" not in rows:
        return {}
    return {str(name): str(parent) for name, parent in zip(rows["adapter"], rows["against"], strict=True)}


def _subjects(cells: pd.DataFrame) -> pd.DataFrame:
    """The shifted cells to rank, in the first stream, with a column `who`."""
    rows = shifted(cells)
    return _who(rows[rows["stream"].isin(streams(cells)[:1])])


def _who(rows: pd.DataFrame) -> pd.DataFrame:
    """Models without an adapter, or with each of theirs if none met a shift without one, and what they are called."""
    plain = rows[rows["adapter"] == NONE]
    if plain.empty:
        return rows.assign(who=rows["model"] + " with " + rows["adapter"])
    return plain.assign(who=plain["model"])


def _comparable(cells: pd.DataFrame) -> tuple[pd.DataFrame, bool]:
    """The subjects' cells at combinations of shift and severity that all have; all cells, and False, if none are."""
    rows = _subjects(cells)
    everywhere = met_by_all(rows, ["stream"], ["who"])
    return (rows[everywhere], True) if everywhere.any() else (rows, False)


def _ranked(table: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """One row per subject in the first stream, best first."""
    rows = means(table)
    rows = _who(rows[rows["stream"].isin(streams(cells)[:1])])
    return rows.sort_values(["value", "who"], ascending=[False, True], ignore_index=True)


def _level(table: pd.DataFrame, stream: str) -> bool:
    """Say whether the best model is within the interval of the next."""
    rows = read(table, "model_margin")
    rows = rows[rows["stream"].replace("", "unnamed") == stream]
    return bool((rows["low"] <= 0).any())


def _harm(rows: pd.DataFrame) -> dict[str, float]:
    """Shifts, streams (if several) and clean data on which an adapter clearly lowers accuracy."""
    clear = rows[(rows["high"] < 0) & ((rows["shift"] != "") | (rows["stream"] != ""))].sort_values("value")
    return {_place(str(row["shift"]), str(row["stream"])): float(row["value"]) for _, row in clear.iterrows()}


def _place(shift: str, stream: str) -> str:
    if stream:
        return f"in the stream {stream}"
    return "on clean data" if shift == CLEAN else f"under {shift}"
