"""Opening pose data by name: `drawn`, a table or project of DeepLabCut, or a JSON file of COCO."""

import logging
from inspect import signature
from pathlib import Path

from haptera.errors import HapteraError, check_keys
from haptera.files.deeplabcut import find_images, read_deeplabcut
from haptera.pose.coco import read_coco
from haptera.pose.data import PoseData
from haptera.pose.drawn import drawn_animals
from haptera.run.flags import Spec

log = logging.getLogger("haptera")


def open_pose(
    source: str | Path,
    images: Path | None = None,
    *,
    size: tuple[int, int] | None = None,
    scorer: str | None = None,
    individual: str | None = None,
) -> PoseData:
    """Return frames with keypoints.

    Args:
        source: `drawn`, with settings of `drawn_animals` such as `drawn:individuals=30,frames=40`; a `.csv` or `.h5` of
            DeepLabCut, or its project, see `read_deeplabcut`; or a `.json` of COCO.
        images: the folder that paths of images begin at; found by itself if they are beside the table or above it.
        size: height and width to which images of different sizes are brought.
        scorer: whose labels of a table with several.
        individual: what says whose image it is in a file of COCO; see `read_coco_labels`.
    """
    if is_drawn(source):
        settings = dict(Spec.parse(str(source)).arguments)
        check_keys("setting of drawn animals", settings, signature(drawn_animals).parameters)
        if size is not None:
            settings = {"height": size[0], "width": size[1]} | settings
        return drawn_animals(**settings)
    path = Path(source)
    if path.suffix == ".json":
        return read_coco(path, images, size=size, individual=individual)
    if individual is not None:
        raise HapteraError(f"individual is {individual!r}, which is for files of COCO, and the data is {source}")
    table = read_deeplabcut(path, scorer)
    for part, labels in zip(table.parts, table.keypoints.swapaxes(0, 1), strict=True):
        if not (labels == labels).any():
            log.warning("%s: the part %r has no label in any frame; it will be found nowhere", path, part)
    return PoseData(
        find_images(list(table.files), path, images),
        table.keypoints,
        table.parts,
        table.individuals,
        files=table.files,
        scorer=table.scorer,
        size=size,
        name=path.name,
    )


def is_drawn(source: str | Path) -> bool:
    """Say whether animals are to be drawn, rather than read from a file."""
    return str(source).partition(":")[0] == "drawn"
