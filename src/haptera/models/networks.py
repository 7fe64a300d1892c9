"""Small networks that learn in minutes on a CPU: linear, MLP, LeNet-like, residual, and a vision transformer."""

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F

from haptera.errors import HapteraError, check_keys


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
        """Map `(batch, inputs, height, width)` to `(batch, outputs, height / stride, width / stride)`."""
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


class Linear(nn.Sequential):
    """One linear map of the pixels."""

    def __init__(self, channels: int = 1, size: int = 32, classes: int = 10) -> None:
        super().__init__(Normalise(), nn.Flatten(), nn.Linear(channels * size * size, classes))


class MLP(nn.Sequential):
    """`depth` hidden layers of one width."""

    def __init__(self, channels: int = 1, size: int = 32, classes: int = 10, width: int = 128, depth: int = 2) -> None:
        layers: list[nn.Module] = [Normalise(), nn.Flatten()]
        inputs = channels * size * size
        for _ in range(depth):
            layers += [nn.Linear(inputs, width), nn.ReLU()]
            inputs = width
        super().__init__(*layers, nn.Linear(inputs, classes))


class Normalise(nn.Module):
    """Images in [0, 1] to values around 0; part of every model, so that nobody has to remember it."""

    def __init__(self, mean: float = 0.5, std: float = 0.5) -> None:
        super().__init__()
        self.mean, self.std = mean, std

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """(x − mean) / std."""
        return (images - self.mean) / self.std


def norm_layer(kind: str, channels: int) -> nn.Module:
    """Return a normalisation layer by name: `batch`, `group` or `none`."""
    check_keys("norm", [kind], ["batch", "group", "none"])
    if kind == "group":
        return nn.GroupNorm(min(4, channels), channels)
    return nn.BatchNorm2d(channels) if kind == "batch" else nn.Identity()


class ViT(nn.Module):
    """Patches, learnt positions, pre-norm encoder layers without dropout, the mean over patches, a linear head.

    Patches are squares of `patch` pixels, each a linear map of its own pixels; with `stem="residual"` they are what a
    strided convolution and residual blocks with GroupNorm see there, as in the hybrid models of Dosovitskiy et al.
    (2021), which learn more from few images.
    """

    def __init__(
        self,
        channels: int = 1,
        size: int = 32,
        classes: int = 10,
        width: int = 48,
        depth: int = 2,
        heads: int = 4,
        patch: int = 4,
        stem: str = "patch",
    ) -> None:
        super().__init__()
        if size % patch:
            raise HapteraError(f"size {size} is not a multiple of patch {patch}")
        check_keys("stem", [stem], ["patch", "residual"])
        self.normalise = Normalise()
        self.patches = nn.Conv2d(channels, width, patch, patch) if stem == "patch" else _stem(channels, width, patch)
        self.positions = nn.Parameter(torch.randn(1, (size // patch) ** 2, width) * 0.02)
        layer = nn.TransformerEncoderLayer(
            width, heads, 2 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, depth, norm=nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map `(batch, channels, size, size)` to `(batch, classes)`."""
        tokens = self.patches(self.normalise(images)).flatten(2).transpose(1, 2)
        return self.head(self.encoder(tokens + self.positions).mean(1))


def _stem(channels: int, width: int, patch: int) -> nn.Sequential:
    """Return the body of a `ResNet` of stem 2: every block after the first halves the size, to a pixel per patch."""
    halvings = patch.bit_length() - 1
    if patch < 2 or patch != 2**halvings or width % 2 ** (halvings + 1):
        raise HapteraError(
            f"patch is {patch} and width is {width}; a residual stem needs a patch of 2, 4, 8 or another power of 2, "
            "and a width that is a multiple of twice the patch"
        )
    widths = [width // 2**step for step in reversed(range(halvings))]
    first = [nn.Conv2d(channels, widths[0], 3, 2, 1, bias=False), norm_layer("group", widths[0]), nn.ReLU()]
    blocks = [Block(inputs, outputs, 2, "group") for inputs, outputs in pairwise(widths)]
    return nn.Sequential(*first, Block(widths[0], widths[0], 1, "group"), *blocks)
