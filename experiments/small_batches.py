"""What small batches do to adaptation: accuracy on shifted digits by batch size, for each kind of statistics.

    python experiments/small_batches.py

A small residual network, trained on half of the digits; the other half with strong contrast, with strong noise, and
with three shifts one after the other. `prior 0` takes the statistics of each batch alone, as the published methods do,
`prior 16` blends them with those of training; what is called `default` is what an adapter does if no prior is given.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import nn

from haptera.adapters import Adapter, BatchNorm, NoAdaptation, RDumb
from haptera.data import digits
from haptera.models import ResNet
from haptera.models.training import fit
from haptera.shifts import Contrast, GaussianBlur, GaussianNoise
from haptera.streams import Clean

SIZES = (2, 4, 8, 16, 64)
ADAPTERS: dict[str, Callable[[nn.Module], Adapter]] = {
    "none": NoAdaptation,
    "batchnorm, prior 0": partial(BatchNorm, prior=0),
    "batchnorm, prior 16": partial(BatchNorm, prior=16),
    "batchnorm, running": partial(BatchNorm, statistics="running"),
    "batchnorm, default": BatchNorm,
    "rdumb, prior 0": partial(RDumb, prior=0),
    "rdumb, prior 16": partial(RDumb, prior=16),
    "rdumb, default": RDumb,
}


def streams() -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Name -> images in the order of the stream, and targets."""
    (batch,) = Clean(digits("test"), batch_size=10_000)
    images, targets, ids = batch.inputs, batch.targets, batch.ids
    assert targets is not None
    thirds = zip((Contrast(4), GaussianNoise(4), GaussianBlur(4)), images.chunk(3), ids.chunk(3), strict=True)
    changing = torch.cat([shift(part, names, 0) for shift, part, names in thirds])
    return {
        "contrast": (Contrast(4)(images, ids, 0), targets),
        "noise": (GaussianNoise(4)(images, ids, 0), targets),
        "changing": (changing, targets),
    }


def accuracy(adapter: Adapter, images: torch.Tensor, targets: torch.Tensor, size: int) -> float:
    """The share of right answers when images come in batches of this size."""
    answers = torch.cat([adapter(batch).argmax(1) for batch in images.split(size)])
    return float((answers == targets).float().mean())


def main() -> None:
    """Print one table for each stream."""
    torch.manual_seed(0)
    network = ResNet(width=8, stem=2)
    fit(network, digits("train"), epochs=15)
    network.eval()
    for stream, (images, targets) in streams().items():
        print(f"{stream:24}" + "".join(f"{f'n={size}':>8}" for size in SIZES))
        for name, make in ADAPTERS.items():
            found = [accuracy(make(network), images, targets, size) for size in SIZES]
            print(f"{name:24}" + "".join(f"{value:8.3f}" for value in found), flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
