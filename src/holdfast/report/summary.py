"""Summary: the answer in at most three plain sentences; what its words mean is defined in `findings`."""

import math
from dataclasses import dataclass

import pandas as pd

from holdfast.report.cells import NONE, cells, clean, paired, shifted
from holdfast.report.findings import BREAK, Break, Gain, Holding, breaks, gains, holding

LISTED = 3
DEFINITIONS = (
    "“Holds best”: highest mean accuracy without an adapter, first over the severities of a shift, then over shifts, in "
    "the stream with the most combinations of shift and severity and on those that every model was measured on. "
    f"“Breaks”: accuracy more than {BREAK:.2f} below the same model’s accuracy on clean data. "
    "Adapters are compared with the unadapted model on the same cells (model, stream, shift, severity and seed), each "
    "counting the same; “recovers” is the gain divided by what the unadapted models lost against clean data, under the "
    "shift that costs the most. “Within the interval”: a difference smaller than √(a² + b²), with a and b the "
    "half-widths of the two 95 % intervals. Intervals of means are means of interval ends, so they do not shrink with "
    "the number of cells or seeds."
)


@dataclass(frozen=True)
class Answer:
    """A question and the sentence that answers it."""

    question: str
    sentence: str


def summarise(table: pd.DataFrame) -> tuple[Answer, ...]:
    """At most three answers; one that says what is missing where there is nothing to compare."""
    if table.empty:
        return (Answer("Results", "The table is empty: nothing was measured."),)
    pooled = cells(table)
    if pooled.empty:
        measures = ", ".join(sorted(table["measure"].unique()))
        return (Answer("Results", f"No accuracy was measured, so no model can be ranked; there is: {measures}."),)
    best = holding(pooled)
    if best is None:
        return (_on_clean_data(pooled),)
    question = "Which model holds?" if best.of > 1 else "Does it hold?"
    answers = [Answer(question, _holds(best)), Answer("Where does it break?", _breaks(best, pooled))]
    if found := gains(paired(table), pooled):
        answers.append(Answer("Does adaptation help?", _helps(found)))
    return tuple(answers)


def _on_clean_data(pooled: pd.DataFrame) -> Answer:
    rows = clean(pooled).sort_values(["value", "model"], ascending=[False, True])
    if rows.empty:
        return Answer("Results", "No accuracy on shifted data was measured.")
    best = rows.iloc[0]
    who = best["model"] if best["adapter"] == NONE else f"{best['model']} with {best['adapter']}"
    among = f" of {rows['model'].nunique()} models" if rows["model"].nunique() > 1 else ""
    interval = _interval(best["low"], best["high"])
    return Answer("Results", f"{who} has the highest accuracy{among} on clean data, {best['value']:.2f}{interval}; "
                             "no shift was measured.")  # fmt: skip


def _holds(best: Holding) -> str:
    place = f" in the stream {best.stream}" if best.stream else ""
    on_clean = f", {best.clean:.2f} clean" if best.clean is not None else ""
    shifts = f"on average over {best.shifts} shifts" if best.shifts > 1 else "under the one shift measured"
    verb = f"holds best of {best.of} models: " if best.of > 1 else "keeps an accuracy of "
    sentence = f"{best.who} {verb}{best.value:.2f}{_interval(best.low, best.high)} {shifts}{place}{on_clean}"
    if best.level:
        sentence += f"; {best.rival} is level with it ({best.rival_value:.2f}, within the interval)"
    elif best.rival:
        sentence += f"; next comes {best.rival} ({best.rival_value:.2f})"
    return sentence + (
        "." if best.common else "; models were measured on different shifts, so this ranks unlike cells."
    )


def _breaks(best: Holding, pooled: pd.DataFrame) -> str:
    if best.clean is None:
        rows = shifted(pooled)
        lowest = rows.loc[rows["value"].idxmin()]
        where = f"{lowest['model']} under {lowest['shift']}{_at(lowest['severity'])}"
        return (
            f"There is no accuracy on clean data to compare with; the lowest of all is {lowest['value']:.2f}, {where}."
        )
    found = breaks(pooled, best.who, best.clean)
    if not found:
        return f"{best.who} stays within {BREAK:.2f} of its clean accuracy under every shift measured."
    parts = [_break(item) for item in found[:LISTED]]
    if len(found) > LISTED:
        parts.append(f"{len(found) - LISTED} more")
    held = best.shifts - len(found)
    rest = f"; it holds under the other {held}" if held > 1 else "; it holds under the other" if held == 1 else ""
    return f"{best.who} breaks under {_listed(parts)}{rest}."


def _break(item: Break) -> str:
    where = _at(item.severity)
    if item.onward:
        where = f" from severity {item.severity:g} on"
    return f"{item.shift}{where}{' (within the interval)' if item.unsure else ''}"


def _helps(found: list[Gain]) -> str:
    best, others = found[0], found[1:]
    figures = f"({best.before:.2f} to {best.after:.2f} on the same {best.cells:,} cells)"
    changed = f"changes accuracy by {_signed(best.change)} on average {figures}"
    among = f" of {len(found)} adapters" if others else ""
    if best.unclear:
        text = f"{best.adapter}{', the best' + among + ',' if others else ''} {changed}, within the interval"
    elif best.change > 0:
        text = f"{best.adapter} {'helps most' + among if others else 'helps'}: it {changed}"
    else:
        text = f"No: {'the best' + among + ', ' + best.adapter + ',' if others else best.adapter} {changed}"
    if best.shift and best.change > 0 and best.recovered > 0:
        text += f" and recovers {100 * best.recovered:.0f} % of the accuracy lost under {best.shift}"
    if best.harm:
        places = [f"{place} ({_signed(change)})" for place, change in list(best.harm.items())[:LISTED]]
        text += f"; it hurts {_listed(places)}"
    harmful = [f"{gain.adapter} ({_signed(gain.change)})" for gain in others if gain.change < 0 and not gain.unclear]
    if harmful and best.change > 0:
        text += f"; {_listed(harmful[-LISTED:])} {'does' if len(harmful) == 1 else 'do'} harm on average"
    return text + "."


def _at(severity: float) -> str:
    return "" if math.isnan(severity) else f" at severity {severity:g}"


def _interval(low: float, high: float) -> str:
    return "" if math.isnan(low) or math.isnan(high) else f" ({low:.2f} to {high:.2f})"


def _signed(change: float) -> str:
    digits = 2 if abs(change) >= 0.01 else 3
    return f"{change:+.{digits}f}".replace("-", "−")


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
