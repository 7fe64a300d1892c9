"""Output spaces: the last operation of an encoder, which says where its latents live.

Source: thesis chapter 6, "Validation": the sphere with a radius that is learnt (footnote 1 of proposition 4), the box
with a side that is learnt, or all of space; chapter 8: a scaled tanh. The text has an L∞ normalisation for the box;
here, as in its code, a sigmoid times the side.
Where the size begins matters: at 1, as in the text, the box takes very many steps. In units of the loss the right
radius is √κ, the right side one over the scale of the conditional, and so is the right scale of unbounded space, which
here has one as well: it changes nothing that the last layer could not do, only how soon.
"""

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F

from haptera.errors import unknown
from haptera.recordings.windows import Offset

OUTPUTS = ("sphere", "box", "unbounded", "tanh")


class OutputSpace(nn.Module):
    """Bring points into a space.

    Args:
        space: one of `OUTPUTS`.
        size: where the radius, the side or the scale begins; it is learnt.
    """

    def __init__(self, space: str, size: float = 1.0) -> None:
        super().__init__()
        if space not in OUTPUTS:
            raise unknown("space", space, OUTPUTS)
        self.space = space
        # By its logarithm, so that steps are in proportion.
        self.log_size = nn.Parameter(torch.tensor(size).log())

    @property
    def size(self) -> float:
        """The radius, side or scale as it is now."""
        return self.log_size.exp().item()

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        """`(batch, dimensions)` into the space."""
        if self.space == "sphere":
            points = F.normalize(points, dim=1)
        elif self.space != "unbounded":
            points = torch.sigmoid(points) if self.space == "box" else torch.tanh(points)
        return self.log_size.exp() * points


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
        """Take `(batch, channels)`, or windows `(batch, channels, 1)`, to `(batch, dimensions)`."""
        return self.output(self.layers(inputs[..., 0] if inputs.ndim == 3 else inputs))
