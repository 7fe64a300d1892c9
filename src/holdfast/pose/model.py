"""PoseModel: a backbone, and deconvolutions to a score map and two offset maps for each part.

Source: thesis chapter 5: a feature map of 1/16 of the image, made twice as large; sigmoid of a score map says where a
part is, the offsets lead from the centre of a cell to the part. Output and targets are one tensor, so that adapters,
which hand on whatever a network gives, need to know nothing of poses.
Differs: kernels of 4 instead of 3, which reach both neighbours of a cell alike. Cell (i, j) stands for the centre of
its pixels, ((j + ½) s − ½, (i + ½) s − ½), where the published code has (j + ½) s.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import nn
from torch.nn import functional as F

from holdfast.errors import HoldfastError
from holdfast.files import whole
from holdfast.json_files import parse_json
from holdfast.models.source import load_weights
from holdfast.pose.backbone import BACKBONES, make_backbone
from holdfast.schema import FLAG, TEXT, check, either, list_of, optional, table_of, whole_number

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


class PoseModel(nn.Module):
    """From images to maps `(batch, 3 parts, height / stride, width / stride)`.

    The first `parts` channels are scores before the sigmoid, then come x and y offsets of each part in units of the
    stride. Images whose sides are no multiples of the backbone's stride are continued with black.

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
            raise HoldfastError("a pose model needs at least one part")
        self.parts, self.skeleton = tuple(parts), tuple(skeleton)
        self.size = size
        own = isinstance(backbone, nn.Module)
        self.recipe = {"backbone": None if own else backbone, "settings": {} if own else settings or {}}
        self.origin = origin or type(backbone).__name__ if own else ""
        self.backbone = backbone if isinstance(backbone, nn.Module) else make_backbone(backbone, settings or {})
        channels, self.reach = _tried(self.backbone)
        self.stride = self.reach // 2
        self.head = nn.ConvTranspose2d(channels, 3 * len(self.parts), 4, 2, 1)
        nn.init.constant_(self.head.bias[: len(self.parts)], -3.0)  # type: ignore[index]  # most cells hold no part

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """`(batch, 3, height, width)` in [0, 1] to maps."""
        height, width = images.shape[-2:]
        down, right = -height % self.reach, -width % self.reach
        maps = self.head(self.backbone(F.pad(images, (0, right, 0, down)) if down or right else images))
        rows, columns = -(-height // self.stride), -(-width // self.stride)
        return maps if maps.shape[-2:] == (rows, columns) else maps[..., :rows, :columns]

    def save(self, path: Path) -> None:
        """Write weights and what is needed to build the model anew, as safetensors, whole.

        Of a backbone of your own the file has the weights and what it was called; `load` must be given it again.
        """
        facts: dict[str, Any] = {"parts": self.parts, "skeleton": self.skeleton, "origin": self.origin}
        facts |= {"size": self.size, **self.recipe}
        state = {name: tensor.contiguous() for name, tensor in self.state_dict().items()}
        with whole(path) as file:
            file.write(save(state, {"pose": json.dumps(facts)}))

    @classmethod
    def load(cls, path: Path, backbone: nn.Module | None = None) -> "PoseModel":
        """Read what `save` wrote, in evaluation mode.

        Args:
            path: the file.
            backbone: yours, where the model was trained with one that holdfast does not have. A file names only parts
                of holdfast, so that whoever sends one cannot run code of theirs.
        """
        facts = check(read_facts(path, "pose"), FACTS, f"the header of {path}", missing=("origin", "size"))
        name, settings = facts["backbone"], facts["settings"]
        largest = max((side for shape in tensor_shapes(path) for side in shape), default=0)
        if any(not isinstance(value, bool) and value > largest for value in settings.values()):
            raise HoldfastError(f"{path}: the header speaks of a backbone of {settings}, the weights are smaller")
        if backbone is None and name not in BACKBONES:
            origin = facts.get("origin") or name
            raise HoldfastError(
                f"{path} was trained with a backbone of its owner's, {origin!r}, which a file cannot bring along; if "
                "you have it and trust it, name it again: --backbone file.py:function, or load(path, backbone)"
            )
        quick = settings | {"pretrained": False} if name == "efficientnet_lite0" else settings  # the weights follow
        shared: dict[str, Any] = {"skeleton": facts["skeleton"], "origin": facts.get("origin", "")}
        shared |= {"size": tuple(facts["size"]) if facts.get("size") else None}
        try:
            model = cls(facts["parts"], name if backbone is None else backbone, settings=quick, **shared)
        except HoldfastError as error:
            raise HoldfastError(f"{path}: {error}") from error
        if backbone is None:
            model.recipe["settings"] = settings
        load_weights(model, path)
        return model.eval()


def read_facts(path: Path, key: str) -> dict[str, Any]:
    """The JSON in the header of a safetensors file."""
    if not path.is_file():
        raise HoldfastError(f"there is no file {path}")
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
    except (SafetensorError, OSError, ValueError) as error:
        raise HoldfastError(f"cannot read {path}: {error}") from error
    if key not in metadata:
        raise HoldfastError(f"{path} was not written by `holdfast pose train`: its header has no {key!r}")
    return check(parse_json(metadata[key], f"the header of {path}"), {}, f"the header of {path}")


def tensor_shapes(path: Path) -> list[list[int]]:
    """The shapes of the tensors in a safetensors file."""
    with safe_open(path, "pt") as file:
        return [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118


def _tried(backbone: nn.Module) -> tuple[int, int]:
    """Channels and stride of a backbone, found by a trial."""
    training = backbone.training
    backbone.eval()
    try:
        with torch.no_grad():
            found = backbone(torch.zeros(1, 3, TRIAL, TRIAL))
    except RuntimeError as error:
        raise HoldfastError(f"the backbone failed on images of {TRIAL} x {TRIAL} pixels: {error}") from error
    finally:
        backbone.train(training)
    if not isinstance(found, torch.Tensor) or found.ndim != 4:
        shape = tuple(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
        raise HoldfastError(f"the backbone gave {shape}; a feature map (batch, channels, height, width) was expected")
    stride = TRIAL // found.shape[-1]
    if found.shape[-2:] != (TRIAL // stride, TRIAL // stride) or stride % 2 or stride < 2:
        raise HoldfastError(
            f"the backbone made a map of {tuple(found.shape[-2:])} of {TRIAL} x {TRIAL} pixels; a stride of 2, 4, 8, "
            "16 or 32 was expected"
        )
    return found.shape[1], stride
