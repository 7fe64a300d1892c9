"""Audit of a lab's own network on its own project: how good, where it breaks, what to do about it.

Five questions: how good is the network on videos that it knows, and on individuals that it never saw; which corruptions
break it; does adaptation without labels help; which videos are unlike the labelled frames, without labels; and which
frames should be labelled next. The first three are scores on labelled frames (`haptera.pose.score`), the last two
confidence on samples of the videos (`haptera.pose.unlabelled`).
Every cell and every video is finished by itself, and kept if there is a folder for it.
Source: thesis chapter 5 for the scores, the corruptions and the statistics of each individual.
Cost: the network on labelled frames x corruptions x adapters, and on a sample of each video.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from haptera.adapters import NoAdaptation
from haptera.analysis import Analysis, numbers_table
from haptera.checks import check_number, check_whole_number
from haptera.errors import HapteraError, NotApplicable
from haptera.files.atomic import write_text
from haptera.pose.analysis import KIND, PoseScores, score
from haptera.pose.audit_page import BREAKS, DEFINITIONS, audit_sections, findings
from haptera.pose.evaluate import MakeAdapter, match_parts
from haptera.pose.further import Counting
from haptera.pose.network import PoseNetwork
from haptera.pose.project import Project, choose_sets
from haptera.pose.unlabelled import FAR, LabelledConfidence, VideoConfidence, label_next, name_videos, video_rows
from haptera.report.section import Finding, Section
from haptera.run.tasks import finish
from haptera.shifts import Shift
from haptera.words import count

MOST_FRAMES = 60
LABEL_FILE = "label_next.csv"


@dataclass(frozen=True)
class AuditSettings:
    """How much of a project is looked at.

    Attributes:
        frames: labelled frames of each set that are scored, evenly spread.
        sample: frames of each video that are looked at.
        label: how many frames to name that should be labelled next.
        batch_size: frames in a pass.
        threshold: of PCK: 0.3 units of the animal; 5 where errors are in pixels.
        normalise: what divides errors: box, pixels, or two parts such as nose,eye.
        breaks: a corruption breaks the network where the error is at least so many times that without it.
        far: a video is called out of domain where its distance is above this, from 0.5 to 1.
        seed: of the corruptions.
    """

    frames: int = MOST_FRAMES
    sample: int = 64
    label: int = 20
    batch_size: int = 64
    threshold: float | None = None
    normalise: str | None = None
    breaks: float = BREAKS
    far: float = FAR
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse numbers that mean nothing."""
        for name in ("frames", "sample", "label", "batch_size"):
            check_whole_number(name, getattr(self, name))
        check_number("breaks", self.breaks, above=1, what="a factor of the error")
        check_number("far", self.far, least=0.5, most=1, what="a probability from 0.5 on")


@dataclass(frozen=True, eq=False)
class PoseAudit(Analysis):
    """What an audit found.

    Attributes:
        title: heading of the page.
        settings: what was asked.
        scores: of the labelled frames.
        videos: a row for each video; see `video_rows`.
        along: `video`, `seconds` and `confidence` of every frame that was looked at.
        label: frames to label next; see `label_next`.
        refused: why an adapter could not be tried.
        notes: what to know before believing it.
        failures: sentences about videos that could not be read.
    """

    kind: ClassVar[str] = "pose audit"
    definitions: ClassVar[Mapping[str, str]] = DEFINITIONS
    title: str
    settings: Mapping[str, Any]
    scores: PoseScores
    videos: pd.DataFrame
    along: pd.DataFrame
    label: pd.DataFrame
    refused: str = ""
    notes: Sequence[str] = ()
    failures: Sequence[str] = ()

    def headline(self) -> str:
        """Return how many frames and videos there are."""
        frames = sum(self.settings["frames"].values())
        return f"{count(frames, 'labelled frame')}, {self.scores.headline()}, {count(len(self.videos), 'video')}"

    def findings(self) -> list[Finding]:
        """Return an answer to each of the five questions, as far as there is data for it."""
        return self._findings

    @cached_property
    def _findings(self) -> list[Finding]:
        return findings(self.scores.rows, self.videos, self.label, self.refused, self.settings["breaks"])

    def table(self) -> pd.DataFrame:
        """Return the scores of the labelled frames, and below them every number of the findings."""
        return pd.concat([self.scores.rows, numbers_table(self.findings())], ignore_index=True)

    def sections(self) -> list[Section | None]:
        """Return the scores, the videos along time, and the frames to label."""
        return audit_sections(self.scores.sections(), self.videos, self.along, self.label)

    def files(self) -> Mapping[str, Callable[[Path], None]]:
        """Return those of the scores, such as the calibration of keypoints, and the table of frames to label."""
        return {**self.scores.files(), LABEL_FILE: lambda path: write_text(path, self.label.to_csv(index=False))}


def audit(
    network: PoseNetwork,
    project: Project,
    *,
    name: str = "network",
    new: Sequence[str] = (),
    split: np.ndarray | None = None,
    shifts: Sequence[Shift] = (),
    adapters: Mapping[str, MakeAdapter] | None = None,
    settings: AuditSettings | None = None,
    out: Path | None = None,
    progress: bool | None = None,
) -> PoseAudit:
    """Audit a network on a project.

    Args:
        network: any pose network with the parts of the project.
        project: see `open_project`.
        name: of the network.
        new: individuals, which are videos, that the network never saw.
        split: `train`, `within` or `out` for each labelled frame, where that is known.
        shifts: corruptions to try.
        adapters: name -> from the network to an adapter, tried beside none.
        settings: how much is looked at.
        out: a folder for finished pieces, from which the same call goes on.
        progress: None shows it where somebody is looking.
    """
    chosen = settings or AuditSettings()
    sets = choose_sets(project.data, tuple(new), split, chosen.frames)
    usable, refused = _usable(network, adapters or {})
    counting = Counting(chosen.threshold, chosen.normalise, project.cutoff)
    size = (project.data.height, project.data.width) if network.size or project.size else None
    paths = name_videos(project.videos)
    labelled = LabelledConfidence(network, next(iter(sets.values())), chosen.batch_size)
    tasks = [VideoConfidence(network, path, size, chosen.sample, chosen.batch_size) for path in paths.values()]
    match_parts(network, project.data)
    # Videos first, so that one that cannot be read is told before an hour of scores, not after it.
    [reference] = finish([labelled], out, KIND, noun="video", progress=progress).finished
    looked = finish(tasks, out, KIND, noun="video", tolerate=(HapteraError,), progress=progress)
    scores = score(
        {name: network}, sets, shifts=(None, *shifts), adapters={"none": NoAdaptation, **usable},
        counting=counting, batch_size=chosen.batch_size, seed=chosen.seed, out=out,
        progress=progress,
    )  # fmt: skip
    videos = {name: found for name, found in zip(paths, looked.results, strict=True) if found is not None}
    asked = {key: value for key, value in scores.settings.items() if key != "models"}
    asked |= {"network": name, "project": project.name, "sample": chosen.sample, "new": list(new)}
    asked |= {"breaks": chosen.breaks, "far": chosen.far}
    return PoseAudit(
        f"Audit of {name} on {project.name}",
        asked,
        scores,
        video_rows(videos, reference, chosen.far),
        _along(videos),
        label_next(videos, chosen.label),
        refused,
        [*scores.notes, *_notes(project, sets, split is None), *_other_shapes(project, videos)],
        looked.failures,
    )


def _along(videos: Mapping[str, Any]) -> pd.DataFrame:
    """Return the confidence along each video."""
    rows = [
        {"video": video, "seconds": second, "confidence": value}
        for video, each in videos.items()
        for second, value in zip(each["seconds"], each["confidence"], strict=True)
    ]
    return pd.DataFrame(rows, columns=["video", "seconds", "confidence"])


def _usable(network: PoseNetwork, adapters: Mapping[str, MakeAdapter]) -> tuple[dict[str, MakeAdapter], str]:
    """Return the adapters that this network takes, and why it does not take another."""
    usable, refused = {}, ""
    for name, make in adapters.items():
        try:
            make(network)
        except NotApplicable as error:
            refused = f"{name} cannot be tried: {error}"
        else:
            usable[name] = make
    return usable, refused


def _notes(project: Project, sets: Mapping[str, Any], unknown: bool) -> list[str]:
    told = []
    if unknown:
        told.append(
            "which labelled frames the network learnt from is not known, so scores on known videos may be of frames "
            "that it learnt by heart; a split.csv says it (--split)"
        )
    if "new" not in sets:
        only = len(np.unique(project.data.individuals)) == 1
        why = "all labelled frames are of one video" if only else "no video is said to be new to the network (--new)"
        told.append(f"{why}, so nothing here says how it does on an individual that it never saw")
    if not project.videos:
        told.append("no video of the project is there, so none could be compared with the labelled frames")
    return told


def _other_shapes(project: Project, videos: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a note on videos that are larger or smaller than all labelled frames, as those of a project that crops."""
    data = project.data
    if data.animals is not None:
        return []
    labelled = {tuple(shape) for shape in np.rint([data.width, data.height] / data.factors).astype(int).tolist()}
    shapes = {name: tuple(each["shape"][::-1]) for name, each in videos.items()}
    other = [f"{name} is {shape[0]} x {shape[1]}" for name, shape in shapes.items() if shape not in labelled]
    sizes = ", ".join(f"{width} x {height}" for width, height in sorted(labelled))
    return [] if not other else [
        f"labelled frames are {sizes} pixels (width x height), and {', '.join(other)}: animals there have "
        "another size, or labelled frames were cropped, and the distance of a video is of that too"
    ]  # fmt: skip
