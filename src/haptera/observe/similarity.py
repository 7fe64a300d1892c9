"""Similarity of representations: CKA between the layers of two networks on the same images.

Source: thesis chapter 5, "Similarity analysis", figures D.1 and D.2; the minibatch form, see `measures.representation`.
Cost: a forward pass of each network, and batch² times features for each layer.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pandas as pd
import torch
from torch import nn

from haptera.adapters import share
from haptera.adapters.passes import device_of, watch_layers
from haptera.batch import Batch
from haptera.errors import HapteraError
from haptera.observe.moments import chosen_layers
from haptera.statistics.representation import LEAST, MinibatchCKA


def layer_similarity(
    first: nn.Module,
    second: nn.Module,
    stream: Iterable[Batch],
    layers: Sequence[str] = (),
    other_layers: Sequence[str] | None = None,
) -> pd.DataFrame:
    """`first`, `second`, `value`, `n`: linear CKA of what each pair of layers gives for the images of a stream.

    Args:
        first: a network; not changed.
        second: another one, or the same.
        stream: read once; batches of fewer than 4 images are left out. Larger batches give less noise.
        layers: names of modules, or patterns of names; all BatchNorm layers if left out.
        other_layers: those of the second network; the same by default.
    """
    sides = [_reader(first, layers), _reader(second, layers if other_layers is None else other_layers)]
    found = MinibatchCKA()
    for batch in stream:
        if len(batch) >= LEAST:
            found.add(*(side(batch.inputs) for side in sides))
    table = found.table()
    if table.empty:
        raise HapteraError(f"the stream has no batch of at least {LEAST} images, which CKA needs")
    return table


def _reader(model: nn.Module, layers: Sequence[str]) -> Callable[[torch.Tensor], dict[str, np.ndarray]]:
    """Return a function from images to what some layers of a network give for them, `(batch, features)` each."""
    own = share(model).eval()
    chosen = chosen_layers(own, layers)

    def features(images: torch.Tensor) -> dict[str, np.ndarray]:
        taken: dict[str, np.ndarray] = {}

        def take(name: str, values: torch.Tensor) -> None:
            taken[name] = values.flatten(1).double().cpu().numpy()

        with watch_layers(chosen, take), torch.no_grad():
            own(images.to(device_of(own)))
        return taken

    return features
