"""The device that a model runs on: chosen, and tried, in one place."""

import torch

from haptera.errors import HapteraError, first_line


def choose_device(name: str | None = None) -> torch.device:
    """Return the device of a name; without one, or for `cuda_if_available`, a GPU if there is one.

    >>> choose_device("cpu")
    device(type='cpu')
    """
    if name in (None, "", "cuda_if_available"):
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        raise HapteraError(
            f"device is {name!r}, which cannot be used ({first_line(error)}); cpu, cuda, cuda:1, mps or "
            "cuda_if_available was expected"
        ) from error
    return torch.device(str(name))
