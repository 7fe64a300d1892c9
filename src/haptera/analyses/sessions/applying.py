"""Applying: a saved model on a recording, prepared as the model's own recordings were.

The file of a model says which channels it used, how they were smoothed and by which means and deviations they were
scaled; none of that is estimated again from the new recording.
Cost: reading, and one pass through the encoder.
"""

import logging
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from haptera.analyses.sessions.agreement import OTHER_STEP, is_other_step
from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.contrastive.model_file import read_preparations
from haptera.errors import HapteraError, unknown
from haptera.files.atomic import whole
from haptera.recordings.prepared import Preparation
from haptera.recordings.reading import Source
from haptera.recordings.recording import Recording

log = logging.getLogger("haptera")


def transform_recording(model: Path | str, recording: Recording | Source, session: str | None = None) -> pd.DataFrame:
    """Return the embedding of a recording by a saved model: a row for each sample.

    Columns are `time` (seconds) where it is known, `trial`, labels that were read, and `dimension 1`, ...

    Args:
        model: what `haptera embed` wrote.
        recording: one of the model's sessions, or another with the same channels; or where it is.
        session: the name or number of the session of the model; by default the one that is called like the file, or
            the only one.
    """
    path = Path(model)
    estimator, sessions = ContrastiveEmbedding.load(path), read_preparations(path)
    names = [one.name for one in sessions]
    place = _place(path, names, session, recording)
    prepared = sessions[place]
    if isinstance(recording, Source):
        recording = read_as_before(recording, prepared)
    try:
        ready = prepared.apply(recording)
    except HapteraError as error:
        raise HapteraError(f"{path}: {error}") from error
    for note in ready.notes:
        log.info("%s: %s", Path(ready.source).name, note)
    blocks = ready.blocks
    points = estimator.transform(ready.signal(), place, trials=blocks if blocks.max() else None)
    columns: dict[str, np.ndarray] = {} if ready.times is None else {"time": ready.times}
    columns |= {} if ready.trials is None else {"trial": ready.trials}
    columns |= {name: label.readable for name, label in ready.labels.items()}
    return pd.DataFrame(columns | {f"dimension {place + 1}": values for place, values in enumerate(points.T)})


def _place(path: Path, names: list[str], session: str | None, recording: Recording | Source) -> int:
    if session is None:
        stem = Path(recording.path if isinstance(recording, Source) else recording.source).stem
        if stem in names:
            return names.index(stem)
        if len(names) == 1:
            return 0
        raise HapteraError(f"{path} has the sessions {', '.join(names)}, and none is called {stem!r}; name one of them")
    if session in names:
        return names.index(session)
    if session.isdigit() and int(session) < len(names):
        return int(session)
    raise unknown(f"session of {path}", session, names)


def read_as_before(source: Source, prepared: Preparation) -> Recording:
    """Return the recording with the signal, and for spike times the bins, of the model where nobody says others."""
    timed = Path(source.path).suffix.lower() == ".nwb"
    signal = source.signal or (prepared.signal if timed else None)
    own = replace(source, signal=signal, bin=source.bin if source.bin is not None or not timed else prepared.bin)
    recording = own.read()
    if prepared.bin and source.bin is None and is_other_step(recording.step, prepared.bin):
        with suppress(HapteraError):  # of samples that are no spikes there is no other width
            recording = replace(own, bin=prepared.bin).read()
    if is_other_step(recording.step, prepared.bin):
        note = OTHER_STEP.format(recording.step, prepared.bin, "what the model learnt from")
        recording = replace(recording, notes=(*recording.notes, note))
    return recording


def write_frame(frame: pd.DataFrame, path: Path) -> None:
    """Write an embedding, whole: a table as .csv or .parquet, or arrays as .npz with the dimensions in one."""
    with whole(path) as file:
        if path.suffix.lower() == ".csv":
            file.write(frame.to_csv(index=False).encode())
        elif path.suffix.lower() == ".parquet":
            frame.to_parquet(file, index=False)
        else:
            columns = {str(name): values.to_numpy() for name, values in frame.items()}
            axes = [name for name in columns if name.startswith("dimension ")]
            arrays = {"embedding": np.column_stack([columns[name] for name in axes])}
            for name in columns.keys() - set(axes):
                arrays[name] = columns[name].astype(str) if columns[name].dtype == object else columns[name]
            np.savez(file, **arrays)  # type: ignore[arg-type]
