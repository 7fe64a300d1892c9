"""Thumbnails: images near an alarm or a fall-back, which a guard keeps only if it is asked to, as the page shows them.

A guard writes `STEP-NUMBER.png`, of batches shortly before as well if it is asked to. Those of one step become one
strip, drawn anew from pixels, so that nothing of the files but their pixels reaches a page; what is not a small picture
is left out.
"""

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

from haptera.live.history import LONG, Event, clock
from haptera.report.section import Picture

if TYPE_CHECKING:
    import torch

MOST_STEPS, MOST_IMAGES = 12, 8
LARGEST, LONGEST = 2**22, 1024
"""Bytes and pixels of a side that a thumbnail never has."""
SIDE, GAP = 96, 4
PICTURED = ("alarm", "fallback")
"""Events that thumbnails are kept of."""
_NAME = re.compile(r"(\d+)-(\d+)\.png")


def thumbnails(folder: Path, events: Sequence[Event]) -> list[Picture]:
    """Return a strip of images for each of the newest steps that have any, with what happened there."""
    steps: dict[int, list[tuple[int, Path]]] = {}
    for path in folder.glob("*.png"):
        if named := _NAME.fullmatch(path.name):
            steps.setdefault(int(named[1]), []).append((int(named[2]), path))
    made = []
    for step in sorted(steps)[-MOST_STEPS:]:
        images = [image for _, path in sorted(steps[step])[:MOST_IMAGES] if (image := _read(path)) is not None]
        if images:
            told = [event for event in events if event.step == step and event.event not in ("label", "snapshot")]
            when = f", {clock(told[0].time, LONG)}" if told else ""
            caption = "; ".join(f"{event.event}: {event.sentence}" for event in told) or _before(step, events)
            made.append(Picture(f"Step {step:,}{when}", caption, _strip(images)))
    return made


def write_thumbnails(folder: Path, kept: Sequence[tuple[int, "torch.Tensor"]]) -> None:
    """Write the images of some steps as pictures.

    Args:
        folder: made if it is not there.
        kept: step, and `(images, channels, height, width)` of any range; what is not within 0 and 1 is stretched.
    """
    folder.mkdir(exist_ok=True)
    for step, images in kept:
        for number, image in enumerate(images):
            low, high = float(image.min()), float(image.max())
            low, high = (0.0, 1.0) if low >= 0 and high <= 1 else (low, max(high, low + 1e-6))
            pixels = (255 * (image - low) / (high - low)).round().byte().permute(1, 2, 0).squeeze(-1).numpy()
            Image.fromarray(pixels).save(folder / f"{step:09d}-{number}.png")


def _before(step: int, events: Sequence[Event]) -> str:
    """Return what a step without an event of its own came before."""
    later = [event for event in events if event.step > step and event.event in PICTURED]
    first = min(later, key=lambda event: event.step, default=None)
    return "" if first is None else f"{first.step - step:,} before the {first.event} of step {first.step:,}"


def _read(path: Path) -> Image.Image | None:
    try:
        if path.stat().st_size > LARGEST:
            return None
        with Image.open(path, formats=["PNG"]) as picture:
            if max(picture.size) > LONGEST:
                return None
            return picture.convert("RGB")
    except (OSError, ValueError, SyntaxError):  # what PIL says of damaged files
        return None


def _strip(images: Sequence[Image.Image]) -> bytes:
    """Return images beside one another as a PNG file, small ones enlarged without blur."""
    scaled = [
        image.resize((max(round(SIDE * image.width / image.height), 1), SIDE), Image.Resampling.NEAREST)
        for image in images
    ]
    strip = Image.new("RGB", (sum(image.width + GAP for image in scaled) - GAP, SIDE), "white")
    left = 0
    for image in scaled:
        strip.paste(image, (left, 0))
        left += image.width + GAP
    content = io.BytesIO()
    strip.save(content, "PNG")
    return content.getvalue()
