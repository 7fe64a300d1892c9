"""Findings: which model holds, where it breaks and what adapters change, as numbers with exact definitions.

- *Holds best*: the highest mean accuracy without an adapter, over shifts (first over the severities of a shift), in the
  stream with the most combinations of shift and severity, on the combinations that every model was measured on.
- *Breaks*: accuracy more than `BREAK` below the same model's accuracy on clean data, at the smallest such severity.
- *Change*: accuracy with an adapter minus accuracy without, over the cells (model, stream, shift, severity, seed) that
  have both, every cell counting the same.
- *Recovered*: that change divided by what was lost (clean minus shifted accuracy, both without an adapter), under the
  shift that costs the most.
- *Within the interval*: a difference smaller than √(a² + b²), a and b the half-widths of the two 95 % intervals. For
  means these are mean half-widths, which is cautious: they do not shrink with the number of cells.
"""

from dataclasses import dataclass

import pandas as pd

from holdfast.report.cells import CLEAN, NONE, average, clean, margin, shifted, streams

BREAK = 0.10
WORTH_RECOVERING = 0.02
ROUNDING = 1e-9


@dataclass(frozen=True)
class Holding:
    """The model that holds best.

    Attributes:
        who: The model, "with" its adapter if no model was measured without one.
        value, low, high: Mean accuracy over shifts, and its interval.
        clean: Its accuracy on clean data, if that was measured.
        shifts: How many shifts the mean is over.
        of: How many models were compared.
        stream: Where; None if there is only one stream with shifts.
        rival: The next best.
        rival_value: Its mean accuracy.
        level: Whether the difference to the rival is within the interval.
        common: Whether all were measured on the same combinations.
    """

    who: str
    value: float
    low: float
    high: float
    clean: float | None
    shifts: int
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
        unsure: Whether the threshold lies within the interval of that cell.
    """

    shift: str
    severity: float
    onward: bool
    unsure: bool


@dataclass(frozen=True)
class Gain:
    """What one adapter changes.

    Attributes:
        adapter: Its name.
        cells: How many cells were compared.
        before, after, change: Mean accuracy without, with, and the difference.
        unclear: Whether the change is within the interval.
        shift: The shift that costs the most.
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


def subjects(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells to rank, with a column `who`: models without an adapter, or all if no such model met a shift."""
    plain = cells[cells["adapter"] == NONE]
    chosen = cells if shifted(plain).empty else plain
    with_adapter = chosen["model"] + " with " + chosen["adapter"]
    return chosen.assign(who=chosen["model"].where(chosen["adapter"] == NONE, with_adapter))


def ranking(cells: pd.DataFrame) -> tuple[pd.DataFrame, bool]:
    """One row per model, best first, on the combinations of shift and severity that all of them have.

    Returns:
        Rows with `who`, `model`, `adapter`, `value`, `low`, `high`, `n`, `shifts`; and whether there were such
        combinations: if not, every model is averaged over its own.
    """
    rows = shifted(subjects(cells))
    rows = rows[rows["stream"].isin(streams(cells)[:1])]
    measured = rows.groupby(["shift", "severity"], dropna=False)["who"].transform("nunique")
    everywhere = measured == rows["who"].nunique()
    if everywhere.any():
        rows = rows[everywhere]
    ranked = average(rows, ["who", "model", "adapter"])
    ranked = ranked.sort_values(["value", "who"], ascending=[False, True], ignore_index=True)
    return ranked, bool(everywhere.any())


def holding(cells: pd.DataFrame) -> Holding | None:
    """The model that holds best; None without accuracy on shifted data."""
    ranked, common = ranking(cells)
    if ranked.empty:
        return None
    best = ranked.iloc[0]
    rival = ranked.iloc[1] if len(ranked) > 1 else None
    half = (ranked["high"] - ranked["low"]) / 2
    level = rival is not None and bool(best["value"] - rival["value"] < margin(half[:1], half[1:2]))
    named = streams(cells)
    return Holding(
        who=str(best["who"]), value=float(best["value"]), low=float(best["low"]), high=float(best["high"]),
        clean=clean_accuracy(cells, best), shifts=int(best["shifts"]), of=len(ranked),
        stream=named[0] if len(named) > 1 else None,
        rival=None if rival is None else str(rival["who"]),
        rival_value=float("nan") if rival is None else float(rival["value"]), level=level, common=common,
    )  # fmt: skip


def clean_accuracy(cells: pd.DataFrame, who: pd.Series) -> float | None:
    """Accuracy of one model, with its adapter, on clean data."""
    rows = clean(cells)
    found = rows.loc[(rows["model"] == who["model"]) & (rows["adapter"] == who["adapter"]), "value"]
    return float(found.iloc[0]) if len(found) else None


def breaks(cells: pd.DataFrame, who: str, clean: float) -> list[Break]:
    """The shifts under which a model breaks, the one that needs the smallest severity first."""
    rows = shifted(subjects(cells))
    rows = rows[(rows["who"] == who) & rows["stream"].isin(streams(cells)[:1])]
    found = []
    for shift, own in rows.sort_values("severity").groupby("shift"):
        below = (clean - own["value"] > BREAK + ROUNDING).to_numpy()
        if not below.any():
            continue
        first = int(below.argmax())
        cell = own.iloc[first]
        unsure = abs(clean - cell["value"] - BREAK) < (cell["high"] - cell["low"]) / 2
        onward = first + 1 < len(own) and bool(below[first:].all())
        found.append((cell["severity"], cell["value"], Break(str(shift), cell["severity"], onward, bool(unsure))))
    return [item for *_, item in sorted(found, key=lambda entry: entry[:2])]


def gains(pairs: pd.DataFrame, cells: pd.DataFrame) -> list[Gain]:
    """What every adapter changes, the largest gain first; `pairs` comes from `cells.paired`."""
    without = clean(cells[cells["adapter"] == NONE])[["model", "value"]].rename(columns={"value": "clean"})
    found = []
    for adapter, own in pairs.groupby("adapter"):
        rows = shifted(own)
        if rows.empty:
            continue
        shift, recovered = _recovered(rows.merge(without, on="model"))
        change = float(rows["change"].mean())
        found.append(Gain(
            adapter=str(adapter), cells=len(rows), before=float(rows["none"].mean()),
            after=float(rows["value"].mean()), change=change, unclear=_unclear(rows, change),
            shift=shift, recovered=recovered, harm=_harm(own),
        ))  # fmt: skip
    return sorted(found, key=lambda gain: (-gain.change, gain.adapter))


def _unclear(rows: pd.DataFrame, change: float) -> bool:
    return abs(change) < margin(rows["half"], rows["none_half"])


def _recovered(rows: pd.DataFrame) -> tuple[str | None, float]:
    """The costliest shift and the share of its cost that comes back; none if no shift costs much."""
    if rows.empty:
        return None, float("nan")
    lost = (rows["clean"] - rows["none"]).groupby(rows["shift"]).mean()
    shift = str(lost.idxmax())
    if lost[shift] < WORTH_RECOVERING:
        return None, float("nan")
    return shift, float(rows.loc[rows["shift"] == shift, "change"].mean() / lost[shift])


def _harm(own: pd.DataFrame) -> dict[str, float]:
    """Shifts, streams (if several) and clean data on which an adapter clearly lowers accuracy."""
    rows = shifted(own)
    places = {f"under {shift}": part for shift, part in rows.groupby("shift")}
    if rows["stream"].nunique() > 1:
        places |= {f"in the stream {stream}": part for stream, part in rows.groupby("stream")}
    places |= {"on clean data": own[own["shift"] == CLEAN]}
    changes = {place: float(part["change"].mean()) for place, part in places.items() if len(part)}
    harmed = {place: change for place, change in changes.items() if change < 0}
    clear = {place: change for place, change in harmed.items() if not _unclear(places[place], change)}
    return dict(sorted(clear.items(), key=lambda entry: entry[1]))


def model_order(cells: pd.DataFrame) -> list[str]:
    """Every model, the one that holds best first; those that cannot be ranked follow by name."""
    ranked = ranking(cells)[0]["model"].tolist()
    return list(dict.fromkeys([*ranked, *sorted(cells["model"].unique())]))
