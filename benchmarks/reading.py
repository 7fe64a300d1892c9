"""Reading one data set of JPEG images in seven layouts, beside the plain decoding of the same bytes: CPU time.

    python benchmarks/reading.py

2,000 images of 96 px and 500 of 224 px, in batches of 100, in order and shuffled; of each batch the least of several
rounds, the layouts by turns. "plain" decodes the bytes, which are in memory already, one by one with Pillow and makes
float tensors of each batch. "opening" is the time of `open_data`; for Parquet it includes the copy that is made once.

Then the memory of a pass over large files: what the process holds for itself at its peak, beyond what it held after it
had imported everything, for files of two sizes. What is flat does not follow them.
"""

import csv
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from PIL import Image

from haptera.data import Data, ItemData, open_data

SETS = {96: 2000, 224: 500}
"""Side in pixels -> images."""
LARGE = (500, 2000)
"""Images of the two files in the measurement of memory."""
BATCH, ROUNDS, CLASSES = 100, 4, 10


def main() -> None:
    """Print a table for each size of images, and one of memory."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HAPTERA_CACHE"] = f"{folder}/cache"
        for side, count in SETS.items():
            root = Path(folder) / str(side)
            images = [photograph(side, seed) for seed in range(count)]
            print(f"{count:,} images of {side} px, {sum(map(len, images)) / count / 1000:.1f} kB each")
            print(
                f"{'':<22}{'opening s':>10}{'in order: ms, x plain, x best':>34}{'shuffled: ms, x plain, x best':>34}"
            )
            _compare(root, images)
            print()
        print("memory of a pass, MB beyond the start")
        print(f"{'':<22}" + "".join(f"{f'{count:,} images':>18}" for count in LARGE))
        for kind in (tar, parquet, arrow):
            print(f"{kind.__name__:<22}" + "".join(f"{_memory(kind, Path(folder), count):>18}" for count in LARGE))


def photograph(side: int, seed: int) -> bytes:
    """Return a JPEG that compresses about as a photograph does: smooth areas, edges and some noise."""
    random = np.random.default_rng(seed)
    coarse = Image.fromarray(random.integers(0, 256, (side // 8, side // 8, 3), np.uint8))
    smooth = np.asarray(coarse.resize((side, side), Image.Resampling.BICUBIC), np.float32)
    noisy = (smooth + random.normal(0, 4, smooth.shape)).clip(0, 255).astype(np.uint8)
    out = io.BytesIO()
    Image.fromarray(noisy).save(out, "JPEG", quality=90)
    return out.getvalue()


def class_folders(root: Path, images: list[bytes]) -> Path:
    """Write a folder for each class."""
    for number, image in enumerate(images):
        _write(root / "folders" / f"class{_label(number)}" / f"{number:06d}.jpg", image)
    return root / "folders"


def table(root: Path, images: list[bytes]) -> Path:
    """Write a CSV of paths and labels."""
    rows = [(f"files/{number:06d}.jpg", _label(number)) for number in range(len(images))]
    for (name, _), image in zip(rows, images, strict=True):
        _write(root / "table" / name, image)
    with open(root / "table" / "list.csv", "w", newline="") as file:
        csv.writer(file).writerows([("path", "label"), *rows])
    return root / "table" / "list.csv"


def validation(root: Path, images: list[bytes]) -> Path:
    """Write a folder such as ImageNet's validation set, with its ground truth beside it."""
    for number, image in enumerate(images, 1):
        _write(root / "imagenet" / "val" / f"ILSVRC2012_val_{number:08d}.JPEG", image)
    lines = "\n".join(str(_label(number) + 1) for number in range(len(images)))
    (root / "imagenet" / "ILSVRC2012_validation_ground_truth.txt").write_text(lines)
    return root / "imagenet" / "val"


def parquet(root: Path, images: list[bytes]) -> Path:
    """Write a file as on the Hugging Face hub."""
    _write(root / "hub" / "data" / "test-00000-of-00001.parquet", b"")
    pq.write_table(_rows(images), root / "hub" / "data" / "test-00000-of-00001.parquet", row_group_size=100)
    return root / "hub"


def arrow(root: Path, images: list[bytes]) -> Path:
    """Write a file as `save_to_disk` of datasets leaves it."""
    root.mkdir(parents=True, exist_ok=True)
    with pa.OSFile(str(root / "data.arrow"), "w") as sink, pa.ipc.new_stream(sink, _rows([]).schema) as out:
        out.write_table(_rows(images), max_chunksize=1000)
    return root / "data.arrow"


def tar(root: Path, images: list[bytes]) -> Path:
    """Write a shard of a WebDataset."""
    root.mkdir(parents=True, exist_ok=True)
    with tarfile.open(root / "shard.tar", "w") as out:
        for number, image in enumerate(images):
            for suffix, content in (("jpg", image), ("cls", str(_label(number)).encode())):
                member = tarfile.TarInfo(f"{number:06d}.{suffix}")
                member.size = len(content)
                out.addfile(member, io.BytesIO(content))
    return root / "shard.tar"


LAYOUTS: dict[str, Callable[[Path, list[bytes]], Path]] = {
    "class folders": class_folders,
    "CSV": table,
    "ImageNet, flat": validation,
    "Parquet": parquet,
    "Arrow (datasets)": arrow,
    "tar (WebDataset)": tar,
}


class Pictures:
    """A data set of PyTorch that decodes bytes from memory."""

    def __init__(self, images: list[bytes]) -> None:
        self.images, self.targets = images, [_label(number) for number in range(len(images))]

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, position: int) -> tuple[Image.Image, int]:
        return Image.open(io.BytesIO(self.images[position])), self.targets[position]


def _compare(root: Path, images: list[bytes]) -> None:
    opening: dict[str, float] = {}
    readers: dict[str, Callable[[np.ndarray], object]] = {"plain": lambda rows: _plain(images, rows)}
    for name, write in LAYOUTS.items():
        place = write(root, images)
        start = time.perf_counter()
        data = open_data(place)
        assert isinstance(data, Data)
        data.images(np.arange(1))
        opening[name], readers[name] = time.perf_counter() - start, data.images
    readers["PyTorch data set"] = ItemData(Pictures(images)).images
    orders = {"in order": np.arange(len(images)), "shuffled": np.random.default_rng(0).permutation(len(images))}
    batches = len(images) // BATCH
    least = {(name, order): np.full(batches, np.inf) for name in readers for order in orders}
    for _ in range(ROUNDS):
        for order, rows in orders.items():
            for name, read in readers.items():
                for number, batch in enumerate(np.split(rows, batches)):
                    start = time.process_time()
                    read(batch)
                    least[name, order][number] = min(least[name, order][number], time.process_time() - start)
    best = {key: float(seconds.sum()) for key, seconds in least.items()}
    for name in readers:
        line = f"{name:<22}{opening.get(name, 0):>10.2f}"
        for order in orders:
            plain, quickest = best["plain", order], min(best[each, order] for each in LAYOUTS)
            took = best[name, order]
            line += f"{1000 * took / len(images):>14.3f}{took / plain:>10.2f}{took / quickest:>10.2f}"
        print(line)


def _plain(images: list[bytes], rows: np.ndarray) -> torch.Tensor:
    decoded = [np.asarray(Image.open(io.BytesIO(images[row])).convert("RGB")) for row in rows]
    return torch.from_numpy(np.stack(decoded)).permute(0, 3, 1, 2).contiguous().float().div_(255)


def _memory(write: Callable[[Path, list[bytes]], Path], folder: Path, count: int) -> str:
    """Return the peak of a pass in a process of its own, and the size of the file, as a text."""
    random, some = np.random.default_rng(0), [photograph(224, seed) for seed in range(20)]
    longer = [some[number % 20] + random.bytes(100_000) for number in range(count)]  # which is not decoded
    place = write(folder / f"large-{count}", longer)
    files = [place] if place.is_file() else [path for path in place.rglob("*") if path.is_file()]
    asked = [sys.executable, __file__, str(place)]
    peak = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    return f"{peak} of {sum(path.stat().st_size for path in files) / 1e6:,.0f}"


def _pass(place: str) -> None:
    """Read a data set once, and print the megabytes that were held beyond the start."""
    before = peak = _held()
    data = open_data(place)
    assert isinstance(data, Data)
    for batch in np.split(np.random.default_rng(0).permutation(len(data)), len(data) // 20):
        data.images(batch)
        peak = max(peak, _held())
    print(round((peak - before) / 1000))


def _held() -> int:
    """Return the kilobytes of memory that are this process's own; pages of mapped files are the system's."""
    return int(re.search(r"RssAnon:\s+(\d+)", Path("/proc/self/status").read_text())[1])  # type: ignore[index]


def _label(number: int) -> int:
    return number % CLASSES


def _rows(images: list[bytes]) -> pa.Table:
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    column = pa.array([{"bytes": image, "path": None} for image in images], kind)
    return pa.table({"image": column, "label": pa.array([_label(number) for number in range(len(images))], pa.int64())})


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


if __name__ == "__main__":
    _pass(sys.argv[1]) if len(sys.argv) > 1 else main()
