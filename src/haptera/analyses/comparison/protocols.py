"""Protocols: what two studies were made with, side by side."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from haptera.run.cells import about_of
from haptera.run.ledger import Ledger
from haptera.run.protocol import read_checks

ASIDE = ("study", "protocol", "fingerprints of models", "fingerprints of streams", "models", "streams", "adapters")
"""Settings that are compared in another form, or that only name what the cells name as well."""
COLUMNS = ["about", "setting", "one", "other"]
Facts = dict[tuple[str, str], Any]
"""What a study is about, and the setting -> its value."""


def facts_of(ledger: Ledger) -> Facts:
    """Return everything that a study was made with: what it is about and the setting -> its value."""
    settings = about_of(ledger)["settings"]
    protocol = settings.get("protocol", {})
    facts: Facts = {}
    for key, value in settings.items():
        if isinstance(value, Mapping) and key not in ASIDE:
            about = "the run" if key == "run on" else key
            facts |= {(about, name): each for name, each in value.items()}
        elif key not in ASIDE:
            facts["study", key] = value
    for row in protocol.get("streams", []):
        about = f"stream {row['stream']}, seed {row['seed']}"
        facts |= {(about, key): value for key, value in row.items() if key not in ("stream", "seed")}
    for row in protocol.get("adapters", []):
        facts[f"adapter {row['adapter']}", "resets"] = row["resets"]
    for model, print_of in settings.get("fingerprints of models", {}).items():
        facts[f"model {model}", "fingerprint"] = print_of
    for part, print_of in settings.get("fingerprints of streams", {}).items():
        facts[f"images of {part}", "fingerprint"] = print_of
    for row in read_checks(ledger.folder):
        facts[f"model {row['model']}", f"preflight, {row['check']}"] = row["verdict"]
    return facts


def protocol_differences(first: Facts, second: Facts) -> tuple[pd.DataFrame, int]:
    """Return the settings in which two studies differ, a row each, and how many were compared.

    What only one study has is there with nothing on the other side.
    """
    every = list(dict.fromkeys([*first, *second]))
    rows = [
        {"about": key[0], "setting": key[1], "one": _text(first.get(key)), "other": _text(second.get(key))}
        for key in every
        if first.get(key) != second.get(key)
    ]
    return pd.DataFrame(rows, columns=COLUMNS), len(every)


def subjects_of_one(names: tuple[str, str], facts: tuple[Facts, Facts]) -> dict[str, str]:
    """Return what only one study says anything about, such as a stream -> the name of that study."""
    first, second = ({about: name for about, _ in own} for name, own in zip(names, facts, strict=True))
    return {about: name for about, name in (first | second).items() if (about in first) != (about in second)}


def _text(value: Any) -> str:
    return "" if value is None else str(value)
