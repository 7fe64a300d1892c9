"""Published results beside those of a study, where the protocol fits; `published.toml` has them with their sources.

What can be compared is compared: the data set and the network by their names, the kind of stream with its order, the
corruptions and severities, the images of each, the batch size; and the unadapted error, which gives away another
network or other images under the same name. Results that do not fit are not shown. Rows of the table say why, where
the data set is the same, and which data sets there are, where it is not.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import pandas as pd

from haptera.families import FAMILIES, HELD_OUT
from haptera.measures.pairs import NONE
from haptera.table import Rows
from haptera.words import join_names, shorten

MEASURE = "published_error"
USUAL = tuple(shift for shifts in FAMILIES.values() for shift in shifts if shift not in HELD_OUT)
AGREES = 0.01
"""By how much two unadapted errors of the same network on the same images may differ."""
IN_ORDER = ("continual",)
"""Kinds of streams of which the order of shifts is part of the protocol."""


@cache
def published_results() -> tuple[Mapping[str, Any], ...]:
    """Return every published result: its source, its protocol and its rows."""
    text = (files("haptera.report.paper") / "published.toml").read_text(encoding="utf-8")
    return tuple(tomllib.loads(text)["results"])


def printed_order() -> dict[tuple[str, str], int]:
    """Return the place of every source and row, in the order of the file."""
    names = [(str(result["source"]), str(row["name"])) for result in published_results() for row in result["rows"]]
    return {name: place for place, name in enumerate(dict.fromkeys(names))}


def published_rows(table: pd.DataFrame, protocol: Mapping[str, Any]) -> Rows:
    """Return rows of the measure `published_error` for every model and stream, with the column `source`.

    A row without a value has a `reason`: a sentence about results that do not fit.

    Args:
        table: of a study, with `shift_mean`.
        protocol: what its plan says: `streams`, a row each with its `kind`, `data`, `batch size` and `shifts`.
    """
    streams = {str(row.get("stream")): row for row in protocol.get("streams", [])}
    errors = table[(table["measure"] == "error") & (table["severity"] > 0)]
    found: Rows = []
    for (stream, model), own in errors.groupby(["stream", "model"], sort=True):
        about = streams.get(str(stream), {})
        names = {"stream": str(stream), "model": str(model), "measure": MEASURE}
        facts = _facts(table, own, about, str(stream), str(model))
        near = [result for result in published_results() if _same(result["data"], str(about.get("data", "")))]
        misfits = {place: misfit(result, facts) for place, result in enumerate(near)}
        for place, result in enumerate(near):
            found += [] if misfits[place] else [names | row for row in _rows(result)]
        if reason := _reason(near, misfits, about):
            found.append(names | {"reason": reason})
    return found


def misfit(result: Mapping[str, Any], facts: Mapping[str, Any]) -> list[str]:
    """Return in what the protocol of a published result differs from that of a study; nothing where it fits.

    Args:
        result: one of `published_results`.
        facts: `network`, `stream` (its kind), `shifts` in order, `severities`, `images`, `batch_size`, `unadapted`;
            None where it is not known.
    """
    told = []
    if not any(_same(name, str(facts["network"])) for name in (result["network"], *result["also"])):
        told.append(f"the network is {result['network']}, not {facts['network']}")
    if facts["stream"] not in result["stream"]:
        told.append(f"the stream is {' or '.join(result['stream'])}, not {_known(facts['stream'])}")
    in_order = facts["stream"] in IN_ORDER
    if (tuple if in_order else sorted)(facts["shifts"]) != (tuple if in_order else sorted)(USUAL):
        told.append(f"the shifts are the 15 test corruptions{' in the usual order' if in_order else ''}")
    if list(facts["severities"]) != list(result["severities"]):
        told.append(f"severity {_list(result['severities'])}, not {_list(facts['severities'])}")
    for key, word in (("images", "images of each"), ("batch_size", "batch size")):
        if key in result and facts[key] != result[key]:
            told.append(f"{word} {result[key]:,}, not {_known(facts[key])}")
    printed = {row["name"]: _mean(row) for row in result["rows"]}.get(result.get("unadapted", ""))
    here = facts["unadapted"]
    if not told and printed is not None and here is not None and abs(printed - here) > AGREES:
        there, ours = (f"{100 * error:.1f} %" for error in (printed, here))
        told.append(f"the unadapted error is {there}, not {ours}, so network or images are others")
    return told


def _facts(table: pd.DataFrame, errors: pd.DataFrame, about: Mapping[str, Any], stream: str, model: str) -> Any:
    means = table[(table["stream"] == stream) & (table["model"] == model) & (table["shift"] == "")]
    means = means[(means["measure"] == "shift_mean") & (means["adapter"] == NONE) & (means["of"] == "error")]
    named = re.sub(r" \(.*\)$", "", str(about.get("shifts", ""))).split(", ") if about.get("shifts") else []
    shifts = named or [str(shift) for shift in errors["shift"].unique()]
    return {
        "network": model,
        "stream": about.get("kind"),
        "shifts": [shift for shift in shifts if shift not in HELD_OUT],
        "severities": sorted(float(level) for level in errors["severity"].unique()),
        "images": None if errors["n"].isna().all() else int(errors["n"].max()),
        "batch_size": about.get("batch size"),
        "unadapted": None if means.empty else float(means["value"].mean()),
    }


def _reason(near: Sequence[Mapping[str, Any]], misfits: Mapping[int, Sequence[str]], about: Mapping[str, Any]) -> str:
    """Return a sentence about what is not shown, if there is anything to say."""
    if not near:
        known = list(dict.fromkeys(result["data"] for result in published_results()))
        here = f"the data here is {about['data']}" if about.get("data") else "which data this is is not known"
        return f"Published results are not shown: they are about {join_names(known)}, and {here}."
    told = [f"{near[place]['source']} ({'; '.join(why)})" for place, why in misfits.items() if why]
    told.sort(key=lambda text: text.count(";"))  # what differs the least is named first
    return f"Published, and not shown because the protocol differs: {shorten(told, 2)}." if told else ""


def _rows(result: Mapping[str, Any]) -> Rows:
    found: Rows = []
    for row in result["rows"]:
        names = {"adapter": row["name"], "source": result["source"]}
        each = zip(USUAL, row.get("errors", ()), strict=False)
        found += [names | {"shift": shift, "value": error / 100} for shift, error in each]
        found.append(names | {"value": _mean(row)})
    return found


def _mean(row: Mapping[str, Any]) -> float:
    """Return the mean error of a row, as a share."""
    return float(row["mean"] if "mean" in row else round(sum(row["errors"]) / len(row["errors"]), 1)) / 100


def _same(one: str, other: str) -> bool:
    """Return whether two names differ in case and punctuation alone."""
    plain = [re.sub(r"[^a-z0-9]", "", name.lower()) for name in (one, other)]
    return plain[0] == plain[1]


def _known(fact: Any) -> str:
    return "known here" if fact is None else f"{fact:,}" if isinstance(fact, int) else str(fact)


def _list(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:g}" for number in numbers)
