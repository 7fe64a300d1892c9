"""Flips and crops that depend on the seed and on the sample's id alone, for streams that show images more than once."""

import torch
from torch.nn import functional as F

from holdfast.shifts import SampleRandom

SALT = 0x0A06


def augmented(images: torch.Tensor, ids: torch.Tensor, seed: int, flip: bool, crop: float) -> torch.Tensor:
    """`(batch, channels, height, width)`, mirrored with probability one half and moved by up to a share of the side.

    What a move uncovers shows the edge pixel again.
    """
    if not flip and not crop:
        return images
    draws = SampleRandom(ids, seed, salt=SALT).uniform((3,))
    height, width = images.shape[-2:]
    if flip:
        images = torch.where((draws[:, 0] < 0.5).view(-1, 1, 1, 1).to(images.device), images.flip(-1), images)
    down, right = int(height * crop / 2), int(width * crop / 2)
    if not down and not right:
        return images
    padded = F.pad(images, (right, right, down, down), mode="replicate")
    tops = (draws[:, 1] * (2 * down + 1)).long().tolist()
    lefts = (draws[:, 2] * (2 * right + 1)).long().tolist()
    pieces = zip(padded, tops, lefts, strict=True)
    return torch.stack([image[:, top : top + height, left : left + width] for image, top, left in pieces])
