"""A DeepLabCut project as its `config.yaml` describes it: labelled frames, skeleton, scorer, and videos.

Frames that were taken for labelling and not labelled are left out. A project says nothing of individuals; the folder of
a frame, the video, stands for one. Videos are those of `video_sets` that are there, and all in the folder `videos`:
projects are moved, and their configuration often names places on another machine.
"""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from haptera.errors import HapteraError
from haptera.files.deeplabcut import find_images, read_deeplabcut
from haptera.files.schema import TEXT, check, list_of, number, optional
from haptera.files.video import is_video
from haptera.files.yaml import read_yaml
from haptera.pose.data import PoseData

log = logging.getLogger("haptera")

KINDS = {
    "scorer": TEXT,
    "bodyparts": list_of(TEXT),
    "pcutoff": number(0, 1),
    "skeleton": optional(list_of(list_of(TEXT))),
}
CUTOFF = 0.6


@dataclass(frozen=True, eq=False)
class Project:
    """What is labelled in a project, and what is not.

    Attributes:
        name: of the project.
        data: the labelled frames.
        videos: files that are there.
        cutoff: the likelihood below which DeepLabCut takes a part for not found.
    """

    name: str
    data: PoseData
    videos: tuple[Path, ...]
    cutoff: float


def open_project(config: Path, *, scorer: str | None = None, size: tuple[int, int] | None = None) -> Project:
    """Return what a project holds.

    Args:
        config: its `config.yaml`, or its folder.
        scorer: whose labels; the configuration's by default.
        size: height and width to which frames of different sizes are brought.
    """
    path = config / "config.yaml" if config.is_dir() else config
    content = check(read_yaml(path), KINDS, str(path), missing=("pcutoff", "skeleton"))
    if content.get("multianimalproject"):
        raise HapteraError(
            f"{path} is of a project with several animals in a frame (multianimalproject); one animal was expected"
        )
    folder = path.parent
    table = read_deeplabcut(folder, scorer or content["scorer"])
    labelled = np.isfinite(table.keypoints).any((1, 2))
    if not labelled.any():
        raise HapteraError(f"no frame of {folder} is labelled")
    if not labelled.all():
        log.info("%s: %d of %d frames have no label and are left out", path, (~labelled).sum(), len(labelled))
    files = table.files[labelled]
    parts = [part for part in content["bodyparts"] if part in table.parts]
    if not parts:
        raise HapteraError(f"{path} names the parts {content['bodyparts']}, the labels have {list(table.parts)}")
    order = [table.parts.index(part) for part in parts]
    skeleton = [pair for pair in content.get("skeleton") or [] if len(pair) == 2 and set(pair) <= set(parts)]
    data = PoseData(
        find_images(list(files), folder), table.keypoints[labelled][:, order], parts, table.individuals[labelled],
        files=files, skeleton=[(one, two) for one, two in skeleton], size=size, name=folder.name,
    )  # fmt: skip
    return Project(
        str(content.get("Task") or folder.name), data, _videos(content, folder), content.get("pcutoff", CUTOFF)
    )


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
