"""Sine fields: one smooth displacement for each image, which moves pixels, masks and keypoints alike.

Source: "Relative stability toward diffeomorphisms indicates performance in deep nets", section 2: [τx](s) = x(s − τ(s))
with τ a sum of sines that is zero on the frame (equation 2). Bijective where det(I − ∇τ) > 0 everywhere.
The sums are products with the sine of every row and of every column, in unit coordinates, so pictures need not be
square; derivatives are exact, for those of sines are cosines.
Pixels between pixels are read bilinearly, by torch, or, as in appendix C, which is not printed in every copy, with
weights exp(−distance² / 2σ²), σ = .4715 pixels, over their sum. Differs: only the 5 x 5 pixels around a position are
read, where the published code reads all; the images differ by less than 1e-6, and the cost is 25 products a pixel
instead of height x width. Gaussian weights do not interpolate: where nothing moves they blur, and change white noise in
[0, 1] by 17 %.
Cost: two products of (height, modes) and (modes, width) for each image, and one bilinear sampling.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import pi

import numpy as np
import torch
from torch.nn.functional import grid_sample

from haptera.errors import HapteraError

SIGMA = 0.4715
REACH = 2
INTERPOLATIONS = ("bilinear", "gaussian")
POINTS = 64
"""Places along each side at which folds are looked for, at least."""
AT_ONCE = 256
SIMPLE, NEWTON = 8, 12
"""Rounds of either kind to find where a keypoint goes."""
FOUND = 1e-3
"""Pixels: further from its goal than this a keypoint has no place."""


@dataclass(frozen=True, eq=False)
class SineFields:
    """Fields for pictures of one size.

    Attributes:
        coefficients: `(batch, 2, waves, waves)`: of τ_u (to the right) and τ_v (down), in shares of the picture; the
            last axis counts half waves across, the one before it half waves down.
        height: of the pictures, in pixels.
        width: likewise.
    """

    coefficients: torch.Tensor
    height: int
    width: int

    def __len__(self) -> int:
        return len(self.coefficients)

    @property
    def pixels(self) -> torch.Tensor:
        """Return `(batch, 2, height, width)`: by how many pixels each pixel moves to the right and down."""
        return self._sum("sine", "sine", self.height, self.width) * self._spans(-1, 1, 1)

    @property
    def centres(self) -> torch.Tensor:
        """`(batch, 2)`: by how many pixels the centre moves to the right and down; δ is their root mean square norm."""
        number = torch.arange(1, self.coefficients.shape[-1] + 1, device=self.coefficients.device)
        sines = torch.sin(number * pi / 2).to(self.coefficients.dtype)
        return torch.einsum("bcji,j,i->bc", self.coefficients, sines, sines) * self._spans(-1)

    @property
    def gradient_norms(self) -> torch.Tensor:
        """Return `(batch,)`, ‖∇τ‖² of each field, equation (1)."""
        number = torch.arange(1, self.coefficients.shape[-1] + 1, device=self.coefficients.device)
        squares = number**2 + number[:, None] ** 2
        return (self.coefficients**2 * squares).sum((1, 2, 3)) * (pi**2 / 4)

    def folding_scales(self, points: int | None = None) -> torch.Tensor:
        """`(batch,)`: the least factor by which a field can be multiplied until it folds; below 1 for one that does.

        det(I − a∇τ) is 0 where 1/a is an eigenvalue of ∇τ, so it is the inverse of the largest positive one anywhere.
        """
        found = []
        for part in self._parts():
            (uu, vu), (uv, vv) = part._slopes(points or self._points)
            half = (uu + vv) / 2
            root = half**2 - uu * vv + uv * vu
            largest = torch.where(root >= 0, half + root.clamp(min=0).sqrt(), 0)
            found.append(1 / largest.amax((1, 2)).clamp(min=1e-12))
        return torch.cat(found)

    def determinants(self, points: int) -> torch.Tensor:
        """Return `(batch, points, points)`: det(I − ∇τ) on an even grid that includes the frame."""
        (uu, vu), (uv, vv) = self._slopes(points)
        return (1 - uu) * (1 - vv) - uv * vu

    def folded(self, points: int | None = None) -> torch.Tensor:
        """Return `(batch,)`: whether a field is not a bijection, as far as a grid of points tells.

        Args:
            points: along each side; by default 64, or 8 for each half wave of the finest mode if that is more.
        """
        return torch.cat([part.determinants(points or self._points).amin((1, 2)) for part in self._parts()]) <= 0

    def move(self, images: torch.Tensor, interpolation: str = "bilinear") -> torch.Tensor:
        """Return `(batch, channels, height, width)` images, deformed; not clamped to any range."""
        self._check(images)
        working = torch.promote_types(images.dtype, torch.float32)
        near = replace(self, coefficients=self.coefficients.to(images.device, working))
        return sample(images.to(working), near._positions(), interpolation).to(images.dtype)

    def move_masks(self, masks: torch.Tensor) -> torch.Tensor:
        """`(batch, height, width)` labels of any type, or with channels in between, each from the nearest pixel."""
        flat = masks[:, None] if masks.ndim == 3 else masks
        self._check(flat)
        positions = self._positions()
        sides = torch.tensor([self.width, self.height], device=positions.device)
        places = ((positions + 1) / 2 * (sides - 1)).round().long().clamp(min=0).minimum(sides - 1).to(masks.device)
        index = (places[..., 1] * self.width + places[..., 0]).flatten(1)[:, None].expand(-1, flat.shape[1], -1)
        return flat.flatten(2).gather(2, index).reshape(masks.shape)

    def move_keypoints(self, keypoints: torch.Tensor) -> torch.Tensor:
        """Move `(batch, points, 2)`, x and y in pixels, to where the deformation shows them.

        What was at p is now at s with s − τ(s) = p, which is found by iteration, by Newton's at its end. NaN where that
        finds nothing, which happens for fields that fold, and for points outside the picture.
        """
        if keypoints.ndim != 3 or keypoints.shape[-1] != 2 or len(keypoints) != len(self):
            raise HapteraError(f"keypoints are {tuple(keypoints.shape)}; ({len(self)}, points, 2) was expected")
        spans = self._spans(-1).double().to(keypoints.device)
        coefficients = self.coefficients.double().to(keypoints.device)
        goal = keypoints.double() / spans
        place = goal.clone()
        for turn in range(SIMPLE + NEWTON):
            moved, slopes = _at(coefficients, place)
            missing = goal - place + moved
            if turn < SIMPLE:
                place = place + missing
            else:
                jacobian = torch.eye(2, dtype=torch.float64, device=place.device) - slopes
                determinant = jacobian[..., 0, 0] * jacobian[..., 1, 1] - jacobian[..., 0, 1] * jacobian[..., 1, 0]
                determinant = torch.where(determinant.abs() < 1e-9, 1e-9, determinant)
                x = jacobian[..., 1, 1] * missing[..., 0] - jacobian[..., 0, 1] * missing[..., 1]
                y = jacobian[..., 0, 0] * missing[..., 1] - jacobian[..., 1, 0] * missing[..., 0]
                place = place + torch.stack([x, y], -1) / determinant[..., None]
            place = place.clamp(-1, 2)
        off = ((goal - place + _at(coefficients, place)[0]) * spans).norm(dim=-1)
        inside = ((goal >= 0) & (goal <= 1)).all(-1) & (off < FOUND)
        return torch.where(inside[..., None], place * spans, torch.nan).to(keypoints.dtype)

    @property
    def _points(self) -> int:
        return max(POINTS, 8 * (self.coefficients.shape[-1] + 1))

    def _parts(self) -> Iterator["SineFields"]:
        """Yield a few fields at a time, since derivatives on a fine grid take memory."""
        return (replace(self, coefficients=part) for part in self.coefficients.split(AT_ONCE))

    def _slopes(self, points: int) -> tuple[tuple[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]:
        """Return `(batch, points, points)` each: ∂τ_u and ∂τ_v by u, then both by v."""
        by_u, by_v = self._sum("sine", "cosine", points, points), self._sum("cosine", "sine", points, points)
        return (by_u[:, 0], by_u[:, 1]), (by_v[:, 0], by_v[:, 1])

    def _positions(self) -> torch.Tensor:
        """Return `(batch, height, width, 2)`: where each pixel comes from, −1 and 1 the outermost pixels."""
        batch, waves = len(self), self.coefficients.shape[-1]
        rows = _waves("sine", self.height, waves).to(self.coefficients)
        columns, still = (part.to(self.coefficients) for part in _woven(self.height, self.width, waves))
        both = self.coefficients.transpose(1, 2).reshape(batch, waves, 2 * waves)
        down = torch.bmm(rows.expand(batch, -1, -1), both)
        # Products image by image, as in `_sum`; both directions at once, in the order in which they are read.
        woven = torch.baddbmm(still.expand(batch, -1, -1), down, columns.expand(batch, -1, -1))
        return woven.view(batch, self.height, self.width, 2)

    def _sum(self, down: str, across: str, height: int, width: int) -> torch.Tensor:
        """Return `(batch, 2, height, width)`: the coefficients times waves down and across; cosines are derivatives."""
        batch, waves = self.coefficients.shape[:2], self.coefficients.shape[-1]
        rows = _waves(down, height, waves).to(self.coefficients)
        columns = _waves(across, width, waves).to(self.coefficients)
        # Expanded, so that every field is a product of its own: in one large product, sums depend on the batch.
        return rows.expand(*batch, -1, -1) @ self.coefficients @ columns.T.expand(*batch, -1, -1)

    def _spans(self, *shape: int) -> torch.Tensor:
        """Pixels from the first to the last, across and down."""
        return torch.tensor([self.width - 1, self.height - 1]).to(self.coefficients).reshape(*shape)

    def _check(self, images: torch.Tensor) -> None:
        if images.ndim != 4 or images.shape[0] != len(self) or images.shape[-2:] != (self.height, self.width):
            expected = f"({len(self)}, channels, {self.height}, {self.width})"
            raise HapteraError(f"these fields move images of shape {expected}, found {tuple(images.shape)}")


def _at(coefficients: torch.Tensor, places: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """τ and ∇τ at `(batch, points, 2)` in shares of the picture: `(batch, points, 2)` and `(batch, points, 2, 2)`."""
    number = pi * torch.arange(1, coefficients.shape[-1] + 1, dtype=places.dtype, device=places.device)
    angles = places[..., None] * number
    sine, cosine = angles.sin(), angles.cos() * number
    product = "bkji,bpi,bpj->bpk"
    value = torch.einsum(product, coefficients, sine[:, :, 0], sine[:, :, 1])
    by_u = torch.einsum(product, coefficients, cosine[:, :, 0], sine[:, :, 1])
    by_v = torch.einsum(product, coefficients, sine[:, :, 0], cosine[:, :, 1])
    return value, torch.stack([by_u, by_v], -1)


@lru_cache(maxsize=64)
def _waves(kind: str, side: int, waves: int) -> torch.Tensor:
    """Return `(side, waves)`: sin(kπt) for t from 0 to 1, exactly 0 at both ends, or its derivative."""
    angle = pi * np.linspace(0, 1, side)[:, None] * np.arange(1, waves + 1)
    if kind == "cosine":
        return torch.from_numpy(np.cos(angle) * pi * np.arange(1, waves + 1))
    values = np.sin(angle)
    values[[0, -1]] = 0
    return torch.from_numpy(values)


@lru_cache(maxsize=64)
def _woven(height: int, width: int, waves: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Weave waves into positions x, y, x, ...: `(2 waves, 2 width)`, and positions at rest, `(height, 2 width)`."""
    across = -2 * _waves("sine", width, waves).T
    columns = torch.zeros(2 * waves, width, 2, dtype=torch.float64)
    columns[:waves, :, 0] = columns[waves:, :, 1] = across
    y, x = torch.meshgrid(
        *(torch.linspace(-1, 1, side, dtype=torch.float64) for side in (height, width)), indexing="ij"
    )
    return columns.flatten(1), torch.stack([x, y], -1).flatten(1)


def sample(images: torch.Tensor, positions: torch.Tensor, mode: str = "bilinear") -> torch.Tensor:
    """`(batch, channels, height, width)` read at `(batch, height, width, 2)`: x, y, −1 and 1 the outermost pixels."""
    if mode == "gaussian":
        return _gaussian(images, positions)
    return grid_sample(images, positions, mode=mode, padding_mode="border", align_corners=True)


def _gaussian(images: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    height, width = images.shape[-2:]
    sides = torch.tensor([width, height], device=positions.device)
    places = ((positions + 1) / 2 * (sides - 1)).clamp(min=0).minimum((sides - 1).to(positions))
    nearest = places.round()
    columns, across = _line(places[..., 0], nearest[..., 0], width)
    rows, down = _line(places[..., 1], nearest[..., 1], height)
    flat = images.flatten(2)
    result = torch.zeros_like(images)
    for row, weight_down in zip(rows, down, strict=True):
        for column, weight_across in zip(columns, across, strict=True):
            index = (row * width + column).flatten(1)[:, None].expand(-1, images.shape[1], -1)
            result += flat.gather(2, index).view_as(images) * (weight_down * weight_across)[:, None]
    return result


def _line(
    places: torch.Tensor, nearest: torch.Tensor, side: int
) -> tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]:
    """Return the pixels around each position along one side, and their weights, which are 0 outside and sum to 1."""
    around = [nearest + offset for offset in range(-REACH, REACH + 1)]
    weights = [torch.exp(-((places - pixel) ** 2) / (2 * SIGMA**2)) for pixel in around]
    inside = [weight * ((pixel >= 0) & (pixel < side)) for weight, pixel in zip(weights, around, strict=True)]
    total = sum(inside[1:], start=inside[0])
    pixels = tuple(pixel.clamp(0, side - 1).long() for pixel in around)
    return pixels, tuple(weight / total for weight in inside)
