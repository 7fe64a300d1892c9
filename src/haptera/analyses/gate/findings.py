"""Findings of a gate: what fell, what missed a bar, what became better, and which images did it, in sentences."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from haptera.analyses.gate.bars import HELD, MISSED
from haptera.analyses.gate.decide import BETTER, CLEARED, FELL, LOWER, SAME, UNDECIDED, UNSEEN, neighbours
from haptera.analyses.gate.pairs import LOWER_IS_BETTER
from haptera.report.section import Finding, answer, lead
from haptera.words import count, duration, shorten

if TYPE_CHECKING:
    from haptera.analyses.gate.analysis import Gate

SHOWN = 4
FINE = 0.005
"""Where a number is smaller, all get a third digit."""


def findings(gate: "Gate") -> list[Finding]:
    """Return the verdict and what stands behind it."""
    made = [_verdict(gate)]
    made += _bars(gate) + _lower(gate) + _better(gate) + _worst(gate) + _quick(gate)
    word = made[0].word
    shown = {word: (word.lower(), "Comparisons" if len(gate.comparisons) else "Bars"), "bars": ("", "Bars")}
    shown |= dict.fromkeys(("lower", "better"), ("", "Comparisons"))
    return lead(made, shown | {"worst": (count(len(gate.worst), "image"), "Worst images")})


def _verdict(gate: "Gate") -> Finding:
    word = "PASS" if gate.passed else "FAIL"
    question = f"May it replace {gate.baseline}?" if gate.baseline else "Is it good enough?"
    rows, falls = gate.comparisons, neighbours(gate.comparisons)
    numbers: dict[str, Any] = {
        "passed": gate.passed,
        "comparisons": len(rows),
        "fell": int((rows["verdict"] == FELL).sum()),
    }
    numbers |= {"standard_errors": gate.critical, "tolerance": gate.tolerance}
    numbers["falls"] = {group_name(own, rows): group_numbers(own) for own in falls}
    told = [*group_sentences(gate, falls), *_others(rows)]
    if not len(rows):
        told = [f"{count(len(gate.bars), 'value')} beside {count(gate.bars['bar'].nunique(), 'bar')}"]
        numbers |= {"values": len(gate.bars), "bars": gate.bars["bar"].nunique()}
    if len(gate.missed):
        told.append(f"{len(gate.missed)} of {count(len(gate.bars), 'value')} miss their bar")
        numbers["missing_values"] = len(gate.missed)
    if gate.failures:
        numbers["incomplete"] = len(gate.failures)
        told.append(gate.failures[0] + (f"; and {len(gate.failures) - 1:,} more" if gate.failures[1:] else ""))
    return Finding(word, question, "; ".join(told), numbers)


def group_sentences(gate: "Gate", groups: Sequence[pd.DataFrame]) -> list[str]:
    """Return a sentence for each group of comparisons, of many only the first few."""
    told = []
    for place, own in enumerate(groups[:SHOWN]):
        numbers = group_numbers(own)
        ends = [numbers["difference"], *numbers["difference_interval"]]
        value, low, high = short(ends)
        after, before = short([numbers["after"], numbers["before"]])
        correction = "" if place else f" after correction for {count(len(gate.comparisons), 'comparison')}"
        where, measure = group_name(own, gate.comparisons), gate.measure.replace("_", " ")
        told.append(
            f"{where}: {measure} {after}, {gate.baseline} {before} "
            f"(paired difference {value}, {low} .. {high}{correction})"
        )
    return told + ([f"and {len(groups) - SHOWN:,} more"] if len(groups) > SHOWN else [])


def _others(rows: pd.DataFrame) -> list[str]:
    """Return what is to be said about the comparisons that did not fall."""
    counts = rows["verdict"].value_counts().to_dict()
    others = {verdict: counts.get(verdict, 0) for verdict in (SAME, CLEARED, LOWER, BETTER, UNDECIDED, UNSEEN)}
    if not sum(others.values()):
        return []
    if sum(others.values()) == others[SAME]:
        return (
            ["all others within noise"] if FELL in counts else [f"all {count(others[SAME], 'comparison')} within noise"]
        )
    names = {LOWER: "lower by less than the tolerance"}
    parts = [f"{number} {names.get(verdict, verdict)}" for verdict, number in others.items() if number]
    return [("of the others " if FELL in counts else f"of {count(len(rows), 'comparison')} ") + ", ".join(parts)]


def group_name(own: pd.DataFrame, every: pd.DataFrame) -> str:
    """Return what a group of comparisons is called, such as `contrast 4-5 with batchnorm`."""
    first, last = own.iloc[0], own.iloc[-1]
    name = str(first["shift"] or first["part"])
    if first["severity"] == first["severity"] and first["shift"] not in ("clean", ""):
        name += f" {first['severity']:g}" + (f"-{last['severity']:g}" if len(own) > 1 else "")
    same = every[(every["shift"] == first["shift"]) & every["severity"].isin(own["severity"])]
    if first["shift"] and same["stream"].nunique() > 1:
        name += f" in {first['stream']}"
    if every["adapter"].nunique() > 1:
        name += f" with {first['adapter']}"
    return name + (f" of {first['model']}" if every["model"].nunique() > 1 else "")


def group_numbers(own: pd.DataFrame) -> dict[str, Any]:
    """Return the mean over a group; since all its intervals hold at once, the means of their ends hold its mean."""
    means = {name: float(own[name].mean()) for name in ("after", "before", "difference")}
    ends = {"difference_interval": [float(own["low"].mean()), float(own["high"].mean())]}
    return (
        means
        | ends
        | {"images": int(own["images"].max()), "lost": int(own["lost"].sum()), "won": int(own["won"].sum())}
    )


def short(values: Sequence[float]) -> list[str]:
    """Return shares without the 0 before the point, with two digits, or with three where the smallest needs them.

    >>> short([0.61, -0.07]), short([-0.014, -0.028, -0.001])
    (['.61', '-.07'], ['-.014', '-.028', '-.001'])
    """
    digits = 3 if any(0 < abs(value) < FINE for value in values) else 2
    texts = [f"{value:.{digits}f}" for value in values]
    return [text.replace("-0.", "-.").removeprefix("0") if abs(float(text)) < 1 else text for text in texts]


def _bars(gate: "Gate") -> list[Finding]:
    if gate.bars.empty:
        return []
    missed = gate.bars[gate.bars["verdict"] == MISSED]
    held = int((gate.bars["verdict"] == HELD).sum())
    open_ones = len(gate.bars) - len(missed) - held
    told = [f"{held} of {count(len(gate.bars), 'value')} reach their bar"]
    told += [f"of {open_ones} it is not certain"] if open_ones else []
    rows = missed.assign(far=(missed["value"] - missed["bar"].str.rpartition("=")[2].astype(float)).abs())
    rows = rows.sort_values("far", ascending=False)
    missing = [
        f"{bar_place(row)}: {row['measure']} {short([row['value']])[0]}, bar {row['bar']}" for _, row in rows.iterrows()
    ]
    told += [shorten(missing, SHOWN)] if missing else []
    numbers = {"bar_values": len(gate.bars), "bars_held": held, "bars_missed": len(missed)}
    numbers |= {"bars_open": open_ones} if open_ones else {}
    return answer("bars", "Does it reach the bars?", "; ".join(told), **numbers)


def bar_place(row: Mapping[Any, Any] | pd.Series) -> str:
    """Return where the value of a bar was measured."""
    severity = row["severity"]
    place = str(row["shift"] or row["stream"] or "all shifts")
    place += f" {severity:g}" if severity == severity and place not in ("clean", row["stream"]) else ""
    return place + (f" with {row['adapter']}" if row["adapter"] not in ("none", "") else "")


def _lower(gate: "Gate") -> list[Finding]:
    groups = neighbours(gate.comparisons, LOWER)
    numbers = {group_name(own, gate.comparisons): group_numbers(own) for own in groups}
    return answer(
        "lower", "What fell by less than the tolerance?", "; ".join(group_sentences(gate, groups)), lower=numbers
    )


def _better(gate: "Gate") -> list[Finding]:
    groups = neighbours(gate.comparisons, BETTER)[:: -1 if gate.measure not in LOWER_IS_BETTER else 1]
    numbers = {group_name(own, gate.comparisons): group_numbers(own) for own in groups}
    return answer("better", "What became better?", "; ".join(group_sentences(gate, groups)), better=numbers)


def _worst(gate: "Gate") -> list[Finding]:
    if gate.worst.empty:
        return []
    names = [f"{image} ({times})" for image, times in zip(gate.worst["image"], gate.worst["fell_in"], strict=True)]
    told = f"{count(len(gate.worst), 'image')} right before and wrong now, by number (and under how many shifts): "
    if gate.measure != "accuracy":
        told = f"{count(len(gate.worst), 'image')} worse than before, by number (and under how many shifts): "
    numbers = {"lost_images": len(gate.worst), "worst_images": gate.worst["image"].head(SHOWN * 2).tolist()}
    return answer("worst", "Which images did it?", told + shorten(names, SHOWN * 2), **numbers)


def _quick(gate: "Gate") -> list[Finding]:
    if gate.effort is None:
        return []
    effort = gate.effort
    share = effort.answers / max(effort.every, 1)
    told = f"{effort.answers:,} of {effort.every:,} answers ({share:.0%})"
    told += f" in {duration(effort.seconds)}" if effort.seconds else ""
    told += f", {effort.why}"
    numbers: dict[str, Any] = {"answers": effort.answers, "all_answers": effort.every, "answers_share": share}
    numbers["planned_first"] = list(effort.order[:SHOWN])
    told += f"; looked first at {shorten(list(effort.order), SHOWN)}" if effort.order else ""
    return answer("quick", "How much had to be run?", told, **numbers)
