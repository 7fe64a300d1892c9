"""PoseModel: a backbone, and deconvolutions to a score map and two offset maps for each part; from keypoints and back.

Source: thesis chapter 5 (after DeepLabCut): a feature map of 1/16 of the image, made twice as large; sigmoid of a score
map says where a part is, the offsets lead from the centre of a cell to the part. As a target the score of a part is 1
in a disc around it and 0 elsewhere, with offsets from every cell of the disc. A prediction is the cell with the largest
score, plus its offset; its confidence is the sigmoid of the score. A part that is not labelled is nowhere: its scores
are 0, so that a part that is missing in all frames ends with a confidence near 0. Output and targets are one tensor, so
that adapters, which hand on whatever a network gives, need to know nothing of poses.
Differs: kernels of 4 instead of 3, which reach both neighbours of a cell alike. Cell (i, j) stands for the centre of
its pixels, ((j + ½) s − ½, (i + ½) s − ½), where the published code has (j + ½) s. Offsets are in units of the stride,
not of 7.28 pixels.
Cost: for targets and decoding, parts x cells.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import nn
from torch.nn import functional as F

from haptera.errors import HapteraError
from haptera.files.atomic import whole
from haptera.files.safetensors import read_header
from haptera.files.schema import FLAG, TEXT, check, either, list_of, optional, table_of, whole_number
from haptera.models.weights import load_weights
from haptera.pose.backbone import BACKBONES, make_backbone
from haptera.pose.network import Maps, PoseNetwork, without_lost

TRIAL = 128
FACTS = {
    "parts": list_of(TEXT),
    "skeleton": list_of(list_of(TEXT, 2)),
    "backbone": optional(TEXT),
    "settings": table_of(either(FLAG, whole_number(1))),
    "origin": TEXT,
    "size": optional(list_of(whole_number(1, 2**15), 2)),
}
"""What the header of a file holds."""


class PoseModel(PoseNetwork):
    """A network from images to maps `(batch, 3 parts, height / stride, width / stride)`.

    The first `parts` channels are scores before the sigmoid, then come x and y offsets of each part in units of the
    stride. Images whose sides are not multiples of the backbone's stride are continued with black.

    Args:
        parts: their names.
        backbone: any network from images in [0, 1] to a feature map, its normalisation included; or the name of one
            of `BACKBONES`.
        settings: of a backbone given by name.
        skeleton: pairs of parts, to draw.
        origin: what a backbone of your own is called in the file that `save` writes, for people to read.
        size: height and width to which image files are brought before the model sees them; None leaves them.

    Attributes:
        stride: pixels of a cell of the maps, half of that of the backbone.
    """

    def __init__(
        self,
        parts: Sequence[str],
        backbone: nn.Module | str = "small",
        *,
        settings: dict[str, Any] | None = None,
        skeleton: Sequence[tuple[str, str]] = (),
        origin: str = "",
        size: tuple[int, int] | None = None,
    ) -> None:
        super().__init__()
        if not parts:
            raise HapteraError("a pose model needs at least one part")
        self.parts, self.skeleton = tuple(parts), tuple(skeleton)
        self.size = size
        own = isinstance(backbone, nn.Module)
        self.recipe = {"backbone": None if own else backbone, "settings": {} if own else settings or {}}
        self.origin = origin or type(backbone).__name__ if own else ""
        self.backbone = backbone if isinstance(backbone, nn.Module) else make_backbone(backbone, settings or {})
        channels, self.reach = _try(self.backbone)
        self.stride = self.reach // 2
        self.maps = Maps(self.stride)
        self.head = nn.ConvTranspose2d(channels, 3 * len(self.parts), 4, 2, 1)
        nn.init.constant_(self.head.bias[: len(self.parts)], -3.0)  # type: ignore[index]  # most cells hold no part

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the maps of images `(batch, 3, height, width)` in [0, 1]."""
        height, width = images.shape[-2:]
        down, right = -height % self.reach, -width % self.reach
        maps = self.head(self.backbone(F.pad(images, (0, right, 0, down)) if down or right else images))
        rows, columns = -(-height // self.stride), -(-width // self.stride)
        return maps if maps.shape[-2:] == (rows, columns) else maps[..., :rows, :columns]

    def decode(self, outputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return keypoints `(batch, parts, 2)` in pixels and confidence `(batch, parts)` of the maps."""
        return decode(outputs, self.stride)

    def save(self, path: Path) -> None:
        """Write weights and what is needed to build the model anew, as safetensors, whole.

        Of a backbone of your own the file has the weights and what it was called; `load` must be given it again.
        """
        with whole(path) as file:
            file.write(self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return what `save` writes."""
        facts: dict[str, Any] = {"parts": self.parts, "skeleton": self.skeleton, "origin": self.origin}
        facts |= {"size": self.size, **self.recipe}
        state = {name: tensor.contiguous() for name, tensor in self.state_dict().items()}
        return save(state, {"pose": json.dumps(facts)})

    @classmethod
    def load(cls, path: Path, backbone: nn.Module | None = None) -> "PoseModel":
        """Return the model that `save` wrote, in evaluation mode.

        Args:
            path: the file.
            backbone: yours, where the model was trained with one that haptera does not have. A file names only parts
                of haptera, so that whoever sends one cannot run code of theirs.
        """
        header = read_header(path, "pose", "model", "haptera pose train")
        facts = check(header, FACTS, f"the header of {path}", missing=("origin", "size"))
        name, settings = facts["backbone"], facts["settings"]
        with safe_open(path, "pt") as file:
            shapes = [file.get_slice(each).get_shape() for each in file.keys()]  # noqa: SIM118
        largest = max((side for shape in shapes for side in shape), default=0)
        if any(not isinstance(value, bool) and value > largest for value in settings.values()):
            raise HapteraError(f"{path}: the header speaks of a backbone of {settings}, the weights are smaller")
        if backbone is None and name not in BACKBONES:
            origin = facts.get("origin") or name
            raise HapteraError(
                f"{path} was trained with a backbone of its owner's, {origin!r}, which a file cannot bring along; if "
                "you have it and trust it, name it again: --backbone file.py:function, or load(path, backbone)"
            )
        quick = (
            settings | {"pretrained": False} if str(name).startswith("efficientnet_lite") else settings
        )  # they follow
        shared: dict[str, Any] = {"skeleton": facts["skeleton"], "origin": facts.get("origin", "")}
        shared |= {"size": tuple(facts["size"]) if facts.get("size") else None}
        try:
            model = cls(facts["parts"], name if backbone is None else backbone, settings=quick, **shared)
        except HapteraError as error:
            raise HapteraError(f"{path}: {error}") from error
        if backbone is None:
            model.recipe["settings"] = settings
        load_weights(model, path)
        return model.eval()


def _try(backbone: nn.Module) -> tuple[int, int]:
    """Return the channels and the stride of a backbone, found by a trial."""
    training = backbone.training
    backbone.eval()
    try:
        with torch.no_grad():
            found = backbone(torch.zeros(1, 3, TRIAL, TRIAL))
    except RuntimeError as error:
        raise HapteraError(f"the backbone failed on images of {TRIAL} x {TRIAL} pixels: {error}") from error
    finally:
        backbone.train(training)
    if not isinstance(found, torch.Tensor) or found.ndim != 4:
        shape = tuple(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
        raise HapteraError(f"the backbone gave {shape}; a feature map (batch, channels, height, width) was expected")
    stride = TRIAL // found.shape[-1]
    if found.shape[-2:] != (TRIAL // stride, TRIAL // stride) or stride % 2 or stride < 2:
        raise HapteraError(
            f"the backbone made a map of {tuple(found.shape[-2:])} of {TRIAL} x {TRIAL} pixels; a stride of 2, 4, 8, "
            "16 or 32 was expected"
        )
    return found.shape[1], stride


def cell_centres(rows: int, columns: int, stride: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return x of every column and y of every row, in pixels."""
    return tuple((torch.arange(number) + 0.5) * stride - 0.5 for number in (columns, rows))  # type: ignore[return-value]


def make_targets(
    keypoints: torch.Tensor, rows: int, columns: int, stride: float, radius: float | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return scores `(batch, parts, rows, columns)`, 0 or 1, and offsets `(batch, parts, 2, rows, columns)`.

    Args:
        keypoints: `(batch, parts, 2)` in pixels, NaN where missing.
        rows: of the maps.
        columns: of the maps.
        stride: pixels of a cell.
        radius: of the disc, in pixels; the stride by default. At least 0.71 strides, so that it holds a cell.
    """
    radius = float(stride) if radius is None else radius
    if radius < 2**-0.5 * stride:
        raise HapteraError(f"radius is {radius:g}; below {2**-0.5 * stride:.2f} pixels a disc may hold no cell")
    x, y = (centres.to(keypoints) for centres in cell_centres(rows, columns, stride))
    across = keypoints[:, :, 0, None] - x  # (batch, parts, columns)
    down = keypoints[:, :, 1, None] - y
    squares = across[:, :, None, :] ** 2 + down[:, :, :, None] ** 2
    scores = (squares <= radius**2).to(keypoints)  # NaN is never less
    shape = scores.shape
    offsets = torch.stack([across[:, :, None, :].expand(shape), down[:, :, :, None].expand(shape)], 2) / stride
    return scores, torch.nan_to_num(offsets)


def decode(maps: torch.Tensor, stride: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return keypoints `(batch, parts, 2)` in pixels and confidence `(batch, parts)` of the maps of a model.

    Args:
        maps: `(batch, 3 parts, rows, columns)`.
        stride: pixels of a cell.
    """
    batch, channels, rows, columns = maps.shape
    parts = channels // 3
    best, cell = maps[:, :parts].reshape(batch, parts, -1).max(2)
    offsets = maps[:, parts:].reshape(batch, parts, 2, -1)
    offset = offsets.gather(3, cell[:, :, None, None].expand(-1, -1, 2, 1))[..., 0]
    x, y = (centres.to(maps) for centres in cell_centres(rows, columns, stride))
    centre = torch.stack([x[cell % columns], y[cell // columns]], 2)
    return without_lost(centre + offset * stride, best.sigmoid())


def split_maps(maps: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the scores `(batch, parts, rows, columns)` and offsets `(batch, parts, 2, rows, columns)` in maps."""
    parts = maps.shape[1] // 3
    return maps[:, :parts], maps[:, parts:].unflatten(1, (parts, 2))
