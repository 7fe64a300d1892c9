"""Predictions with their labels, to be scored: of a model under a shift, or of a table that somebody else made.

Source: thesis chapter 5, "Horse-C": frames are corrupted, keypoints stay where they are, and the statistics of
BatchNorm are estimated anew for each individual and corruption. A deformation (`Diffeo`) moves the keypoints as well.
An adapter is fresh for each individual. With `BatchNorm(prior=0)` and batches that hold all frames of an individual,
this is the protocol of the chapter in one pass; `Offline` reads longer ones twice.
Parts of a model are matched with those of the labels by name. Predictions in a table are joined to labels by the names
of frames and parts.
"""

import logging
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from torch import nn

from haptera.adapters import Adapter, NoAdaptation, Offline
from haptera.batch import Batch
from haptera.errors import HapteraError, unknown
from haptera.files.deeplabcut import KeypointTable
from haptera.outputs import Outputs
from haptera.pose.data import PoseData
from haptera.pose.network import PoseNetwork
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
        model: a `PoseModel` or another `PoseNetwork`, with the parts of the labels in any order; it is not changed.
        data: labelled frames.
        adapter: from the model to an adapter, fresh for each individual.
        shift: what happens to the frames; None leaves them as they are.
        batch_size: frames in a pass, all of one individual.
        seed: of the shift.
        normalise: by what errors are divided; see `keypoint_scales`.

    Returns:
        Outputs with `keypoints` and `confidence` in the order of the labels, the (moved) labels as targets, and
        `individual` in the context.
    """
    inner = pose_model(model)
    order = match_parts(inner, data)
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
            found, sure = _decoded(adapted, batch, inner)
            keypoints[own], confidence[own] = found[:, order], sure[:, order]
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


def match_parts(model: PoseNetwork, data: PoseData) -> list[int]:
    """Return for each labelled part its place among those of a model; a model with other parts is refused."""
    strange = [part for part in data.parts if part not in model.parts]
    absent = [part for part in model.parts if part not in data.parts]
    if not strange and not absent:
        return [model.parts.index(part) for part in data.parts]
    advice = f"{', '.join(strange or absent)} is in one of them alone"
    if strange and absent:
        advice = f"{', '.join(strange)} would have to be {', '.join(absent)}"
    raise HapteraError(f"the model has the parts {model.parts}, {data.name} has {data.parts}; {advice}")


def _decoded(adapted: Adapter, batch: Batch, network: PoseNetwork) -> tuple[np.ndarray, np.ndarray]:
    keypoints, confidence = network.decode(adapted(batch.inputs))
    if lost := int((~torch.isfinite(keypoints)).any(2).sum()):
        log.warning("the model's maps are not finite: %d keypoints of a batch of %d count as missing", lost, len(batch))
    return keypoints.cpu().numpy(), confidence.cpu().numpy()


def join_predictions(
    predicted: KeypointTable, parts: Sequence[str], files: np.ndarray, name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return predicted keypoints of the labelled frames that have some, and which frames these are.

    A frame is found by its folder, the video, and its file name; by the file name alone only where one of the tables
    has no folders. A name that fits several frames is an error.

    Args:
        predicted: the table of predictions.
        parts: those that are labelled; each must be predicted.
        files: names of the labelled frames.
        name: of the table, for messages.
    """
    for part in parts:
        if part not in predicted.parts:
            raise unknown(f"part in {name}", part, predicted.parts)
    order = [predicted.parts.index(part) for part in parts]
    theirs, own = ([str(file) for file in column] for column in (predicted.files, files))
    rows, places = join_rows(match_files(theirs, own, name), own, theirs, name)
    return predicted.keypoints[[row for row in rows if row is not None]][:, order], places


def join_rows(
    rows: list[int | None], files: Sequence[str], predicted: Sequence[str], name: str
) -> tuple[list[int | None], np.ndarray]:
    """Return the rows of predictions, and which frames have one; an error if none has, a remark if not all have.

    Args:
        rows: for each labelled frame the row of its prediction, or None.
        files: names of the labelled frames.
        predicted: names of the predicted frames.
        name: of the table, for messages.
    """
    places = np.array([place for place, row in enumerate(rows) if row is not None], int)
    if not len(places):
        raise HapteraError(
            f"no labelled frame is in {name}; it has {predicted[0]}, the labels {files[0]}; the same folder, the "
            "video, and the same file name were expected"
        )
    if len(places) < len(files):
        log.warning(
            "%s: %d of %d labelled frames have no prediction; they do not count",
            name,
            len(files) - len(places),
            len(files),
        )
    return rows, places


def match_files(predicted: Sequence[str], labelled: Sequence[str], name: str) -> list[int | None]:
    """Return for each labelled frame the row of its prediction, or None.

    >>> match_files(["rex/1.png", "ina/1.png"], ["labeled-data/ina/1.png", "labeled-data/tom/1.png"], "said.csv")
    [1, None]
    """
    by_name: dict[str, list[int]] = {}
    for row, file in enumerate(predicted):
        by_name.setdefault(file.rpartition("/")[2], []).append(row)
    rows: list[int | None] = []
    taken: dict[int, str] = {}
    for label in labelled:
        candidates = by_name.get(label.rpartition("/")[2], [])
        shared = {row: pieces for row in candidates if (pieces := _shared(predicted[row], label))}
        best = [row for row, pieces in shared.items() if pieces == max(shared.values())]
        if len(best) > 1:
            both = " or ".join(predicted[row] for row in best[:2])
            raise HapteraError(f"the labelled frame {label} could be {both} of {name}; give the folders of both tables")
        rows.append(best[0] if best else None)
        if best and best[0] in taken:
            raise HapteraError(
                f"{predicted[best[0]]} of {name} could be {taken[best[0]]} or {label}; predict the folder above the "
                "videos, so that names have the video in front, or give the labels of that video alone"
            )
        taken |= dict.fromkeys(best, label)
    return rows


def _shared(one: str, two: str) -> int:
    """Return how many last pieces two paths share; 0 unless these are file and folder, or all of one of them."""
    first, second = one.split("/")[::-1], two.split("/")[::-1]
    least = min(len(first), len(second))
    same = next((k for k, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), least)
    return same if same >= min(2, least) else 0
