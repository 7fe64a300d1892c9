"""Statistics of all layers in one pass, beside a plain forward pass over the same images: CPU time, one thread.

    python benchmarks/diagnose.py

A residual network of 20 layers at 32 pixels and one of 12 layers at 64, batches of 64; the least of several rounds, the
sides by turns. "plain" is the caller's model without gradients, in the memory layout that it came with and in the one
that `observe_moments` and adapters choose for it.
"""

import time
from collections.abc import Callable

import torch

from haptera.adapters import NoAdaptation, Watch
from haptera.batch import Batch
from haptera.models import ResNet
from haptera.observe import observe_moments

ROUNDS, BATCHES = 7, 6


def main() -> None:
    """Print a table for each network."""
    torch.set_num_threads(1)
    for side, settings in ((32, {"width": 16, "blocks": 3}), (64, {"width": 16, "blocks": 1})):
        torch.manual_seed(0)
        net = ResNet(channels=3, **settings).eval()
        inputs = [torch.rand(64, 3, side, side) for _ in range(BATCHES)]
        stream = [Batch(images, None, torch.arange(64), {}) for images in inputs]
        layers = sum("Norm" in type(layer).__name__ for layer in net.modules())
        sides = {
            "plain": _plain(net, inputs),
            "plain, layout chosen": _plain(NoAdaptation(net), inputs),
            "observe_moments": lambda net=net, stream=stream: observe_moments(net, stream),
            "Watch": _plain(Watch(net), inputs),
        }
        best = dict.fromkeys(sides, float("inf"))
        for _ in range(ROUNDS):
            for name, run in sides.items():
                start = time.process_time()
                run()
                best[name] = min(best[name], time.process_time() - start)
        print(
            f"{layers} BatchNorm layers at {side} px: ms per batch, ratio to plain, ratio to plain in the chosen layout"
        )
        for name, seconds in best.items():
            against = [seconds / best[other] for other in ("plain", "plain, layout chosen")]
            print(f"{name:<24}{1000 * seconds / BATCHES:8.1f}{against[0]:8.2f}{against[1]:8.2f}")


def _plain(model: torch.nn.Module, inputs: list[torch.Tensor]) -> Callable[[], None]:
    @torch.no_grad()
    def run() -> None:
        for images in inputs:
            model(images)

    return run


if __name__ == "__main__":
    main()
