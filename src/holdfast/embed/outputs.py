"""Output spaces: the last operation of an encoder, which says where its latents live.

Source: thesis chapter 6, "Validation": the sphere with a radius that is learnt (footnote 1 of proposition 4), the box
with a side that is learnt, or nothing; chapter 8: a scaled tanh. The text has an L∞ normalisation for the box; here, as
in its code, a sigmoid times the side.
Where the radius and the side begin matters: at 1, as in the text, the box takes very many steps. In units of the loss
the right radius is √κ, and the right side one over the scale of the conditional.
"""

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F

from holdfast.embed.windows import Offset
from holdfast.errors import unknown

OUTPUTS = ("sphere", "box", "unbounded", "tanh")


class OutputSpace(nn.Module):
    """Bring points into a space.

    Args:
        space: one of `OUTPUTS`.
        size: where the radius, the side, or the scale of the tanh begins; it is learnt.
    """

    def __init__(self, space: str, size: float = 1.0) -> None:
        super().__init__()
        if space not in OUTPUTS:
            raise unknown("space", space, OUTPUTS)
        self.space = space
        # By its logarithm, so that steps are in proportion.
        self.log_size = None if space == "unbounded" else nn.Parameter(torch.tensor(size).log())

    @property
    def size(self) -> float | None:
        """The radius, side or scale as it is now."""
        return None if self.log_size is None else self.log_size.exp().item()

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        """`(batch, dimensions)` into the space."""
        if self.log_size is None:
            return points
        inside = {"sphere": lambda x: F.normalize(x, dim=1), "box": torch.sigmoid, "tanh": torch.tanh}[self.space]
        return self.log_size.exp() * inside(points)


class LatentEncoder(nn.Module):
    """Dense layers, then an output space: the encoders of chapters 6 and 8.

    Args:
        channels: inputs.
        widths: of the layers between.
        dimensions: of the embedding.
        space: of the outputs.
        size: where the radius or side begins.
        activation: between the layers, such as `nn.GELU()`.
    """

    convolutional = False

    def __init__(
        self,
        channels: int,
        widths: "list[int]",
        dimensions: int,
        space: str = "unbounded",
        size: float = 1.0,
        activation: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.offset = Offset(0, 1)
        layers: list[nn.Module] = []
        for before, after in pairwise([channels, *widths]):
            layers += [nn.Linear(before, after), activation or nn.LeakyReLU(0.01)]
        last = widths[-1] if widths else channels
        self.layers = nn.Sequential(*layers, nn.Linear(last, dimensions))
        self.output = OutputSpace(space, size)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """From `(batch, channels)`, or windows `(batch, channels, 1)`, to `(batch, dimensions)`."""
        return self.output(self.layers(inputs[..., 0] if inputs.ndim == 3 else inputs))
