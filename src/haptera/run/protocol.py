"""Protocol: what two studies must share so that their numbers can be compared.

Which images, in which order, how many at a time; when an adapter is brought back to its beginning; and what the
preflight said about every model. The plan of a study keeps the first two, the folder `preflight` in it the third.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from haptera import catalog
from haptera.analysis import RESULT, SavedAnalysis
from haptera.errors import HapteraError

PREFLIGHT = "preflight"
"""The folder of a study in which every model has the folder of its preflight."""


def describe_protocol(streams: Sequence[Any], adapters: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the plan keeps: a row for each stream, and one for each adapter."""
    return {
        "streams": [describe_stream(stream) for stream in streams],
        "adapters": [{"adapter": name, "resets": resets_of(make)} for name, make in adapters.items()],
    }


def describe_stream(stream: Any) -> dict[str, Any]:
    """Return which images a stream shows, in which order, and how many at a time, as far as it says so."""
    parts, base = stream.parts(), stream
    while (inner := getattr(base, "stream", None)) is not None:
        base = inner
    kind = catalog.name_of("streams", type(stream)) or type(stream).__name__
    row: dict[str, Any] = {"stream": stream.name, "kind": kind, "seed": stream.seed, "parts": len(parts)}
    row["images"] = sum(part.samples for part in parts)
    if (data := getattr(base, "data", None)) is not None:
        every = getattr(data, "parts", None)
        row |= {"data": data.name, "images of the data": sum(len(each.data) for each in every) if every else len(data)}
    if (batch_size := getattr(base, "batch_size", None)) is not None:
        row["batch size"] = batch_size
    if (shuffle := getattr(base, "shuffle", None)) is not None:
        row["order"] = f"shuffled with seed {stream.seed}" if shuffle else "as in the data"
        if (labels := getattr(base, "labels", "mixed")) != "mixed":
            row["order"] += f", classes in runs: {labels}" + (
                f", delta {base.delta:g}" if labels == "dirichlet" else ""
            )
    if shifts := getattr(base, "shift_names", None):
        row["shifts"] = ", ".join(shifts) + (f" (constants of {base.table})" if base.table else "")
    return row


def resets_of(make: Any) -> str:
    """Return when an adapter is brought back to its beginning, beside the start of each part of a stream."""
    told = ["at the start of each part"]
    while isinstance(make, partial):
        rule, every = make.keywords.get("rule"), make.keywords.get("every")
        if rule is not None:
            told.append(f"every {rule.steps:,} steps" if isinstance(getattr(rule, "steps", None), int) else f"{rule}")
        elif every is not None:
            told.append(f"every {every:,} steps")
        make = make.keywords.get("method", make.func)
    named = getattr(make, "__name__", "")
    if named == "RDumb" and len(told) == 1:
        told.append("every 1,000 steps")
    told += {"MEMO": ["after every image"], "SAR": ["when its loss is low"]}.get(named, [])
    return ", ".join(told)


def preflight_folder(study: Path, model: str) -> Path:
    """Return where the preflight of a model is kept."""
    return study / PREFLIGHT / "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in model)


def read_checks(study: Path) -> list[dict[str, Any]]:
    """Return what the preflights of a study say: `model`, `check`, `verdict`, `sentence`, as far as it can be read."""
    rows = []
    for path in sorted((study / PREFLIGHT).glob(f"*/{RESULT}")):
        try:
            saved = SavedAnalysis(path.parent)
            for finding in saved.findings():
                verdict = finding.numbers[finding.word]["verdict"]
                sentence = finding.sentence.removeprefix(f"{verdict}: ")
                row = {"model": saved.settings["model"], "check": finding.word, "verdict": verdict}
                rows.append(row | {"sentence": sentence})
        except (HapteraError, KeyError, TypeError):
            continue
    return rows
