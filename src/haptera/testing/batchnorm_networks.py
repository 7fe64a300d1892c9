"""Small networks that are awkward: BatchNorm layers of the shapes other packages have, convolutions, memory layouts.

The former take `(batch, 1, 16, 16)` to 10 classes, as the other example networks do; those for memory layouts take
`(batch, 3, 16, 16)`, for with one channel the layouts are one and the same.
"""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F


class NormAct(nn.BatchNorm2d):
    """Dropout and an activation after the normalisation, in one layer, as timm's `BatchNormAct2d` has them."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        self.drop, self.act = nn.Dropout2d(0.2), nn.SiLU()

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Normalise without calling the base's `forward`."""
        batch = self.training or self.running_mean is None
        out = F.batch_norm(
            inputs, self.running_mean, self.running_var, self.weight, self.bias, batch, self.momentum or 0.0, self.eps
        )
        return self.act(self.drop(out))


class Leaky(nn.BatchNorm2d):
    """An activation after the base's `forward`."""

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Call the base's `forward`, then activate."""
        return F.leaky_relu(super().forward(inputs), 0.2)


class FrozenNorm(nn.Module):
    """Scale, offset and statistics as buffers, and no `batch_norm`: torchvision's `FrozenBatchNorm2d`."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight: torch.Tensor
        self.bias: torch.Tensor
        self.running_mean: torch.Tensor
        self.running_var: torch.Tensor
        for name, value in (("weight", 1.2), ("bias", 0.1), ("running_mean", 0.2), ("running_var", 0.5)):
            self.register_buffer(name, torch.full((channels,), value))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Scale and offset."""
        tensors = (self.weight, self.bias, self.running_mean, self.running_var)
        weight, bias, mean, var = (tensor.reshape(1, -1, 1, 1) for tensor in tensors)
        scale = weight * (var + 1e-5).rsqrt()
        return inputs * scale + (bias - mean * scale)


class Called(nn.Module):
    """A BatchNorm layer whose tensors go to a function, or whose `forward` is called."""

    def __init__(self, channels: int, how: str) -> None:
        super().__init__()
        self.norm, self.how = nn.BatchNorm2d(channels), how

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """The same in three ways."""
        own = self.norm
        if self.how == "forward":
            return own.forward(inputs)
        if self.how == "torch":
            tensors = (own.weight, own.bias, own.running_mean, own.running_var)
            return torch.batch_norm(inputs, *tensors, self.training, 0.1, own.eps, False)
        return F.batch_norm(
            inputs, own.running_mean, own.running_var, own.weight, own.bias, training=self.training, eps=own.eps
        )


class Network(nn.Module):
    """Two convolutions with a norm after each, which may be one layer."""

    def __init__(self, norm: Callable[[int], nn.Module], shared: bool = False) -> None:
        super().__init__()
        self.one, self.two = nn.Conv2d(1, 6, 3, 2, 1), nn.Conv2d(6, 6, 3, 1, 1)
        self.first = norm(6)
        self.second = self.first if shared else nn.BatchNorm2d(6)
        self.head = nn.Linear(6, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map `(batch, 1, height, width)` to `(batch, 10)`."""
        hidden = F.relu(self.first(self.one(images)))
        return self.head(self.second(self.two(hidden)).mean((2, 3)))


def batchnorm_networks() -> dict[str, nn.Module]:
    """Name -> network in evaluation mode, its statistics away from the defaults."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        networks: dict[str, nn.Module] = {
            "activation inside the layer": Network(NormAct),
            "activation after the base's forward": Network(Leaky),
            "synchronised": nn.SyncBatchNorm.convert_sync_batchnorm(Network(nn.BatchNorm2d)),
            "no scale and offset": Network(lambda channels: nn.BatchNorm2d(channels, affine=False)),
            "shared between two places": Network(nn.BatchNorm2d, shared=True),
            "frozen layers of another class": Network(FrozenNorm),
            "statistics of the batch only": Network(lambda n: nn.BatchNorm2d(n, track_running_stats=False)),
            "no longer tracked": Network(nn.BatchNorm2d),
            "forward called": Network(lambda channels: Called(channels, "forward")),
            "called as a function": Network(lambda channels: Called(channels, "functional")),
            "called as a function of torch": Network(lambda channels: Called(channels, "torch")),
        }
        for network in networks.values():
            network.train()
            for _ in range(3):
                network(torch.rand(16, 1, 16, 16))
            network.eval()
        for norm in networks["no longer tracked"].modules():
            if isinstance(norm, nn.BatchNorm2d):
                norm.track_running_stats = False  # it has statistics, which are used in evaluation mode
    return networks


class GroupNormCall(nn.Module):
    """GroupNorm as a function, with weights that belong to no layer."""

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Normalise two groups of channels."""
        return nn.functional.group_norm(inputs, 2)


def convolutional_networks() -> dict[str, nn.Module]:
    """Name -> network in evaluation mode, its statistics away from the defaults."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        networks: dict[str, nn.Module] = {
            "few channels": _network(4, nn.Conv2d(4, 3, 3, padding=1), 3),
            "1x1 with a stride, few channels": _network(4, nn.Conv2d(4, 8, 1, stride=2, bias=False), 8),
            "1x1 with a stride": _network(16, nn.Conv2d(16, 12, 1, stride=2, bias=False), 12),
            "1x1": _network(4, nn.Conv2d(4, 8, 1), 8),
            "strides": _network(4, nn.Conv2d(4, 8, 3, stride=(2, 3)), 8),
            "dilation": _network(4, nn.Conv2d(4, 8, 3, dilation=2), 8),
            "groups": _network(4, nn.Conv2d(4, 8, 3, groups=4), 8),
            "groups, 1x1 with a stride": _network(8, nn.Conv2d(8, 8, 1, stride=2, groups=4), 8),
            "transposed": _network(4, nn.ConvTranspose2d(4, 6, 2, stride=2), 6),
            "transposed, 1x1 with a stride": _network(8, nn.ConvTranspose2d(8, 4, 1, stride=2), 4),
            "GroupNorm": _network(4, nn.Sequential(nn.GroupNorm(2, 4), nn.Conv2d(4, 6, 3)), 6),
            "GroupNorm as a function": _network(4, nn.Sequential(GroupNormCall(), nn.Conv2d(4, 6, 3)), 6),
            "pooled and shuffled": _network(
                4, nn.Sequential(nn.MaxPool2d(3, 2, 1), nn.Conv2d(4, 8, 3), nn.PixelShuffle(2), nn.Upsample(8)), 2
            ),
        }
        for network in networks.values():
            network.train()
            network(torch.rand(16, 3, 16, 16))
            network.eval()
    return networks


def _network(before: int, middle: nn.Module, after: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, before, 3, padding=1),
        nn.BatchNorm2d(before),
        nn.ReLU(),
        middle,
        nn.BatchNorm2d(after),
        nn.ReLU(),
        nn.Conv2d(after, 16, 3, padding=1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 10),
    )
