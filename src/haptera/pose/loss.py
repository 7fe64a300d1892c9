"""What a step of training sees and what it minimises.

Augmentation of frames with keypoints: thesis chapter 5, "random cropping and rotations"; the ranges are the defaults of
DeepLabCut. Rotation, and a crop that is made as large as the frame again, are one affine map for each image, sampled
once, bilinearly, with black outside; keypoints that leave the frame become missing.

The loss: sigmoid cross-entropy of the score maps, the mean over all cells and parts, and .05 times Huber's loss of the
offsets, the mean over the cells of the discs, in both coordinates (thesis chapter 5).
"""

from math import pi

import torch
from torch.nn import functional as F

from haptera.pose.model import make_targets, split_maps

WEIGHT = 0.05


def augmented(
    images: torch.Tensor,
    keypoints: torch.Tensor,
    generator: torch.Generator,
    rotation: float = 25.0,
    crop: float = 0.15,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return images `(batch, 3, height, width)` and keypoints `(batch, parts, 2)`, both moved.

    Args:
        images: in [0, 1].
        keypoints: in pixels, NaN where missing.
        generator: of the randomness.
        rotation: degrees to either side at most.
        crop: the largest share of each side that is cut off.
    """
    batch, (height, width) = len(images), images.shape[-2:]
    angle, share, x, y = torch.rand(4, batch, generator=generator, dtype=torch.float64)
    angle = (2 * angle - 1) * rotation * pi / 180
    kept = 1 - crop * share
    centre = torch.stack([(2 * x - 1) * (width - 1), (2 * y - 1) * (height - 1)], 1) / 2 * (1 - kept)[:, None]
    cosine, sine = kept * angle.cos(), kept * angle.sin()
    # In pixels around the middle of the frame: what is seen at p comes from A p + centre.
    matrix = torch.stack([torch.stack([cosine, -sine], 1), torch.stack([sine, cosine], 1)], 1)
    half = torch.tensor([width - 1, height - 1], dtype=torch.float64) / 2
    scaled = torch.cat([matrix * half / half[:, None], (centre / half)[:, :, None]], 2)
    grid = F.affine_grid(scaled.to(images), list(images.shape), align_corners=True)
    moved = F.grid_sample(images, grid, align_corners=True)
    around = keypoints.double() - half - centre[:, None]
    points = torch.einsum("bij,bpj->bpi", torch.linalg.inv(matrix), around) + half
    outside = ((points < -0.5) | (points > 2 * half + 0.5)).any(2, keepdim=True)
    return moved, torch.where(outside, torch.nan, points).to(keypoints.dtype)


def pose_loss(
    maps: torch.Tensor, keypoints: torch.Tensor, stride: int, radius: float | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return cross-entropy and Huber's loss, whose weighted sum, with `WEIGHT`, is minimised.

    Args:
        maps: of a model.
        keypoints: `(batch, parts, 2)` in pixels, NaN where missing.
        stride: of the maps.
        radius: of the discs.
    """
    scores, offsets = split_maps(maps)
    wanted, towards = make_targets(keypoints.to(maps), maps.shape[2], maps.shape[3], stride, radius)
    found = F.binary_cross_entropy_with_logits(scores, wanted)
    inside = wanted[:, :, None].expand_as(offsets)
    apart = F.huber_loss(offsets, towards, reduction="none")
    return found, (apart * inside).sum() / inside.sum().clamp(min=1)
