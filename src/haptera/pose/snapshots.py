"""DeepLabCut 3's snapshots: the network of a `snapshot-*.pt`, as the `pytorch_config.yaml` beside it describes it.

Source: the configuration and layout of weights of DeepLabCut 3.0 (PyTorch); its code is neither copied nor run.
`model.backbone` is a ResNet or an HRNet, `model.heads.bodypart` a stack of transposed convolutions for score maps and
one for offsets (`locref`), of which each ends in ReLUs between its layers. The stride of the maps is that of the
backbone over those of the head; cell j stands for (j + ½) stride, and an offset of 1 is `locref_std` pixels. Keypoints
are in DeepLabCut's coordinates, those of its labels.
Weights are loaded by `torch.load(weights_only=True)`, which runs nothing of the file; numbers of NumPy among the
scores of training are let through.
Differs: where the configuration pads images to a divisor, the padding, a reflection, is to the right and below and not
at a random place. Networks with a detector in front (`method: td`) or with several animals in an image are refused.
Cost: that of the network.
"""

import zipfile
from collections.abc import Mapping
from contextlib import suppress
from math import lcm
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from haptera.errors import HapteraError, first_line, unknown
from haptera.files.schema import TABLE, TEXT, check, list_of, number, whole_number
from haptera.files.yaml import read_yaml
from haptera.pose.hrnet import HRNetFeatures
from haptera.pose.network import CLIP, LOGITS, Maps, WrappedNetwork
from haptera.pose.resnet import ResNetFeatures

CONFIG = "pytorch_config.yaml"
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
STEPS = list_of(whole_number(1, 2**14))
BACKBONES = ("ResNet", "HRNet")
HEAD = "HeatmapHead"
SUFFIXES = (".pt", ".pth")
ELSE = "predict with DeepLabCut and give its table (pose score --predictions), or wrap the network (as_network)"


class Deconvolutions(nn.Module):
    """Transposed convolutions with ReLUs between them, and a convolution at the end, if there is one."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__()
        channels, strides = settings["channels"], settings["strides"]
        layers: list[nn.Module] = []
        for place, (kernel, stride) in enumerate(zip(settings["kernel_size"], strides, strict=True)):
            layers += [nn.ReLU()] * bool(place)
            layers.append(nn.ConvTranspose2d(channels[place], channels[place + 1], kernel, stride))
        self.deconv_layers = nn.Sequential(*layers)
        final = settings.get("final_conv")
        self.final_conv: nn.Module = nn.Identity()
        if final:
            self.final_conv = nn.Conv2d(channels[-1], final["out_channels"], final["kernel_size"])
        self.stride = int(np.prod(strides))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """From features to maps."""
        return self.final_conv(self.deconv_layers(features))


class Head(nn.Module):
    """Score maps and, where the configuration has them, offsets."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__()
        self.heatmap_head = Deconvolutions(settings["heatmap_config"])
        locref = settings.get("locref_config")
        self.locref_head = Deconvolutions(locref) if locref else None

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """From features to the scores and then the offsets."""
        scores = self.heatmap_head(features)
        return scores if self.locref_head is None else torch.cat([scores, self.locref_head(features)], 1)


class Backbone(nn.Module):
    """A network under the name that DeepLabCut's weights have for it."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model


class SnapshotNetwork(nn.Module):
    """From images in [0, 1] to maps, as a snapshot's weights compute them.

    Args:
        backbone: from normalised images to features.
        head: from features to maps.
        colours: `RGB` or `BGR`, the order in which the network takes the channels.
        normalise: `imagenet`; `unit` for [0, 1]; `bytes` for 0 to 255.
        divisor: images are continued, mirrored, to a multiple of it.
    """

    def __init__(self, backbone: nn.Module, head: Head, colours: str, normalise: str, divisor: int) -> None:
        super().__init__()
        self.backbone, self.heads = Backbone(backbone), nn.ModuleDict({"bodypart": head})
        self.colours, self.normalise, self.divisor = colours, normalise, divisor

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """`(batch, 3, height, width)` to `(batch, 3 parts, rows, columns)`."""
        height, width = images.shape[-2:]
        down, right = -height % self.divisor, -width % self.divisor
        if down or right:
            mode = "reflect" if down < height and right < width else "replicate"
            images = F.pad(images, (0, right, 0, down), mode=mode)
        if self.colours == "BGR":
            images = images.flip(1)
        if self.normalise == "imagenet":
            mean, std = (images.new_tensor(values)[:, None, None] for values in (MEAN, STD))
            images = (images - mean) / std
        elif self.normalise == "bytes":
            images = images * 255
        return self.heads["bodypart"](self.backbone.model(images))


def load_snapshot(path: Path, config: Path | None = None) -> WrappedNetwork:
    """Return the network of a snapshot, in evaluation mode.

    Args:
        path: a `snapshot-*.pt`.
        config: its `pytorch_config.yaml`; by default that in the folder of the snapshot or above it.
    """
    if not path.is_file():
        raise HapteraError(f"there is no snapshot {path}")
    if _is_program(path):
        raise HapteraError(
            f"{path} is TorchScript, a program that does not name its parts, and not a snapshot; name a function of "
            "yours, file.py:function, that returns as_network(torch.jit.load(...), parts)"
        )
    config = config or find_config(path)
    network = build_network(read_yaml(config), str(config))
    state = read_snapshot(path)
    try:
        network.network.load_state_dict(state)
    except RuntimeError as error:
        lines = [line.strip() for line in str(error).splitlines()]
        raise HapteraError(f"{path} does not fit {config}: {lines[min(1, len(lines) - 1)][:160]}") from error
    return network.eval()


def _is_program(path: Path) -> bool:
    """Say whether a file is TorchScript."""
    with suppress(zipfile.BadZipFile, OSError), zipfile.ZipFile(path) as archive:
        return any("/code/" in name for name in archive.namelist())
    return False


def find_config(path: Path) -> Path:
    """Return the configuration beside a snapshot, or in the folder above."""
    for folder in (path.parent, path.parent.parent):
        if (folder / CONFIG).is_file():
            return folder / CONFIG
    raise HapteraError(
        f"there is no {CONFIG} beside {path}; it says which network the weights are of: --config FILE, or put it there"
    )


def read_snapshot(path: Path) -> dict[str, torch.Tensor]:
    """Return the weights in a snapshot; a file that would have to run code to be read is refused."""
    scalar = np._core.multiarray.scalar  # type: ignore[attr-defined]
    plain: list[Any] = [np.dtype, *(type(np.dtype(kind)) for kind in ("f8", "f4", "i8", "i4", "?"))]
    plain += [(scalar, "numpy._core.multiarray.scalar"), (scalar, "numpy.core.multiarray.scalar")]
    try:
        with torch.serialization.safe_globals(plain):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise HapteraError(f"cannot read the snapshot {path}: {first_line(error)}") from error
    state = content.get("model", content) if isinstance(content, dict) else None
    if not isinstance(state, dict) or not all(isinstance(value, torch.Tensor) for value in state.values()):
        raise HapteraError(f"{path} does not hold the weights of a network under 'model'; a snapshot was expected")
    return {name.removeprefix("module."): value for name, value in state.items()}


def build_network(config: Mapping[str, Any], where: str) -> WrappedNetwork:
    """Return the network that a configuration describes, with random weights.

    Args:
        config: the content of a `pytorch_config.yaml`.
        where: what errors call it.
    """
    top = check(config, {"metadata": TABLE, "model": TABLE, "method": TEXT, "data": TABLE}, where, ("method", "data"))
    parts = check(top["metadata"], {"bodyparts": list_of(TEXT)}, f"{where}: metadata")["bodyparts"]
    if (method := str(top.get("method", "bu")).lower()) != "bu":
        raise HapteraError(f"{where}: the method is {method!r}, a network behind a detector; {ELSE}")
    model = check(top["model"], {"backbone": TABLE, "heads": TABLE}, f"{where}: model")
    backbone = _backbone(model["backbone"], where)
    if "bodypart" not in model["heads"]:
        raise unknown(f"head in {where}", "bodypart", map(str, model["heads"]))
    head = _check_head(model["heads"]["bodypart"], parts, backbone.channels, where)
    built, predictor = Head(head), head["predictor"]
    stride = backbone.stride / built.heatmap_head.stride
    scores = LOGITS if predictor.get("apply_sigmoid", True) else CLIP
    maps = Maps(stride, float(predictor.get("locref_std", 7.2801)), stride / 2, scores)
    data = top.get("data") or {}
    network = SnapshotNetwork(backbone, built, *_preprocessing(data, where))
    return WrappedNetwork(network, parts, maps)


def _backbone(settings: Mapping[str, Any], where: str) -> Any:
    settings = check(settings, {"type": TEXT}, f"{where}: model.backbone")
    kind, name = settings["type"], str(settings.get("model_name", ""))
    try:
        if kind == "ResNet":
            return ResNetFeatures(name or "resnet50", int(settings.get("output_stride", 32)))
        if kind == "HRNet":
            if settings.get("increased_channel_count"):
                raise HapteraError(f"increased_channel_count is set, which is not known here; {ELSE}")
            return HRNetFeatures(name or "hrnet_w32", bool(settings.get("interpolate_branches")))
    except HapteraError as error:
        raise HapteraError(f"{where}: {error}") from error
    raise HapteraError(f"{where}: the backbone is a {kind}; one of {', '.join(BACKBONES)} is read; {ELSE}")


def _check_head(head: Any, parts: list[str], channels: int, where: str) -> dict[str, Any]:
    """Return the head of a configuration after checking every number that becomes a layer."""
    head = check(head, {"type": TEXT, "predictor": TABLE, "heatmap_config": TABLE}, f"{where}: heads.bodypart")
    if head["type"] != HEAD:
        raise HapteraError(f"{where}: the head is a {head['type']}, one with a score map per part was expected; {ELSE}")
    check(head["predictor"], {"locref_std": number(0)}, f"{where}: predictor", ("locref_std",))
    if head["predictor"].get("location_refinement") is False:
        head["locref_config"] = None
    for key, outputs in (("heatmap_config", len(parts)), ("locref_config", 2 * len(parts))):
        own = head.get(key)
        if own is None and key == "locref_config":
            continue
        place = f"{where}: heads.bodypart.{key}"
        own = check(own, {"channels": STEPS, "kernel_size": STEPS, "strides": STEPS}, place)
        final = own.get("final_conv")
        if final:
            check(final, {"out_channels": whole_number(1, 2**14), "kernel_size": whole_number(1, 31)}, place)
        lengths = len(own["channels"]) == len(own["kernel_size"]) + 1 == len(own["strides"]) + 1
        last = final["out_channels"] if final else own["channels"][-1]
        if not lengths or own["channels"][0] != channels or last != outputs:
            raise HapteraError(
                f"{place} has channels {own['channels']} and strides {own['strides']}; from {channels} channels of the "
                f"backbone to {outputs} maps, with a kernel and a stride for each step, was expected"
            )
    return head


def _preprocessing(data: Mapping[str, Any], where: str) -> tuple[str, str, int]:
    """Return the order of colours, the normalisation and the divisor of sides."""
    inference = data.get("inference") or {}
    if not isinstance(inference, Mapping):
        raise HapteraError(f"{where}: data.inference is {inference!r}; keys and values were expected")
    if inference.get("resize"):
        raise HapteraError(f"{where}: data.inference.resize changes the size of images, which is not read; {ELSE}")
    normalise = "imagenet" if inference.get("normalize_images") else "bytes"
    normalise = "unit" if inference.get("scale_to_unit_range") and normalise == "bytes" else normalise
    padding = inference.get("auto_padding") or {}
    divisors = [int(padding.get(f"pad_{side}_divisor") or 1) for side in ("height", "width")]
    return str(data.get("colormode", "RGB")), normalise, lcm(*divisors)
