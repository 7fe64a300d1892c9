"""Keypoint models of transformers (ViTPose), from a folder, a configuration or a model in memory.

Source: Xu et al. (2022), ViTPose. A model takes images of one size and gives a score map for each part. It was made for
boxes around one animal each; here the box is the whole frame, brought into the model's size with its proportions kept
and black around it. Corners of the frame fall on corners of the input and of the maps (Huang et al. 2020, "unbiased
data processing"). The keypoint is the cell with the largest score, moved by one step of Newton's method on the
logarithm of the map, smoothed with a Gaussian of .8 cells (Zhang et al. 2020, (7) to (9)); a step longer than a cell is
not taken. Confidence is the largest score, cut to [0, 1].
Differs: no mirrored second pass, and no box from a detector; `margin=1.25` is the border that ViTPose's own processor
leaves around a box. The classic decoder has BatchNorm layers, whose statistics can be estimated anew; the simple one
has none. Cost: that of the model.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from haptera.checks import check_number
from haptera.errors import HapteraError, first_line
from haptera.extras import import_extra
from haptera.pose.network import PoseNetwork
from haptera.pose.snapshots import MEAN, STD

log = logging.getLogger("haptera")

KIND = "vitpose"
SMOOTH, RADIUS = 0.8, 5
LEAST = 1e-3
"""Scores below it have no logarithm that means something."""


class KeypointModel(PoseNetwork):
    """A model of transformers with score maps, on whole frames.

    Args:
        model: of the class `VitPoseForPoseEstimation`, or any whose output has `heatmaps`.
        parts: names; those of its configuration if left out.
        margin: how much larger than the frame the region is that fills the model's input.
    """

    def __init__(self, model: nn.Module, parts: Sequence[str] | None = None, margin: float = 1.0) -> None:
        super().__init__()
        check_number("margin", margin, least=1, most=4, what="a size relative to the frame")
        config: Any = model.config
        labels = {int(key): str(name) for key, name in config.id2label.items()}
        self.parts = tuple(labels[key] for key in sorted(labels)) if parts is None else tuple(parts)
        if len(self.parts) != len(labels):
            raise HapteraError(
                f"{len(self.parts)} parts for a model with {len(labels)} maps; one name each was expected"
            )
        edges = getattr(config, "edges", None) or []
        self.skeleton = tuple((self.parts[one], self.parts[two]) for one, two in edges)
        self.model, self.margin = model, margin
        height, width = config.backbone_config.image_size
        self.input_size = int(height), int(width)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """`(batch, 3, height, width)` to keypoints with confidence, `(batch, parts, 3)`."""
        scale = self._scale(images)
        mean, std = (images.new_tensor(values)[:, None, None] for values in (MEAN, STD))
        maps = self.model(((self._fit(images, scale)) - mean) / std).heatmaps
        cells, scores = refined_maximum(maps)
        rows, columns = maps.shape[-2:]
        (height, width), size = self.input_size, images.new_tensor([images.shape[-1] - 1, images.shape[-2] - 1])
        inside = cells / images.new_tensor([columns - 1, rows - 1]) - 0.5
        points = inside * images.new_tensor([width - 1, height - 1]) * scale + size / 2
        return torch.cat([points, scores.clamp(0, 1)[..., None]], 2)

    def _scale(self, images: torch.Tensor) -> float:
        """Return pixels of the frame for one pixel of the input."""
        (height, width), (rows, columns) = images.shape[-2:], self.input_size
        return self.margin * max((width - 1) / (columns - 1), (height - 1) / (rows - 1))

    def _fit(self, images: torch.Tensor, scale: float) -> torch.Tensor:
        """Return the frames in the middle of the model's input, and black around them."""
        (height, width), (rows, columns) = images.shape[-2:], self.input_size
        across = scale * (columns - 1) / (width - 1) * torch.linspace(-1, 1, columns).to(images)
        down = scale * (rows - 1) / (height - 1) * torch.linspace(-1, 1, rows).to(images)
        grid = torch.stack([across.expand(rows, -1), down[:, None].expand(-1, columns)], 2)
        return F.grid_sample(images, grid.expand(len(images), -1, -1, -1), padding_mode="zeros", align_corners=True)


def refined_maximum(maps: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return where maps `(batch, parts, rows, columns)` are largest, x and y in cells, and how large they are there.

    Source: Zhang et al. (2020): a map is taken for a Gaussian, whose logarithm is a parabola around its peak.
    """
    columns = maps.shape[-1]
    best, cell = maps.flatten(2).max(2)
    places = torch.stack([cell % columns, torch.div(cell, columns, rounding_mode="floor")], 2)
    offsets = torch.arange(-RADIUS, RADIUS + 1).to(maps)
    kernel = torch.exp(-(offsets**2) / (2 * SMOOTH**2))
    kernel = kernel / kernel.sum()
    flat = F.pad(maps.flatten(0, 1)[:, None], (RADIUS,) * 4, mode="replicate")
    smooth = F.conv2d(F.conv2d(flat, kernel[None, None, None]), kernel[None, None, :, None])[:, 0]
    logs = F.pad(smooth.clamp_min(LEAST).log()[:, None], (1, 1, 1, 1), mode="replicate").flatten(1)
    step = columns + 2
    middle = (places[..., 1].flatten() + 1) * step + places[..., 0].flatten() + 1

    def at(across: int, down: int) -> torch.Tensor:
        return logs.gather(1, (middle + across + down * step)[:, None])[:, 0]

    slope = torch.stack([at(1, 0) - at(-1, 0), at(0, 1) - at(0, -1)], 1) / 2
    xx, yy = (at(1, 0) - 2 * at(0, 0) + at(-1, 0)), (at(0, 1) - 2 * at(0, 0) + at(0, -1))
    xy = (at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1)) / 4
    bend = xx * yy - xy**2
    move = -torch.stack([yy * slope[:, 0] - xy * slope[:, 1], xx * slope[:, 1] - xy * slope[:, 0]], 1) / bend[:, None]
    sound = (bend > 0) & (xx < 0) & (move.abs() <= 1).all(1)  # a peak, and it is in this cell or the next
    move = torch.where(sound[:, None], move, torch.zeros_like(move))
    return places + move.unflatten(0, maps.shape[:2]), best


def load_keypoint_model(source: Path, parts: Sequence[str] | None = None, margin: float = 1.0) -> KeypointModel:
    """Return a keypoint model of transformers, in evaluation mode.

    Args:
        source: a folder with `config.json` and safetensors, or a `config.json` alone, whose model has random weights.
        parts: names; those of the configuration if left out.
        margin: see `KeypointModel`.
    """
    transformers = import_extra("transformers", "transformers", f"the pose network {source}")
    if not source.exists():
        raise HapteraError(f"there is no folder or config.json {source}")
    kind = transformers.VitPoseForPoseEstimation
    try:
        if source.is_dir():
            config = transformers.AutoConfig.from_pretrained(source, local_files_only=True)
        else:
            config = transformers.AutoConfig.from_pretrained(source.parent, local_files_only=True)
        if config.model_type != KIND:
            raise HapteraError(f"{source} is a {config.model_type!r}; a keypoint model, {KIND!r}, was expected")
        if source.is_dir():
            model, info = kind.from_pretrained(
                source, local_files_only=True, use_safetensors=True, output_loading_info=True
            )
            if missing := sorted(info["missing_keys"]):
                raise HapteraError(f"{source}: {len(missing)} tensors are not in its files (first {missing[0]!r})")
        else:
            log.warning("%s: a configuration has no weights; those of the model are random", source)
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                model = kind(config)
    except HapteraError:
        raise
    except Exception as error:
        raise HapteraError(f"transformers could not load the keypoint model {source}: {first_line(error)}") from error
    return KeypointModel(model, parts, margin).eval()
