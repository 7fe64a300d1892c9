"""Findings: which model holds, where it breaks and what adapters change, as numbers with exact definitions.

- *Holds best*: the highest mean accuracy without an adapter, over shifts (first over the severities of a shift),
  in the first of `cells.streams`, on the combinations of shift and severity that every model was measured on.
- *Breaks*: accuracy more than `BREAK` below the same model's accuracy on clean data; *borderline* where that
  threshold lies within the interval of the cell.
- *Change*: accuracy with an adapter minus accuracy without, over the cells (model, stream, shift, severity, seed)
  that have both, every cell counting the same.
- *Recovered*: that change divided by what was lost (clean minus shifted accuracy, both without an adapter), under
  the shift that costs the most.
- *Within the interval*: a difference smaller than √(a² + b²), a and b the half-widths of the two 95 % intervals.
  For means these are mean half-widths, which is cautious: they do not shrink with the number of cells.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from holdfast.report.cells import CLEAN, NONE, average, clean, led_by, shifted, streams

BREAK = 0.10
WORTH_RECOVERING = 0.02
ROUNDING = 1e-9


@dataclass(frozen=True)
class Holding:
    """The model that holds best.

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
        unclear: Whether the change is within the interval.
        shift: The shift that costs the most, if one costs at least `WORTH_RECOVERING`.
        recovered: Share of that cost which comes back.
        harm: Where accuracy falls by more than the interval -> by how much (negative); worst first.
    """

    adapter: str
    cells: int
    before: float
    after: float
    change: float
    unclear: bool
    shift: str | None
    recovered: float
    harm: dict[str, float]


def model_order(cells: pd.DataFrame) -> list[str]:
    """Every model, the one that holds best first; those that cannot be ranked follow by name."""
    return led_by(_ranked(_comparable(cells)[0])["model"], cells["model"].unique())


def holding(cells: pd.DataFrame) -> Holding | None:
    """The model that holds best; None without accuracy on shifted data."""
    rows, common = _comparable(cells)
    ranked = _ranked(rows)
    if ranked.empty:
        return None
    best = ranked.iloc[0]
    rival = ranked.iloc[1] if len(ranked) > 1 else None
    half = (ranked["high"] - ranked["low"]) / 2
    level = rival is not None and bool(best["value"] - rival["value"] < np.hypot(half[0], half[1]))
    unshifted = clean(cells)
    same = (unshifted["model"] == best["model"]) & (unshifted["adapter"] == best["adapter"])
    named = streams(cells)
    return Holding(
        who=str(best["who"]),
        value=float(best["value"]),
        low=float(best["low"]),
        high=float(best["high"]),
        clean=float(unshifted.loc[same, "value"].iloc[0]) if same.any() else None,
        shifts=tuple(sorted(rows.loc[rows["who"] == best["who"], "shift"].unique())),
        of=len(ranked),
        stream=named[0] if len(named) > 1 else None,
        rival=None if rival is None else str(rival["who"]),
        rival_value=float("nan") if rival is None else float(rival["value"]),
        level=level,
        common=common,
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
        borderline = bool(abs(clean - cell["value"] - BREAK) < (cell["high"] - cell["low"]) / 2)
        onward = first + 1 < len(own) and bool(below[first:].all())
        entry = Break(str(shift), float(cell["severity"]), onward, borderline)
        found.append((cell["severity"], cell["value"], entry))
    return [entry for *_, entry in sorted(found, key=lambda item: item[:2])]


def gains(pairs: pd.DataFrame, cells: pd.DataFrame) -> list[Gain]:
    """What every adapter changes, the largest gain first; `pairs` comes from `cells.paired`."""
    without = clean(cells[cells["adapter"] == NONE])[["model", "value"]].rename(columns={"value": "clean"})
    found = []
    for adapter, own in pairs.groupby("adapter"):
        rows = shifted(own)
        if rows.empty:
            continue
        shift, recovered = _recovered(rows.merge(without, on="model"))
        gain = Gain(
            adapter=str(adapter),
            cells=len(rows),
            before=float(rows["none"].mean()),
            after=float(rows["value"].mean()),
            change=float(rows["change"].mean()),
            unclear=_unclear(rows),
            shift=shift,
            recovered=recovered,
            harm=_harm(own),
        )
        found.append(gain)
    return sorted(found, key=lambda gain: (-gain.change, gain.adapter))


def _subjects(cells: pd.DataFrame) -> pd.DataFrame:
    """The shifted cells to rank, in the first stream, with a column `who`.

    These are models without an adapter, or with each of theirs if none met a shift without one.
    """
    rows = shifted(cells)
    rows = rows[rows["stream"].isin(streams(cells)[:1])]
    plain = rows[rows["adapter"] == NONE]
    if plain.empty:
        return rows.assign(who=rows["model"] + " with " + rows["adapter"])
    return plain.assign(who=plain["model"])


def _comparable(cells: pd.DataFrame) -> tuple[pd.DataFrame, bool]:
    """The subjects' cells at combinations of shift and severity that all have; all cells, and False, if none are."""
    rows = _subjects(cells)
    measured = rows.groupby(["shift", "severity"], dropna=False)["who"].transform("nunique")
    everywhere = measured == rows["who"].nunique()
    return (rows[everywhere], True) if everywhere.any() else (rows, False)


def _ranked(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per subject, best first."""
    means = average(rows, ["who", "model", "adapter"])
    return means.sort_values(["value", "who"], ascending=[False, True], ignore_index=True)


def _unclear(pairs: pd.DataFrame) -> bool:
    margin = np.hypot(pairs["half"].mean(), pairs["none_half"].mean())
    return bool(abs(pairs["change"].mean()) < margin)


def _recovered(rows: pd.DataFrame) -> tuple[str | None, float]:
    """The costliest shift and the share of its cost that comes back; none if no shift costs much."""
    lost = (rows["clean"] - rows["none"]).groupby(rows["shift"]).mean()
    if lost.empty or lost.max() < WORTH_RECOVERING:
        return None, float("nan")
    shift = str(lost.idxmax())
    return shift, float(rows.loc[rows["shift"] == shift, "change"].mean() / lost[shift])


def _harm(own: pd.DataFrame) -> dict[str, float]:
    """Shifts, streams (if several) and clean data on which an adapter clearly lowers accuracy."""
    rows = shifted(own)
    places = {f"under {shift}": part for shift, part in rows.groupby("shift")}
    if rows["stream"].nunique() > 1:
        places |= {f"in the stream {stream}": part for stream, part in rows.groupby("stream")}
    places["on clean data"] = own[own["shift"] == CLEAN]
    changes = {place: float(part["change"].mean()) for place, part in places.items()}
    clear = {place: by for place, by in changes.items() if by < 0 and not _unclear(places[place])}
    return dict(sorted(clear.items(), key=lambda entry: entry[1]))
