"""Summary: the answer in at most three plain sentences; what its words mean is defined in `findings`."""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from haptera.measures.margins import SAME
from haptera.report.section import Finding, answer, enlarge
from haptera.report.study import complete
from haptera.report.study.cells import NONE, cells, clean, named, shifted
from haptera.report.study.findings import BREAK, IDLE, Break, Gain, Holding, breaks, gains, holding
from haptera.words import interval, join_names

LISTED = 3
HELD, BROKEN, HELPED = "Accuracy of each model under each shift", "Accuracy against severity", "Adapters by streams"
"""The figures behind the three answers."""
DEFINITIONS = {
    "holds up best": "the highest mean accuracy without an adapter, first over the severities of a shift, then over "
    "shifts, in one stream (“corruptions”, or else the one with the most combinations of shift and severity), on the "
    "combinations that every model was measured on",
    "breaks": f"has an accuracy more than {BREAK:.2f} below the same model’s on clean data; the smallest such severity "
    "is given",
    "borderline": "that threshold lies within the interval of the cell",
    "raises, lowers": "with the adapter against without, on the same cells (model, stream, shift and severity), seed "
    "by seed, each counting the same",
    "recovers": "that gain, divided by what the unadapted models lost against clean data, under the shift that costs "
    "the most",
    "collapsed": "from some step on stayed below the unadapted model for good, in windows of batches, by more than the "
    "interval",
    "within the interval": "the interval of the difference holds 0; it is Newcombe’s, made of the 95 % intervals of "
    "both, and of means the mean of interval ends, so that it does not shrink with the number of cells",
    "seeds": "values are means over seeds; an interval is then Student’s t over seeds, and at least as wide as that of "
    "one seed",
    "ties": "the adapter that does not learn is named first, for learning has changed nothing",
    "kept nothing": "the share of steps of which an adapter found no sample fit to learn from",
}


def summarise(table: pd.DataFrame) -> tuple[Finding, ...]:
    """Return at most three answers; one that says what is missing where there is nothing to compare."""
    return answers_of(complete(table))


def answers_of(table: pd.DataFrame) -> tuple[Finding, ...]:
    """Return the answers of `summarise`, from a table that is complete."""
    if table.empty:
        return (Finding("results", "Results", "The table is empty: nothing was measured."),)
    pooled = cells(table)
    if pooled.empty:
        measures = ", ".join(sorted(table["measure"].unique()))
        text = f"No accuracy was measured, so no model is ranked; there is: {measures}."
        return (Finding("results", "Results", text),)
    best = holding(table, pooled)
    if best is None:
        return (Finding("results", "Results", _on_clean_data(clean(table))),)
    broken = [] if best.clean is None else breaks(pooled, best.who, best.clean)
    question = "Which model holds up best?" if best.of > 1 else "Does it hold up?"
    numbers: dict[str, Any] = {"model": best.who, "mean_accuracy": best.value}
    numbers |= {"mean_accuracy_interval": [best.low, best.high], "clean_accuracy": best.clean, "next": best.rival}
    answers = enlarge(answer("holds", question, _holds(best), **numbers), f"{best.value:.2f} accuracy", HELD)
    severities = {item.shift: item.severity for item in broken}
    text, share = _breaks(best, broken, pooled), f"{len(broken)} of {len(best.shifts)} shifts"
    where = answer("breaks", "Where does it break?", text, breaks=severities)
    answers += enlarge(where, "" if best.clean is None else share, BROKEN)
    if found := gains(table):
        text = _helps(found, _collapses(named(table, "collapse"), found[0]) + _idle(found))
        clear = not found[0].unclear and round(found[0].change, SAME) != 0
        numbers = {gain.adapter: _numbers(gain) for gain in found}
        helps = answer("adapts", "Does adaptation help?", text, gains=numbers)
        answers += enlarge(helps, f"{_signed(found[0].change)} accuracy" if clear else "no clear change", HELPED)
    return tuple(answers)


def _numbers(gain: Gain) -> dict[str, object]:
    names = ("change", "before", "after", "cells", "recovered", "harm", "idle")
    return {name: getattr(gain, name) for name in names} | {"change_interval": [gain.low, gain.high]}


def _on_clean_data(rows: pd.DataFrame) -> str:
    rows = rows.sort_values(["value", "model"], ascending=[False, True])
    if rows.empty:
        return "No accuracy on shifted data was measured."
    best = rows.iloc[0]
    figures = f"{best['value']:.2f}{interval(best['low'], best['high'])}"
    if len(rows) == 1:
        return f"{_who(best)} has an accuracy of {figures} on clean data; no shift was measured."
    among = f" of {rows['model'].nunique()} models" if rows["model"].nunique() > 1 else ""
    equal = [_who(row) for _, row in rows[1:].iterrows() if round(row["value"] - best["value"], SAME) == 0]
    ties = f"; {join_names(equal)} {'ties' if len(equal) == 1 else 'tie'} with it" if equal else ""
    return f"{_who(best)} has the highest accuracy{among} on clean data, {figures}{ties}; no shift was measured."


def _who(row: pd.Series) -> str:
    return row["model"] if row["adapter"] == NONE else f"{row['model']} with {row['adapter']}"


def _holds(best: Holding) -> str:
    place = f" in the stream {best.stream}" if best.stream else ""
    on_clean = f", {best.clean:.2f} clean" if best.clean is not None else ""
    many = len(best.shifts) > 1
    shifts = f"on average over {len(best.shifts)} shifts" if many else f"under {best.shifts[0]}"
    verb = f"holds up best of {best.of} models: " if best.of > 1 else "keeps an accuracy of "
    seeds = f", the mean of {best.seeds} seeds with standard deviation {best.sd:.3f}" if best.seeds > 1 else ""
    text = f"{best.who} {verb}{best.value:.2f}{interval(best.low, best.high)} {shifts}{place}{seeds}{on_clean}"
    if best.level:
        text += f"; {best.rival} is level with it ({best.rival_value:.2f}, within the interval)"
    elif best.rival:
        text += f"; next comes {best.rival} ({best.rival_value:.2f})"
    return text + ("." if best.common else "; the models met different shifts, so this compares unlike cells.")


def _breaks(best: Holding, found: list[Break], pooled: pd.DataFrame) -> str:
    if best.clean is None:
        row = shifted(pooled).sort_values(["value", "model"]).iloc[0]
        lowest = f"{row['value']:.2f}, {_who(row)} under {row['shift']}{_at(row['severity'])}"
        return f"There is no accuracy on clean data to compare with; the lowest of all is {lowest}."
    if not found:
        return f"{best.who} stays within {BREAK:.2f} of its clean accuracy under every shift measured."
    broken = {item.shift for item in found}
    held = [shift for shift in best.shifts if shift not in broken]
    rest = ""
    if held:
        rest = f"; it holds under {join_names(held) if len(held) <= LISTED else f'the other {len(held)}'}"
    return f"{best.who} breaks under {_some([_break(item) for item in found])}{rest}."


def _break(item: Break) -> str:
    where = f" from severity {item.severity:g} on" if item.onward else _at(item.severity)
    return f"{item.shift}{where}{' (borderline)' if item.borderline else ''}"


def _collapses(falls: pd.DataFrame, best: Gain) -> str:
    """Say whether the best adapter collapses, if it learns; and which others do."""
    if falls.empty or "against" not in falls:
        return ""
    learners = falls.loc[falls["against"] != NONE, "adapter"].unique()
    falls = falls[falls["against"] == NONE]
    runs = falls["adapter"].value_counts().to_dict()
    fell = {name: count for name, count in falls.loc[falls["value"] > 0, "adapter"].value_counts().items() if count}
    text = ""
    if best.adapter in learners and best.adapter not in fell:
        one = runs[best.adapter] == 1
        text = f"; {best.adapter} {'did not collapse' if one else f'never collapsed in {runs[best.adapter]:,} runs'}"
    if fell:
        of = {
            str(name): f" in {count:,} of {runs[name]:,} runs" if runs[name] > 1 else "" for name, count in fell.items()
        }
        text += f"; collapsed: {_some([name + times for name, times in of.items()])}"
    return text


def _idle(found: list[Gain]) -> str:
    """Which adapters found hardly anything to learn from."""
    said = [f"{gain.adapter} at {100 * gain.idle:.0f} % of its steps" for gain in found if gain.idle > IDLE]
    return f"; kept nothing to learn from: {_some(said)}" if said else ""


def _helps(found: list[Gain], more: str) -> str:
    best, others = found[0], found[1:]
    level = round(best.change, SAME) == 0
    text = _verdict(best, len(found))
    text += f", at {best.after:.2f}" if level else f" on average, from {best.before:.2f} to {best.after:.2f}"
    text += f" on the same {best.cells:,} cells" if best.cells > 1 else " on the one cell with both"
    if best.unclear and not level:
        text += ", which is within the interval"
    elif best.shift and best.recovered > 0:
        word = "and" if best.change > 0 else "but"
        text += f", {word} recovers {100 * best.recovered:.0f} % of the accuracy lost under {best.shift}"
    if best.tied:
        text += f"; {_some(best.tied)} {'ties' if len(best.tied) == 1 else 'tie'} with it"
    if best.level and best.level not in best.tied:
        text += f"; {best.level}, which does not learn, is level with it (within the interval)"
    elif best.parent and not best.level and best.change > 0:
        text += f"; its parent {best.parent}, which does not learn, changes it by {_signed(best.by_parent)} alone"
    if best.harm:
        text += f"; it hurts {_some([f'{place} ({_signed(by)})' for place, by in best.harm.items()])}"
    worst = reversed([gain for gain in others if gain.change < 0 and not gain.unclear])
    harmful = [f"{gain.adapter} ({_signed(gain.change)})" for gain in worst]
    if harmful and (level or best.change > 0):
        text += f"; {_some(harmful)} {'does' if len(harmful) == 1 else 'do'} harm"
    return f"{text}{more}."


def _verdict(best: Gain, adapters: int) -> str:
    """How the sentence begins: who, whether it helps, and by how much."""
    among = f", the best of {adapters} adapters," if adapters > 1 and not best.tied else ""
    if round(best.change, SAME) == 0:
        return f"No: {best.adapter}{among} ties with the unadapted model"
    if best.unclear:
        return f"Not clearly: {best.adapter}{among} changes accuracy by {_signed(best.change)}{_ends(best)}"
    if best.change < 0:
        return f"No: {best.adapter}{among} lowers accuracy by {_signed(best.change)[1:]}{_ends(best)}"
    return f"Yes: {best.adapter}{among} raises accuracy by {_signed(best.change)[1:]}{_ends(best)}"


def _some(names: Sequence[str]) -> str:
    """Return the first few names, and how many more there are: a sentence that leaves out a name says so."""
    more = [f"{len(names) - LISTED:,} more"] if len(names) > LISTED else []
    return join_names([*names[:LISTED], *more])


def _at(severity: float) -> str:
    return "" if math.isnan(severity) else f" at severity {severity:g}"


def _ends(gain: Gain) -> str:
    """Return the interval of a gain, with signs only where it holds 0; of a loss that of its size."""
    digits = _digits(gain.change)
    if gain.unclear:
        return f" ({_signed(gain.low, digits)} to {_signed(gain.high, digits)})"
    low, high = sorted((abs(gain.low), abs(gain.high)))
    return interval(low, high, digits=digits)


def _digits(change: float) -> int:
    return 2 if abs(change) >= 0.01 else 3


def _signed(change: float, digits: int | None = None) -> str:
    digits = _digits(change) if digits is None else digits
    return f"{change:+.{digits}f}".replace("-", "−")
