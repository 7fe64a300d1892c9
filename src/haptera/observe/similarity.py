"""Similarity of representations: CKA between the layers of two networks on the same images.

Source: thesis chapter 5, "Similarity analysis", figures D.1 and D.2; the minibatch form, see `measures.representation`.
Cost: a forward pass of each network, and batch² times features for each layer.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from haptera.adapters import share
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
    sides = [_Watcher(first, layers), _Watcher(second, layers if other_layers is None else other_layers)]
    found = MinibatchCKA()
    try:
        for batch in stream:
            if len(batch) >= LEAST:
                found.add(*(side.features(batch.inputs) for side in sides))
    finally:
        for side in sides:
            side.release()
    table = found.table()
    if table.empty:
        raise HapteraError(f"the stream has no batch of at least {LEAST} images, which CKA needs")
    return table


class _Watcher:
    """A network in evaluation mode, and what some of its layers gave for the last batch."""

    def __init__(self, model: nn.Module, layers: Sequence[str]) -> None:
        self.model = share(model).eval()
        self.device = next((tensor.device for tensor in self.model.parameters()), torch.device("cpu"))
        self.taken: dict[str, np.ndarray] = {}
        chosen = chosen_layers(self.model, layers)
        self.hooks = [layer.register_forward_hook(self._keeper(name)) for name, layer in chosen.items()]

    def _keeper(self, name: str) -> Any:
        def keep(_: nn.Module, __: Any, output: Any) -> None:
            values = output[0] if isinstance(output, tuple) else output
            self.taken[name] = values.detach().flatten(1).double().cpu().numpy()

        return keep

    @torch.no_grad()
    def features(self, images: torch.Tensor) -> dict[str, np.ndarray]:
        self.taken = {}
        self.model(images.to(self.device))
        return self.taken

    def release(self) -> None:
        for hook in self.hooks:
            hook.remove()
