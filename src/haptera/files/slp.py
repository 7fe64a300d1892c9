"""SLEAP's labels, `.slp`: an HDF5 file with instances of animals in frames of videos, and sometimes the images.

Source: SLEAP's public description of the format, versions 1.0 to 2.8, as far as it is about points. `frames` names the
video and number of each frame, `instances` its animals (type 0 by a person, 1 by a network), `points` and `pred_points`
their places, `tracks_json` who they are; `metadata` has the skeleton. Before version 1.1 the corner of the first pixel
was (0, 0), so half a pixel is taken off. What is not visible is missing.
A frame is called by its image, or by video and number, `clip/12`. Images are in the file (`video0/video`, as PNG or
JPEG), in files that it names, or in videos: those are looked for where the file says, and beside the file.
Needs h5py (`pip install 'haptera[pose]'`).
"""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from PIL import Image

from haptera.errors import HapteraError
from haptera.files.hdf5 import attribute, open_hdf5, values_of
from haptera.files.keypoints import KeypointTable
from haptera.files.video import Video, is_video

LABELS, PREDICTIONS = 0, 1
POINTS = ("points", "pred_points")
NAMES = ("labels", "predictions")
ENCODED = ("png", "jpg", "jpeg")


@dataclass(frozen=True, eq=False)
class SlpLabels:
    """What a file says, without the images.

    Attributes:
        table: a row for each animal in each frame.
        places: `(rows, 2)`, the video and number of each frame.
        videos: what the file says of each video.
        path: the file.
    """

    table: KeypointTable
    places: np.ndarray
    videos: tuple[Mapping[str, Any], ...]
    path: Path


def read_slp(path: Path, predictions: bool = False) -> SlpLabels:
    """Read what people labelled, or what a network predicted.

    Args:
        path: the file.
        predictions: of a network, rather than labels.
    """
    with open_hdf5(path) as file:
        needed = ("metadata", "frames", "instances", *POINTS)
        if missing := [name for name in needed if name not in file]:
            raise HapteraError(f"{path} is not a file of SLEAP's labels: it has no {missing[0]!r}")
        arrays = {name: file[name][()] for name in ("frames", "instances", *POINTS)}
        about = json.loads(attribute(file["metadata"], "json", "{}"))
        corner = 0.5 if float(attribute(file["metadata"], "format_id", 1.2)) < 1.1 else 0.0
        tracks = [json.loads(text) for text in _texts(file, "tracks_json")]
        videos = tuple(json.loads(text) for text in _texts(file, "videos_json"))
        parts, skeleton = _skeleton(about, path)
        return _collect(arrays, parts, skeleton, _names(tracks), videos, path, int(predictions), corner)


def _texts(file: Any, name: str) -> list[str]:
    return [str(text) for text in values_of(file[name], name, "OS").ravel()] if name in file else []


def _names(tracks: list[Any]) -> list[str]:
    return [str(track[1] if isinstance(track, list) else track.get("name", "")) for track in tracks]


def _skeleton(about: Mapping[str, Any], path: Path) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Return the parts of the one skeleton, and which are joined; links of symmetry are left out."""
    skeletons = about.get("skeletons") or []
    if len(skeletons) != 1:
        raise HapteraError(f"{path} has {len(skeletons)} skeletons; one was expected")
    nodes = [str(node["name"]) for node in about["nodes"]]
    order = [node["id"] for node in skeletons[0]["nodes"]]
    kinds: list[int] = []
    links = []
    for link in skeletons[0].get("links", []):
        kind = link.get("type", {})
        if "py/reduce" in kind:  # the first mention of a kind; later ones name it by its number
            kinds.append(int(kind["py/reduce"][1]["py/tuple"][0]))
            number = kinds[-1]
        else:
            number = kinds[int(kind["py/id"]) - 1] if 0 < int(kind.get("py/id", 0)) <= len(kinds) else 1
        if number == 1:
            links.append((nodes[link["source"]], nodes[link["target"]]))
    return tuple(nodes[number] for number in order), tuple(links)


def _collect(
    arrays: Mapping[str, np.ndarray],
    parts: tuple[str, ...],
    skeleton: tuple[tuple[str, str], ...],
    tracks: list[str],
    videos: tuple[Mapping[str, Any], ...],
    path: Path,
    kind: int,
    corner: float,
) -> SlpLabels:
    instances, points = arrays["instances"], arrays[POINTS[kind]]
    rows: list[tuple[int, int, str]] = []
    keypoints, confidence = [], []
    for frame in arrays["frames"]:
        inside = instances[int(frame["instance_id_start"]) : int(frame["instance_id_end"])]
        for number, instance in enumerate(inside[inside["instance_type"] == kind]):
            own = points[int(instance["point_id_start"]) : int(instance["point_id_end"])]
            if len(own) != len(parts):
                raise HapteraError(f"{path}: an instance has {len(own)} points; {len(parts)} were expected")
            track = int(instance["track"])
            animal = tracks[track] if 0 <= track < len(tracks) else f"instance_{number}"
            rows.append((int(frame["video"]), int(frame["frame_idx"]), animal))
            places = np.stack([own["x"], own["y"]], 1) - corner
            keypoints.append(np.where(own["visible"][:, None], places, np.nan))
            confidence.append(np.clip(own["score"], 0, 1) if kind else np.ones(len(own)))
    if not rows:
        other = int((instances["instance_type"] != kind).sum())
        raise HapteraError(f"{path} has no {NAMES[kind]}" + (f"; it has {other} {NAMES[1 - kind]}" if other else ""))
    if len(set(rows)) < len(rows):
        twice = next(row for row in rows if rows.count(row) > 1)
        raise HapteraError(f"{path}: {twice[2]!r} is twice in frame {twice[1]} of video {twice[0]}; once was expected")
    located = np.array([row[:2] for row in rows])
    several = len(np.unique(located, axis=0)) < len(rows) or len({row[2] for row in rows} - {"instance_0"}) > 1
    table = KeypointTable(
        np.stack(keypoints), parts, np.array([_file(videos, *row[:2]) for row in rows]), "sleap",
        np.stack(confidence) if kind else None, np.array([row[2] for row in rows]) if several else None, skeleton,
    )  # fmt: skip
    return SlpLabels(table, located, videos, path)


def _source(videos: Sequence[Mapping[str, Any]], video: int) -> Mapping[str, Any]:
    """Return what is said of a video, or of the one that its images were taken from."""
    if video >= len(videos):
        return {}
    return videos[video].get("source_video") or videos[video]


def _listed(entry: Mapping[str, Any]) -> list[str]:
    """Return the paths of a video's image files; none for a video."""
    backend = entry.get("backend") or {}
    names = backend.get("filenames") or entry.get("filename")
    return [str(name).replace("\\", "/") for name in names] if isinstance(names, list) else []


def _file(videos: Sequence[Mapping[str, Any]], video: int, frame: int) -> str:
    entry = _source(videos, video)
    if 0 <= frame < len(images := _listed(entry)):
        return "/".join(PurePosixPath(images[frame]).parts[-2:]).lstrip("/")
    name = (entry.get("backend") or {}).get("filename") or entry.get("filename") or f"video{video}"
    name = entry.get("filename") if name == "." else name
    return f"{PurePosixPath(str(name).replace(chr(92), '/')).stem}/{frame}"


def slp_images(labels: SlpLabels, folder: Path | None = None) -> list[Path | bytes]:
    """Return the image of each row: as a file, or as what would be in one.

    Args:
        labels: what `read_slp` gives.
        folder: where images and videos are, if not where the file says.
    """
    found: list[Path | bytes | None] = [None] * len(labels.places)
    for video in np.unique(labels.places[:, 0]).tolist():
        rows = np.flatnonzero(labels.places[:, 0] == video)
        numbers = labels.places[rows, 1]
        images = dict(_images(labels, video, sorted(set(numbers.tolist())), folder))
        for row, number in zip(rows.tolist(), numbers.tolist(), strict=True):
            found[row] = images.get(number)
    lost = [str(file) for file, image in zip(labels.table.files, found, strict=True) if image is None]
    if lost:
        raise HapteraError(f"{labels.path}: {len(lost)} of {len(found)} images are not there, the first is {lost[0]}")
    return [image for image in found if image is not None]


def _images(labels: SlpLabels, video: int, numbers: list[int], folder: Path | None) -> Iterator[tuple[int, Any]]:
    with open_hdf5(labels.path) as file:
        place = str((labels.videos[video].get("backend") or {}).get("dataset") or f"video{video}/video")
        if place in file and folder is None:
            yield from _inside(file, place, numbers, labels.path)
            return
    entry = _source(labels.videos, video)
    if listed := _listed(entry):
        yield from ((number, _find(listed[number], labels.path, folder)) for number in numbers if number < len(listed))
        return
    name = str((entry.get("backend") or {}).get("filename") or entry.get("filename")).replace("\\", "/")
    path = _find(name, labels.path, folder)
    if not is_video(path):
        raise HapteraError(f"{labels.path} names the video {name}, which cannot be read; give its images")
    for number, frame in Video(path).read_some(numbers):
        content = io.BytesIO()
        Image.fromarray(frame).save(content, "PNG", compress_level=1)
        yield number, content.getvalue()


def _inside(file: Any, place: str, numbers: list[int], path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the images that are kept in the file itself."""
    kept = file[place]
    if str(attribute(kept, "format", "")).lower() not in ENCODED:
        raise HapteraError(f"{path} keeps images as {attribute(kept, 'format', 'numbers')!r}; {ENCODED} were expected")
    listed = file[place.rpartition("/")[0]].get("frame_numbers")
    order = list(range(len(kept))) if listed is None else listed[()].tolist()
    for number in numbers:
        if number in order:
            yield number, np.asarray(kept[order.index(number)]).astype(np.uint8, copy=False).tobytes()


def _find(name: str, path: Path, folder: Path | None) -> Path:
    """Return the file of a name: in a folder, as it is, or beside the labels, with fewer and fewer of its folders."""
    pieces = PurePosixPath(name).parts
    tails = [Path(*pieces[start:]) for start in range(len(pieces)) if pieces[start] != "/"]
    places = [] if folder is not None else [Path(name)]
    places += [root / tail for root in ([folder] if folder is not None else [path.parent]) for tail in tails]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise HapteraError(
            f"{path} names {name}, which is neither there nor {f'in {folder}' if folder else 'beside it'}"
        )
    return found
