"""Networks of convolutions: LeNet-like, and residual."""

import torch
from torch import nn
from torch.nn import functional as F

from holdfast.models.layers import Normalise, norm_layer


class LeNet(nn.Sequential):
    """Two convolutions with pooling, two linear layers."""

    def __init__(self, channels: int = 1, size: int = 32, classes: int = 10, width: int = 8) -> None:
        super().__init__(
            Normalise(),
            nn.Conv2d(channels, width, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(2 * width * (size // 4) ** 2, 8 * width),
            nn.ReLU(),
            nn.Linear(8 * width, classes),
        )


class Block(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self, inputs: int, outputs: int, stride: int, kind: str) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = norm_layer(kind, outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = norm_layer(kind, outputs)
        self.around: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.around = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), norm_layer(kind, outputs))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """`(batch, inputs, height, width)` to `(batch, outputs, height / stride, width / stride)`."""
        hidden = F.relu(self.norm1(self.conv1(inputs)))
        return F.relu(self.norm2(self.conv2(hidden)) + self.around(inputs))


class ResNet(nn.Sequential):
    """A stem of stride `stem`, then three stages of residual blocks; each halves the size and doubles the width."""

    def __init__(
        self,
        channels: int = 1,
        classes: int = 10,
        width: int = 8,
        blocks: int = 1,
        norm: str = "batch",
        stem: int = 1,
    ) -> None:
        layers: list[nn.Module] = [
            Normalise(),
            nn.Conv2d(channels, width, 3, stem, 1, bias=False),
            norm_layer(norm, width),
            nn.ReLU(),
        ]
        inputs = width
        for stage in range(3):
            outputs = width * 2**stage
            for block in range(blocks):
                layers.append(Block(inputs, outputs, 2 if stage and not block else 1, norm))
                inputs = outputs
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))
