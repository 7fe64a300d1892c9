"""The loss of a pose model: sigmoid cross-entropy of the score maps, and .05 times Huber's loss of the offsets.

Source: thesis chapter 5. Cross-entropy is the mean over all cells and parts, Huber's loss the mean over the cells of
the discs, in both coordinates.
"""

import torch
from torch.nn import functional as F

from holdfast.pose.targets import make_targets, split_maps

WEIGHT = 0.05


def pose_loss(
    maps: torch.Tensor, keypoints: torch.Tensor, stride: int, radius: float | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cross-entropy and Huber's loss, whose weighted sum, with `WEIGHT`, is minimised.

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
