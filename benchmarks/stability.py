"""How fast deformations and a measurement of stability are, on one thread.

    python benchmarks/stability.py [--seconds 1]

Ours is `Diffeo` on batches, each image with a field of its own. The baseline is the obvious loop: for one image after
the other, draw coefficients, sum the sines into a field, read the image at the displaced positions; Gaussian weights
there go over all pixels. The second part compares a whole measurement (R, D and G of the output with intervals) of 500
images with plain forward passes of those images, in batches of 32 as the measurement has them, and of 64.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from math import pi

import torch
from torch import nn

from haptera import stability
from haptera.data import ArrayData
from haptera.models import LeNet, ResNet
from haptera.shifts import Diffeo

SIGMA = 0.4715
CUTOFF = 3


def one_by_one(images: torch.Tensor, temperature: float, interpolation: str) -> torch.Tensor:
    """The obvious loop."""
    return torch.stack([_deformed(image, temperature, interpolation) for image in images])


def _deformed(image: torch.Tensor, temperature: float, interpolation: str) -> torch.Tensor:
    n = image.shape[-1]
    number = torch.arange(1, CUTOFF + 1, dtype=torch.float32)
    i, j = torch.meshgrid(number, number, indexing="ij")
    squares = i**2 + j**2
    spread = (squares <= CUTOFF**2) / squares.sqrt() * temperature**0.5
    sines = torch.sin(pi * torch.linspace(0, 1, n)[:, None] * number)
    u, v = (torch.einsum("ij,xi,yj->yx", torch.randn(CUTOFF, CUTOFF) * spread, sines, sines) * n for _ in range(2))
    y, x = torch.meshgrid(torch.arange(n).float(), torch.arange(n).float(), indexing="ij")
    x_at, y_at = (x - u).clamp(0, n - 1), (y - v).clamp(0, n - 1)
    if interpolation == "gaussian":
        off = (x_at[..., None, None] - x) ** 2 + (y_at[..., None, None] - y) ** 2
        weights = torch.exp(-off / (2 * SIGMA**2))
        weights = weights / weights.sum((2, 3), keepdim=True)
        return (weights * image[:, None, None]).sum((-1, -2))
    left, top = x_at.floor().long(), y_at.floor().long()
    right, bottom = x_at.ceil().long(), y_at.ceil().long()
    across, down = x_at - left, y_at - top
    above = image[:, top, left] * (1 - across) + image[:, top, right] * across
    below = image[:, bottom, left] * (1 - across) + image[:, bottom, right] * across
    return above * (1 - down) + below * down


def rate(call: Callable[[], object], images: int, seconds: float) -> float:
    """Images per CPU-second, the best of three rounds."""
    call()
    best = 0.0
    for _ in range(3):
        done, start = 0, time.process_time()
        while done < 1 or time.process_time() - start < seconds / 3:
            call()
            done += 1
        best = max(best, done * images / (time.process_time() - start))
    return best


def least(work: dict[str, Callable[[], object]], seconds: float) -> list[float]:
    """CPU-seconds of each, the least of some rounds in which all take their turn."""
    best = dict.fromkeys(work, float("inf"))
    start = time.process_time()
    while time.process_time() - start < 3 * seconds or float("inf") in best.values():
        for name, call in work.items():
            begin = time.process_time()
            call()
            best[name] = min(best[name], time.process_time() - begin)
    return list(best.values())


def deformations(seconds: float) -> None:
    print(f"{'':<22}{'ours':>10}{'loop':>10}{'ratio':>8}   images per CPU-second, c = {CUTOFF}, δ = 1, one channel")
    for side, batch, few in ((32, 512, 64), (224, 32, 4)):
        for interpolation in ("bilinear", "gaussian"):
            if side > 32 and interpolation == "gaussian":
                continue  # the loop would need 224⁴ weights
            shift = Diffeo(1, CUTOFF, interpolation=interpolation)
            images, heat = torch.rand(batch, 1, side, side), shift.heat(side, side)
            some = images[: 2 if interpolation == "gaussian" else few]
            ours = rate(lambda s=shift, x=images: s(x), batch, seconds)
            loop = rate(lambda x=some, t=heat, how=interpolation: one_by_one(x, t, how), len(some), seconds)
            print(f"{side:>4} px  {interpolation:<14}{ours:>10.0f}{loop:>10.0f}{ours / loop:>8.1f}")


def measurement(seconds: float) -> None:
    heads = f"{'forward, 32':>10}{'64':>9}{'deform':>10}{'measure':>10}{'passes, 32':>12}{'64':>6}"
    print(f"\n{'':<24}{heads}   CPU-seconds for 500 images")
    nets: dict[str, tuple[nn.Module, int]] = {
        "lenet, width 32": (LeNet(width=32), 32),
        "resnet, width 16": (ResNet(width=16), 32),
        "resnet, width 32": (ResNet(width=32), 32),
        "resnet, width 16, 96 px": (ResNet(width=16, stem=2), 96),
    }
    for name, (net, side) in nets.items():
        net.eval()
        pixels = torch.randint(0, 256, (500, 1, side, side), dtype=torch.uint8)
        data, images, shift = ArrayData(pixels.numpy()[:, 0]), pixels / 255, Diffeo(1, CUTOFF)

        def forward(batch: int, net: nn.Module = net, images: torch.Tensor = images) -> None:
            with torch.no_grad():
                for part in images.split(batch):
                    net(part)

        work = {
            "32": partial(forward, 32),
            "64": partial(forward, 64),
            "deform": lambda x=images, s=shift: [s(part) for part in x.split(64)],
            "whole": lambda net=net, data=data: stability(net, data, samples=500, progress=False),
        }
        plain, large, deform, whole = least(work, seconds)
        passes = [(whole - deform) / one for one in (plain, large)]
        numbers = f"{plain:>10.3f}{large:>10.3f}{deform:>10.3f}{whole:>10.3f}"
        print(f"{name:<24}{numbers}{passes[0]:>10.2f}{passes[1]:>8.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=3.0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    deformations(given.seconds)
    measurement(given.seconds)
