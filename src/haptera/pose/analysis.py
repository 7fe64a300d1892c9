"""Scores of poses: how far predictions are from labels, under shifts, with and without adaptation.

A model is run on sets of frames x shifts x adapters; every cell is finished by itself, and kept if there is a folder
for it. Whether confidence can be believed is asked of frames as they are without adaptation, in the last of the sets,
which is that of individuals that were never seen where there is one. Predictions that somebody else made are scored by
`haptera.pose.predictions`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
from torch import nn

from haptera.adapters import NoAdaptation
from haptera.analysis import Analysis
from haptera.files.atomic import write_text
from haptera.files.fingerprint import of_model
from haptera.measures import normalised_error, pck
from haptera.outputs import Outputs
from haptera.pose.cells import Cell, Shown, choose_shown
from haptera.pose.corruptions import FILE, by_severity, has_severities
from haptera.pose.data import PoseData
from haptera.pose.evaluate import MakeAdapter
from haptera.pose.further import ConfidenceScores, Counting, confidence_scores, further_rows
from haptera.pose.further_page import FURTHER_DEFINITIONS, confidence_findings, confidence_section
from haptera.pose.page import DEFINITIONS, findings, headline, lines, normaliser, notes, sections
from haptera.pose.predict import pose_model
from haptera.pose.skeletons import Frame
from haptera.report.section import Finding, Section
from haptera.run.tasks import finish
from haptera.shifts import Shift
from haptera.table import measure_outputs, tidy
from haptera.words import count

CALIBRATION = "calibration.json"
KIND = "pose scores"


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
        confidence: what the likelihood is worth.
        extra: how many predictions are of no labelled animal.
    """

    kind: ClassVar[str] = "pose"
    definitions: ClassVar[Mapping[str, str]] = {**DEFINITIONS, **FURTHER_DEFINITIONS}
    title: str
    settings: Mapping[str, Any]
    rows: pd.DataFrame
    chosen: bool = False
    frames: Sequence[Frame] = ()
    parts: Sequence[str] = ()
    skeleton: Sequence[tuple[str, str]] = ()
    confidence: ConfidenceScores | None = None
    extra: int = 0

    @property
    def notes(self) -> list[str]:
        """Return in what errors are counted, and how many keypoints have no prediction."""
        more = [f"{count(self.extra, 'prediction')} of no labelled animal, which only AP counts"] if self.extra else []
        return [*notes(self.rows, self.chosen), *more]

    def headline(self) -> str:
        """Return how many keypoints, parts and individuals there are."""
        return headline(self.rows)

    def findings(self) -> list[Finding]:
        """Return whether parts are found, whether adaptation helps, and whether the likelihood can be believed."""
        return [*findings(self.rows), *confidence_findings(self.confidence)]

    def table(self) -> pd.DataFrame:
        """Return the tidy table of `normalised_error`, `pck` and the further scores, by `part` and `individual`."""
        return self.rows

    def sections(self) -> list[Section]:
        """Return frames with skeletons, scores by shift, part and individual, and the reliability of confidence."""
        made, confidence = sections(self.rows, self.frames, self.parts, self.skeleton), self.confidence
        section = confidence_section(confidence)
        return made if section is None else [*made[:-1], section, made[-1]]

    def files(self) -> Mapping[str, Callable[[Path], None]]:
        """Return the calibration of keypoints, which `load_calibration` reads, and errors by severity."""
        own: dict[str, Callable[[Path], None]] = {}
        if self.confidence is not None:
            own[CALIBRATION] = self.confidence.calibration.write
        if has_severities(self.rows):
            own[FILE] = lambda path: write_text(path, by_severity(self.rows).to_csv(index=False))
        return own

    def summary(self, notes: bool = True) -> str:
        """Return the findings as text, with both scores of every cell."""
        return "\n".join([super().summary(notes), *lines(self.rows)])


def score(
    models: Mapping[str, nn.Module],
    data: Mapping[str, PoseData],
    *,
    shifts: Sequence[Shift | None] = (None,),
    adapters: Mapping[str, MakeAdapter] | None = None,
    counting: Counting | None = None,
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
        counting: how keypoints are counted: what divides errors, the threshold of PCK, the cut-off of likelihoods.
        batch_size: see `evaluate`.
        seed: of the shifts.
        out: a folder for finished cells, from which the same call goes on.
        progress: None shows it where somebody is looking.
    """
    adapters = {"none": NoAdaptation} if adapters is None else adapters
    counting = counting or Counting()
    common = {"batch_size": batch_size, "seed": seed, "normalise": counting.normalise}
    weights = {name: of_model(model) for name, model in models.items()}
    prints = {name: each.fingerprint() for name, each in data.items()}
    cells = [
        Cell(
            (model, name, adapter), models[model], data[name], (weights[model], prints[name]),
            shift=shift, adapter=adapters[adapter], **common,
        )
        for model in models
        for name in data
        for shift in shifts
        for adapter in adapters
    ]  # fmt: skip
    outcome = finish(cells, out, KIND, noun="cell", progress=progress)
    rows = []
    for cell, outputs in zip(cells, outcome.finished, strict=True):
        outputs.provenance.update(dict(zip(("model", "stream", "adapter"), cell.names, strict=True)))
        further = partial(further_rows, counting=counting, areas=cell.data.areas, factors=cell.data.factors)
        rows += measure_outputs(outputs, [normalised_error, partial(pck, threshold=counting.threshold), further])
    first, network = next(iter(models.items()))
    table = tidy(rows)
    settings: dict[str, Any] = {"models": list(models), "shifts": list(dict.fromkeys(cell.shift for cell in cells))}
    settings |= {"adapters": list(adapters), "frames": {name: len(each) for name, each in data.items()}, "seed": seed}
    shown = _shown([cell for cell in cells if cell.names[0] == first], outcome.finished, prints, out)
    inner = pose_model(network)
    plain = [place for place, cell in enumerate(cells) if cell.names[::2] == (first, next(iter(adapters)))]
    last = next((place for place in plain[::-1] if cells[place].shift == "clean"), 0)  # those never seen, if there are
    likelihood = confidence_scores(outcome.finished[last], counting, cells[last].data.factors, cells[last].names[1])
    return PoseScores(
        f"Poses: {first}", settings | units(table, counting), table, counting.normalise is not None, shown,
        cells[0].data.parts, inner.skeleton, likelihood,
    )  # fmt: skip


def units(table: pd.DataFrame, counting: Counting) -> dict[str, Any]:
    """Return the threshold of PCK, what errors are divided by, the cut-off of likelihoods and the sigma of OKS."""
    units = {"threshold": float(table["threshold"].max()), "normalise": normaliser(table)}
    return units | {"cutoff": counting.cutoff, "sigma": counting.sigma}


def _shown(cells: Sequence[Cell], found: Sequence[Outputs], prints: Mapping[str, str], out: Path | None) -> list[Frame]:
    """Return frames of some cells, which come first among all, as the model saw and labelled them."""
    chosen, individuals = choose_shown(cells)
    tasks = []
    for place in chosen:
        cell, how = cells[place], cells[place].settings
        stream = cell.names[1]
        tasks.append(Shown(cell.data, prints[stream], how["shift"], how["batch_size"], how["seed"], individuals))
    pictures = finish(tasks, out, KIND, noun="picture", progress=False).finished
    frames: list[Frame] = []
    for place, task, images in zip(chosen, tasks, pictures, strict=True):
        _, stream, adapter = cells[place].names
        order = [task.data.parts.index(part) for part in cells[0].data.parts]
        own = task.frames(images, found[place], f"{stream}, {cells[place].shift}, {adapter}")
        frames += [replace(each, predicted=each.predicted[order], labelled=each.labelled[order]) for each in own]
    return frames
