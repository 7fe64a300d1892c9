"""A pose model under a shift, with and without adaptation: the outputs of a cell.

Source: thesis chapter 5, "Horse-C": frames are corrupted, keypoints stay where they are, and the statistics of
BatchNorm are estimated anew for each individual and corruption. A deformation (`Diffeo`) moves the keypoints as well.
An adapter is fresh for each individual. With `BatchNorm(prior=0)` and batches that hold all frames of an individual,
this is the protocol of the chapter in one pass; `Offline` reads longer ones twice.
"""

import logging
from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import nn

from haptera.adapters import Adapter, NoAdaptation, Offline
from haptera.batch import Batch
from haptera.errors import HapteraError
from haptera.outputs import Outputs
from haptera.pose.data import PoseData
from haptera.pose.model import decode
from haptera.pose.predict import check_adapter, pose_model
from haptera.run.loop import versions
from haptera.shifts import Compose, Diffeo, Shift
from haptera.streams import Clean, Shifted

log = logging.getLogger("haptera")

MakeAdapter = Callable[[nn.Module], Adapter]


def moved_keypoints(data: PoseData, shift: Shift | None, seed: int = 0) -> np.ndarray:
    """Return where the parts are in shifted frames, `(frames, parts, 2)`; NaN for those that left the frame.

    Args:
        data: the frames as they are.
        shift: a deformation moves keypoints, corruptions leave them where they are.
        seed: of the shift.
    """
    parts = shift.shifts if isinstance(shift, Compose) else (shift,)
    deformations = [part for part in parts if isinstance(part, Diffeo) and part.severity > 0]
    if len(deformations) > 1:
        raise HapteraError("keypoints follow one deformation, and there are two among the shifts")
    if not deformations:
        return data.keypoints.copy()
    fields = deformations[0].fields(torch.from_numpy(data.rows), seed, data.height, data.width)
    moved = fields.move_keypoints(torch.from_numpy(data.keypoints)).numpy()
    moved[(~np.isfinite(moved)).any(2)] = np.nan
    return moved


def evaluate(
    model: nn.Module,
    data: PoseData,
    *,
    adapter: MakeAdapter = NoAdaptation,
    shift: Shift | None = None,
    batch_size: int = 256,
    seed: int = 0,
    normalise: str | None = None,
) -> Outputs:
    """Return what a pose model says about frames, shifted and adapted to, with their labels.

    Args:
        model: a `PoseModel`; it is not changed.
        data: labelled frames.
        adapter: from the model to an adapter, fresh for each individual.
        shift: what happens to the frames; None leaves them as they are.
        batch_size: frames in a pass, all of one individual.
        seed: of the shift.
        normalise: by what errors are divided; see `keypoint_scales`.

    Returns:
        Outputs with `keypoints` and `confidence`, the (moved) labels as targets, and `individual` in the context.
    """
    inner = pose_model(model)
    if inner.parts != data.parts:
        raise HapteraError(f"the model has the parts {inner.parts}, {data.name} has {data.parts}")
    keypoints = np.empty((len(data), len(data.parts), 2), np.float32)
    confidence = np.empty((len(data), len(data.parts)), np.float32)
    for name in np.unique(data.individuals):
        rows = np.flatnonzero(data.individuals == name)
        part = data.select(rows)
        batches: Iterable[Batch] = (
            Clean(part, batch_size=batch_size, seed=seed, shuffle=False)
            if shift is None
            else Shifted(part, shift, batch_size=batch_size, seed=seed, shuffle=False)
        )
        adapted = adapter(model)
        check_adapter(adapted)
        if isinstance(adapted, Offline):
            batches = list(batches)  # shifted once, read several times
            for _ in range(adapted.epochs):
                adapted.adapt(batches)
            adapted = adapted.predictor()
        done = 0
        for batch in batches:
            own = rows[done : done + len(batch)]
            keypoints[own], confidence[own] = _decoded(adapted, batch, inner.stride)
            done += len(batch)
    columns = {"individual": data.individuals}
    columns |= {"shift": np.full(len(data), shift.name if shift else "clean")}
    columns |= {"severity": np.full(len(data), shift.severity if shift else 0.0)}
    return Outputs(
        arrays={"keypoints": keypoints, "confidence": confidence},
        ids=data.rows,
        targets=moved_keypoints(data, shift, seed),
        context=columns,
        provenance={"versions": versions(), "parts": list(data.parts), "normalise": normalise, "seed": seed},
    )


def _decoded(adapted: Adapter, batch: Batch, stride: int) -> tuple[np.ndarray, np.ndarray]:
    maps = adapted(batch.inputs)
    keypoints, confidence = decode(maps, stride)
    if lost := int((~torch.isfinite(keypoints)).any(2).sum()):
        log.warning("the model's maps are not finite: %d keypoints of a batch of %d count as missing", lost, len(batch))
    return keypoints.cpu().numpy(), confidence.cpu().numpy()
