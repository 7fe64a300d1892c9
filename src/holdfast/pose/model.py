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
from holdfast.models.source import load_weights
from holdfast.pose.backbone import make_backbone

TRIAL = 128


class PoseModel(nn.Module):
    """From images to maps `(batch, 3 parts, height / stride, width / stride)`.

    The first `parts` channels are scores before the sigmoid, then come x and y offsets of each part in units of the
    stride. Images whose sides are no multiples of the backbone's stride are continued with black.

    Args:
        parts: their names.
        backbone: any network from images in [0, 1] to a feature map, its normalisation included; or a name, as
            `make_backbone` takes it.
        settings: of a backbone given by name.
        skeleton: pairs of parts, to draw.

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
    ) -> None:
        super().__init__()
        if not parts:
            raise HoldfastError("a pose model needs at least one part")
        self.parts, self.skeleton = tuple(parts), tuple(skeleton)
        self.recipe = {"backbone": backbone, "settings": settings or {}} if isinstance(backbone, str) else None
        self.backbone = make_backbone(backbone, **(settings or {})) if isinstance(backbone, str) else backbone
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
        """Write weights and what is needed to build the model anew, as safetensors, whole."""
        if self.recipe is None:
            raise HoldfastError("a model whose backbone was given as an object cannot be built from a file; name it")
        facts = {"parts": self.parts, "skeleton": self.skeleton, **self.recipe}
        state = {name: tensor.contiguous() for name, tensor in self.state_dict().items()}
        with whole(path) as file:
            file.write(save(state, {"pose": json.dumps(facts)}))

    @classmethod
    def load(cls, path: Path) -> "PoseModel":
        """Read what `save` wrote, in evaluation mode."""
        facts = read_facts(path, "pose")
        settings = facts["settings"]
        if facts["backbone"] == "efficientnet_lite0":
            settings = settings | {"pretrained": False}  # the weights follow
        model = cls(facts["parts"], facts["backbone"], settings=settings, skeleton=facts["skeleton"])
        model.recipe = {"backbone": facts["backbone"], "settings": facts["settings"]}
        load_weights(model, path)
        return model.eval()


def read_facts(path: Path, key: str) -> dict[str, Any]:
    """The JSON in the header of a safetensors file."""
    if not path.is_file():
        raise HoldfastError(f"there is no file {path}")
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise HoldfastError(f"cannot read {path}: {error}") from error
    if key not in metadata:
        raise HoldfastError(f"{path} was not written by `holdfast pose train`: its header has no {key!r}")
    return json.loads(metadata[key])


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
