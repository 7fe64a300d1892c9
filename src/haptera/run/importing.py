"""Predictions made elsewhere, by any framework, become outputs like any other."""

from dataclasses import asdict
from pathlib import Path

import numpy as np

from haptera import __version__
from haptera.errors import HapteraError, check_keys
from haptera.files.fingerprint import SCHEMA, fingerprint
from haptera.files.npz import read_npz
from haptera.outputs import Outputs
from haptera.outputs_schema import CLASSES
from haptera.run.additions import open_for_addition
from haptera.run.cells import CELL, NAMES, STUDY, CellEntry, start_of

KEYS = ("logits", "labels", "predictions", "ids", "targets", "classes")


def import_predictions(
    path: Path,
    out: Path,
    *,
    model: str,
    stream: str,
    adapter: str = "none",
    shift: str = "clean",
    severity: float = 0.0,
    seed: int = 0,
) -> CellEntry:
    """Add a file of predictions to the folder of a study; waits while another run is writing into it.

    Args:
        path: an `.npz` with `logits` (samples, classes) or `labels` (samples,), and, if known, `targets`, `ids` and
            the names of the `classes`.
        out: the folder; made if it is not there.
        model: its name in the table, and so on for the others.
    """
    outputs = read_predictions(path)
    if not (np.isfinite(severity) and -(2**53) <= seed <= 2**53):
        raise HapteraError(f"severity is {severity} and seed {seed}; a finite number and a whole number were expected")
    outputs.context = {"shift": np.full(len(outputs), shift), "severity": np.full(len(outputs), float(severity))}
    names = (model, stream, stream if shift == "clean" else f"{shift} {severity:g}", adapter, seed)
    key = fingerprint(SCHEMA, names, outputs.arrays, outputs.ids, outputs.targets)
    cell = CellEntry(key, *names)
    versions = {"versions": {"haptera": __version__}, "imported": path.name, "schema": SCHEMA}
    outputs.provenance = versions | asdict(cell)
    with open_for_addition(out, STUDY, noun=CELL, about=start_of(out), wait=None) as add:
        outputs.save(out / cell.piece.path)
        add(cell.piece, NAMES)  # last: the plan lists what is there, or the import has not happened
    return cell


def read_predictions(path: Path) -> Outputs:
    """Read and check an `.npz` of predictions."""
    if not path.is_file():
        raise HapteraError(f"there is no file {path}")
    content = read_npz(path)
    check_keys(f"array in {path.name}", content, KEYS)
    if "predictions" in content:
        content["labels"] = content.pop("predictions")
    if ("logits" in content) == ("labels" in content):
        raise HapteraError(f"{path} has {', '.join(content) or 'nothing'}; either logits or labels were expected")
    logits, labels = content.get("logits"), content.get("labels")
    if logits is not None:
        if logits.ndim != 2 or logits.dtype.kind != "f" or not len(logits):
            raise HapteraError(
                f"{path}: logits are {logits.dtype} {logits.shape}; floats (samples, classes) were expected"
            )
        # As they came, for a cast may make two logits equal, or infinite; only what NumPy alone knows is narrowed.
        arrays = {"logits": logits.astype(np.float64) if logits.dtype.itemsize > 8 else logits}
        valid = logits.shape[1]
    else:
        assert labels is not None
        arrays = {"labels": _whole(path, "labels", labels, CLASSES)}
        valid = CLASSES
    size = len(next(iter(arrays.values())))
    targets = _whole(path, "targets", content["targets"], valid) if "targets" in content else None
    ids = _whole(path, "ids", content["ids"], 2**63) if "ids" in content else np.arange(size)
    if len(np.unique(ids)) < len(ids):
        raise HapteraError(f"{path}: ids repeat; one for each sample was expected")
    names = None
    if "classes" in content and logits is not None:
        names = content["classes"]
        names = np.char.decode(names, "utf-8", "replace") if names.dtype.kind == "S" else names
        if names.dtype.kind != "U" or names.shape != (valid,):
            raise HapteraError(f"{path}: classes are {names.dtype} {names.shape}; {valid} names were expected")
    try:
        return Outputs(arrays, ids, targets, classes=names)
    except HapteraError as error:
        raise HapteraError(f"{path}: {error}") from error


def _whole(path: Path, name: str, array: np.ndarray, valid: int) -> np.ndarray:
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise HapteraError(f"{path}: {name} are {array.dtype} {array.shape}; whole numbers (samples,) were expected")
    wrong = (array < 0) | (array >= valid)
    if wrong.any():
        raise HapteraError(f"{path}: {name} hold {array[wrong][0]}; 0 to {valid - 1} was expected")
    return array.astype(np.int64)
