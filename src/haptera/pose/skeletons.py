"""Skeletons on frames: labels and predictions, drawn on what the model saw."""

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO

import numpy as np
from PIL import Image, ImageDraw, ImageFont

SIDE = 240
"""Frames are enlarged by a whole number to about this width."""
PANEL = 320
"""No frame is given that is wider."""
COLUMNS = 4
LINE = 18


@dataclass(frozen=True, eq=False)
class Frame:
    """One frame to draw skeletons on.

    Attributes:
        image: `(height, width, 3)`, uint8.
        predicted: `(parts, 2)`.
        labelled: `(parts, 2)`, NaN where missing.
        caption: a few words below it.
    """

    image: np.ndarray
    predicted: np.ndarray
    labelled: np.ndarray
    caption: str


def contact_sheet(frames: Sequence[Frame], parts: Sequence[str], skeleton: Sequence[tuple[str, str]]) -> bytes:
    """Return a PNG with all frames, four in a row, and below them the colour of every part."""
    scale = max(1, round(SIDE / frames[0].image.shape[1]))
    height, width = (scale * side for side in frames[0].image.shape[:2])
    rows, across = -(-len(frames) // COLUMNS), min(len(frames), COLUMNS) * (width + 8)
    key = _place_names(parts, across)
    sheet = Image.new("RGB", (across, rows * (height + 24) + LINE * (key[-1][1] + 1)), (24, 24, 28))
    for place, frame in enumerate(frames):
        row, column = divmod(place, COLUMNS)
        left, top = column * (width + 8) + 4, row * (height + 24)
        sheet.paste(_with_skeleton(frame, parts, skeleton, scale), (left, top))
        ImageDraw.Draw(sheet).text((left + 2, top + height + 5), frame.caption, fill=(230, 230, 230))
    for number, (part, (left, line)) in enumerate(zip(parts, key, strict=True)):
        top = rows * (height + 24) + LINE * line
        ImageDraw.Draw(sheet).ellipse((left, top + 5, left + 6, top + 11), fill=part_colour(number / len(parts)))
        ImageDraw.Draw(sheet).text((left + 11, top + 2), part, fill=(230, 230, 230))
    buffer = BytesIO()
    sheet.save(buffer, "PNG")
    return buffer.getvalue()


def _place_names(parts: Sequence[str], width: int) -> list[tuple[int, int]]:
    """Return where the name of each part begins, and in which line, so that none leaves the sheet."""
    places, left, line = [], 6, 0
    font = ImageFont.load_default()
    for part in parts:
        room = 28 + round(font.getlength(part))
        if left > 6 and left + room > width:
            left, line = 6, line + 1
        places.append((left, line))
        left += room
    return places


def _with_skeleton(frame: Frame, parts: Sequence[str], skeleton: Sequence[tuple[str, str]], scale: int) -> Image.Image:
    height, width = frame.image.shape[:2]
    image = Image.fromarray(frame.image).resize((scale * width, scale * height), Image.Resampling.BICUBIC)
    draw = ImageDraw.Draw(image)
    at = {part: scale * (point + 0.5) for part, point in zip(parts, frame.predicted, strict=True)}
    for one, two in skeleton:
        if np.isfinite([at[one], at[two]]).all():
            draw.line((*at[one], *at[two]), fill=(255, 220, 60), width=1)
    for number, (predicted, labelled) in enumerate(zip(at.values(), frame.labelled, strict=True)):
        if np.isfinite(labelled).all():
            draw.ellipse(_around(scale * (labelled + 0.5), 4), outline=(255, 255, 255))
        if np.isfinite(predicted).all():
            draw.ellipse(_around(predicted, 2.5), fill=part_colour(number / len(parts)))
    return image


def _around(centre: np.ndarray, radius: float) -> tuple[float, float, float, float]:
    x, y = centre
    return x - radius, y - radius, x + radius, y + radius


def part_colour(share: float) -> tuple[int, int, int]:
    """Return the colour of a part, by its place among all parts from 0 to 1."""
    angle = 2 * np.pi * (share + np.array([0.0, 1 / 3, 2 / 3]))
    red, green, blue = (127.5 * (1 + np.cos(angle))).astype(int).tolist()
    return red, green, blue
