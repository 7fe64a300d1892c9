"""Series of an NWB file: values with times, found by a name that is short and still means one of them.

A name may be the whole path (`acquisition/CompassDirection/ry`), its end (`CompassDirection/ry`, `ry`), or a container.
`head_direction` means the container that the format has for it, CompassDirection. Of several angles in one, the one
that turns all around is meant, for the others are the tilt of the head; of several places in a Position, all.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from haptera.checks import is_number
from haptera.errors import HapteraError, unknown
from haptera.files.hdf5 import attribute, values_of

_TYPES = {"head_direction": "CompassDirection", "heading": "CompassDirection", "position": "Position"}


@dataclass(frozen=True, eq=False)
class Series:
    """Values and their times.

    Attributes:
        path: in the file.
        times: `(samples,)`, seconds, rising or equal.
        values: `(samples,)` or `(samples, dimensions)`, in the unit of the file.
        kind: `angle`, `degrees`, or None where the unit does not say it.
        notes: what was done while reading, in words.
    """

    path: str
    times: np.ndarray
    values: np.ndarray
    kind: str | None
    notes: tuple[str, ...] = ()


def find_series(file: Any, name: str) -> Series:
    """The series that a name means; a container's series together."""
    known = _all_series(file)
    paths = [path for path in known if path == name or path.endswith(f"/{name}")]
    if len(paths) == 1:
        return _read(known[paths[0]], paths[0])
    if len(paths) > 1:
        raise HapteraError(f"{name!r} may be {' or '.join(paths)}; give more of the path")
    inside = [path for path in known if _holds(file, path, name)]
    if not inside:
        raise unknown(
            "series or container in the file", name, {*_short(known), *(_TYPES if _typed(file, known) else ())}
        )
    series = [_read(known[path], path) for path in inside]
    if len(series) == 1:
        return series[0]
    if all(each.kind in ("angle", "degrees") for each in series):
        return max(series, key=_turns)
    if len({len(each.values) for each in series}) > 1:
        raise HapteraError(f"{name!r} holds {', '.join(inside)}, of different lengths; name one of them")
    if any(not np.array_equal(each.times, series[0].times) for each in series):
        raise HapteraError(f"{name!r} holds {', '.join(inside)}, recorded at different times; name one of them")
    columns = [each.values.reshape(len(each.values), -1) for each in series]
    return replace(series[0], path=name, values=np.concatenate(columns, axis=1))


def _all_series(file: Any) -> dict[str, Any]:
    """Path -> group, for every group with data and times."""
    import h5py

    found: dict[str, Any] = {}

    def visit(path: str, item: object) -> None:
        if isinstance(item, h5py.Group) and "data" in item and ("timestamps" in item or "starting_time" in item):
            found[path] = item

    file.visititems(visit)
    return found


def cell_series(file: Any) -> list[str]:
    """Return the paths of series that hold the activity of cells of an imaging plane."""
    return [path for path, group in _all_series(file).items() if _type(group) == "RoiResponseSeries"]


def _cells(group: Any) -> int | None:
    """Return how many cells a series is of, where it says so."""
    rois = group.get("rois")
    return None if rois is None or len(getattr(rois, "shape", ())) != 1 else int(rois.shape[0])


def _holds(file: Any, path: str, name: str) -> bool:
    """Say whether the container of a series has this name, or is of the type that the name stands for."""
    container = path.rpartition("/")[0]
    if container == name or container.endswith(f"/{name}"):
        return True
    return _TYPES.get(name.lower()) == _type(file[container])


def _typed(file: Any, known: Mapping[str, Any]) -> bool:
    return any(_type(file[path.rpartition("/")[0]]) in _TYPES.values() for path in known)


def _type(group: Any) -> str:
    return str(attribute(group, "neurodata_type", ""))


def _short(known: Mapping[str, Any]) -> list[str]:
    """The last part of each path, or more of it where that is not enough."""
    last = [path.rpartition("/")[2] for path in known]
    return [path if last.count(end) > 1 else end for path, end in zip(known, last, strict=True)]


def _read(group: Any, path: str) -> Series:
    data = group["data"]
    values = values_of(data, f"{path}/data")
    if values.ndim not in (1, 2) or not len(values):
        raise HapteraError(f"{path} has the shape {values.shape}; numbers (samples,) or (samples, channels) expected")
    unit = str(attribute(data, "unit", "")).strip().lower()
    scale, shift = (_number(data, key, default, path) for key, default in (("conversion", 1.0), ("offset", 0.0)))
    values = values * scale + shift if (scale, shift) != (1.0, 0.0) else values
    kind = {"radian": "angle", "radians": "angle", "rad": "angle"}.get(unit)
    kind = "degrees" if unit in ("degree", "degrees", "deg") else kind
    notes: tuple[str, ...] = ()
    if (cells := _cells(group)) is not None and values.ndim == 2 and values.shape[1] != cells == len(values):
        values = values.T
        notes = (f"{path} is {data.shape}, cells by samples, and was turned",)
    times = _times(group, len(values), path)
    if times.shape != (len(values),):
        raise HapteraError(f"{path} has {len(values):,} values and {times.size:,} times; one for each was expected")
    return in_order(Series(path, times, values, kind if values.ndim == 1 else None, notes))


def _times(group: Any, samples: int, path: str) -> np.ndarray:
    if "timestamps" in group:
        return values_of(group["timestamps"], f"{path}/timestamps").astype(float)
    start = values_of(group["starting_time"], f"{path}/starting_time").astype(float)
    rate = _number(group["starting_time"], "rate", None, f"{path}/starting_time")
    if start.size != 1 or not np.isfinite(start).all() or not rate > 0:
        raise HapteraError(
            f"{path} starts at {start.ravel()[:3]} s with a rate of {rate:g}; one time, and a rate above 0"
        )
    return start.ravel()[0] + np.arange(samples) / rate


def _number(item: Any, key: str, default: float | None, path: str) -> float:
    value = attribute(item, key, default)
    if not is_number(value) or not np.isfinite(value):
        raise HapteraError(f"{path}: the attribute {key!r} is {value!r}; a number was expected")
    return float(value)


def in_order(series: Series) -> Series:
    """Return the series with rising times: the stamp of a sample says where it belongs, not its place in the file."""
    timed = np.isfinite(series.times)
    times, values, notes = series.times[timed], series.values[timed], list(series.notes)
    if not len(times):
        raise HapteraError(f"{series.path} has no sample with a time")
    if untimed := int((~timed).sum()):
        notes.append(f"{series.path}: {untimed:,} of {len(timed):,} samples have no time and are left out")
    if back := int((np.diff(times) < 0).sum()):
        order = np.argsort(times, kind="stable")
        times, values = times[order], values[order]
        notes.append(f"{series.path}: time goes back in {back:,} places; samples were put in the order of their times")
    return replace(series, times=times, values=values, notes=tuple(notes))


def _turns(series: Series) -> float:
    """How evenly angles lie on the circle: 1 for all around, 0 for always the same."""
    angles = np.deg2rad(series.values) if series.kind == "degrees" else series.values
    return 1 - float(np.abs(np.nanmean(np.exp(1j * angles.astype(float)))))
