"""Folders of recordings: those of suite2p, and those of pynapple's objects, one .npz each.

suite2p: `plane0/F.npy`, `Fneu.npy`, `spks.npy` are (cells, frames), `iscell.npy` says which are cells. Planes stand
side by side. `ops.npy` and `stat.npy` are pickles, which may run code, and are never opened; so `bin` is the time from
frame to frame, where it is needed. pynapple: a file with `t` and `index` are units, one with `t` and `d` a series.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from haptera.errors import HapteraError, unknown
from haptera.files.npz import map_npy
from haptera.recordings.arrays import split_kind
from haptera.recordings.pynapple import is_pynapple, read_pynapple
from haptera.recordings.recording import Recording

if TYPE_CHECKING:
    from haptera.recordings.reading import Source

TRACES = ("spks", "F", "Fneu", "corrected")
NEUROPIL = 0.7
"""Share of the neuropil that is taken away in `corrected`, suite2p's own default."""


def read_folder(asked: "Source") -> Recording:
    """Return the recording of a folder, as `Source.read` does."""
    path = Path(asked.path)
    planes = suite2p_planes(path)
    if planes:
        return _read_suite2p(asked, planes)
    files = {each.stem: each for each in sorted(path.glob("*.npz")) if is_pynapple(each)}
    if files:
        return read_pynapple(asked, files)
    raise HapteraError(
        f"{path} is a folder, and neither suite2p's, with plane0/F.npy, nor one of pynapple's .npz files"
    )


def suite2p_planes(path: Path) -> list[Path]:
    """Return the folders of planes inside of a folder, or the folder itself if it is one."""
    for parent in (path, path / "suite2p"):
        planes = sorted(each.parent for each in parent.glob("plane*/F.npy"))
        if planes:
            return planes
    return [path] if (path / "F.npy").is_file() else []


def _read_suite2p(asked: "Source", planes: list[Path]) -> Recording:
    path, name = str(asked.path), asked.signal or "spks"
    if name not in TRACES:
        raise unknown(f"signal of the suite2p folder {path}", name, TRACES)
    if asked.labels or asked.trials or asked.epoch:
        what = ", ".join(label for label, _ in map(split_kind, asked.labels)) or "trials or an epoch"
        raise HapteraError(f"{path} is a suite2p folder and has no {what}; give a second file with it (behaviour)")
    notes, traces, facts = [], [], []
    for plane in planes:
        values, kept, confidence = _plane(plane, name)
        traces.append(values[kept].T)
        own = {"id": [f"{plane.name}/{cell}" for cell in np.flatnonzero(kept)], "plane": plane.name}
        facts.append(pd.DataFrame(own | ({} if confidence is None else {"probability": confidence[kept]})))
        if not kept.all():
            notes.append(
                f"{plane.name}: {int((~kept).sum())} of {len(kept)} regions left out, which iscell.npy says are none"
            )
    frames = min(map(len, traces))
    if max(map(len, traces)) > frames:
        listed = ", ".join(f"{len(one):,}" for one in traces)
        notes.append(f"planes have {listed} frames; all are cut at their end to {frames:,}")
    signal = np.concatenate([one[:frames] for one in traces], axis=1).astype(np.float32)
    if not signal.shape[1]:
        raise HapteraError(f"{path}: iscell.npy says that no region is a cell")
    times = None if asked.bin is None else (np.arange(frames) + 0.5) * asked.bin
    made = Recording.from_arrays({name: signal}, times=times, source=path)
    facts_of = pd.concat(facts, ignore_index=True)
    channels = made.channels.get(name)
    if channels is not None:
        facts_of = facts_of.iloc[channels["place"].to_numpy()].reset_index(drop=True)
    return Recording(made.signals, {}, None, made.times, {name: facts_of}, path, (*notes, *made.notes), made.gaps)


def _plane(plane: Path, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return traces (cells, frames) of a plane, which of them are cells, and how surely."""
    parts = {"corrected": ("F", "Fneu")}.get(name, (name,))
    arrays = []
    for part in parts:
        file = plane / f"{part}.npy"
        if not file.is_file():
            raise HapteraError(f"there is no {file}; the suite2p folder has no {name!r}")
        arrays.append(map_npy(file))
    if any(one.ndim != 2 or one.dtype.kind not in "fiu" for one in arrays):
        raise HapteraError(f"{plane / parts[0]}.npy is {arrays[0].dtype} {arrays[0].shape}; (cells, frames) expected")
    if len({one.shape for one in arrays}) > 1:
        raise HapteraError(
            f"{plane}: F.npy and Fneu.npy have shapes {[one.shape for one in arrays]}; the same expected"
        )
    values = arrays[0] if len(arrays) == 1 else arrays[0] - NEUROPIL * arrays[1]
    said = plane / "iscell.npy"
    if not said.is_file():
        return values, np.ones(len(values), bool), None
    cells = np.asarray(map_npy(said))
    if cells.ndim != 2 or len(cells) != len(values):
        raise HapteraError(f"{said} has the shape {cells.shape}; a row for each of {len(values)} regions was expected")
    return values, cells[:, 0] > 0, cells[:, 1] if cells.shape[1] > 1 else None
