"""A small vision transformer."""

import torch
from torch import nn

from holdfast.errors import HoldfastError
from holdfast.models.layers import Normalise


class ViT(nn.Module):
    """Patches, learnt positions, pre-norm encoder layers without dropout, the mean over patches, a linear head."""

    def __init__(
        self,
        channels: int = 1,
        size: int = 32,
        classes: int = 10,
        width: int = 48,
        depth: int = 2,
        heads: int = 4,
        patch: int = 4,
    ) -> None:
        super().__init__()
        if size % patch:
            raise HoldfastError(f"size {size} is no multiple of patch {patch}")
        self.normalise = Normalise()
        self.patches = nn.Conv2d(channels, width, patch, patch)
        self.positions = nn.Parameter(torch.randn(1, (size // patch) ** 2, width) * 0.02)
        layer = nn.TransformerEncoderLayer(
            width, heads, 2 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, depth, norm=nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """`(batch, channels, size, size)` to `(batch, classes)`."""
        tokens = self.patches(self.normalise(images)).flatten(2).transpose(1, 2)
        return self.head(self.encoder(tokens + self.positions).mean(1))
