"""Scores of poses: how far predictions are from labels, under shifts, with and without adaptation.

A model is run on sets of frames x shifts x adapters; every cell is finished by itself, and kept if there is a folder
for it. Predictions that somebody else made are joined to labels by video and file name, and by the names of parts;
both are in pixels of the images as they are, so no image is opened.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from torch import nn

from haptera.adapters import NoAdaptation
from haptera.analysis import Analysis
from haptera.files.atomic import write_text
from haptera.files.deeplabcut import KeypointTable, read_deeplabcut
from haptera.files.fingerprint import fingerprint, of_model
from haptera.measures import normalised_error, pck
from haptera.outputs import Outputs
from haptera.pose.coco import CocoLabels, read_coco_labels
from haptera.pose.corruptions import FILE, by_severity, has_severities
from haptera.pose.data import PoseData
from haptera.pose.evaluate import MakeAdapter, evaluate, join_predictions
from haptera.pose.page import DEFINITIONS, findings, headline, lines, notes, sections
from haptera.pose.predict import check_adapter, pose_model
from haptera.pose.skeletons import Frame
from haptera.report.section import Finding, Section
from haptera.run.ledger import Piece
from haptera.run.tasks import Task, finish
from haptera.shifts import Shift
from haptera.table import measure_outputs, tidy

INDIVIDUALS = 2
"""So many individuals of each set are shown on the page."""


@dataclass(frozen=True, eq=False)
class PoseScores(Analysis):
    """How well keypoints are found.

    Attributes:
        title: heading of the page.
        settings: what was asked.
        rows: a row for each cell, part, individual and measure, as `table` returns them.
        chosen: whether somebody said what errors are divided by.
        frames: to show.
        parts: their names.
        skeleton: pairs of parts between which lines are drawn.
    """

    kind: ClassVar[str] = "pose"
    definitions: ClassVar[Mapping[str, str]] = DEFINITIONS
    title: str
    settings: Mapping[str, Any]
    rows: pd.DataFrame
    chosen: bool = False
    frames: Sequence[Frame] = ()
    parts: Sequence[str] = ()
    skeleton: Sequence[tuple[str, str]] = ()

    @property
    def notes(self) -> list[str]:
        """Return in what errors are counted, and how many keypoints have no prediction."""
        return notes(self.rows, self.chosen)

    def headline(self) -> str:
        """Return how many keypoints, parts and individuals there are."""
        return headline(self.rows)

    def findings(self) -> list[Finding]:
        """Return whether parts are found, and whether adaptation helps."""
        return findings(self.rows)

    def table(self) -> pd.DataFrame:
        """Return the tidy table with measures `normalised_error` and `pck`, and columns `part` and `individual`."""
        return self.rows

    def sections(self) -> list[Section]:
        """Return frames with skeletons, and scores by shift, part and individual."""
        return sections(self.rows, self.frames, self.parts, self.skeleton)

    def files(self) -> Mapping[str, Callable[[Path], None]]:
        """Return the errors of corruptions at several severities, adapters as columns."""
        if not has_severities(self.rows):
            return {}
        return {FILE: lambda path: write_text(path, by_severity(self.rows).to_csv(index=False))}

    def summary(self, notes: bool = True) -> str:
        """Return the findings as text, with both scores of every cell."""
        return "\n".join([super().summary(notes), *lines(self.rows)])


class _Cell(Task[Outputs]):
    """One model on one set of frames under one shift, with one adapter."""

    def __init__(self, names: tuple[str, str, str], model: nn.Module, data: PoseData, **settings: Any) -> None:
        self.names, self.model, self.data, self.settings = names, model, data, settings
        key = fingerprint(of_model(model), data.fingerprint(), settings)
        self.piece = Piece(key, f"cells/{key}.npz", " · ".join((*names[:2], self.shift, names[2])))
        self.work = len(data)

    @property
    def shift(self) -> str:
        shift = self.settings["shift"]
        return f"{shift.name} {shift.severity:g}" if shift else "clean"

    def check(self) -> None:
        check_adapter(self.settings["adapter"](self.model))

    def make(self) -> Outputs:
        return evaluate(self.model, self.data, **self.settings)

    def write(self, result: Outputs, path: Path) -> None:
        result.save(path)

    def read(self, path: Path) -> Outputs:
        return Outputs.load(path)


def score(
    models: Mapping[str, nn.Module],
    data: Mapping[str, PoseData],
    *,
    shifts: Sequence[Shift | None] = (None,),
    adapters: Mapping[str, MakeAdapter] | None = None,
    threshold: float | None = None,
    normalise: str | None = None,
    batch_size: int = 256,
    seed: int = 0,
    out: Path | None = None,
    progress: bool | None = None,
) -> PoseScores:
    """Score pose models on sets of frames x shifts x adapters.

    Args:
        models: name -> a `PoseModel`; frames of the first one are shown on the page.
        data: name -> frames, such as `within` and `out`; the name is the column `stream`.
        shifts: what happens to the frames; None among them is clean.
        adapters: name -> from a model to an adapter; without adaptation if left out.
        threshold: of PCK; see `pck` for the default.
        normalise: see `keypoint_scales`.
        batch_size: see `evaluate`.
        seed: of the shifts.
        out: a folder for finished cells, from which the same call goes on.
        progress: None shows it where somebody is looking.
    """
    adapters = {"none": NoAdaptation} if adapters is None else adapters
    common = {"batch_size": batch_size, "seed": seed, "normalise": normalise}
    cells = [
        _Cell((model, name, adapter), models[model], data[name], shift=shift, adapter=adapters[adapter], **common)
        for model in models
        for name in data
        for shift in shifts
        for adapter in adapters
    ]
    outcome = finish(cells, out, "pose scores", noun="cell", progress=progress)
    rows = []
    for cell, outputs in zip(cells, outcome.finished, strict=True):
        outputs.provenance.update(dict(zip(("model", "stream", "adapter"), cell.names, strict=True)))
        rows += measure_outputs(outputs, [normalised_error, lambda found: pck(found, threshold)])
    first, network = next(iter(models.items()))
    table = tidy(rows)
    settings: dict[str, Any] = {"models": list(models), "shifts": list(dict.fromkeys(cell.shift for cell in cells))}
    settings |= {"adapters": list(adapters), "frames": {name: len(each) for name, each in data.items()}, "seed": seed}
    shown = [
        frame for cell, outputs in zip(cells, outcome.finished, strict=True) if cell.model is network
        for frame in _frames(cell, outputs)
    ]  # fmt: skip
    inner, chosen = pose_model(network), normalise is not None
    return PoseScores(f"Poses: {first}", settings | _units(table), table, chosen, shown, inner.parts, inner.skeleton)


def score_predictions(
    predictions: Path,
    labels: Path | PoseData,
    *,
    scorer: str | None = None,
    individual: str | None = None,
    threshold: float | None = None,
    normalise: str | None = None,
) -> PoseScores:
    """Score a table of predictions.

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
    keypoints, places = join_predictions(said, truth.parts, np.asarray(truth.files), str(predictions))
    outputs = Outputs(
        {"keypoints": keypoints},
        ids=places,
        targets=truth.keypoints[places],
        context={"individual": truth.individuals[places]},
        provenance={"parts": list(truth.parts), "normalise": normalise, "model": said.scorer, "seed": None},
    )
    table = tidy(measure_outputs(outputs, [normalised_error, lambda found: pck(found, threshold)]))
    settings = {"predictions": str(predictions), "frames": len(outputs)}
    return PoseScores(f"Poses: {predictions.name}", settings | _units(table), table, normalise is not None)


def _units(table: pd.DataFrame) -> dict[str, Any]:
    """Return the threshold of PCK and what errors are divided by."""
    return {"threshold": float(table["threshold"].max()), "normalise": str(table["normalise"].iloc[0])}


def _frames(cell: _Cell, outputs: Outputs) -> list[Frame]:
    """Return the middle frame of some individuals of a cell, as the model saw and labelled it."""
    assert outputs.targets is not None
    data, shift, found = cell.data, cell.settings["shift"], []
    for individual in np.unique(data.individuals)[:INDIVIDUALS]:
        own = np.flatnonzero(data.individuals == individual)[: cell.settings["batch_size"]]
        place = own[[len(own) // 2]]
        image = data.images(place)
        if shift is not None:
            image = shift(image, data.rows[place], cell.settings["seed"])
        picture = (image[0].permute(1, 2, 0).numpy() * 255).round().astype(np.uint8)
        points = outputs.arrays["keypoints"][place[0]], outputs.targets[place[0]]
        found.append(Frame(picture, *points, f"{cell.names[1]}, {cell.shift}, {cell.names[2]}"))
    return found
