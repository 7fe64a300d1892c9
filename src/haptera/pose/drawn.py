"""Drawn animals: a pose data set that is a function of a seed, so that "a new individual" is a real shift.

Individuals differ in build, coat, background and light; frames of one individual differ in the phase of the stride, in
where it stands and in the noise of the camera. The horse data of chapter 5 of the thesis cannot be had everywhere. An
individual is the same whatever the number of others. Cost: a few ms for a frame of 80 x 96 pixels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from haptera.checks import check_number
from haptera.errors import HapteraError, unknown
from haptera.pose.data import PoseData
from haptera.pose.gait import PARTS, SKELETON, SPECIES, Build, keypoints

FINER = 2
"""Drawn so many times as large, then made smaller, so that edges are smooth."""
COATS = (
    (92, 58, 36), (140, 84, 48), (60, 42, 34), (178, 140, 96), (214, 204, 188), (120, 120, 124), (38, 34, 36),
    (168, 104, 60), (232, 226, 214), (84, 70, 60),
)  # fmt: skip
GROUNDS = (
    (96, 128, 64), (168, 148, 108), (126, 122, 116), (70, 92, 52), (196, 180, 142), (88, 74, 60), (150, 160, 150),
    (62, 66, 74),
)  # fmt: skip
SKIES = (
    (170, 196, 224), (206, 212, 214), (110, 140, 110), (150, 120, 100), (90, 100, 120), (226, 214, 190), (70, 88, 66),
    (190, 170, 190),
)  # fmt: skip
Colour = tuple[int, int, int]


@dataclass(frozen=True)
class _Look:
    """What frames of one individual have in common."""

    build: Build
    scale: float
    coat: Colour
    mane: Colour
    socks: float
    sock: Colour
    marks: tuple[tuple[float, float, float, Colour], ...]
    thick: float
    gain: float
    tint: np.ndarray
    fall: float
    noise: float
    scene: Image.Image


def drawn_animals(
    individuals: int = 30,
    frames: int = 40,
    *,
    seed: int = 0,
    height: int = 80,
    width: int = 96,
    species: str | Sequence[str] = "horse",
    missing: float = 0.02,
) -> PoseData:
    """Return frames of walking animals with 22 keypoints.

    Args:
        individuals: how many.
        frames: of each.
        seed: another one, other animals.
        height: of a frame, in pixels.
        width: likewise.
        species: horse, dog, cow or giraffe; several take turns.
        missing: the share of labels that are missing.

    >>> data = drawn_animals(2, 3, seed=1)
    >>> data.keypoints.shape, data.height, data.width, str(data.individuals[0])
    ((6, 22, 2), 80, 96, 'horse-00')
    """
    if individuals < 1 or frames < 1 or min(height, width) < 16:
        raise HapteraError("drawn animals need an individual, a frame and 16 pixels at least")
    check_number("missing", missing, least=0, below=1, what="a share")
    species = (species,) if isinstance(species, str) else species
    for name in species:
        if name not in SPECIES:
            raise unknown("species", name, SPECIES)
    images = np.empty((individuals * frames, height, width, 3), np.uint8)
    points = np.empty((individuals * frames, len(PARTS), 2))
    kinds, names, files = [], [], []
    for one in range(individuals):
        kind = species[one % len(species)]
        look = _look(kind, np.random.default_rng([seed, one]), height, width)
        for frame in range(frames):
            row = one * frames + frame
            images[row], points[row] = _frame(look, np.random.default_rng([seed, one, frame]), height, width)
            files.append(f"labeled-data/{kind}-{one:02d}/img{frame:04d}.png")
        kinds += [kind] * frames
        names += [f"{kind}-{one:02d}"] * frames
    points[np.random.default_rng([seed, individuals, frames]).random(points.shape[:2]) < missing] = np.nan
    points[((points < 0) | (points > [width - 1, height - 1])).any(2)] = np.nan  # a leg that left the frame
    return PoseData(images, points, PARTS, names, species=kinds, files=files, skeleton=SKELETON, name="drawn")


def _look(kind: str, random: np.random.Generator, height: int, width: int) -> _Look:
    usual = SPECIES[kind]
    build = replace(
        usual,
        leg=usual.leg * random.uniform(0.85, 1.15),
        depth=usual.depth * random.uniform(0.8, 1.25),
        neck=usual.neck * random.uniform(0.8, 1.2),
        carriage=usual.carriage + random.uniform(-0.3, 0.25),
        head=usual.head * random.uniform(0.88, 1.15),
        swing=usual.swing * random.uniform(0.8, 1.2),
    )
    tall = build.leg + build.depth / 2 + build.neck * np.sin(build.carriage) + 0.1
    scale = min(width / 2.1, 0.9 * height / tall) * random.uniform(0.85, 1.0)
    coat = _vary(COATS[random.integers(len(COATS))], random, 25)
    marks = tuple(
        (random.uniform(-0.5, 0.45), random.uniform(-0.8, 0.8), random.uniform(0.05, 0.2), _vary(other, random, 25))
        for other in random.permutation(np.array(COATS))[: random.choice([0, 0, 1, 3, 6])]
    )
    return _Look(
        build=build,
        scale=scale,
        coat=coat,
        mane=_vary(COATS[random.integers(len(COATS))], random, 20),
        socks=float(random.choice([0.0, 0.0, 0.35, 0.6])),
        sock=_vary((220, 214, 200) if random.random() < 0.6 else (40, 36, 34), random, 15),
        marks=marks,
        thick=random.uniform(0.8, 1.25),
        gain=random.uniform(0.5, 1.2),
        tint=random.uniform(0.85, 1.15, 3),
        fall=random.uniform(-0.4, 0.4),
        noise=random.uniform(1.0, 5.0),
        scene=_scene(random, FINER * height, FINER * width),
    )


def _scene(random: np.random.Generator, height: int, width: int) -> Image.Image:
    """Return a background three frames wide, along which the animal walks."""
    wide = 3 * width
    sky, ground = (_vary(some[random.integers(len(some))], random, 20) for some in (SKIES, GROUNDS))
    scene = Image.new("RGB", (wide, height), sky)
    draw = ImageDraw.Draw(scene)
    horizon = int(height * random.uniform(0.25, 0.7))
    draw.rectangle((0, horizon, wide, height), fill=ground)
    for _ in range(random.integers(4, 30)):  # trees, bushes, buildings, shadows on the ground
        x, y = random.integers(0, wide), random.integers(int(0.1 * height), height)
        w, h = random.uniform(0.03, 0.3, 2) * height
        colour = _vary(ground if random.random() < 0.5 else sky, random, 45)
        shape = draw.ellipse if random.random() < 0.6 else draw.rectangle
        shape((x - w, y - h, x + w, y + h), fill=colour)
    if random.random() < 0.6:  # a fence
        colour, posts = _vary((150, 140, 130), random, 70), random.integers(8, 30)
        for post in np.linspace(0, wide, posts):
            draw.line((post, horizon - 0.12 * height, post, horizon + 0.18 * height), fill=colour, width=4)
        for rail in (-0.06, 0.06):
            draw.line((0, horizon + rail * height, wide, horizon + rail * height), fill=colour, width=3)
    scene = scene.filter(ImageFilter.GaussianBlur(random.uniform(0.5, 3)))
    grain = random.normal(0, random.uniform(2, 14), (height // 2, wide // 2, 1)).repeat(2, 0).repeat(2, 1)
    return Image.fromarray((np.asarray(scene, float) + grain[:height, :wide]).clip(0, 255).astype(np.uint8))


def _frame(look: _Look, random: np.random.Generator, height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return one image and its keypoints in pixels."""
    scale = look.scale * random.uniform(0.95, 1.05)
    own = keypoints(look.build, random.uniform(0, 2 * np.pi), random.normal(0, 0.08))
    middle = (own[:, 0].min() + own[:, 0].max()) / 2
    left = width / 2 - scale * middle + random.uniform(-0.06, 0.06) * width
    foot = height * random.uniform(0.9, 0.96)
    points = np.stack([left + scale * own[:, 0], foot - scale * own[:, 1]], 1)
    offset = int(random.integers(0, look.scene.width - FINER * width + 1))
    canvas = look.scene.crop((offset, 0, offset + FINER * width, FINER * height))
    _draw(ImageDraw.Draw(canvas), (points + 0.5) * FINER, look, scale * FINER)
    image = np.asarray(canvas.resize((width, height), Image.Resampling.BOX), float)
    light = look.gain * look.tint * (1 + look.fall * np.linspace(-0.5, 0.5, width))[:, None]
    image = image * light + random.normal(0, look.noise, image.shape)
    return image.clip(0, 255).astype(np.uint8), points


def _draw(draw: ImageDraw.ImageDraw, points: np.ndarray, look: _Look, scale: float) -> None:
    at = dict(zip(PARTS, points, strict=True))
    darker: Colour = tuple(int(0.6 * value) for value in look.coat)  # type: ignore[assignment]
    for side, colour in (("off", darker), ("near", look.coat)):
        if side == "near":
            _trunk(draw, at, look, scale)
        for start, end in (("elbow", f"{side}_knee"), ("stifle", f"{side}_hind_hock")):
            _limb(draw, at[start], at[end], 0.11 * look.thick * scale, colour)
        for upper, lower, foot in (("knee", "front_fetlock", "front_foot"), ("hind_hock", "hind_fetlock", "hind_foot")):
            low = look.sock if look.socks > 0.5 else colour
            _limb(draw, at[f"{side}_{upper}"], at[f"{side}_{lower}"], 0.065 * look.thick * scale, low)
            tip = look.sock if look.socks > 0 else colour
            _limb(draw, at[f"{side}_{lower}"], at[f"{side}_{foot}"], 0.06 * look.thick * scale, tip)
            _disc(draw, at[f"{side}_{foot}"], 0.045 * scale, (40, 36, 32))


def _trunk(draw: ImageDraw.ImageDraw, at: dict[str, np.ndarray], look: _Look, scale: float) -> None:
    outline = ("ischium", "hip", "wither", "mid_shoulder", "shoulder", "elbow", "girth", "stifle")
    draw.polygon([tuple(at[part]) for part in outline], fill=look.coat)
    for part in ("shoulder", "hip", "stifle", "ischium"):
        _disc(draw, at[part] + (at["girth"] - at[part]) * 0.12, 0.1 * scale, look.coat)
    centre = (at["wither"] + at["girth"] + at["hip"] + at["stifle"]) / 4
    half = look.build.depth / 2 * scale
    for x, y, radius, colour in look.marks:
        _disc(draw, centre + np.array([x * 0.7 * scale, 0.6 * y * half]), radius * 0.6 * scale, colour)
    poll = at["eye"] - 0.22 / 0.78 * (at["nose"] - at["eye"])
    root = (at["wither"] + at["shoulder"]) / 2
    _limb(draw, root, poll, 0.2 * look.thick * scale, look.coat)
    _limb(draw, at["wither"], poll - np.array([0.05, 0.03]) * scale, 0.06 * scale, look.mane)
    _limb(draw, poll, at["nose"], 0.12 * look.thick * scale, look.coat)
    _disc(draw, at["nose"], 0.05 * scale, tuple(int(0.45 * value) for value in look.coat))  # type: ignore[arg-type]
    _disc(draw, at["eye"], 0.028 * scale, (16, 12, 12))
    _limb(draw, at["ischium"], at["ischium"] + np.array([-0.12, 0.3]) * scale, 0.05 * scale, look.mane)


def _limb(draw: ImageDraw.ImageDraw, one: np.ndarray, two: np.ndarray, width: float, colour: Colour) -> None:
    draw.line((*one, *two), fill=colour, width=max(2, round(width)))
    for end in (one, two):
        _disc(draw, end, width / 2, colour)


def _disc(draw: ImageDraw.ImageDraw, centre: np.ndarray, radius: float, colour: Colour) -> None:
    radius = max(radius, 1.0)
    draw.ellipse((*(centre - radius), *(centre + radius)), fill=colour)


def _vary(colour: Sequence[int], random: np.random.Generator, spread: float) -> Colour:
    moved = np.asarray(colour) + random.normal(0, spread) + random.normal(0, spread / 3, 3)
    red, green, blue = moved.clip(0, 255).astype(int).tolist()
    return red, green, blue
