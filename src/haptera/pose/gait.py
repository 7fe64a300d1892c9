"""Gait: where the 22 keypoints of a drawn animal are, given its build and the phase of its stride.

Seen from the side, facing right. Lengths are in units of the trunk, y runs up and the ground is at 0. Legs swing about
elbow and stifle and bend while they are lifted; near and off legs are half a stride apart.
"""

from dataclasses import dataclass

import numpy as np

PARTS = (
    "nose", "eye",
    "near_knee", "near_front_fetlock", "near_front_foot",
    "off_knee", "off_front_fetlock", "off_front_foot",
    "shoulder", "mid_shoulder", "elbow", "girth", "wither",
    "near_hind_hock", "near_hind_fetlock", "near_hind_foot",
    "hip", "stifle",
    "off_hind_hock", "off_hind_fetlock", "off_hind_foot",
    "ischium",
)  # fmt: skip
"""Those that were labelled on the horses of chapter 5."""

SKELETON = (
    ("nose", "eye"), ("eye", "wither"), ("wither", "mid_shoulder"), ("mid_shoulder", "shoulder"),
    ("shoulder", "elbow"), ("elbow", "girth"), ("wither", "hip"), ("hip", "ischium"), ("hip", "stifle"),
    ("elbow", "near_knee"), ("near_knee", "near_front_fetlock"), ("near_front_fetlock", "near_front_foot"),
    ("elbow", "off_knee"), ("off_knee", "off_front_fetlock"), ("off_front_fetlock", "off_front_foot"),
    ("stifle", "near_hind_hock"), ("near_hind_hock", "near_hind_fetlock"), ("near_hind_fetlock", "near_hind_foot"),
    ("stifle", "off_hind_hock"), ("off_hind_hock", "off_hind_fetlock"), ("off_hind_fetlock", "off_hind_foot"),
)  # fmt: skip


@dataclass(frozen=True)
class Build:
    """Proportions of an individual.

    Attributes:
        leg: from the ground to the middle of the trunk.
        depth: of the trunk.
        neck: length of the neck.
        carriage: its angle above the horizontal, in radians.
        head: length of the head.
        swing: how far legs swing, in radians.
    """

    leg: float
    depth: float
    neck: float
    carriage: float
    head: float
    swing: float


SPECIES = {
    "horse": Build(leg=0.86, depth=0.42, neck=0.56, carriage=0.85, head=0.36, swing=0.42),
    "dog": Build(leg=0.68, depth=0.34, neck=0.34, carriage=0.95, head=0.32, swing=0.5),
    "cow": Build(leg=0.7, depth=0.54, neck=0.42, carriage=0.3, head=0.36, swing=0.32),
    "giraffe": Build(leg=1.0, depth=0.38, neck=0.85, carriage=1.1, head=0.3, swing=0.36),
}


def keypoints(build: Build, phase: float, nod: float = 0.0) -> np.ndarray:
    """Return x and y of every part, `(22, 2)`.

    Args:
        build: of the individual.
        phase: of the stride, in radians.
        nod: added to the angle of neck and head.
    """
    top, half = build.leg, build.depth / 2
    bob = 0.02 * np.cos(2 * phase)
    place = {
        "shoulder": (0.50, top - 0.1 * half),
        "mid_shoulder": (0.40, top + 0.45 * half),
        "wither": (0.28, top + 1.05 * half),
        "elbow": (0.33, top - 0.8 * half),
        "girth": (0.17, top - 1.0 * half),
        "hip": (-0.36, top + 0.9 * half),
        "ischium": (-0.55, top + 0.35 * half),
        "stifle": (-0.30, top - 0.7 * half),
    }
    place = {name: (x, y + bob) for name, (x, y) in place.items()}
    angle = build.carriage + nod
    poll = np.add((0.40, top + 0.7 * half + bob), build.neck * np.array([np.cos(angle), np.sin(angle)]))
    facing = np.array([np.cos(angle - 1.75), np.sin(angle - 1.75)])
    facing[0] = max(facing[0], 0.35)
    facing /= np.linalg.norm(facing)
    points = {name: np.array(where) for name, where in place.items()}
    points["eye"], points["nose"] = poll + 0.22 * build.head * facing, poll + build.head * facing
    for side, lag in (("near", 0.0), ("off", np.pi)):
        points |= _leg(points["elbow"], build.swing, phase + lag, side, "front")
        points |= _leg(points["stifle"], build.swing, phase + lag + 0.8 * np.pi, side, "hind")
    return np.stack([points[part] for part in PARTS])


def _leg(start: np.ndarray, swing: float, phase: float, side: str, end: str) -> dict[str, np.ndarray]:
    """Return three joints below elbow or stifle; a lifted leg bends, a standing one reaches the ground."""
    length = float(start[1])
    lift = max(0.0, float(np.cos(phase)))
    upper = swing * np.sin(phase)
    if end == "front":
        shares, bends = (0.48, 0.36, 0.16), (upper, upper - 0.9 * lift, upper - 1.1 * lift)
        names = (f"{side}_knee", f"{side}_front_fetlock", f"{side}_front_foot")
    else:
        shares, bends = (0.5, 0.36, 0.17), (upper - 0.45 - 0.2 * lift, upper + 0.25 - 0.5 * lift, upper + 0.1 - lift)
        names = (f"{side}_hind_hock", f"{side}_hind_fetlock", f"{side}_hind_foot")
    joints, place = {}, start
    for name, share, bend in zip(names, shares, bends, strict=True):
        place = place + share * length * np.array([np.sin(bend), -np.cos(bend)])
        place = np.array([place[0], max(place[1], 0.0)])
        joints[name] = place
    return joints
