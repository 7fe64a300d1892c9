"""COCO's keypoints: one JSON file with images, annotations and the names of the parts.

Images with exactly one animal are taken, as in chapter 5 of the thesis; a remark in the log says how many others there
were. The name of the category is the species; without an `individual` in its annotation, every animal is one of its
own.
Coordinates in COCO are those of corners of pixels, so half a pixel is taken off; those with visibility 0 are missing.
"""

import logging
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.errors import HoldfastError
from holdfast.json_files import read_json
from holdfast.pose.data import PoseData
from holdfast.schema import TABLE, TEXT, check, either, list_of, number, optional, whole_number

log = logging.getLogger("holdfast")

LARGEST = 2**30
"""Bytes; COCO's own file of keypoints has 240 MB."""
PAIR = list_of(whole_number(1), 2)
ID = either(whole_number(), TEXT)
ENTRIES = {
    "images": {"id": ID, "file_name": TEXT},
    "annotations": {
        "image_id": ID,
        "category_id": ID,
        "keypoints": optional(list_of(number())),
        "bbox": list_of(number(), 4),
        "area": optional(number(0)),
        "individual": ID,
    },
    "categories": {"id": ID, "name": TEXT, "keypoints": optional(list_of(TEXT)), "skeleton": optional(list_of(PAIR))},
}
"""What entries of a file must hold, as far as it is used."""


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
    content = check(
        read_json(path, LARGEST), dict.fromkeys(ENTRIES, list_of(TABLE)), f"{path}, a file of COCO keypoints,"
    )
    for key, kinds in ENTRIES.items():
        for place, entry in enumerate(content[key]):
            missing = ("keypoints", "skeleton", "bbox", "area", "individual")
            check(entry, kinds, f"{path}: {key}[{place}]", missing)
    return content


def _parts(categories: dict[int, dict[str, Any]], path: Path) -> tuple[list[str], list[tuple[str, str]]]:
    first = next(iter(categories.values()))
    parts = first["keypoints"]
    for category in categories.values():
        if category["keypoints"] != parts:
            raise HoldfastError(f"{path}: {category['name']} and {first['name']} have different keypoints")
    pairs = first.get("skeleton") or []
    if any(part > len(parts) for pair in pairs for part in pair):
        raise HoldfastError(f"{path}: the skeleton of {first['name']} joins more than its {len(parts)} keypoints")
    return parts, [(parts[one - 1], parts[two - 1]) for one, two in pairs]


def _folder(path: Path, images: Path | None, file: str) -> Path:
    if images is not None:
        return images
    return next((folder for folder in (path.parent, path.parent / "images") if (folder / file).is_file()), path.parent)
