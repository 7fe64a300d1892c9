"""CCC beside the public generator: images per CPU-second at 224 px, and the most memory that making them takes.

    python benchmarks/ccc.py [FIRST+SECOND ...]
    python benchmarks/ccc.py cores [FIRST+SECOND ...]

Ours is the stream itself on one thread: JPEG files of 224 px (1/f noise in colour, quality 90, about 28 kB) are read,
mirrored and moved at random, go through both corruptions, and end as a batch of 64 float images. It is the mean over
all steps of a path from the first corruption to the second, of a model whose accuracy falls evenly with severity
(target: 17 of 76 %); of every batch the fastest of three times counts, for other work on the machine slows it down.
Every file is decoded once and kept, and the path shows each about twenty times (the published streams 150 times), so
the time of decoding all files is added once. Nothing is encoded, since nothing is written.
The peer's figures (the public generator: both corruptions, decoding, and JPEG files as its only way out) were measured
once on a machine of this kind; it needs older libraries than ours and is not run here.
Memory: the most that the process takes above what it took before the first batch. Every pair has its own process.
`cores` prints how many images two processes make in the time in which one makes 1, by the clock: as a study with
`--jobs 2` does. It needs two cores with nothing else to do.
"""

import os
import resource
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from haptera.data import FolderData
from haptera.streams import CCC
from haptera.streams.calibration import Calibration

PEER = {
    ("contrast", "fog"): 127,
    ("gaussian_noise", "shot_noise"): 64,
    ("zoom_blur", "frost"): 12,
    ("motion_blur", "snow"): 10,
    ("zoom_blur", "elastic_transform"): 2,
}
"""Images per CPU-second at 224 px."""
SIDE, BATCH, FILES, PASSES = 224, 64, 128, 3


def photograph(generator: np.random.Generator, height: int, width: int) -> Image.Image:
    """Noise with the spectrum of photographs, so that it costs a decoder what they cost."""
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None])
    frequency[0, 0] = 1
    waves = generator.normal(size=(2, 4, *frequency.shape)) / frequency**1.2
    grey, *colours = np.fft.irfft2(waves[0] + 1j * waves[1], s=(height, width))
    light = np.stack([grey + 0.3 * colour for colour in colours], axis=-1)
    return Image.fromarray((120 + 55 * light / light.std()).clip(0, 255).astype(np.uint8))


def write_files(folder: Path) -> None:
    generator = np.random.default_rng(0)
    for number in range(FILES):
        path = folder / f"class {number % 2}" / f"{number}.jpg"
        path.parent.mkdir(exist_ok=True)
        photograph(generator, SIDE, SIDE).save(path, quality=90)


def calibration(pair: tuple[str, str]) -> Calibration:
    """Of a model that nobody has to train: 76 % clean, and less in proportion to the square of what is left."""
    left = 1 - np.add.outer(np.arange(21), np.arange(21)) / 40
    counts = np.round(7600 * left**2).astype(np.int64)
    return Calibration({pair: counts, pair[::-1]: counts}, 10000, 0.25, 7600, 1000, flip=True, crop=0.125)


def measure(folder: Path, pair: tuple[str, str]) -> tuple[float, float]:
    """Images per CPU-second along the path from the first to the second, and megabytes above the start."""
    torch.set_num_threads(1)
    stream = CCC(FolderData(folder), calibration(pair), speed=BATCH, length=200 * BATCH, batch_size=BATCH)
    walk = stream.walk()
    new = (walk["first"] != walk["first"].shift()).cumsum()
    path = walk.index[new == new[walk["first"] == pair[0]].min()]
    before = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    stream[int(path[len(path) // 2])]  # tables that are made once
    for index in path:
        stream[int(index)]  # now every file is decoded
    start = time.process_time()
    FolderData(folder).pixels(np.arange(FILES))
    seconds = time.process_time() - start
    seconds += sum(min(timed(stream, int(index)) for _ in range(PASSES)) for index in path)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return len(path) * BATCH / seconds, (most - before) / 1e6


def timed(stream: CCC, index: int) -> float:
    start = time.process_time()
    stream[index]
    return time.process_time() - start


def wall(folder: Path, pair: tuple[str, str]) -> float:
    """Seconds by the clock for one path, once everything is decoded."""
    torch.set_num_threads(1)
    stream = CCC(FolderData(folder), calibration(pair), speed=BATCH, length=20 * BATCH, batch_size=BATCH)
    for index in range(len(stream)):
        stream[index]
    start = time.perf_counter()
    for index in range(len(stream)):
        stream[index]
    return time.perf_counter() - start


def cores(wanted: list[tuple[str, str]]) -> None:
    print(f"{'two processes beside one':<34}{'one s':>8}{'two s':>8}{'gain':>7}   (1.8 wanted)")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder)
        with ProcessPoolExecutor(2, get_context("spawn")) as pool:
            for pair in wanted:
                alone, together = [], []
                for _ in range(PASSES):
                    alone.append(pool.submit(wall, folder, pair).result())
                    together.append(max(task.result() for task in [pool.submit(wall, folder, pair) for _ in "12"]))
                one, two = min(alone), min(together)
                print(f"{' + '.join(pair):<34}{one:>8.2f}{two:>8.2f}{2 * one / two:>7.2f}", flush=True)


def decoding(width: int, height: int) -> float:
    """Milliseconds to decode one file and bring it to 224 px."""
    with tempfile.TemporaryDirectory() as folder:
        photograph(np.random.default_rng(0), height, width).save(f"{folder}/0.jpg", quality=90)
        data = FolderData(folder, size=SIDE)
        times = []
        for _ in range(10):
            start = time.process_time()
            data.images(np.zeros(10, np.int64))
            times.append(time.process_time() - start)
        return min(times) * 100


def main() -> None:
    wanted = [pair for pair in PEER if "+".join(pair) in sys.argv[1:]] or list(PEER)
    if "cores" in sys.argv[1:]:
        return cores(wanted)
    batch = BATCH * 3 * SIDE**2 * 4 / 1e6
    print(f"{'images per CPU-second':<34}{'ours':>7}{'peer':>7}{'ratio':>8}{'memory':>24}")
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder))
        with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
            for pair in wanted:
                rate, megabytes = pool.submit(measure, Path(folder), pair).result()
                ratios.append(rate / PEER[pair])
                print(
                    f"{' + '.join(pair):<34}{rate:>7.0f}{PEER[pair]:>7}{ratios[-1]:>8.1f}"
                    f"{megabytes:>9.0f} MB = {megabytes / batch:.1f} batches"
                )
    print(f"lowest ratio {min(ratios):.1f}; a batch of {BATCH} is {batch:.0f} MB")
    print("the peer's figures are of another machine, so a quicker one than that makes every ratio larger")
    print(f"of that, reading a file, once: {decoding(SIDE, SIDE):.2f} ms; of 500 x 375: {decoding(500, 375):.2f} ms")


if __name__ == "__main__":
    main()
