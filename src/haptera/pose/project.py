"""A DeepLabCut project as its `config.yaml` describes it: labelled frames, skeleton, scorer, and videos.

Frames that were taken for labelling and not labelled are left out. A project says nothing of individuals; the folder of
a frame, the video, stands for one, unless somebody says another rule. With several animals in a frame
(`multianimalproject`), each labelled one is a crop; parts that belong to no animal (`uniquebodyparts`) are left out.
Videos are those of `video_sets` that are there, and all in the folder `videos`:
projects are moved, and their configuration often names places on another machine.
"""

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from haptera.checks import check_number
from haptera.errors import HapteraError
from haptera.files.deeplabcut import find_images
from haptera.files.keypoints import KeypointTable
from haptera.files.schema import TEXT, check, either, list_of, number, optional
from haptera.files.video import is_video
from haptera.files.yaml import read_yaml
from haptera.pose.data import PoseData
from haptera.pose.further import CUTOFF
from haptera.pose.labels import Labels, read_labels

log = logging.getLogger("haptera")

KINDS = {
    "scorer": TEXT,
    "bodyparts": either(TEXT, list_of(TEXT)),
    "multianimalbodyparts": optional(list_of(TEXT)),
    "individuals": optional(list_of(TEXT)),
    "pcutoff": number(0, 1),
    "skeleton": optional(list_of(list_of(TEXT))),
}
NEEDED = ("scorer", "bodyparts")


@dataclass(frozen=True, eq=False)
class Project:
    """What is labelled in a project, and what is not.

    Attributes:
        name: of the project.
        data: the labelled frames.
        videos: files that are there.
        cutoff: the likelihood below which DeepLabCut takes a part for not found.
        size: height and width to which frames were brought; None if they are as they are.
    """

    name: str
    data: PoseData
    videos: tuple[Path, ...]
    cutoff: float
    size: tuple[int, int] | None = None


def open_project(
    config: Path, *, scorer: str | None = None, size: tuple[int, int] | None = None, individual: str | None = None
) -> Project:
    """Return what a project holds.

    Args:
        config: its `config.yaml`, or its folder.
        scorer: whose labels; the configuration's by default.
        size: height and width to which frames of different sizes are brought.
        individual: how individuals are named, see `name_individuals`.
    """
    path = config / "config.yaml" if config.is_dir() else config
    if path.is_file() and path.suffix.lower() not in (".yaml", ".yml"):
        raise HapteraError(f"{path} is not a project; its config.yaml, or the folder in which that is, was expected")
    content = check(read_yaml(path), KINDS, str(path), missing=tuple(key for key in KINDS if key not in NEEDED))
    folder, several = path.parent, bool(content.get("multianimalproject"))
    labels = read_labels(folder, scorer=scorer or content["scorer"], individual=individual)
    _check_animals(labels.table, content, several, path)
    named = content.get("multianimalbodyparts") if several else content["bodyparts"]
    named = [named] if isinstance(named, str) else named or []
    parts = tuple(part for part in named if part in labels.table.parts)
    if not parts:
        raise HapteraError(f"{path} names the parts {named}, the labels have {list(labels.table.parts)}")
    order = [labels.table.parts.index(part) for part in parts]
    labelled = np.isfinite(labels.table.keypoints[:, order]).any((1, 2))
    if not labelled.any():
        raise HapteraError(f"no frame of {folder} is labelled")
    if not labelled.all():
        log.info("%s: %d of %d frames have no label and are left out", path, (~labelled).sum(), len(labelled))
    skeleton = [pair for pair in content.get("skeleton") or [] if len(pair) == 2 and set(pair) <= set(parts)]
    pairs = tuple((one, two) for one, two in skeleton)
    rows = np.flatnonzero(labelled)
    table = replace(labels.table.select(rows), skeleton=pairs, parts=parts)
    table = replace(table, keypoints=table.keypoints[:, order])
    found = Labels(table, labels.individuals[rows], lambda images: find_images(list(table.files), folder, images))
    data = found.frames(None, size, folder.name)
    videos = () if several else _videos(content, folder)
    if several:
        log.info(
            "%s: videos are left out, for the network sees crops, and where animals are in a video is not known", path
        )
    return Project(str(content.get("Task") or folder.name), data, videos, content.get("pcutoff", CUTOFF), size)


def find_cutoff(source: Path) -> float:
    """Return the likelihood below which a project takes a part for not found; DeepLabCut's own where none is said.

    Args:
        source: a `config.yaml`, a project's folder, or anything else.
    """
    path = source / "config.yaml" if source.is_dir() else source
    if path.suffix not in (".yaml", ".yml") or not path.is_file():
        return CUTOFF
    found = read_yaml(path)
    said = found.get("pcutoff", CUTOFF) if isinstance(found, dict) else CUTOFF
    check_number(f"pcutoff of {path}", said, least=0, most=1, what="a likelihood")
    return float(said)


def _check_animals(table: KeypointTable, content: dict[str, Any], several: bool, path: Path) -> None:
    """Compare the animals that a configuration names with those of the labels."""
    if several != (table.animals is not None):
        one, two = ("several animals", "one") if several else ("one animal", "several")
        raise HapteraError(f"{path} is of a project with {one} in a frame, its labels are of {two}")
    if table.animals is not None:
        for name in content.get("individuals") or []:
            if name not in table.animals:
                log.warning("%s names the individual %r, which has no label in any frame", path, name)


def _videos(content: dict[str, Any], folder: Path) -> tuple[Path, ...]:
    named = content.get("video_sets")
    named = list(named) if isinstance(named, dict) else []
    found = [Path(str(each)) for each in named if Path(str(each)).is_file()]
    beside = (
        sorted(each for each in (folder / "videos").glob("*") if is_video(each)) if (folder / "videos").is_dir() else []
    )
    known = {each.name for each in found}
    return (*found, *(each for each in beside if each.name not in known))


def choose_sets(
    data: PoseData, new: tuple[str, ...] = (), split: np.ndarray | None = None, most: int | None = None
) -> dict[str, PoseData]:
    """Return `known` and `new`, where they have frames.

    Args:
        data: labelled frames.
        new: individuals that the network never saw.
        split: `train`, `within` or `out` for each frame; those of training are left out.
        most: frames of each set, evenly spread over it; all if None.
    """
    for name in new:
        if name not in data.individuals:
            names = ", ".join(np.unique(data.individuals).tolist())
            raise HapteraError(f"there is no individual {name!r} in {data.name}; there are {names}")
    unseen = np.isin(data.individuals, new) if split is None else split == "out"
    within = ~unseen if split is None else split == "within"
    sets = {}
    for name, chosen in (("known", within), ("new", unseen)):
        rows = np.flatnonzero(chosen)
        if most is not None and len(rows) > most:
            rows = rows[np.unique(np.linspace(0, len(rows) - 1, most).round().astype(int))]
        if len(rows):
            sets[name] = data.select(rows)
    if not sets:
        raise HapteraError(f"no frame of {data.name} is left for a test; all were learnt from")
    return sets
