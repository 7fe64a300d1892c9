"""Clips: a video with predicted skeletons, one panel beside the other for each adapter, written frame by frame.

A dot is a part, one colour each; a part whose confidence is below the cut-off is a ring, and no line goes to it.
Cost: decoding, drawing and encoding of the frames that are shown; memory of a few frames.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from haptera.files.video import Video, write_video
from haptera.pose.predict import Poses
from haptera.pose.skeletons import part_colour

WIDTH = 640
"""Pixels of a panel at most."""
HEADING = 20
LINE = (255, 220, 60)


def write_clip(
    path: Path,
    video: Video,
    panels: Mapping[str, Poses],
    skeleton: Sequence[tuple[int, int]] = (),
    *,
    parts: Sequence[str] = (),
    cutoff: float = 0.6,
    frames: int = 300,
) -> int:
    """Write an .mp4 of the first frames of a video with skeletons, and return how many frames it has.

    Args:
        path: of the clip.
        video: what was predicted.
        panels: heading -> predictions, side by side.
        skeleton: numbers of the parts between which lines are drawn.
        parts: their names, to be shown in their colours beside the heading, as many as there is room for.
        cutoff: confidence below which a part is drawn as a ring.
        frames: how many.
    """
    scale = min(1.0, WIDTH / video.width)
    headings = [_heading(heading, parts, 2 * round(video.width * scale / 2)) for heading in panels]

    def pictures() -> Iterator[np.ndarray]:
        for place, frame in video.read_numbered(0, frames):
            drawn = [
                _panel(frame, poses.keypoints[place], poses.confidence[place] >= cutoff, skeleton, scale)
                for poses in panels.values()
            ]
            yield np.concatenate([np.concatenate(pair, 0) for pair in zip(headings, drawn, strict=True)], 1)

    return write_video(path, pictures(), video.rate)


def _heading(text: str, parts: Sequence[str], width: int) -> np.ndarray:
    """Return the strip above a panel: what it shows, then the parts in their colours."""
    image = Image.new("RGB", (width, HEADING), (24, 24, 28))
    draw, left = ImageDraw.Draw(image), 6.0
    draw.text((left, 4), text, fill=(235, 235, 235))
    left += draw.textlength(text) + 16
    for number, part in enumerate(parts):
        if left + draw.textlength(part) > width - 6:
            break
        draw.text((left, 4), part, fill=part_colour(number / len(parts)))
        left += draw.textlength(part) + 10
    return np.asarray(image)


def _panel(
    frame: np.ndarray,
    points: np.ndarray,
    sure: np.ndarray,
    skeleton: Sequence[tuple[int, int]],
    scale: float,
) -> np.ndarray:
    height, width = (2 * round(side * scale / 2) for side in frame.shape[:2])
    image = Image.fromarray(frame).resize((width, height), Image.Resampling.BILINEAR)
    draw = ImageDraw.Draw(image)
    places = (points + 0.5) * scale
    for one, two in skeleton:
        if sure[one] and sure[two] and np.isfinite(places[[one, two]]).all():
            draw.line((*places[one], *places[two]), fill=LINE, width=2)
    for part, (x, y) in enumerate(places):
        if np.isfinite([x, y]).all():
            box, colour = (x - 4, y - 4, x + 4, y + 4), part_colour(part / len(places))
            draw.ellipse(box, fill=colour if sure[part] else None, outline=colour, width=1)
    return np.asarray(image)
