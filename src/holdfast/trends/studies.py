"""Studies: a stream of a study as a side of an analysis, every model and adapter on the same examples."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from holdfast.errors import HoldfastError, unknown
from holdfast.manifest import Listed, Manifest, shortened
from holdfast.outputs import Outputs
from holdfast.trends.side import Side

Key = tuple[str, int]
Part = tuple[np.ndarray, np.ndarray]
"""Ids, and whether each is right."""


def read_stream(source: str, folder: Path, names: Sequence[str]) -> Side:
    """The finished cells of a stream.

    Args:
        source: what the user wrote, for messages.
        folder: of a study.
        names: the stream, and perhaps one of its shifts, and a severity.
    """
    manifest = Manifest.read(folder)
    streams = sorted({cell.stream for cell in manifest.cells})
    if not names:
        raise HoldfastError(
            f"{source} is a study; name one of its streams, as in {folder}:{(streams or ['STREAM'])[0]}"
        )
    if len(names) > 3:
        raise HoldfastError(f"{source}: {folder}:STREAM:SHIFT:SEVERITY was expected at most")
    if names[0] not in streams:
        raise unknown(f"stream in {folder}", names[0], streams)
    found: dict[str, dict[Key, Part]] = {}
    shifts: set[str] = set()
    for cell in manifest.cells:
        if cell.stream == names[0] and manifest.finished(cell):
            outputs = Outputs.load(manifest.path(cell))
            shifts |= set(_shown(outputs, "shift")[0])
            if outputs.targets is not None and (part := _part(outputs, names[1:])) is not None:
                found.setdefault(_name(cell), {})[cell.part, cell.seed] = part
    if len(names) > 1 and names[1] not in shifts and shifts:
        raise unknown(f"shift in {folder}:{names[0]}", names[1], shifts)
    if not found:
        raise HoldfastError(f"{source}: no finished cell with targets is of that stream, shift and severity")
    return _side(source, found)


def _name(cell: Listed) -> str:
    return cell.model if cell.adapter == "none" else f"{cell.model} · {cell.adapter}"


def _part(outputs: Outputs, wanted: Sequence[str]) -> Part | None:
    """The samples under the wanted shift and severity, in the order of their ids."""
    kept = np.ones(len(outputs), bool)
    for key, name in zip(("shift", "severity"), wanted, strict=False):
        values, codes = _shown(outputs, key)
        kept &= np.array([value == name for value in values])[codes]
    if not kept.any():
        return None
    ids, correct = outputs.ids[kept], outputs.correct()[kept]
    order = np.argsort(ids, kind="stable")
    return ids[order], correct[order]


def _shown(outputs: Outputs, key: str) -> tuple[list[str], np.ndarray]:
    """The values of a context as the user writes them, and which of them each sample has."""
    values, codes = np.unique(outputs.context.get(key, np.full(len(outputs), "")), return_inverse=True)
    return [f"{value:g}" if isinstance(value, float) else str(value) for value in values.tolist()], codes


def _side(source: str, found: dict[str, dict[Key, Part]]) -> Side:
    keys = sorted({key for parts in found.values() for key in parts})
    whole = {name: parts for name, parts in found.items() if len(parts) == len(keys)}
    notes = []
    if missing := sorted(set(found) - set(whole)):
        notes.append(f"{source}: {len(missing)} left out, which have not been run on all of it: {shortened(missing)}")
    if not whole:
        raise HoldfastError(f"{source}: no model has been run on all of it")
    ids = {name: np.concatenate([parts[key][0] for key in keys]) for name, parts in whole.items()}
    first = next(iter(whole))
    for name, own in ids.items():
        if not np.array_equal(own, ids[first]):
            raise HoldfastError(f"{source}: {name} was run on other examples than {first}")
    correct = np.stack([np.concatenate([parts[key][1] for key in keys]) for parts in whole.values()])
    once = len(np.unique(ids[first])) == len(ids[first])
    return Side.of_correct(source, list(whole), correct, ids[first] if once else None, notes)
