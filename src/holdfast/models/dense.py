"""Networks that do not know that pixels have neighbours."""

from torch import nn

from holdfast.models.layers import Normalise


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
