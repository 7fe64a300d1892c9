"""Throughput of shifts, adapters and embedding on every device that torch offers here, beside the CPU in one run.

    python benchmarks/device.py [cpu] [cuda] [mps] [xpu]

Images per second of corruptions at 224 pixels and of adapters around a residual network at 32 pixels, steps per second
of an embedding; each the best of several rounds, after one that is not counted, with the device's queue empty before
and after. The last column says how far the results are from the CPU's: a device whose arithmetic differs shows here.
The project's own machines have no accelerator, so only the column of the CPU has been seen by its authors.
"""

import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from haptera.adapters import ETA, BatchNorm, NoAdaptation, RDumb, Tent
from haptera.catalog import find
from haptera.contrastive import ContrastiveEmbedding
from haptera.models import ResNet

SHIFTS = ("gaussian_noise", "defocus_blur", "fog", "contrast", "pixelate", "elastic_transform")
ADAPTERS = (NoAdaptation, BatchNorm, Tent, ETA, RDumb)
ROUNDS, BATCH, STEPS = 5, 64, 200


def devices() -> list[str]:
    """Return the CPU and the accelerators of this machine."""
    known = {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available, "xpu": torch.xpu.is_available}
    return ["cpu", *(name for name, there in known.items() if there())]


def wait(device: str) -> None:
    if device != "cpu":
        torch.accelerator.synchronize()


def rate(device: str, items: int, work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return how many items a second, the best of several rounds."""
    work()
    best = float("inf")
    for _ in range(rounds):
        wait(device)
        start = time.perf_counter()
        work()
        wait(device)
        best = min(best, time.perf_counter() - start)
    return items / best


def shift_rows(device: str) -> dict[str, tuple[float, torch.Tensor]]:
    images = torch.rand(16, 3, 224, 224, generator=torch.Generator().manual_seed(0)).to(device)
    ids = torch.arange(len(images))
    shifts = {name: find("shifts", name)(3) for name in SHIFTS}
    rates = {name: rate(device, len(images), partial(own, images, ids)) for name, own in shifts.items()}
    return {name: (rates[name], own(images, ids)) for name, own in shifts.items()}


def adapter_rows(device: str) -> dict[str, tuple[float, torch.Tensor]]:
    torch.manual_seed(0)
    net = ResNet(channels=3, width=32, stem=1).eval().to(device)
    images = torch.rand(BATCH, 3, 32, 32, generator=torch.Generator().manual_seed(1)).to(device)
    found = {}
    for make in ADAPTERS:
        adapter = make(net)
        logits = adapter(images).clone()
        found[make.__name__] = rate(device, BATCH, partial(adapter, images)), logits
    return found


def embedding_rows(device: str) -> dict[str, tuple[float, torch.Tensor]]:
    generator = np.random.default_rng(0)
    signal, label = generator.normal(size=(10_000, 100)), generator.normal(size=(10_000, 1))
    found = {}
    for name, labels in (("embedding by time", ()), ("embedding by label", (label,))):
        settings = {"output_dimension": 8, "max_iterations": STEPS, "random_state": 0, "device": device}
        model = ContrastiveEmbedding("offset10-model", **settings)
        steps = rate(device, STEPS, partial(model.fit, signal, *labels), 2)
        found[name] = steps, torch.tensor(model.loss_history_[-1:])
    return found


def main() -> None:
    there = devices()
    names = sys.argv[1:] or there
    if missing := set(names) - set(there):
        sys.exit(f"torch offers no {min(missing)} here; {', '.join(there)} was expected")
    rows = {
        name: shift_rows(name) | adapter_rows(name) | embedding_rows(name) for name in dict.fromkeys(["cpu", *names])
    }
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads on the CPU; items per second")
    print(f"{'':20}" + "".join(f"{name:>12}{'off by':>10}" for name in rows))
    for row in rows["cpu"]:
        cells = ""
        for own in rows.values():
            speed, result = own[row]
            off = (result.cpu().double() - rows["cpu"][row][1].double()).abs().max()
            cells += f"{speed:12,.1f}{float(off):10.1e}"
        print(f"{row:20}{cells}")


if __name__ == "__main__":
    main()
