"""Noise of one norm: η, uniform on a sphere, the yardstick of relative stability.

Source: "Relative stability toward diffeomorphisms indicates performance in deep nets", equation (4). It is no shift:
images with it are not clipped, for then its norm would depend on the image.
"""

from zlib import crc32

import torch

from holdfast.shifts.random import SampleRandom

ROUNDING = 16
"""Times the precision of the numbers, relative to what changes: a change of less than that is rounding."""


def sphere_noise(images: torch.Tensor, radius: float, ids: torch.Tensor, seed: int = 0) -> torch.Tensor:
    """η for each of `(batch, ...)` images, of norm `radius`; given by the seed and the sample's id alone."""
    random = SampleRandom(ids, seed, salt=crc32(b"sphere_noise"))
    noise = random.normal(images.shape[1:]).to(images.device, torch.promote_types(images.dtype, torch.float32))
    norms = noise.flatten(1).double().norm(dim=1).to(noise.dtype)
    return (noise * (radius / norms).reshape(-1, *[1] * (images.ndim - 1))).to(images.dtype)


def squared_changes(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """`(batch,)`, ‖after − before‖² of `(batch, ...)`, in double precision; 0 where it is rounding and nothing else.

    >>> one = torch.ones(1, 3)
    >>> squared_changes(one, one + 1e-6).tolist(), squared_changes(one, one + 0.5).tolist()
    ([0.0], [0.75])
    """
    squares = (after - before).flatten(1).square().sum(1, dtype=torch.float64)
    norms = before.flatten(1).square().sum(1, dtype=torch.float64)
    precision = torch.finfo(before.dtype).eps
    return torch.where(squares > (ROUNDING * precision) ** 2 * norms, squares, 0.0)
