"""A network as a user would bring it: a file with a function that builds it. `study.toml` names this file.

`python examples/net.py [FOLDER]` trains it and writes `net.safetensors`, for `--model examples/net.py:build --weights`.
"""

import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn

from haptera.data import digits
from haptera.models.training import fit


class Net(nn.Module):
    """Three convolutions with BatchNorm. The normalisation of the inputs is part of the model."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 3, stride=2, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(),
        )  # fmt: skip
        self.head = nn.Linear(2 * width, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """`(batch, 1, height, width)` in [0, 1] to `(batch, 10)`."""
        return self.head(self.features(2 * images - 1).mean((2, 3)))


def build(width: int = 16) -> nn.Module:
    """The network without weights; haptera loads them from a file."""
    return Net(width)


def trained(width: int = 16, epochs: int = 6) -> nn.Module:
    """The network, trained on the spot, so that the example needs no file."""
    torch.manual_seed(0)
    net = Net(width)
    fit(net, digits("train", size=16), epochs=epochs)
    return net


if __name__ == "__main__":
    path = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="haptera-")) / "net.safetensors"
    save_file(trained().state_dict(), path)
    print(f"weights: {path}")
