"""Elastic: an image on rubber, pulled at three points and wrinkled.

Three points of the image move by up to an amplitude each way, which makes an affine map; then every pixel moves by
α times a smooth random field of width σ. Channels move together.

Source: the corruption of ImageNet-C and CIFAR-C; α, σ and amplitude are pixels at the side of the table.
Differs: repeatable per sample; positions are not rounded to 1/32 of a pixel, as OpenCV does in the affine step.
At other sides the amplitude and σ scale with the shorter side, and α with its square: the smoothed field falls as
1 / σ, so this keeps a displacement the same share of the image.
As published, severity is not one scale: 1 and 2 are mostly affine, 3 to 5 mostly wrinkles, and 2 moves most.
(The package `imagecorruptions` has wrinkles only, with constants of its own, and changes images less.)
Cost: two random numbers per pixel, four matrix products for the field, two bilinear samplings.
"""

from functools import lru_cache

import numpy as np
import torch
from torch.nn.functional import grid_sample

from haptera.shifts.base import SampleRandom, Shift, knots
from haptera.shifts.pixels import Pixels

NARROW = 48
"""Pixels to each side up to which a filter is faster as sums of neighbours than as a product with a matrix."""


class ElasticTransform(Shift):
    """Moves pixels by a random affine map, then by a smooth random field; reflects at the borders."""

    name = "elastic_transform"
    tables = knots(
        imagenet=(
            (0, 170.8, 0), (488, 170.8, 24.4), (488, 19.52, 48.8), (12.2, 2.44, 4.88), (17.08, 2.44, 4.88),
            (29.28, 2.44, 4.88),
        ),
        cifar=(
            (0, 0, 0), (0, 0, 2.56), (1.6, 6.4, 2.24), (2.56, 1.92, 1.92), (3.2, 1.28, 1.6), (3.2, 0.96, 0.96),
        ),
    )  # fmt: skip

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """The affine step, then the wrinkles, each with its own kind of reflection."""
        alpha, sigma, amplitude = self.constants()
        scale = self.scale(images)
        moves, fields = _draw(random, amplitude * scale, *images.shape[-2:])
        working = torch.promote_types(images.dtype, torch.float32)
        pulled = grid_sample(
            images.to(working),
            affine_positions(moves, *images.shape[-2:]).to(images.device, working),
            padding_mode="reflection",  # about the centre of the outermost pixel, OpenCV's "reflect 101"
            align_corners=True,
        )
        displacements = smooth(fields.to(images.device, working), sigma * scale).mul_(alpha * scale**2)
        return grid_sample(
            pulled,
            wrinkled_positions(displacements),
            padding_mode="reflection",  # about its edge, scipy's "reflect"
            align_corners=False,
        )

    def apply_bytes(self, pixels: Pixels, random: SampleRandom) -> Pixels:
        """The same positions; bytes between the steps."""
        from haptera.shifts.kernels.disk import smooth_fields
        from haptera.shifts.kernels.sampling import sample_affine, sample_moved

        alpha, sigma, amplitude = self.constants()
        scale, sides = self.scale(pixels), pixels.shape[2:]
        moves, fields = _draw(random, amplitude * scale, *sides)
        kernel = _kernel(sigma * scale)
        if len(kernel) // 2 < min(NARROW, *sides):
            smooth_fields(fields.view(-1, *sides).numpy(), kernel[len(kernel) // 2 :].float().numpy())
        else:
            fields = smooth(fields, sigma * scale)
        planes = pixels.planes()
        pulled, wrinkled = np.empty_like(planes), np.empty_like(planes)
        linear, offset = (part.numpy() for part in affine_map(moves, *sides))
        sample_affine(planes, pulled, pixels.step, linear, offset)
        sample_moved(pulled, wrinkled, pixels.step, fields.numpy(), alpha * scale**2)
        return pixels.like(wrinkled)


def _draw(random: SampleRandom, amplitude: float, height: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """By how much three points move, `(batch, 3, 2)`, and `(batch, 2, height, width)` in −1 to 1."""
    moves = random.uniform((3, 2)).double().mul_(2).sub_(1).mul_(amplitude)
    return moves, random.uniform((2, height, width)).mul_(2).sub_(1)


def affine_positions(moves: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Return where each pixel comes from, if three points move by `moves`, `(batch, 3, 2)` as x and y in pixels.

    That is `(batch, height, width, 2)`, in −1 (first pixel's centre) to 1 (last one's), float32.
    """
    linear, offset = affine_map(moves, height, width)
    across = linear[:, None, :, 0] * torch.arange(width)[:, None]
    down = linear[:, None, :, 1] * torch.arange(height)[:, None] + offset[:, None]
    return across[:, None] + down[:, :, None]


def affine_map(moves: torch.Tensor, height: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return `(batch, 2, 2)` and `(batch, 2)`, the linear part and the offset of that map, float32."""
    points, sides, spans = _triangle(height, width)
    reach = _reach(height, width)
    moved = points + moves
    # The map back takes the moved points to the points: its linear part does so with the two sides of the triangle.
    moved_sides = torch.stack([moved[:, 0] - moved[:, 1], moved[:, 2] - moved[:, 1]], dim=-1)
    (one, two), (three, four) = moved_sides.permute(1, 2, 0)
    determinant = one * four - two * three
    # A triangle can be moved onto a line, though hardly ever is; then any large map will do.
    determinant = torch.where(determinant.abs() < 1e-6 * reach**2, 1e-6 * reach**2, determinant)
    adjugate = torch.stack([torch.stack([four, -two], -1), torch.stack([-three, one], -1)], -2)
    linear = sides @ adjugate / determinant[:, None, None]
    offset = points[1] - (linear @ moved[:, 1, :, None])[..., 0]
    # From pixels to the coordinates of grid_sample; the sum of a part for x and a part for y.
    return (linear / spans[:, None]).float(), (offset / spans - 1).float()


def _reach(height: int, width: int) -> int:
    """How far the three points are from the middle; in images of 1 or 2 pixels beyond their edges."""
    return max(min(height, width) // 3, 1)


@lru_cache(maxsize=64)
def _triangle(height: int, width: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The three points, `(3, 2)`; two sides of their triangle as columns, `(2, 2)`; half the image's sides, `(2,)`."""
    middle = torch.tensor([width // 2, height // 2], dtype=torch.float64)
    points = middle + _reach(height, width) * torch.tensor([[1, 1], [1, -1], [-1, -1]], dtype=torch.float64)
    sides = torch.stack([points[0] - points[1], points[2] - points[1]], dim=-1)
    return points, sides, torch.tensor([max(width - 1, 1), max(height - 1, 1)], dtype=torch.float64) / 2


def wrinkled_positions(displacements: torch.Tensor) -> torch.Tensor:
    """Pixels moved by `(batch, 2, height, width)`, x and y, in −1 (first pixel's edge) to 1 (last one's edge)."""
    height, width = displacements.shape[-2:]
    positions = torch.empty(len(displacements), height, width, 2).to(displacements)
    for axis, (side, place) in enumerate([(width, (1, -1)), (height, (-1, 1))]):
        centres = ((2 * torch.arange(side) + 1) / side - 1).to(displacements).reshape(place)
        torch.add(centres, displacements[:, axis], alpha=2 / side, out=positions[..., axis])
    return positions


def smooth(fields: torch.Tensor, sigma: float) -> torch.Tensor:
    """A normal filter cut at 3 standard deviations, with the borders reflected at the edge, as two matrix products."""
    rows, columns = (_reflecting_filter(side, sigma).to(fields) for side in fields.shape[-2:])
    # Expanded, so that every field is a product of its own: in one large product, sums depend on the batch.
    return rows @ fields @ columns.T.expand(*fields.shape[:2], -1, -1)


def _kernel(sigma: float) -> torch.Tensor:
    """Return the weights of a normal filter, cut at 3 standard deviations, float64."""
    radius = int(3 * sigma + 0.5)
    kernel = torch.exp(-0.5 * (torch.arange(-radius, radius + 1) / max(sigma, 1e-9)).double() ** 2)
    return kernel / kernel.sum()


@lru_cache(maxsize=64)
def _reflecting_filter(side: int, sigma: float) -> torch.Tensor:
    """Return `(side, side)`, row i holds the weights with which pixel i sees the others."""
    kernel = _kernel(sigma)
    seen = (torch.arange(side)[:, None] + torch.arange(len(kernel)) - len(kernel) // 2) % (2 * side)
    seen = torch.minimum(seen, 2 * side - 1 - seen)
    weights = kernel.expand(side, -1)
    return torch.zeros(side, side, dtype=torch.float64).scatter_add_(1, seen, weights).float()
