"""The schema of outputs: what their arrays and their provenance must be, checked when written and before measuring."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from haptera.errors import HapteraError
from haptera.files.json import parse_json
from haptera.files.schema import LARGEST, TEXT, Kind, check, list_of, optional, table_of, whole_number

CLASSES = 2**20
"""The most classes that a model can have; every measure of classes counts each of them."""
STEPS = 2**40
SHAPES = {
    "ids": ("iu", ("samples",)),
    "logits": ("f", ("samples", "classes")),
    "top_values": ("f", ("samples", "k")),
    "top_indices": ("iu", ("samples", "k")),
    "labels": ("iu", ("samples",)),
    "keypoints": ("f", ("samples", "parts", "2")),
    "confidence": ("f", ("samples", "parts")),
    "step": ("iu", ("samples",)),
    "accepted": ("b", ("classes of the data", "classes")),
    "columns": ("iu", ("classes",)),
    "classes": ("U", ("classes",)),
}
"""Array -> the kinds of numbers and the axes it must have; axes of one name have one length."""
KINDS = {"iu": "whole numbers", "f": "floats", "b": "true or false", "U": "text"}
FACTS: dict[str, tuple[Kind, str]] = {
    "model": (TEXT, "the model, as the table calls it"),
    "stream": (TEXT, "the stream"),
    "part": (TEXT, "which part of the stream, such as `contrast 4`"),
    "adapter": (TEXT, "the adapter"),
    "parent": (optional(TEXT), "the adapter without its learning, to which `learning_gain` compares"),
    "seed": (optional(whole_number(-LARGEST)), "of the stream; null where predictions have none"),
    "key": (TEXT, "fingerprint of all that decides the outputs; the name of the file"),
    "schema": (whole_number(), "the version of the folder's format"),
    "model_print": (TEXT, "fingerprint of the model; empty for predictions made elsewhere"),
    "stream_print": (TEXT, "fingerprint of the part of the stream; empty for predictions made elsewhere"),
    "imported": (TEXT, "the file that predictions made elsewhere came from"),
    "versions": (table_of(TEXT), "library -> version, of all that affect the numbers"),
    "threads": (whole_number(1), "of torch"),
    "device": (TEXT, "where the model ran"),
    "keep": (TEXT, "what was kept of the logits: `float32`, `float16` or `top5` and the like"),
    "invalid": (whole_number(), "samples with a logit that is not a number"),
    "dropped": (whole_number(), "samples whose class the mapping leaves out"),
    "parts": (list_of(TEXT), "names of the keypoints, in the order of their axis"),
    "normalise": (optional(TEXT), "what lengths of keypoints are divided by"),
}
"""Key of the provenance -> what its value must be, and what it says; none is required, others are kept as they are."""
PROVENANCE = {key: kind for key, (kind, _) in FACTS.items()}


def check_provenance(content: Any, where: str) -> dict[str, Any]:
    """Return provenance after checking the keys that are known."""
    return check(content, PROVENANCE, where, missing=tuple(PROVENANCE))


def read_provenance(content: Mapping[str, np.ndarray], path: Path) -> dict[str, Any]:
    """Return the provenance of a file of outputs, if it is one."""
    if "provenance" not in content or "ids" not in content:
        raise HapteraError(f"{path} is not a file of outputs; `haptera import` reads predictions made elsewhere")
    where = f"the provenance of {path}"
    return check_provenance(parse_json(content["provenance"].tobytes(), where), where)


def check_arrays(content: Mapping[str, np.ndarray], path: Path) -> None:
    """Refuse arrays of another type or shape, and indices that point at nothing."""
    sides: dict[str, int] = {"2": 2}
    for name, (kinds, axes) in SHAPES.items():
        if name in content:
            _check_array(content[name], kinds, axes, sides, f"{path}: {name}")
    classes = sides.get("classes", CLASSES)
    _check_below(content, "labels", CLASSES, path)
    _check_below(content, "columns", CLASSES, path)
    # Missing values of a model that predicts nothing are -1.
    _check_below(content, "top_indices", classes, path, lowest=-1)
    _check_targets(content, sides, path)
    lengths = {len(values) for name, values in content.items() if name.startswith("steps/") and values.ndim}
    _check_below(content, "step", min(lengths, default=STEPS), path)
    for name, values in content.items():
        if name.startswith("steps/") and (values.ndim != 1 or values.dtype.kind not in "fiub"):
            raise HapteraError(f"{path}: {name} is {values.dtype} {values.shape}; numbers (steps,) were expected")


def read_context(content: Mapping[str, np.ndarray], path: Path) -> dict[str, np.ndarray]:
    """Return the context of every sample: key -> `(samples,)`."""
    context = {}
    for name, values in content.items():
        key = name.removeprefix("context/").removesuffix("/values")
        if name != f"context/{key}/values":
            continue
        codes = content.get(f"context/{key}/codes")
        kinds = {"shift": "U", "severity": "fiu"}.get(key, "fiubU")
        if values.ndim != 1 or values.dtype.kind not in kinds:
            raise HapteraError(f"{path}: {name} is {values.dtype} {values.shape}; a list of numbers or text expected")
        if codes is None or codes.ndim != 1 or codes.dtype.kind not in "iu" or len(codes) != len(content["ids"]):
            raise HapteraError(f"{path}: {name} has no codes, a whole number for each of the samples")
        if len(codes) and not (0 <= codes.max() < len(values) and (codes.dtype.kind == "u" or codes.min() >= 0)):
            raise HapteraError(f"{path}: codes of the context {key!r} point beyond its {len(values)} values")
        context[key] = values[codes]
    return context


def _check_array(array: np.ndarray, kinds: str, axes: tuple[str, ...], sides: dict[str, int], what: str) -> None:
    if array.dtype.kind not in kinds or array.ndim != len(axes):
        expected = f"{KINDS[kinds]} ({', '.join(axes)})"
        raise HapteraError(f"{what} is {array.dtype} {array.shape}; {expected} was expected")
    for axis, side in zip(axes, array.shape, strict=True):
        if sides.setdefault(axis, side) != side:
            expected = f"{KINDS[kinds]} ({', '.join(axes)})"
            raise HapteraError(
                f"{what} is {array.shape}, and {sides[axis]} {axis} are in the file; {expected} expected"
            )


def _check_targets(content: Mapping[str, np.ndarray], sides: dict[str, int], path: Path) -> None:
    if "targets" not in content:
        return
    if "keypoints" in content:
        _check_array(content["targets"], "f", ("samples", "parts", "2"), sides, f"{path}: targets")
        return
    _check_array(content["targets"], "iu", ("samples",), sides, f"{path}: targets")
    valid = sides.get("classes of the data", sides.get("classes", CLASSES) if "logits" in content else CLASSES)
    _check_below(content, "targets", valid, path)


def _check_below(content: Mapping[str, np.ndarray], name: str, valid: int, path: Path, lowest: int = 0) -> None:
    array = content.get(name)
    if array is None or not array.size:
        return
    wrong = (array < lowest) | (array >= valid)
    if wrong.any():
        raise HapteraError(f"{path}: {name} holds {array[wrong][0]}; {lowest} to {valid - 1:,} was expected")
