"""A profile as one safetensors file: arrays, and the rest as JSON in its header, with a fingerprint of the arrays."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from haptera import __version__
from haptera.analyses.diagnosis.known_shifts import KnownShifts
from haptera.errors import HapteraError
from haptera.files.atomic import whole
from haptera.files.fingerprint import fingerprint
from haptera.files.json import plain
from haptera.files.safetensors import read_header
from haptera.files.schema import FLAG, TABLE, TEXT, Kind, check, list_of, number, optional, table_of, whole_number
from haptera.measures.label_free import ESTIMATES
from haptera.statistics.moments import Moments

if TYPE_CHECKING:
    from haptera.live.profile import Profile

_KEY = "haptera.profile"
_SCORE = "score."
_FACTS: dict[str, Kind] = {
    "fingerprint": TEXT,
    "name": TEXT,
    "early": TEXT,
    "arrays": TEXT,
    "layers": list_of(TEXT),
    "channels": list_of(whole_number(1)),
    "known": TABLE,
}
_KNOWN: dict[str, Kind] = {
    "rows": list_of(TABLE),
    "clean": table_of(number()),
    "images": whole_number(),
}
_TOLD = ("error", *ESTIMATES)
"""Columns that are missing without labels."""
_ROW: dict[str, Kind] = {
    "shift": TEXT,
    "family": TEXT,
    "holdout": FLAG,
    "severity": number(0),
    "size": optional(number()),
    **dict.fromkeys(_TOLD, optional(number(0, 1))),
}


def write_profile(profile: "Profile", path: Path) -> None:
    """Write a profile."""
    known, moments = profile.known, profile.moments
    arrays: dict[str, Any] = {f"{_SCORE}{name}": values for name, values in profile.scores.items()}
    arrays |= {name: getattr(profile, name) for name in ("logits", "targets", "right", "centre", "spread")}
    if moments is not None:
        arrays |= {"first": moments.first, "second": moments.second, "counts": moments.images}
    if len(known.changes):
        arrays["changes"] = known.changes
    arrays = {name: np.ascontiguousarray(values) for name, values in arrays.items() if values is not None}
    rows = known.frame[[key for key in _ROW if key in known.frame]].to_dict("records")
    facts = {
        "version": __version__,
        "fingerprint": profile.fingerprint,
        "name": profile.name,
        "early": profile.early,
        "arrays": fingerprint(arrays),
        "layers": [] if moments is None else list(moments.names),
        "channels": [] if moments is None else list(moments.channels),
        "known": {"rows": rows, "clean": known.clean, "images": known.images},
    }
    with whole(path) as file:
        file.write(save(arrays, {_KEY: json.dumps(plain(facts), allow_nan=False)}))


def read_profile(path: Path) -> "Profile":
    """Read a profile; a damaged file is refused."""
    from haptera.live.profile import Profile

    where = f"the header of {path}"
    facts = check(read_header(path, _KEY, "profile", "haptera profile"), _FACTS, where)
    try:
        arrays = load_file(path)
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise HapteraError(f"cannot read the profile {path}: {error}") from error
    if fingerprint(arrays) != facts["arrays"]:
        raise HapteraError(f"{path} is damaged: its arrays are not those that were written; measure it again")
    scores = {name.removeprefix(_SCORE): values for name, values in arrays.items() if name.startswith(_SCORE)}
    _check_arrays(arrays, facts, path)
    return Profile(
        facts["fingerprint"],
        scores,
        arrays["logits"],
        arrays.get("targets"),
        arrays.get("right"),
        _moments(arrays, facts),
        facts["early"],
        arrays.get("centre"),
        arrays.get("spread"),
        _known(facts["known"], arrays, path),
        facts["name"],
    )


def _check_arrays(arrays: dict[str, np.ndarray], facts: dict[str, Any], path: Path) -> None:
    """Refuse arrays that do not fit one another."""
    if "logits" not in arrays or arrays["logits"].ndim != 2 or not len(arrays["logits"]):
        raise HapteraError(f"{path} has no logits (images, classes); measure it again")
    images, channels = len(arrays["logits"]), sum(facts["channels"])
    expected: dict[str, tuple[int, ...]] = {name: (images,) for name in arrays if name.startswith(_SCORE)}
    expected |= {name: (images,) for name in ("targets", "right") if name in arrays}
    if facts["layers"]:
        groups = arrays["counts"].shape[:1] if "counts" in arrays else (0,)
        expected |= {"first": (*groups, channels), "second": (*groups, channels), "counts": groups}
    if "changes" in arrays:
        rows = len(facts["known"]["rows"]) if isinstance(facts["known"].get("rows"), list) else 0
        expected["changes"] = (rows, *arrays["changes"].shape[1:2])
    if "spread" in arrays or "centre" in arrays:
        sides = arrays.get("centre", arrays.get("spread", np.zeros(0))).shape[:1]
        expected |= {"centre": sides, "spread": sides}
    for name, shape in expected.items():
        found = arrays[name].shape if name in arrays else ()
        if found != shape:
            raise HapteraError(f"{path}: {name} has shape {found}; {shape} was expected; measure it again")
    if len(facts["layers"]) != len(facts["channels"]):
        raise HapteraError(
            f"{path} names {len(facts['layers'])} layers and {len(facts['channels'])} numbers of channels"
        )


def _moments(arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> Moments | None:
    if not facts["layers"]:
        return None
    names, channels = tuple(facts["layers"]), tuple(facts["channels"])
    return Moments(names, channels, arrays["first"], arrays["second"], arrays["counts"])


def _known(content: Any, arrays: dict[str, np.ndarray], path: Path) -> KnownShifts:
    facts = check(content, _KNOWN, f"known in the header of {path}")
    for place, row in enumerate(facts["rows"]):
        check(row, _ROW, f"row {place} of known in the header of {path}", missing=_TOLD)
    columns = [key for key in _ROW if facts["rows"] and all(key in row for row in facts["rows"])]
    frame = pd.DataFrame([{key: row[key] for key in columns} for row in facts["rows"]])
    for key in set(columns) & {"severity", "size", *_TOLD}:
        frame[key] = frame[key].astype(float)
    changes = arrays.get("changes", np.zeros((0, 0)))
    return KnownShifts(frame, changes, facts["clean"], facts["images"])
