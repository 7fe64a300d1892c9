"""Labels in any format, as one table with individuals; their images are looked for when they are needed.

DeepLabCut's tables and projects, Lightning Pose's tables, COCO's JSON, SLEAP's `.slp` and analysis files. A row is an
animal in a frame. Where frames have several, images are crops around the labels of each (`haptera.pose.frames`), the
simplest form in which every network, adapter and score for one animal is right for several.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from haptera.errors import HapteraError
from haptera.files.deeplabcut import find_images, read_deeplabcut
from haptera.files.keypoints import KeypointTable
from haptera.files.sleap import is_analysis, read_analysis
from haptera.files.slp import read_slp, slp_images
from haptera.pose.coco import coco_images, read_coco_labels
from haptera.pose.data import PoseData
from haptera.pose.frames import FileFrames, label_boxes
from haptera.pose.individuals import FOLDER, IMAGE, is_rule, name_individuals

log = logging.getLogger("haptera")
FindImages = Callable[[Path | None], Sequence[Path | bytes]]
SLP, JSON, CONFIG = ".slp", ".json", (".yaml", ".yml")


@dataclass(frozen=True, eq=False)
class Labels:
    """What is labelled, without the images.

    Attributes:
        table: a row for each animal in each frame.
        individuals: `(rows,)`.
        find: from the folder that paths of images begin at, or None, to an image for each row.
        species: `(rows,)`, or None.
        areas: `(rows,)`, of each animal in square pixels, or None.
        boxes: `(rows, 4)`, around each animal as the file says, or None.
        sizes: `(rows, 2)`, height and width of images as the file says, or None.
    """

    table: KeypointTable
    individuals: np.ndarray
    find: FindImages
    species: np.ndarray | None = None
    areas: np.ndarray | None = None
    boxes: np.ndarray | None = None
    sizes: np.ndarray | None = None

    def frames(self, images: Path | None = None, size: tuple[int, int] | None = None, name: str = "poses") -> PoseData:
        """Return the labels with their images; crops where frames have several animals.

        Args:
            images: the folder that paths of images begin at.
            size: height and width to which images, or crops, are brought.
            name: what it is called in messages.
        """
        table, found = self.table, self.find(images)
        boxes = None if table.animals is None else label_boxes(table.keypoints, self.boxes)
        shown = FileFrames(found, size, boxes, table.animals, keypoints=table.keypoints, declared=self.sizes)
        return PoseData(
            shown, table.keypoints, table.parts, self.individuals, species=self.species, files=table.files,
            skeleton=table.skeleton, areas=self.areas, name=name,
        )  # fmt: skip


def read_labels(
    path: Path, *, scorer: str | None = None, individual: str | None = None, animals: str | None = None
) -> Labels:
    """Read labels in any of the formats.

    Args:
        path: a `.csv` or `.h5` of DeepLabCut, a `.csv` of Lightning Pose, a folder with such tables, a project's
            `config.yaml`, a `.slp` or `.analysis.h5` of SLEAP, or a `.json` of COCO.
        scorer: whose labels, where there are several.
        individual: how individuals are named, see `name_individuals`; of COCO also a field, see `read_coco_labels`.
        animals: of COCO: `one` takes images with exactly one animal, `all` each animal.
    """
    path = path.parent if path.suffix in CONFIG else path
    find: FindImages
    if path.suffix == JSON:
        own = individual in (FOLDER, IMAGE) or not is_rule(individual)  # what the file says by itself
        coco = read_coco_labels(path, individual if own else None, animals or "one")
        owners = coco.individuals
        if individual is not None and not own:
            owners = name_individuals(coco.files, individual, coco.animals)
        table = KeypointTable(
            coco.keypoints, coco.parts, coco.files, "coco", animals=coco.animals, skeleton=tuple(coco.skeleton)
        )
        find = partial(coco_images, path, coco.files)
        return Labels(table, owners, find, np.array(coco.species), np.array(coco.areas), coco.boxes, coco.sizes)
    if animals is not None:
        raise HapteraError(f"animals is {animals!r}, which is for files of COCO, and the labels are {path}")
    if not is_rule(individual):
        raise HapteraError(f"individual is {individual!r}, a field, which is for files of COCO; the labels are {path}")
    if path.suffix == SLP:
        labels = read_slp(path)
        table, rows = _labelled(labels.table, path)
        find = partial(_chosen, partial(slp_images, labels), rows)
    else:
        table, _ = _labelled(read_analysis(path) if is_analysis(path) else read_deeplabcut(path, scorer), path)
        find = partial(_deeplabcut_images, path, table.files)
    return Labels(table, name_individuals(table.files, individual, table.animals), find)


def read_predictions(path: Path) -> KeypointTable:
    """Read predictions: a table of DeepLabCut or Lightning Pose, an `.analysis.h5` or `.slp` of SLEAP."""
    if path.suffix == SLP:
        return read_slp(path, predictions=True).table
    if path.suffix == JSON:
        raise HapteraError(f"{path} is JSON; predictions were expected as .csv, .h5, .analysis.h5 or .slp")
    return read_analysis(path) if is_analysis(path) else read_deeplabcut(path)


def _labelled(table: KeypointTable, path: Path) -> tuple[KeypointTable, np.ndarray]:
    """Return the rows of animals with a label, and their numbers; a frame of one animal stays, whatever it has."""
    own, rows = table.of_animals()
    if not len(rows):
        raise HapteraError(f"no animal of {path} is labelled in any frame")
    if table.unique:
        log.info("%s: the parts %s belong to no animal and are left out", path, ", ".join(table.unique))
    for part, labels in zip(own.parts, own.keypoints.swapaxes(0, 1), strict=True):
        if not np.isfinite(labels).any():
            log.warning("%s: the part %r has no label in any frame; it will be found nowhere", path, part)
    return own, rows


def _chosen(find: FindImages, rows: np.ndarray, folder: Path | None) -> list[Path | bytes]:
    found = find(folder)
    return [found[row] for row in rows.tolist()]


def _deeplabcut_images(path: Path, files: np.ndarray, folder: Path | None) -> list[Path]:
    return find_images([str(file) for file in files], path, folder)
