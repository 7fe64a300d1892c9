"""Corruptions of bytes beside those of floats: on photographs, and on every grey level where that is all there is.

Run it as `python experiments/bytes_on_photographs.py` with the folder `photographs` of 20 images in $HAPTERA_DATA, by
default ~/.cache/haptera; it writes `bytes_on_photographs.txt` into `docs/evidence/results`. Some minutes on one thread.

The first table is over the middle 224 x 224 pixels of all photographs: grey levels from the float images, rounded
(largest, and mean of the absolute difference), and largest distance from the float images as they are, where rounding
alone makes .5. The second one has the largest difference from rounded float images of the same input, for some
photographs in other forms. Contrast, brightness and saturation of bytes depend on a pixel and for contrast on a mean,
so cases can be tried one by one: every colour in steps of 3, and every grey level with every other one as the mean.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from PIL import Image

from haptera.catalog import entries, find
from haptera.shifts import Brightness, Contrast, Saturate, Shift, base

FOLDER = Path(os.environ.get("HAPTERA_DATA", Path.home() / ".cache" / "haptera")) / "photographs"
RESULT = Path(__file__).parents[1] / "docs" / "evidence" / "results" / "bytes_on_photographs.txt"
SEVERITIES = (1, 2, 3, 4, 5)
SOME, SIDE = 3, 224


def middle(image: Image.Image) -> np.ndarray:
    """The square in the middle, not resized."""
    left, top = (image.width - SIDE) // 2, (image.height - SIDE) // 2
    return np.asarray(image.crop((left, top, left + SIDE, top + SIDE)))


def floats(shift: Shift, pixels: np.ndarray, ids: torch.Tensor) -> np.ndarray:
    """The float images of bytes whose channels are last, in grey levels."""
    images = torch.from_numpy(np.ascontiguousarray(pixels)).permute(0, 3, 1, 2).contiguous().float() / 255
    return (shift(images, ids) * 255).permute(0, 2, 3, 1).numpy()


def by_batches_of_one(shift: Shift, pixels: np.ndarray, ids: torch.Tensor) -> np.ndarray:
    return np.concatenate([shift(pixels[i : i + 1], ids[i : i + 1]) for i in range(len(pixels))])


def channels_first(shift: Shift, pixels: np.ndarray, ids: torch.Tensor) -> np.ndarray:
    return shift(np.ascontiguousarray(pixels.transpose(0, 3, 1, 2)), ids).transpose(0, 2, 3, 1)


def read_only(shift: Shift, pixels: np.ndarray, ids: torch.Tensor) -> np.ndarray:
    frozen = pixels.copy()
    frozen.flags.writeable = False
    return shift(frozen, ids)


def without_numba(shift: Shift, pixels: np.ndarray, ids: torch.Tensor) -> np.ndarray:
    with mock.patch.object(base, "compiles", return_value=False):
        return shift(pixels, ids)


def forms(pixels: np.ndarray) -> dict[str, tuple[Callable[..., np.ndarray], np.ndarray]]:
    """Ways to call a shift, and what with."""
    plain: Callable[..., np.ndarray] = lambda shift, given, ids: shift(given, ids)  # noqa: E731
    odd, grey = pixels[:, :223, :157], np.ascontiguousarray(pixels[..., 1:2])
    return {
        "first": (channels_first, pixels),
        "odd": (plain, np.ascontiguousarray(odd)),
        "odd,1st": (channels_first, odd),
        "grey": (plain, grey),
        "single": (by_batches_of_one, pixels),
        "view": (plain, odd[:, :, ::-1]),
        "locked": (read_only, pixels),
        "floats": (without_numba, pixels),
    }


def every_colour(kind: Callable[[float], Shift]) -> float:
    """The largest difference over colours and severities."""
    steps = np.array([*range(0, 255, 3), 254, 255], np.uint8)
    colours = np.stack(np.meshgrid(steps, steps, steps), -1).reshape(1, len(steps), -1, 3)
    return max(difference(kind(severity), colours) for severity in np.linspace(0.5, 5, 10))


def every_mean() -> float:
    """The same of contrast: one pixel of a grey level among others of another level, all pairs."""
    levels = np.arange(256, dtype=np.uint8)
    images = np.broadcast_to(levels[:, None, None, None], (256, 256, 64, 1)).copy()
    images[:, :, 0, 0] = levels
    images = images.reshape(-1, 8, 8, 1)
    return max(difference(Contrast(severity), images) for severity in np.linspace(0.5, 5, 10))


def difference(shift: Shift, pixels: np.ndarray) -> float:
    ids = torch.arange(len(pixels))
    return float(np.abs(shift(pixels, ids) - floats(shift, pixels, ids).round()).max())


def measure(name: str, pixels: np.ndarray, out: list[str], seconds: list[str]) -> None:
    largest, mean, away, found = [], [], [], dict.fromkeys(forms(pixels[:SOME]), 0.0)
    ids = torch.arange(len(pixels))
    for severity in SEVERITIES:
        shift = find("shifts", name)(severity)
        wanted, shifted = floats(shift, pixels, ids), shift(pixels, ids)
        gap = np.abs(shifted - wanted.round())
        largest.append(f"{gap.max():.0f}")
        mean.append(f"{gap.mean():.3f}")
        away.append(f"{np.abs(shifted - wanted).max():.2f}")
        for form, (call, given) in forms(pixels[:SOME]).items():
            gap = np.abs(call(shift, given, ids[:SOME]) - floats(shift, given, ids[:SOME]).round())
            found[form] = max(found[form], float(gap.max()))
    out.append(f"{name:<19}{' '.join(largest)}   {' '.join(mean)}   {' '.join(away)}")
    seconds.append(f"{name:<19}" + "".join(f"{gap:>9.0f}" for gap in found.values()))
    print(out[-1], "|", seconds[-1][19:], flush=True)


def main() -> None:
    torch.set_num_threads(1)
    files = sorted(FOLDER.glob("*.jpg"))
    if not files:
        sys.exit(f"no photographs in {FOLDER}; set HAPTERA_DATA")
    pixels = np.stack([middle(Image.open(file).convert("RGB")) for file in files])
    lines, others = [], []
    for name in [name for name in entries("shifts") if find("shifts", name).tables]:
        measure(name, pixels, lines, others)
    heads = f"{'severity 1 to 5':<19}largest     mean absolute difference        largest from unrounded floats"
    points = [
        f"every colour in steps of 3, ten severities: brightness {every_colour(Brightness):.0f}",
        f"the same: saturate {every_colour(Saturate):.0f}",
        f"every grey level among every other one, ten severities: contrast {every_mean():.0f}",
    ]
    forms_line = f"{'largest, all five':<19}" + "".join(f"{form:>9}" for form in forms(pixels[:SOME]))
    shape = " x ".join(map(str, pixels.shape[1:3]))
    text = [f"{len(files)} photographs of {shape}, grey levels between bytes and floats", heads, *lines, ""]
    text += [f"{SOME} of them in other forms", forms_line, *others, "", *points]
    RESULT.write_text("\n".join(text) + "\n", encoding="utf-8")
    print("\n".join(points))


if __name__ == "__main__":
    main()
