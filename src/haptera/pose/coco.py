"""COCO's keypoints: one JSON file with images, annotations and the names of the parts.

Images with exactly one animal are taken, as in chapter 5 of the thesis, and a remark in the log says how many others
there were; or every labelled animal is (`animals="all"`), a row and a crop for each. The name of the category is the
species. Which individual an image shows is a field of its annotation or of the image, or the folder of its file
(`INDIVIDUAL`); where none of these says it, every image is an individual of its own. Coordinates in COCO are those of
corners of pixels, so half a pixel is taken off; those with visibility 0 are missing.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from haptera.errors import HapteraError, check_keys, unknown
from haptera.files.json import read_json
from haptera.files.schema import TABLE, TEXT, check, either, list_of, number, optional, whole_number
from haptera.pose.individuals import name_folders

log = logging.getLogger("haptera")

LARGEST = 2**30
"""Bytes; COCO's own file of keypoints has 240 MB."""
PAIR = list_of(whole_number(1), 2)
ID = either(whole_number(), TEXT)
FIELDS = ("individual", "individual_id", "video", "video_id")
FOLDER, IMAGE = "folder", "image"
ONE, ALL = "one", "all"
INDIVIDUAL = (*FIELDS, FOLDER, IMAGE)
"""What may say which individual an image shows, in the order in which it is looked for."""
ENTRIES = {
    "images": {"id": ID, "file_name": TEXT} | dict.fromkeys(FIELDS, optional(ID)),
    "annotations": {
        "image_id": ID,
        "category_id": ID,
        "keypoints": optional(list_of(number())),
        "bbox": list_of(number(), 4),
        "area": optional(number(0)),
    }
    | dict.fromkeys(FIELDS, optional(ID)),
    "categories": {"id": ID, "name": TEXT, "keypoints": optional(list_of(TEXT)), "skeleton": optional(list_of(PAIR))},
}
"""What entries of a file must hold, as far as it is used."""


@dataclass(frozen=True, eq=False)
class CocoLabels:
    """What a file says about its animals, without the images.

    Attributes:
        keypoints: `(frames, parts, 2)`, NaN where missing.
        parts: their names.
        files: paths of the images.
        individuals: whose image it is.
        species: names of the categories.
        areas: of the animals, in square pixels.
        skeleton: pairs of parts.
        boxes: `(frames, 4)` as x, y, x, y; NaN where the file has none.
        animals: `(frames,)`, which of several animals in an image it is; None where each has one.
        sizes: `(frames, 2)`, height and width of the image as the file declares them; NaN where it does not.
    """

    keypoints: np.ndarray
    parts: tuple[str, ...]
    files: np.ndarray
    individuals: np.ndarray
    species: list[str]
    areas: list[float]
    skeleton: list[tuple[str, str]]
    boxes: np.ndarray
    animals: np.ndarray | None = None
    sizes: np.ndarray | None = None


def read_coco_labels(path: Path, individual: str | None = None, animals: str = ONE) -> CocoLabels:
    """Read the labels of a file; its images need not be there.

    Args:
        path: the JSON file.
        individual: what says which individual an image shows: a field of annotations or images, `folder` for the
            folder of the image's file, or `image` for one of its own. The first of `INDIVIDUAL` that the file has, if
            left out.
        animals: `one` takes images with exactly one animal, `all` every animal with a keypoint.
    """
    check_keys("choice of animals", [animals], (ONE, ALL))
    content = _content(path)
    try:
        return _read(content, path, individual, animals == ALL)
    except KeyError as error:
        raise HapteraError(f"{path}: an entry has, or is named by, no {error}") from error


def _read(content: dict[str, Any], path: Path, individual: str | None, every: bool) -> CocoLabels:
    categories = {entry["id"]: entry for entry in content["categories"] if entry.get("keypoints")}
    if not categories:
        raise HapteraError(f"{path} has no category with keypoints")
    parts, skeleton = _parts(categories, path)
    taken = [entry for entry in content["annotations"] if entry.get("keypoints") and entry["category_id"] in categories]
    if every:
        single = [entry for entry in taken if any(entry["keypoints"][2::3])]  # a box alone has nothing to find
    else:
        single = _alone(taken, Counter(entry["image_id"] for entry in content["annotations"]), path)
    if not single:
        raise HapteraError(f"{path} has no image with {'a' if every else 'exactly one'} labelled animal")
    pictures = {entry["id"]: entry for entry in content["images"]}
    shown = [pictures[entry["image_id"]] for entry in single]
    files = [str(picture["file_name"]) for picture in shown]
    images = Counter(str(entry["file_name"]) for entry in pictures.values())
    if twice := next((file for file in files if images[file] > 1), None):
        raise HapteraError(f"{path}: the image {twice} is there twice; each was expected once")
    values = [entry["keypoints"] for entry in single]
    for file, value in zip(files, values, strict=True):
        if len(value) != 3 * len(parts):
            raise HapteraError(f"{path}: {file} has {len(value)} numbers for {len(parts)} keypoints; x, y, v of each")
    labels = np.array(values, float).reshape(len(single), len(parts), 3)
    orders = {key: [entry["keypoints"].index(part) for part in parts] for key, entry in categories.items()}
    labels = np.stack([own[orders[entry["category_id"]]] for own, entry in zip(labels, single, strict=True)])
    return CocoLabels(
        np.where(labels[:, :, 2:] > 0, labels[:, :, :2] - 0.5, np.nan),
        tuple(parts),
        np.array(files),
        np.array(_individuals(single, shown, path, individual)),
        [str(categories[entry["category_id"]]["name"]) for entry in single],
        [float(entry.get("area") or np.prod((entry.get("bbox") or [0] * 4)[2:])) for entry in single],
        skeleton,
        np.array([_box(entry) for entry in single]),
        _animals(single) if every else None,
        np.array([_size(picture) for picture in shown]),
    )


def _alone(taken: list[dict[str, Any]], animals: Mapping[Any, int], path: Path) -> list[dict[str, Any]]:
    """Return the animals that are alone in their image."""
    single = [entry for entry in taken if animals[entry["image_id"]] == 1]
    if single and len(animals) > len(single):
        log.info(
            "%s: %d images with several animals, or none labelled, are left out; --animals all takes each animal",
            path, len(animals) - len(single),
        )  # fmt: skip
    return single


def _box(entry: Mapping[str, Any]) -> list[float]:
    """Return x, y, x, y of the centres of the first and last pixel; NaN where a file has no box, or an empty one."""
    x, y, width, height = entry.get("bbox") or (0, 0, 0, 0)
    return [x, y, x + width - 1, y + height - 1] if width > 0 and height > 0 else [np.nan] * 4


def _size(picture: Mapping[str, Any]) -> list[float]:
    """Return the height and width that an image is said to have; NaN where these are no numbers."""
    sides = picture.get("height"), picture.get("width")
    return [float(side) if isinstance(side, int | float) else np.nan for side in sides]


def _animals(entries: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """Return names of animals in their image: `track_id`, where all have one and no image has it twice, or a number."""
    tracks = [(entry["image_id"], entry.get("track_id")) for entry in entries]
    if all(track is not None for _, track in tracks) and len(set(tracks)) == len(tracks):
        return np.array([f"animal_{track}" for _, track in tracks])
    seen: Counter[Any] = Counter()
    names = []
    for entry in entries:
        names.append(f"animal_{seen[entry['image_id']]}")
        seen[entry["image_id"]] += 1
    return np.array(names)


def coco_images(path: Path, files: np.ndarray, images: Path | None = None) -> list[Path]:
    """Return the image of each row.

    Args:
        path: the JSON file.
        files: as it names them.
        images: the folder in which they are; by default that of the file, or `images` in it.
    """
    folder = _folder(path, images, str(files[0]))
    return [folder / str(file) for file in files]


def _individuals(
    annotations: Sequence[Mapping[str, Any]], images: Sequence[Mapping[str, Any]], path: Path, by: str | None
) -> list[str]:
    """Return whose image each is, by a field that all of them have."""
    entries = [{**image, **annotation} for image, annotation in zip(images, annotations, strict=True)]
    paths = [PurePosixPath(str(image["file_name"]).replace("\\", "/")) for image in images]
    if by is None:
        with_field = [field for field in FIELDS if all(entry.get(field) is not None for entry in entries)]
        by = [*with_field, FOLDER if all(path.parent.name for path in paths) else IMAGE][0]
    if by == IMAGE:
        found = [str(image["file_name"]) for image in images]
    elif by == FOLDER:
        found = name_folders(paths)
    else:
        lacking = next((entry for entry in entries if entry.get(by) is None), None)
        if lacking is not None:
            valid = [field for field in entries[0] if all(entry.get(field) is not None for entry in entries)]
            raise unknown(f"field of every image or annotation in {path}", by, [*valid, FOLDER, IMAGE])
        found = [str(entry[by]) for entry in entries]
    told = f"{len(set(found))} individuals, by the {by}" if by != IMAGE else "every image is an individual of its own"
    log.info("%s: %s of %d images; --individual-by chooses another field", path, told, len(found))
    return found


def _content(path: Path) -> dict[str, Any]:
    content = check(
        read_json(path, LARGEST), dict.fromkeys(ENTRIES, list_of(TABLE)), f"{path}, a file of COCO keypoints,"
    )
    for key, kinds in ENTRIES.items():
        for place, entry in enumerate(content[key]):
            missing = ("keypoints", "skeleton", "bbox", "area", *FIELDS)
            check(entry, kinds, f"{path}: {key}[{place}]", missing)
    return content


def _parts(categories: dict[int, dict[str, Any]], path: Path) -> tuple[list[str], list[tuple[str, str]]]:
    first = next(iter(categories.values()))
    parts = [str(part) for part in first["keypoints"]]
    for category in categories.values():  # their order may differ
        if sorted(category["keypoints"]) != sorted(first["keypoints"]):
            raise HapteraError(f"{path}: {category['name']} and {first['name']} have different keypoints")
    pairs = first.get("skeleton") or []
    if any(part > len(parts) for pair in pairs for part in pair):
        raise HapteraError(f"{path}: the skeleton of {first['name']} joins more than its {len(parts)} keypoints")
    return parts, [(parts[one - 1], parts[two - 1]) for one, two in pairs]


def _folder(path: Path, images: Path | None, file: str) -> Path:
    if images is not None:
        return images
    return next((folder for folder in (path.parent, path.parent / "images") if (folder / file).is_file()), path.parent)
