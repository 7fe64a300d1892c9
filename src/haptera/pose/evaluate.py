"""Pose models under shifts, with and without adaptation: the outputs of cells, and the table of all of them.

Source: thesis chapter 5, "Horse-C": frames are corrupted, keypoints stay where they are, and the statistics of
BatchNorm are estimated anew for each individual and corruption. A deformation (`Diffeo`) moves the keypoints as well.
An adapter is fresh for each individual. With `BatchNorm(prior=0)` and batches that hold all frames of an individual,
this is the protocol of the chapter in one pass; `Offline` reads longer ones twice.

Scores of a table of predictions against labels: frames are joined by video and file name, parts by their names.

Both are in pixels of the images as they are, so no image is opened.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import nn

from haptera.adapters import Adapter, NoAdaptation, Offline
from haptera.batch import Batch
from haptera.errors import HapteraError
from haptera.files.deeplabcut import KeypointTable, read_deeplabcut
from haptera.measures import normalised_error, pck
from haptera.outputs import Outputs
from haptera.pose.coco import CocoLabels, read_coco_labels
from haptera.pose.data import PoseData
from haptera.pose.joining import joined
from haptera.pose.model import decode
from haptera.pose.predict import check_adapter, pose_model
from haptera.progress import Progress
from haptera.run.loop import versions
from haptera.shifts import Compose, Diffeo, Shift
from haptera.streams import Clean, Shifted
from haptera.table import Rows, measured, tidy

log = logging.getLogger("haptera")

MakeAdapter = Callable[[nn.Module], Adapter]


def moved_keypoints(data: PoseData, shift: Shift | None, seed: int = 0) -> np.ndarray:
    """`(frames, parts, 2)`: where the parts are in shifted frames; NaN for those that left the frame.

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
    """What a pose model says about frames, shifted and adapted to, with their labels.

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


@dataclass(frozen=True)
class PoseStudy:
    """Models x sets of frames x shifts x adapters, as one table.

    Attributes:
        models: name -> a `PoseModel`.
        data: name -> frames, such as `within` and `out`; the name is the column `stream`.
        shifts: what happens to the frames; None among them is clean.
        adapters: name -> from a model to an adapter.
        threshold: of PCK; see `pck` for the default.
        normalise: see `keypoint_scales`.
        batch_size: see `evaluate`.
        seed: of the shifts.
    """

    models: Mapping[str, nn.Module]
    data: Mapping[str, PoseData]
    shifts: Sequence[Shift | None] = (None,)
    adapters: Mapping[str, MakeAdapter] = field(default_factory=lambda: {"none": NoAdaptation})
    threshold: float | None = None
    normalise: str | None = None
    batch_size: int = 256
    seed: int = 0

    def run(self, progress: bool | None = False) -> pd.DataFrame:
        """The tidy table with measures `normalised_error` and `pck`; further columns are `part` and `individual`."""
        for network, make in product(self.models.values(), self.adapters.values()):
            check_adapter(make(network))  # before anything runs
        rows: Rows = []
        cells = [(m, d, s, a) for m in self.models for d in self.data for s in self.shifts for a in self.adapters]
        with Progress("pose", len(cells), progress) as bar:
            for model, data, shift, adapter in cells:
                outputs = evaluate(
                    self.models[model],
                    self.data[data],
                    adapter=self.adapters[adapter],
                    shift=shift,
                    batch_size=self.batch_size,
                    seed=self.seed,
                    normalise=self.normalise,
                )
                outputs.provenance.update(model=model, stream=data, adapter=adapter)
                rows += measured(outputs, [normalised_error, self._pck])
                bar.advance(f"{data} · {shift.name if shift else 'clean'} · {adapter}")
        return tidy(rows)

    def _pck(self, outputs: Outputs) -> Rows:
        return pck(outputs, self.threshold)


def score_table(
    predictions: Path,
    labels: Path | PoseData,
    *,
    scorer: str | None = None,
    individual: str | None = None,
    threshold: float | None = None,
    normalise: str | None = None,
) -> pd.DataFrame:
    """The tidy table with measures `normalised_error` and `pck`.

    Args:
        predictions: a table of DeepLabCut.
        labels: a table or project of DeepLabCut, a `.json` of COCO, or frames whose labels are in pixels of the images
            as they are.
        scorer: whose labels, where there are several.
        individual: what says whose image it is in a file of COCO; see `read_coco_labels`.
        threshold: of PCK.
        normalise: see `keypoint_scales`.
    """
    said = read_deeplabcut(predictions)
    truth: PoseData | CocoLabels | KeypointTable
    if isinstance(labels, PoseData):
        truth = labels
    else:
        truth = read_coco_labels(labels, individual) if labels.suffix == ".json" else read_deeplabcut(labels, scorer)
    keypoints, places = joined(said, truth.parts, np.asarray(truth.files), str(predictions))
    outputs = Outputs(
        {"keypoints": keypoints},
        ids=places,
        targets=truth.keypoints[places],
        context={"individual": truth.individuals[places]},
        provenance={"parts": list(truth.parts), "normalise": normalise, "model": said.scorer, "seed": None},
    )
    return tidy(measured(outputs, [normalised_error, lambda found: pck(found, threshold)]))
