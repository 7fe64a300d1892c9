"""InfoNCE: a reference shall be more similar to its positive than to the negatives.

    L = mean_i [ −φ(x_i, y_i⁺) + log Σ_j exp φ(x_i, y_j⁻) ]

Sources: thesis (7.2), where the positive is not in the sum, the default; chapter 6 (6.1), where it is
(`positive_inside`). φ is a similarity over a temperature τ. L − log n is the goodness of fit: 0 for a constant
embedding, −KL(p‖q) at the optimum as n grows (7.3); at finite n it lies O(1/n) below that with the positive outside the
sum, so compare at equal n. With the positive outside, pairs that are closer than any negative let the loss fall without
end as the embedding grows, where the similarity has no bound.
The listing of the text subtracts the maximum of rows along columns; here `logsumexp` does it.
Cost: one product `(references, negatives)`, in blocks that are computed again for the gradient: small ones where the
similarity is a product of rows (see `products`), else as large as `BLOCK`.
"""

import math
from functools import reduce

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from haptera.checks import check_number
from haptera.contrastive.products import log_sum_of_products
from haptera.errors import HapteraError, unknown

BLOCK = 2**24
"""Pairs of reference and negative that are held at once."""
DISTANCES = ("cosine", "euclidean", "dot", "learnable")


class Similarity(nn.Module):
    """φ before the temperature, for tensors whose last dimensions are `(batch, dimensions)`."""

    bounded = False
    """Say whether growing the embedding cannot make φ grow without end."""

    def paired(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """φ of each row with the same row of the other, `(..., batch)`."""
        raise NotImplementedError

    def crossed(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """φ of each row with every row of the other, `(..., batch, others)`."""
        raise NotImplementedError

    def log_sum(self, first: torch.Tensor, second: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        """log Σ_j exp(scale · φ(x_i, y_j)), `(..., batch)`."""
        groups = first[..., 0, 0].numel()
        rows = max(BLOCK // (groups * second.shape[-2]), 1)
        if first.shape[-2] <= rows:
            return self._block(first, second, scale)
        blocks = [checkpoint(self._block, part, second, scale, use_reentrant=False) for part in first.split(rows, -2)]
        return torch.cat(blocks, -1)

    def _block(self, first: torch.Tensor, second: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return (scale * self.crossed(first, second)).logsumexp(-1)


class DotProduct(Similarity):
    """xᵀy."""

    def paired(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Row by row."""
        return (first * second).sum(-1)

    def crossed(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Every row with every row."""
        return first @ second.transpose(-1, -2)

    def log_sum(self, first: torch.Tensor, second: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        """By products of rows."""
        return log_sum_of_products(scale * first, second)


class Cosine(DotProduct):
    """xᵀy of vectors of unit length."""

    bounded = True

    def paired(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Row by row."""
        return super().paired(F.normalize(first, dim=-1), F.normalize(second, dim=-1))

    def crossed(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Every row with every row."""
        return super().crossed(F.normalize(first, dim=-1), F.normalize(second, dim=-1))

    def log_sum(self, first: torch.Tensor, second: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        """By products of rows."""
        return super().log_sum(F.normalize(first, dim=-1), F.normalize(second, dim=-1), scale)


class Euclidean(Similarity):
    """−‖x − y‖², by one product of matrices."""

    def paired(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Row by row."""
        return -(first - second).square().sum(-1)

    def crossed(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Every row with every row."""
        middle = second.detach().mean(-2, keepdim=True)  # small numbers lose less in the difference
        first, second = first - middle, second - middle
        squares = first.square().sum(-1)[..., :, None] + second.square().sum(-1)[..., None, :]
        return (2 * first @ second.transpose(-1, -2) - squares).clamp(max=0)

    def log_sum(self, first: torch.Tensor, second: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        """By products of rows: ‖y‖² is one more column of them, and ‖x‖² leaves the sum."""
        middle = second.detach().mean(-2, keepdim=True)
        first, second = first - middle, second - middle
        rows = torch.cat([2 * first, torch.ones_like(first[..., :1])], -1)
        others = torch.cat([second, -second.square().sum(-1, keepdim=True)], -1)
        return log_sum_of_products(scale * rows, others) - scale * first.square().sum(-1)


class Lp(Similarity):
    """−‖x − y‖_p^p, as in chapter 6; the sum is over dimensions, no tensor of all differences is built."""

    def __init__(self, p: float) -> None:
        super().__init__()
        check_number("p", p, above=0)
        self.p = p

    def paired(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Row by row."""
        return -(first - second).abs().pow(self.p).sum(-1)

    def crossed(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Every row with every row."""
        if self.p <= 2:
            return -torch.cdist(first, second, p=self.p).pow(self.p)
        # For larger p the library's distances and their gradients take several times as long as this.
        columns = zip(first.unbind(-1), second.unbind(-1), strict=True)
        return -reduce(torch.add, ((x[..., :, None] - y[..., None, :]).abs().pow(self.p) for x, y in columns))


class Learnable(Similarity):
    """φ(x, y) = Σ_i φ_i(y_i, x), each φ_i learnt: the most general similarity of Suppl. note 1.

    φ_i(y_i, x) = a_i(x)ᵀ b_i(y_i) with networks a_i and b_i of their own, so that all pairs cost one product.

    Args:
        dimensions: of the embedding.
        features: length of a_i and b_i.
        hidden: width of the networks.
    """

    def __init__(self, dimensions: int, features: int = 8, hidden: int = 32) -> None:
        super().__init__()
        self.of_reference = nn.Sequential(
            nn.Linear(dimensions, hidden), nn.GELU(), nn.Linear(hidden, dimensions * features)
        )
        # one small network for each y_i, all of them as grouped convolutions of width 1
        self.of_other = nn.Sequential(
            nn.Conv1d(dimensions, dimensions * hidden, 1, groups=dimensions),
            nn.GELU(),
            nn.Conv1d(dimensions * hidden, dimensions * features, 1, groups=dimensions),
        )
        self.scale = (dimensions * features) ** -0.5

    def paired(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Row by row."""
        return self.scale * (self.of_reference(first) * self._of_other(second)).sum(-1)

    def crossed(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Every row with every row."""
        return self.scale * self.of_reference(first) @ self._of_other(second).transpose(-1, -2)

    def log_sum(self, first: torch.Tensor, second: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        """By products of features."""
        return log_sum_of_products(scale * self.scale * self.of_reference(first), self._of_other(second))

    def _of_other(self, second: torch.Tensor) -> torch.Tensor:
        return self.of_other(second.flatten(0, -2)[..., None])[..., 0].unflatten(0, second.shape[:-1])


def similarity(distance: str, dimensions: int) -> Similarity:
    """Return a similarity by its name, one of `DISTANCES`; only a learnable one needs to know the dimensions."""
    if distance == "learnable":
        return Learnable(dimensions)
    named: dict[str, type[Similarity]] = {"cosine": Cosine, "euclidean": Euclidean, "dot": DotProduct}
    if distance not in named:
        raise unknown("distance", distance, DISTANCES)
    return named[distance]()


class InfoNCE(nn.Module):
    """The loss of references, positives and negatives.

    Args:
        similarity: φ before the temperature.
        temperature: τ, or where it begins.
        learnable: learn α = −log τ; the scale is min(exp α, 1/τ_min).
        min_temperature: τ_min of a learnable temperature.
        positive_inside: the positive is one of the terms of the sum.

    >>> loss = InfoNCE(DotProduct())
    >>> one = torch.ones(1, 1)
    >>> round(loss(one, one, torch.zeros(2, 1)).item(), 4)  # −1 + log 2
    -0.3069
    """

    def __init__(
        self,
        similarity: Similarity,
        temperature: float = 1.0,
        *,
        learnable: bool = False,
        min_temperature: float | None = None,
        positive_inside: bool = False,
    ) -> None:
        super().__init__()
        check_number("temperature", temperature, above=0)
        if min_temperature is not None and not 0 < min_temperature <= temperature:
            raise HapteraError(
                f"min_temperature is {min_temperature}; above 0 and at most the temperature, {temperature}, expected"
            )
        self.similarity, self.positive_inside = similarity, positive_inside
        self.min_temperature, self.learnable = min_temperature, learnable
        alpha = torch.tensor(-math.log(temperature))
        self.log_inverse_temperature: torch.Tensor
        if learnable:
            self.log_inverse_temperature = nn.Parameter(alpha)
        else:
            self.register_buffer("log_inverse_temperature", alpha)

    @property
    def scale(self) -> torch.Tensor:
        """1/τ."""
        scale = self.log_inverse_temperature.exp()
        return scale if self.min_temperature is None else scale.clamp(max=1 / self.min_temperature)

    @property
    def temperature(self) -> float:
        """τ as it is now."""
        return 1 / self.scale.item()

    def forward(self, reference: torch.Tensor, positive: torch.Tensor, negative: torch.Tensor) -> torch.Tensor:
        """The mean over references.

        Args:
            reference: `(..., batch, dimensions)`; what comes before is groups that do not see each other.
            positive: the same shape.
            negative: `(..., negatives, dimensions)`, shared by all references of a group.
        """
        scale = self.scale
        near = scale * self.similarity.paired(reference, positive)
        far = self.similarity.log_sum(reference, negative, scale)
        return ((torch.logaddexp(near, far) if self.positive_inside else far) - near).mean()

    def chance(self, negatives: int) -> float:
        """The loss of a constant embedding: the logarithm of the number of terms."""
        return math.log(negatives + self.positive_inside)


def in_bits(nats: float) -> float:
    """A goodness of fit as users of the method know it: bits, more is better.

    >>> in_bits(-math.log(2))
    1.0
    """
    return -nats / math.log(2)
