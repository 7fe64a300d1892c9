"""A small image-text model of torch's own layers, for laws about adapters that learn a prompt."""

from typing import Any, Self

import torch
from torch import nn
from torch.nn import functional as F


class SmallTexts:
    """Three words before the name of a class, and a network that reads them; shared by copies."""

    def __init__(self, classes: int, width: int) -> None:
        self.words, self.names = torch.randn(3, width), torch.randn(classes, width)
        self.network = nn.Sequential(nn.Linear(4 * width, 16), nn.Tanh(), nn.Linear(16, width)).requires_grad_(False)

    def context(self, template: str) -> torch.Tensor:
        """The vectors of the words."""
        return self.words.clone()

    def encode(self, template: str, context: torch.Tensor) -> torch.Tensor:
        """The features `(classes, width)` of the classes, of norm 1."""
        before = context.flatten().expand(len(self.names), -1)
        return F.normalize(self.network(torch.cat([before, self.names.to(before)], 1)), dim=1)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


class SmallImageText(nn.Module):
    """Grey images of 16 x 16 pixels to features of norm 1, and to logits by the features of ten classes."""

    scale = 5.0
    templates = ("a photo of a {}.",)

    def __init__(self, classes: int = 10, width: int = 8) -> None:
        super().__init__()
        self.texts = SmallTexts(classes, width)
        self.image = nn.Sequential(nn.Flatten(), nn.Linear(256, width), nn.LayerNorm(width))
        self.head = nn.Linear(width, classes, bias=False)
        features = self.texts.encode(self.templates[0], self.texts.context(self.templates[0]))
        self.head.weight.data = self.scale * features

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map `(batch, 1, 16, 16)` to `(batch, classes)`."""
        return self.head(F.normalize(self.image(images), dim=1))

    def score(self, seen: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        """Logits of image features and other features of the classes."""
        return self.scale * seen @ features.to(seen).T


def image_text_model() -> nn.Module:
    """The model in evaluation mode, the same every time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return SmallImageText().eval()
