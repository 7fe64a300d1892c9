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
    cutoff: float = 0.6,
    frames: int = 300,
) -> int:
    """Write an .mp4 of the first frames of a video with skeletons, and return how many frames it has.

    Args:
        path: of the clip.
        video: what was predicted.
        panels: heading -> predictions, side by side.
        skeleton: numbers of the parts between which lines are drawn.
        cutoff: confidence below which a part is drawn as a ring.
        frames: how many.
    """
    scale = min(1.0, WIDTH / video.width)

    def pictures() -> Iterator[np.ndarray]:
        for place, frame in enumerate(video.read(0, frames)):
            drawn = [
                _panel(frame, poses.keypoints[place], poses.confidence[place] >= cutoff, skeleton, scale, heading)
                for heading, poses in panels.items()
            ]
            yield np.concatenate(drawn, 1)

    return write_video(path, pictures(), video.rate)


def _panel(
    frame: np.ndarray,
    points: np.ndarray,
    sure: np.ndarray,
    skeleton: Sequence[tuple[int, int]],
    scale: float,
    heading: str,
) -> np.ndarray:
    height, width = (2 * round(side * scale / 2) for side in frame.shape[:2])
    image = Image.new("RGB", (width, height + HEADING), (24, 24, 28))
    image.paste(Image.fromarray(frame).resize((width, height), Image.Resampling.BILINEAR), (0, HEADING))
    draw = ImageDraw.Draw(image)
    draw.text((6, 4), heading, fill=(235, 235, 235))
    places = (points + 0.5) * scale + [0, HEADING]
    for one, two in skeleton:
        if sure[one] and sure[two] and np.isfinite(places[[one, two]]).all():
            draw.line((*places[one], *places[two]), fill=LINE, width=2)
    for part, (x, y) in enumerate(places):
        if np.isfinite([x, y]).all():
            box, colour = (x - 4, y - 4, x + 4, y + 4), part_colour(part / len(places))
            draw.ellipse(box, fill=colour if sure[part] else None, outline=colour, width=1)
    return np.asarray(image)
