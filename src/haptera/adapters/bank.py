"""Bank: images that a method remembers, with what it knows about each, in an adapter's `memory`."""

from typing import Any

import torch

from haptera.errors import HapteraError


def put(memory: dict[str, Any], image: torch.Tensor, at: int, capacity: int, **facts: float) -> None:
    """Put an image into a place of the bank, behind the others or in place of one of them.

    `memory["images"]` is None or `(capacity, ...)`; for each of the facts there is a tensor `(images held,)`.
    """
    if memory["images"] is None:
        memory["images"] = image.new_zeros(capacity, *image.shape)
    if memory["images"].shape[1:] != image.shape:
        raise HapteraError(
            f"an image of shape {tuple(image.shape)} came after some of {tuple(memory['images'].shape[1:])}; "
            "the bank holds one shape only"
        )
    memory["images"][at] = image
    for name, value in facts.items():
        if at == len(memory[name]):
            memory[name] = torch.cat([memory[name], memory[name].new_zeros(1)])
        memory[name][at] = value
