"""Cells: MATLAB's lists of arrays of unequal lengths, and what they make: spikes of units, or trials.

A cell of vectors is the spike times of units; a cell of matrices is trials, each (samples, channels), which become one
signal with the trial of each sample. Where cells share their first side and not the second they are (channels,
samples), and are turned.
"""

from collections.abc import Iterable

import numpy as np

from haptera.errors import HapteraError


def as_cells(values: object) -> np.ndarray | None:
    """Return a list of number arrays as an array of objects, one each; None for anything else."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        return None
    if not isinstance(values, list | tuple | np.ndarray) or not len(values):
        return None
    parts = [np.asarray(one) for one in (values.ravel() if isinstance(values, np.ndarray) else values)]
    if any(one.dtype.kind not in "fiub" or one.ndim > 2 for one in parts):
        return None
    cells = np.empty(len(parts), object)
    for place, one in enumerate(parts):
        cells[place] = np.atleast_1d(one)
    return cells


def are_spikes(cells: np.ndarray) -> bool:
    """Say whether every cell is a vector: spike times, of which a unit may have none."""
    return all(one.ndim == 1 or 1 in one.shape or not one.size for one in cells)


def join_trials(cells: Iterable[np.ndarray], name: str, source: str) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return one signal `(samples, channels)`, the trial of each sample from 0, and whether cells were turned."""
    parts = [np.atleast_2d(one) for one in cells]
    columns, rows = {one.shape[1] for one in parts}, {one.shape[0] for one in parts}
    turned = len(columns) > 1 and len(rows) == 1
    if turned:
        parts = [one.T for one in parts]
    elif len(columns) > 1:
        shapes = ", ".join(str(one.shape) for one in parts[:4])
        raise HapteraError(f"{source}: the cells of {name!r} are {shapes}, ...; trials with the same channels expected")
    return np.concatenate(parts), np.repeat(np.arange(len(parts)), [len(one) for one in parts]), turned


def join_labels(cells: np.ndarray, trials: np.ndarray, name: str, source: str) -> np.ndarray:
    """Return the label of every sample from a cell for each trial; a cell of one value holds for its whole trial."""
    lengths = np.bincount(trials)
    if len(cells) != len(lengths):
        raise HapteraError(f"{source}: label {name!r} has {len(cells)} cells, the signal {len(lengths)} trials")
    parts = []
    for place, (one, length) in enumerate(zip(cells, lengths, strict=True)):
        values = one.ravel() if 1 in one.shape else one
        values = values.T if values.ndim == 2 and len(values) != length and values.shape[1] == length else values
        if len(values) not in (1, length):
            raise HapteraError(
                f"{source}: cell {place} of {name!r} has {len(values):,} values, and the trial {length:,} samples"
            )
        parts.append(np.repeat(values, length, axis=0) if len(values) == 1 else values)
    return np.concatenate(parts)
