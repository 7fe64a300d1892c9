"""Series of an NWB file: values with times, found by a name that is short and still means one of them.

A name may be the whole path (`acquisition/CompassDirection/ry`), its end (`CompassDirection/ry`, `ry`), or a container.
`head_direction` means the container that the format has for it, CompassDirection. Of several angles in one, the one
that turns all around is meant, for the others are the tilt of the head; of several places in a Position, all.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.errors import HoldfastError, unknown

_TYPES = {"head_direction": "CompassDirection", "heading": "CompassDirection", "position": "Position"}


@dataclass(frozen=True, eq=False)
class Series:
    """Values and their times.

    Attributes:
        path: in the file.
        times: `(samples,)`, seconds.
        values: `(samples,)` or `(samples, dimensions)`, in the unit of the file.
        kind: `angle`, `degrees`, or None where the unit does not say it.
    """

    path: str
    times: np.ndarray
    values: np.ndarray
    kind: str | None


def find_series(file: Any, name: str) -> Series:
    """The series that a name means; a container's series together."""
    known = _all_series(file)
    paths = [path for path in known if path == name or path.endswith(f"/{name}")]
    if len(paths) == 1:
        return _read(known[paths[0]], paths[0])
    if len(paths) > 1:
        raise HoldfastError(f"{name!r} may be {' or '.join(paths)}; give more of the path")
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
        raise HoldfastError(f"{name!r} holds {', '.join(inside)}, of different lengths; name one of them")
    columns = [each.values.reshape(len(each.values), -1) for each in series]
    return Series(name, series[0].times, np.concatenate(columns, axis=1), series[0].kind)


def _all_series(file: Any) -> dict[str, Any]:
    """Path -> group, for every group with data and times."""
    import h5py

    found: dict[str, Any] = {}

    def visit(path: str, item: object) -> None:
        if isinstance(item, h5py.Group) and "data" in item and ("timestamps" in item or "starting_time" in item):
            found[path] = item

    file.visititems(visit)
    return found


def _holds(file: Any, path: str, name: str) -> bool:
    """Whether the container of a series has this name, or is of the type that the name stands for."""
    container = path.rpartition("/")[0]
    if container == name or container.endswith(f"/{name}"):
        return True
    return _TYPES.get(name.lower()) == _type(file[container])


def _typed(file: Any, known: Mapping[str, Any]) -> bool:
    return any(_type(file[path.rpartition("/")[0]]) in _TYPES.values() for path in known)


def _type(group: Any) -> str:
    kind = group.attrs.get("neurodata_type", "")
    return kind.decode() if isinstance(kind, bytes) else str(kind)


def _short(known: Mapping[str, Any]) -> list[str]:
    """The last part of each path, or more of it where that is not enough."""
    last = [path.rpartition("/")[2] for path in known]
    return [path if last.count(end) > 1 else end for path, end in zip(known, last, strict=True)]


def _read(group: Any, path: str) -> Series:
    data = group["data"]
    if data.ndim > 2 or data.dtype.kind not in "fiub":
        raise HoldfastError(f"{path} is {data.dtype} {data.shape}; numbers (samples,) or (samples, channels) expected")
    values = np.asarray(data[()])
    unit = data.attrs.get("unit", "")
    unit = (unit.decode() if isinstance(unit, bytes) else str(unit)).strip().lower()
    scale, shift = float(data.attrs.get("conversion", 1.0)), float(data.attrs.get("offset", 0.0))
    values = values * scale + shift if (scale, shift) != (1.0, 0.0) else values
    kind = {"radian": "angle", "radians": "angle", "rad": "angle"}.get(unit)
    kind = "degrees" if unit in ("degree", "degrees", "deg") else kind
    if "timestamps" in group:
        times = np.asarray(group["timestamps"][()], float)
    else:
        start = group["starting_time"]
        times = float(start[()]) + np.arange(len(values)) / float(start.attrs["rate"])
    if len(times) != len(values):
        raise HoldfastError(f"{path} has {len(values):,} values and {len(times):,} times; one for each was expected")
    return Series(path, times, values, kind if values.ndim == 1 else None)


def _turns(series: Series) -> float:
    """How evenly angles lie on the circle: 1 for all around, 0 for always the same."""
    angles = np.deg2rad(series.values) if series.kind == "degrees" else series.values
    return 1 - float(np.abs(np.nanmean(np.exp(1j * angles.astype(float)))))
