"""Snapshots: the state of an adapter and of its guard after some steps, so that a killed service goes on as it was.

A snapshot is a folder `step-000001000` with `adapter.safetensors`, which `Adapter.load_state` reads by itself, and
`guard.safetensors`. It is written beside and renamed, so what is there is whole; both files name the model they belong
to, and a snapshot of another model is refused. Numbers after a restart are those of a run that was never stopped, from
the step of the snapshot on.

Replicas: either one leader learns, and the others hold frozen adapters that take its newest snapshot from time to time
(`newest_state`, `Guard.adopt`); or all learn, and their states are averaged (`merge_states`) and handed back.
"""

import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from haptera.adapters.state import IDENTITY, read_state, snapshot, write_state
from haptera.checks import check_number
from haptera.errors import HapteraError
from haptera.files.atomic import HALF_WRITTEN, sweep, whole_folder

log = logging.getLogger("haptera")

FOLDER = "snapshots"
ADAPTER, GUARD = "adapter.safetensors", "guard.safetensors"
WAY_OUT = "give another log folder, or restore=False"
_ARRAY = "array"


def write_snapshot(
    folder: Path, step: int, adapter: Mapping[str, Any] | None, guard: Mapping[str, Any], keep: int = 3
) -> None:
    """Write a snapshot, and remove all but the newest ones.

    Args:
        folder: of the snapshots.
        step: after which it was taken.
        adapter: from `Adapter.state_dict`; None without one.
        guard: plain values and NumPy arrays.
        keep: how many snapshots stay.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with whole_folder(folder / f"step-{step:09d}", folder) as hidden:
        if adapter is not None:
            write_state(adapter, hidden / ADAPTER)
        write_state({"guard": frozen_copy(guard)}, hidden / GUARD)
    for old in list(_newest_first(folder))[keep:]:
        shutil.rmtree(old, ignore_errors=True)


def read_snapshot(path: Path) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Return the states of adapter, if there is one, and guard."""
    state = read_state(path / GUARD)
    if not isinstance(state.get("guard"), dict):
        raise HapteraError(f"{path / GUARD} is not the state of a guard")
    adapter = read_state(path / ADAPTER) if (path / ADAPTER).exists() else None
    return adapter, _to_arrays(state["guard"])


def snapshots(folder: Path) -> list[Path]:
    """Return the snapshots of a folder, newest first; what a killed process left half-written is removed."""
    sweep(folder.glob(HALF_WRITTEN))
    return list(_newest_first(folder))


def check_snapshot(
    where: str, state: Mapping[str, Any], fingerprint: str, has_adapter: bool, wants_adapter: bool
) -> None:
    """Refuse a snapshot of another model, or of a guard that had an adapter where this one has none.

    Args:
        where: what messages call it.
        state: of the guard.
        fingerprint: of the model.
        has_adapter: whether there is the state of an adapter in it.
        wants_adapter: whether there should be.
    """
    if state.get("fingerprint") != fingerprint:
        raise HapteraError(f"{where} is of another model; {WAY_OUT}")
    if has_adapter != wants_adapter:
        raise HapteraError(f"{where} is of a guard {'with' if has_adapter else 'without'} an adapter; {WAY_OUT}")


def newest_state(log_folder: str | Path) -> dict[str, Any]:
    """Return the newest adapter state among the snapshots of a log, for a replica that follows its leader."""
    for path in _newest_first(Path(log_folder) / FOLDER):
        try:
            if (path / ADAPTER).exists():
                return read_state(path / ADAPTER)
        except HapteraError as error:
            if path.exists():  # else it was removed in between, since newer ones are there
                log.warning("%s: %s", path, error)
    raise HapteraError(f"there is no snapshot of an adapter in {Path(log_folder) / FOLDER}")


def merge_states(states: Sequence[Mapping[str, Any]], weights: Sequence[float] | None = None) -> dict[str, Any]:
    """Return one state for several replicas of one adapter around one model.

    Tensors of real numbers, those of the optimiser too, are averaged; whole numbers, counters, random generators and
    everything else is the first replica's. Averages of weights are good where the replicas started from one state and
    did not go far from each other: merge often.

    Args:
        states: from `Adapter.state_dict`, at least one.
        weights: of the replicas, such as the images that each has learnt from; equal by default.
    """
    if not states:
        raise HapteraError("states is empty; at least one state of an adapter was expected")
    shares = np.ones(len(states)) if weights is None else np.asarray(weights, float)
    if shares.shape != (len(states),):
        raise HapteraError(f"there are {len(states)} states and {shares.size} weights; as many were expected")
    for share in shares:
        check_number("weights", float(share), least=0, below=float("inf"), what="a weight")
    if not shares.sum():
        raise HapteraError("weights are all 0; at least one above 0 was expected")
    first = states[0]
    for number, state in enumerate(states[1:], 2):
        if state.get(IDENTITY) != first.get(IDENTITY):
            raise HapteraError(f"state {number} belongs to another adapter or another model than the first")
    merged = {name: _merge([state.get(name) for state in states], shares / shares.sum()) for name in first}
    return snapshot(merged)


def _merge(values: Sequence[Any], shares: np.ndarray) -> Any:
    """The mean of tensors of real numbers, inside mappings and lists too; of anything else the first."""
    first = values[0]
    if isinstance(first, torch.Tensor):
        alike = all(isinstance(value, torch.Tensor) and value.shape == first.shape for value in values)
        if not alike or not first.is_floating_point():
            return first
        wide = [
            float(share) * value.to(first.device, torch.float64) for share, value in zip(shares, values, strict=True)
        ]
        return torch.stack(wide).sum(0).to(first.dtype)
    if isinstance(first, Mapping) and all(isinstance(value, Mapping) for value in values):
        return {name: _merge([value.get(name) for value in values], shares) for name in first}
    if isinstance(first, list) and all(isinstance(value, list) and len(value) == len(first) for value in values):
        return [_merge(each, shares) for each in zip(*values, strict=True)]
    return first


def _newest_first(folder: Path) -> Iterator[Path]:
    return iter(sorted((path for path in folder.glob("step-*") if path.is_dir()), reverse=True))


def frozen_copy(value: Any) -> Any:
    """Return a copy that later steps do not reach: arrays as tensors, marked, so that `write_state` takes them."""
    if isinstance(value, np.ndarray):
        return {_ARRAY: torch.from_numpy(np.ascontiguousarray(value)).clone(), "shape": list(value.shape)}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {key: frozen_copy(each) for key, each in value.items()}
    return [frozen_copy(each) for each in value] if isinstance(value, list | tuple) else value


def _to_arrays(value: Any) -> Any:
    if isinstance(value, dict):
        if isinstance(value.get(_ARRAY), torch.Tensor):
            return value[_ARRAY].numpy().reshape(value["shape"])
        return {key: _to_arrays(each) for key, each in value.items()}
    return [_to_arrays(each) for each in value] if isinstance(value, list) else value
