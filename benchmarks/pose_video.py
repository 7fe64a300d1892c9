"""Speed and memory of a video that is predicted with adaptation, beside the same without, and a run that is killed.

    python benchmarks/pose_video.py [speed] [killed] [--frames N] [--rounds N] [--video FILE]

One thread; a drawn video of N frames, or FILE, whose frames are brought to the size of the drawn ones, 192 x 256.
`speed`: both in turn, the best of some rounds; the aim is at least 85 % of the frames per second without adaptation.
The ratio of CPU times is printed too, for it says something on a busy machine as well. Memory is the largest of a
process that predicts, adapted, a video of a tenth of the frames, and of another that predicts all of them; `peak` is
what they run. `killed`: `haptera pose predict` is killed
(SIGKILL) three times on its way and started again, and its table is compared, byte by byte, with that of a run that
nobody disturbed.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import torch

from haptera.adapters import BatchNorm, NoAdaptation
from haptera.files.video import Video, write_video
from haptera.pose import PoseModel, drawn_animals
from haptera.pose.video import predict_video

AIM = 0.85
HEIGHT, WIDTH = 192, 256
ADAPTER = "batchnorm:prior=auto"
MAKERS = {"none": NoAdaptation, ADAPTER: partial(BatchNorm, prior="auto")}
KILLS = 3


def frames(number: int) -> Iterator[np.ndarray]:
    """So many frames of an animal that walks."""
    animals = drawn_animals(1, 40, height=HEIGHT, width=WIDTH)
    images = (animals.images(np.arange(40)).permute(0, 2, 3, 1).numpy() * 255).round().astype(np.uint8)
    for place in range(number):
        yield images[place % 40]


def largest() -> float:
    """Megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def speed(model: PoseModel, clip: Path, folder: Path, rounds: int) -> None:
    """Print frames per second and memory."""
    video = Video(clip)
    short = folder / "short.mp4"
    write_video(short, video.read(0, max(len(video) // 10, 40)), Fraction(30))
    run = partial(predict_video, model, out=folder / "said.csv", size=(HEIGHT, WIDTH), progress=False)
    run(path=short, adapters={"adapted": MAKERS[ADAPTER]})
    best = dict.fromkeys(MAKERS, (float("inf"), float("inf")))
    for _ in range(rounds):
        for name, make in MAKERS.items():
            start = time.perf_counter(), time.process_time()
            run(path=clip, adapters={name: make})
            seconds = time.perf_counter() - start[0], time.process_time() - start[1]
            best[name] = min(best[name][0], seconds[0]), min(best[name][1], seconds[1])
            print(f"{name:<24} {seconds[0]:7.1f} s, CPU {seconds[1]:7.1f} s", file=sys.stderr, flush=True)
    print(f"{len(video)} frames of {video.height} x {video.width} pixels, at {HEIGHT} x {WIDTH}")
    for name, seconds in best.items():
        rates = [len(video) / each for each in seconds]
        print(f"{name:<24} {rates[0]:7.1f} frames per second, {rates[1]:7.1f} per second of CPU")
    ratio, cpu = (best["none"][kind] / best[ADAPTER][kind] for kind in (0, 1))
    print(f"ratio {ratio:.2f}, by CPU time {cpu:.2f}, aim {AIM}")
    command = [sys.executable, __file__, "peak", "--video"]
    memory = [subprocess.check_output([*command, str(each)], text=True) for each in (short, clip)]
    short_peak, whole_peak = map(float, memory)
    print(f"memory of a process {short_peak:.0f} MB for {len(Video(short))} frames, {whole_peak:.0f} for all")


def peak(model: PoseModel, clip: Path, folder: Path) -> None:
    """Print the largest memory of this process, which predicts one video."""
    adapters = {"adapted": MAKERS[ADAPTER]}
    predict_video(model, clip, folder / "said.csv", adapters=adapters, size=(HEIGHT, WIDTH), progress=False)
    print(f"{largest():.0f}")


def killed(model: PoseModel, clip: Path, folder: Path) -> None:
    """Print whether a run that was killed ends with the table of one that was not."""
    network = folder / "net.safetensors"
    model.save(network)
    command = [sys.executable, "-m", "haptera", "pose", "predict", str(clip), "--model", str(network)]
    command += ["--adapter", ADAPTER, "--size", f"{HEIGHT}x{WIDTH}", "--quiet", "--out"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    out = folder / "disturbed.csv"
    done = []
    for _ in range(KILLS):
        pieces = folder / f"{out.name}.unfinished" / "frames"
        before = len(list(pieces.glob("*.npz")))
        with subprocess.Popen([*command, str(out)], env=environment) as process:
            while len(list(pieces.glob("*.npz"))) <= before and process.poll() is None:
                time.sleep(0.05)
            process.kill()
        done.append(len(list(pieces.glob("*.npz"))))
    for target in (out, folder / "undisturbed.csv"):
        subprocess.run([*command, str(target)], env=environment, check=True)
    same = out.read_bytes() == (folder / "undisturbed.csv").read_bytes()
    rows = len(out.read_text().splitlines()) - 3
    print(f"killed {KILLS} times, with {done} pieces finished; {rows} rows, the same table: {same}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", choices=["speed", "killed", "peak", []], default=[])
    parser.add_argument("--frames", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--video", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = PoseModel(drawn_animals(1, 1).parts, settings={"width": 16}).eval()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        clip = given.video or folder / "clip.mp4"
        if given.video is None:
            write_video(clip, frames(given.frames), Fraction(30))
        if "peak" in given.parts:
            peak(model, clip, folder)
        if "speed" in given.parts or not given.parts:
            speed(model, clip, folder, given.rounds)
        if "killed" in given.parts or not given.parts:
            killed(model, clip, folder)


if __name__ == "__main__":
    main()
