"""Shifts beside the public implementation of the same corruptions: images per CPU-second, and how alike the images are.

    python benchmarks/shifts.py [speed] [alike] [NAME ...]

The peer (`imagecorruptions` 1.1.2) needs older libraries, so it gets an environment of its own, made once, in
$HAPTERA_DATA/peer (default ~/.cache/haptera/peer). Repaired there: an argument of scikit-image that was renamed.
Speed: one thread, severity 3, colour; ours on batches of 64 (32 px) and 16 (224 px), the peer image by image; the best
of four rounds, in turn. Ours takes and gives floats in [0, 1], the peer 8 bits: `ratio` leaves each its own; for
`as floats` the peer's images come from such floats and become floats again.
Alike: photographs that come with scikit-image at 224 px; mean absolute change, and how far the power spectrum of the
change is from the peer's (total variation over four bands of spatial frequency), per severity. Random corruptions are
repeated 50 times, since drops and pulls differ much from one time to the next; glass_blur, which hardly differs
and takes the peer a second, 4 times.
The peer's elastic_transform is another one than that of ImageNet-C, with no affine part and constants of its own. Ours
is ImageNet-C's; a second row compares it with that recipe, written here in OpenCV and scipy.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from haptera.catalog import entries, find

HOME = Path(os.environ.get("HAPTERA_DATA", Path.home() / ".cache" / "haptera")) / "peer"
PACKAGES = [
    "numpy<2", "scikit-image<0.22", "opencv-python-headless<4.11", "numba", "pillow", "scipy", "setuptools<80",
]  # fmt: skip

ELASTIC = "imagenet_elastic"
REPEATS = dict.fromkeys([
    "defocus_blur", "zoom_blur", "gaussian_blur", "brightness", "saturate", "contrast", "pixelate", "jpeg_compression",
], 1) | {"glass_blur": 4}  # fmt: skip

PEER = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import cv2, numpy as np, skimage.filters
cv2.setNumThreads(1)
plain = skimage.filters.gaussian
def repaired(*args, multichannel=None, **options):
    return plain(*args, **(options if multichannel is None else options | {"channel_axis": -1}))
skimage.filters.gaussian = repaired
import imagecorruptions.corruptions as inner
inner.gaussian = repaired
from imagecorruptions import corrupt
task = json.load(open(sys.argv[1]))
images = np.load(task["images"])
if task["do"] == "photos":
    import skimage.data, skimage.transform
    photos = [getattr(skimage.data, name)() for name in ("astronaut", "coffee", "chelsea", "rocket")]
    cut = []
    for photo in photos:
        side = min(photo.shape[:2])
        top, left = (photo.shape[0] - side) // 2, (photo.shape[1] - side) // 2
        square = photo[top:top + side, left:left + side]
        cut.append((skimage.transform.resize(square, (224, 224), anti_aliasing=True) * 255).round().astype(np.uint8))
    np.save(task["out"], np.stack(cut))
elif task["do"] == "speed":
    floats = np.ascontiguousarray(images.transpose(0, 3, 1, 2), np.float32) / 255
    def from_and_to_floats(index):
        pixels = np.empty_like(images[index]).transpose(2, 0, 1)
        np.rint(floats[index] * np.float32(255), out=pixels, casting="unsafe")
        return np.divide(pixels, np.float32(255), dtype=np.float32)
    def rate(call):
        call(0)
        done, start = 0, time.process_time()
        while done < 2 or time.process_time() - start < 0.2:
            call(done % len(images))
            done += 1
        return done / (time.process_time() - start)
    rates = {"conversion": rate(from_and_to_floats)}
    for name in task["names"]:
        rates[name] = rate(lambda index: corrupt(images[index], corruption_name=name, severity=3))
    json.dump(rates, open(task["out"], "w"))
else:
    from scipy.ndimage import map_coordinates
    def imagenet_elastic(image, severity):
        shares = [(2, 0.7, 0.1), (2, 0.08, 0.2), (0.05, 0.01, 0.02), (0.07, 0.01, 0.02), (0.12, 0.01, 0.02)]
        strength, sigma, reach = (244 * share for share in shares[severity - 1])
        height, width = image.shape[:2]
        middle, third = np.float32([height, width]) // 2, min(height, width) // 3
        points = np.float32([middle + third, middle + [third, -third], middle - third])
        moved = points + np.random.uniform(-reach, reach, (3, 2)).astype(np.float32)
        affine = cv2.getAffineTransform(points, moved)
        pulled = cv2.warpAffine(image / np.float32(255), affine, (width, height), borderMode=cv2.BORDER_REFLECT_101)
        noise = np.random.uniform(-strength, strength, (2, height, width))
        across, down = (repaired(field, sigma, mode="reflect", truncate=3) for field in noise)
        rows, columns = np.mgrid[:height, :width]
        planes = [map_coordinates(plane, [rows + down, columns + across], order=1, mode="reflect")
                  for plane in pulled.transpose(2, 0, 1)]
        return np.uint8(np.stack(planes, -1).clip(0, 1) * 255)
    def change(image):
        if task["name"] == "imagenet_elastic":
            return imagenet_elastic(image, task["severity"])
        return corrupt(image, corruption_name=task["name"], severity=task["severity"])
    np.random.seed(0)
    np.save(task["out"], np.stack([change(image) for image in images for _ in range(task["repeats"])]))
"""


def peer(images: np.ndarray, **task: object) -> Any:
    """What a task in the peer's environment gives: rates for `speed`, images for the others."""
    python = HOME / "bin" / "python"
    if not python.is_file():
        print(f"setting up the peer in {HOME}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", HOME], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", "imagecorruptions==1.1.2"], check=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        out = folder / ("out.json" if task["do"] == "speed" else "out.npy")
        np.save(folder / "images.npy", images)
        (folder / "task.json").write_text(json.dumps(task | {"images": f"{folder}/images.npy", "out": str(out)}))
        single = os.environ | {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        subprocess.run([python, "-c", PEER, folder / "task.json"], check=True, env=single)
        return json.loads(out.read_text()) if out.suffix == ".json" else np.load(out)


def our_rates(images: torch.Tensor, names: list[str]) -> dict[str, float]:
    rates = {}
    for name in names:
        shift = find("shifts", name)(3)
        shift(images)
        done, start = 0, time.process_time()
        while done < 2 or time.process_time() - start < 0.2:
            shift(images, seed=done)
            done += 1
        rates[name] = done * len(images) / (time.process_time() - start)
    return rates


def best(rounds: list[dict[str, float]]) -> dict[str, float]:
    return {name: max(rates[name] for rates in rounds) for name in rounds[0]}


def speed(names: list[str]) -> None:
    ratios = []
    for side, batch in ((32, 64), (224, 16)):
        pixels = np.random.default_rng(0).integers(0, 256, (batch, side, side, 3), dtype=np.uint8)
        images = torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous().float() / 255
        pairs = [(peer(pixels, do="speed", names=names), our_rates(images, names)) for _ in range(4)]
        theirs, ours = (best(list(rounds)) for rounds in zip(*pairs, strict=True))
        print(f"\n{side} px{'':<18}{'ours':>10}{'peer':>10}{'ratio':>8}{'as floats':>11}   images per CPU-second")
        for name in names:
            ratio = ours[name] / theirs[name]
            ratios.append(ratio)
            as_floats = ours[name] * (1 / theirs[name] + 1 / theirs["conversion"])
            flag = "   slower" if ratio < 1 else ""
            print(f"{name:<23}{ours[name]:>10.0f}{theirs[name]:>10.0f}{ratio:>8.2f}{as_floats:>11.2f}{flag}")
    print(f"\ngeometric mean of the ratios {np.exp(np.mean(np.log(ratios))):.1f}; lowest {min(ratios):.2f}")


def bands(change: np.ndarray) -> np.ndarray:
    """Share of the power of a change in four bands of spatial frequency."""
    frequency = np.hypot(*np.meshgrid(*[np.fft.fftfreq(side) for side in change.shape[1:3]], indexing="ij"))
    total = np.zeros_like(frequency)
    for one in change - change.mean((1, 2), keepdims=True):
        total += (np.abs(np.fft.fft2(one, axes=(0, 1))) ** 2).sum(-1)
    edges = [0, 0.03, 0.1, 0.25, 1]
    parts = np.array([total[(frequency >= a) & (frequency < b)].sum() for a, b in pairwise(edges)])
    return parts / parts.sum()


def alike(names: list[str]) -> None:
    photos = peer(np.zeros(1), do="photos")
    images = torch.from_numpy(photos).permute(0, 3, 1, 2).float() / 255
    print(f"\n{'':<20}severity 1 to 5: mean absolute change, ours / peer | distance of spectra")
    rows = [row for name in names for row in ([name, ELASTIC] if name == "elastic_transform" else [name])]
    for name in rows:
        repeats = REPEATS.get(name, 50)
        many = images.repeat_interleave(repeats, 0)
        before = many.permute(0, 2, 3, 1).numpy()
        ratios, distances = [], []
        for severity in range(1, 6):
            theirs = peer(photos, do="one", name=name, severity=severity, repeats=repeats) / np.float32(255)
            shift = find("shifts", "elastic_transform" if name == ELASTIC else name)(severity)
            pieces = zip(many.split(25), torch.arange(len(many)).split(25), strict=True)
            ours = torch.cat([shift(*piece, seed=1) for piece in pieces]).permute(0, 2, 3, 1).numpy()
            ratios.append(np.abs(ours - before).mean() / np.abs(theirs - before).mean())
            distances.append(np.abs(bands(ours - before) - bands(theirs - before)).sum() / 2)
        worst = max(max(abs(r - 1) for r in ratios), max(distances))
        flag = "" if worst <= 0.10 else "   beyond 10 %"
        print(f"{name:<20}{' '.join(f'{r:5.2f}' for r in ratios)}  |  {' '.join(f'{d:4.2f}' for d in distances)}{flag}")


def main() -> None:
    torch.set_num_threads(1)
    known = [name for name in entries("shifts") if find("shifts", name).tables]  # what the peer has
    names = [name for name in sys.argv[1:] if name in known] or known
    wanted = [word for word in sys.argv[1:] if word not in known] or ["speed", "alike"]
    if "speed" in wanted:
        speed(names)
    if "alike" in wanted:
        alike(names)


if __name__ == "__main__":
    main()
