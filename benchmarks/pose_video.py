"""Speed and memory of a video that is predicted with adaptation, beside the same without.

    python benchmarks/pose_video.py [--frames N] [--rounds N]

One thread; a drawn video of 240 x 320 pixels. Both in turn, the best of some rounds. The aim is at least 85 % of the
frames per second without adaptation. Memory is the largest of the process after a video of a tenth of the frames and
after all of them.
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import torch

from haptera.adapters import BatchNorm, NoAdaptation
from haptera.files.video import write_video
from haptera.pose import PoseModel, drawn_animals
from haptera.pose.video import predict_video

AIM = 0.85
MAKERS = {"none": NoAdaptation, "batchnorm:prior=auto": partial(BatchNorm, prior="auto")}


def frames(number: int) -> Iterator[np.ndarray]:
    animals = drawn_animals(1, 40, height=240, width=320)
    images = (animals.images(np.arange(40)).permute(0, 2, 3, 1).numpy() * 255).round().astype(np.uint8)
    for place in range(number):
        yield images[place % 40]


def largest() -> float:
    """Megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    torch.set_num_threads(1)
    model = PoseModel(drawn_animals(1, 1).parts, settings={"width": 16}).eval()
    with tempfile.TemporaryDirectory() as folder:
        clip, short = Path(folder) / "clip.mp4", Path(folder) / "short.mp4"
        write_video(clip, frames(given.frames), Fraction(30))
        write_video(short, frames(max(given.frames // 10, 40)), Fraction(30))
        run = partial(predict_video, model, out=Path(folder) / "said.csv", progress=False)
        run(path=short, adapters={"adapted": MAKERS["batchnorm:prior=auto"]})
        memory, best = largest(), dict.fromkeys(MAKERS, float("inf"))
        for _ in range(given.rounds):
            for name, make in MAKERS.items():
                start = time.perf_counter()
                run(path=clip, adapters={name: make})
                best[name] = min(best[name], time.perf_counter() - start)
        for name, seconds in best.items():
            print(f"{name:<24} {given.frames / seconds:7.1f} frames per second")
        ratio = best["none"] / best["batchnorm:prior=auto"]
        print(f"ratio {ratio:.2f}, aim {AIM}; memory {memory:.0f} MB after the short video, {largest():.0f} after all")


if __name__ == "__main__":
    main()
