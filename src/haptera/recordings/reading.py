"""Reading: a recording out of a file, whatever wrote it.

| file | what is in it |
|---|---|
| `.npz`, `.h5`, `.mat` | arrays by name: a signal (samples, channels), labels and trials (samples,) |
| `.mat` with cells | a cell of vectors: spike times of units; a cell of matrices: trials |
| `.npz` of pynapple | units, or a series |
| `.npy` | one signal |
| `.csv`, `.parquet`, `.xlsx` | a column for each channel and label; or two: spike times and their units |
| a folder of suite2p or pynapple | cells of all planes; units or a series, the others are labels |
| DeepLabCut's `.csv`, `.h5` | body parts are labels, and together the signal `tracks` |
| `.nwb` | spike times, or a series; behaviour sampled at other times is brought into the same bins |
| any other | what Neo reads, where it is installed: spike trains, signals, epochs |

No pickle that could run code is loaded; those in a DeepLabCut `.h5` hold names of columns, or else the file is refused
(`haptera.files.hdf5`). Other HDF5 and NWB is read with h5py alone: NWB is HDF5 with agreed names, of which a recording
needs few, and pynwb brings ten packages and a schema for every version of the format.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from haptera.errors import HapteraError, hint, unknown
from haptera.recordings.arrays import open_arrays, split_kind
from haptera.recordings.behaviour import Behaviour
from haptera.recordings.choosing import recording_of
from haptera.recordings.folders import read_folder
from haptera.recordings.neo import read_neo
from haptera.recordings.nwb import read_nwb
from haptera.recordings.pynapple import is_pynapple, read_pynapple
from haptera.recordings.recording import Recording

NAMED = 10
"""Labels of a second file that a message names; of more, the first."""
ENDINGS = (".npz", ".npy", ".csv", ".parquet", ".xlsx", ".mat", ".h5", ".hdf5", ".nwb")


@dataclass(frozen=True)
class Source:
    """Where a recording is and how to read it, so that it can be read again.

    Attributes:
        path: of the file.
        signal: its name in the file; `spikes` are the units of an NWB file; a pattern such as `unit*` takes columns of
            a table. The only one there is if left out.
        labels: names in the file; `name:kind` says of what kind one is: continuous, discrete, angle or degrees.
        trials: the name of the array with the trial of each sample; of the table of trials in an NWB file.
        bin: seconds, for NWB files; 0.1 for spikes and the rate of a series if left out.
        epoch: for NWB files, the tag of the epochs to read, such as `wake`.
        units: column -> value: only the channels of which that is known, such as `{"location": "adn"}`.
        behaviour: a second file, such as tracking, whose labels are joined to the samples by time.
        behaviour_rate: its samples per second, where it has no times.
        behaviour_start: the time of its first sample in the clock of the recording, where it has no times.
    """

    path: Path | str
    signal: str | None = None
    labels: Sequence[str] = ()
    trials: str | None = None
    bin: float | None = None
    epoch: str | None = None
    units: Mapping[str, str] = field(default_factory=dict)
    behaviour: Path | str | None = None
    behaviour_rate: float | None = None
    behaviour_start: float = 0.0

    def plain(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        fields = asdict(self) | {"labels": list(self.labels)}
        return {name: str(value) if isinstance(value, Path) else value for name, value in fields.items()}

    def read(self) -> Recording:
        """Return the recording."""
        if self.behaviour is None:
            return self._read()
        second = Behaviour(self.behaviour, self.behaviour_rate, self.behaviour_start)
        there = [label for label in self.labels if split_kind(label)[0] in second.names]
        own = [label for label in self.labels if label not in there]
        try:
            recording = replace(self, labels=own)._read()
        except HapteraError as error:
            if own and "unknown" in str(error):
                names = ", ".join(second.names[:NAMED]) + ", ..." * (len(second.names) > NAMED)
                raise HapteraError(f"{error}; in {second.path}: {names}") from error
            raise
        return second.join_to(recording, there) if there else recording

    def _read(self) -> Recording:
        path = Path(self.path).expanduser()
        if path.is_dir():
            recording = read_folder(replace(self, path=path))
            return recording.only_channels(next(iter(recording.signals)), **self.units) if self.units else recording
        if not path.is_file():
            beside = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
            raise HapteraError(f"there is no file {path};{hint(path.name, beside, cutoff=0.6)}".rstrip(";"))
        ending = path.suffix.lower()
        if ending not in ENDINGS and find_spec("neo") is None:
            known = unknown(f"kind of recording {path.name!r}, ending", ending, ENDINGS)
            raise HapteraError(f"{known} (others are read by Neo, which is not installed: pip install neo)")
        if ending not in ENDINGS:
            recording = read_neo(replace(self, path=path))
        else:
            recording = read_nwb(replace(self, path=path)) if ending == ".nwb" else self._read_arrays(path)
        return recording.only_channels(next(iter(recording.signals)), **self.units) if self.units else recording

    def _read_arrays(self, path: Path) -> Recording:
        if self.epoch is not None:
            raise HapteraError(f"epoch is for .nwb files, which name their epochs; {path.name} does not")
        if path.suffix.lower() == ".npz" and is_pynapple(path):
            return read_pynapple(replace(self, path=path), {path.stem: path})
        with open_arrays(path) as arrays:
            return recording_of(arrays, self.signal, self.labels, self.trials, bin=self.bin, source=str(path))


def read_recording(
    path: Path | str,
    signal: str | None = None,
    labels: Sequence[str] = (),
    *,
    trials: str | None = None,
    bin: float | None = None,
    epoch: str | None = None,
) -> Recording:
    """Read a signal and its labels; the arguments are those of `Source`."""
    return Source(path, signal, labels, trials, bin, epoch).read()
