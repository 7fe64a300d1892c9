"""COCO's keypoints: one JSON file with images, annotations and the names of the parts.

Images with exactly one animal are taken, as in chapter 5 of the thesis; a remark in the log says how many others there
were. The name of the category is the species; without an `individual` in its annotation, every animal is one of its
own.
Coordinates in COCO are those of corners of pixels, so half a pixel is taken off; those with visibility 0 are missing.
"""

import json
import logging
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.errors import HoldfastError
from holdfast.pose.data import PoseData

log = logging.getLogger("holdfast")


def read_coco(path: Path, images: Path | None = None, *, size: tuple[int, int] | None = None) -> PoseData:
    """Read labelled images.

    Args:
        path: the JSON file.
        images: the folder in which its images are; by default that of the file, or `images` in it.
        size: height and width to which images of different sizes are brought.
    """
    content = _content(path)
    try:
        return _read(content, path, images, size)
    except KeyError as error:
        raise HoldfastError(f"{path}: an entry has, or is named by, no {error}") from error


def _read(content: dict[str, Any], path: Path, images: Path | None, size: tuple[int, int] | None) -> PoseData:
    categories = {entry["id"]: entry for entry in content["categories"] if entry.get("keypoints")}
    if not categories:
        raise HoldfastError(f"{path} has no category with keypoints")
    parts, skeleton = _parts(categories, path)
    taken = [entry for entry in content["annotations"] if entry.get("keypoints") and entry["category_id"] in categories]
    animals = Counter(entry["image_id"] for entry in content["annotations"])
    single = [entry for entry in taken if animals[entry["image_id"]] == 1]
    if not single:
        raise HoldfastError(f"{path} has no image with exactly one labelled animal")
    if len(animals) > len(single):
        log.info("%s: %d images with several animals, or none labelled, are left out", path, len(animals) - len(single))
    names = {entry["id"]: entry["file_name"] for entry in content["images"]}
    files = [names[entry["image_id"]] for entry in single]
    values = [entry["keypoints"] for entry in single]
    for file, value in zip(files, values, strict=True):
        if len(value) != 3 * len(parts):
            raise HoldfastError(f"{path}: {file} has {len(value)} numbers for {len(parts)} keypoints; x, y, v of each")
    labels = np.array(values, float).reshape(len(single), len(parts), 3)
    keypoints = np.where(labels[:, :, 2:] > 0, labels[:, :, :2] - 0.5, np.nan)
    return PoseData(
        [_folder(path, images, files[0]) / file for file in files],
        keypoints,
        parts,
        [str(entry.get("individual", entry["image_id"])) for entry in single],
        species=[categories[entry["category_id"]]["name"] for entry in single],
        files=files,
        skeleton=skeleton,
        areas=[entry.get("area") or float(np.prod(entry["bbox"][2:])) for entry in single],
        size=size,
        name=path.name,
    )


def _content(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise HoldfastError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise HoldfastError(f"{path} is no JSON: {error}") from error
    missing = [key for key in ("images", "annotations", "categories") if key not in content]
    if missing:
        raise HoldfastError(f"{path} is no file of COCO keypoints: it has no {missing[0]!r}")
    return content


def _parts(categories: dict[int, dict[str, Any]], path: Path) -> tuple[list[str], list[tuple[str, str]]]:
    first = next(iter(categories.values()))
    parts = first["keypoints"]
    for category in categories.values():
        if category["keypoints"] != parts:
            raise HoldfastError(f"{path}: {category['name']} and {first['name']} have different keypoints")
    return parts, [(parts[one - 1], parts[two - 1]) for one, two in first.get("skeleton", [])]


def _folder(path: Path, images: Path | None, file: str) -> Path:
    if images is not None:
        return images
    return next((folder for folder in (path.parent, path.parent / "images") if (folder / file).is_file()), path.parent)
