"""Classifiers of transformers: a folder, or a name on the Hugging Face hub.

Size, crop, interpolation, mean and standard deviation are those of `preprocessor_config.json`, as the image processors
of transformers read it: a shorter side and a centre, a share (`crop_pct`, as ConvNeXt and ResNet have it), or a square
whatever the proportions. Weights are read from safetensors. A network without its classifying layer is refused, since
transformers would fill it in at random.
"""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import nn

from haptera.data.decode import SQUASH
from haptera.errors import HapteraError, first_line
from haptera.models.classifier import Classifier
from haptera.models.loaders.finding import import_extra
from haptera.models.loaders.timm import read_config as read_timm
from haptera.models.preprocessing import Preprocessing, choose_normalisation

log = logging.getLogger("haptera")

PROCESSORS = ("preprocessor_config.json", "processor_config.json")
CONVNEXT_SQUASH = 384
"""The side from which on images of a `crop_pct` are made squares and not cut."""


class FlipChannels(nn.Module):
    """Red, green, blue to blue, green, red."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the channels in the opposite order."""
        return images.flip(1)


def load(
    name: str,
    *,
    normalise: str | None = None,
    allow_pickle: bool = False,
    revision: str | None = None,
    local_files_only: bool = False,
    **settings: Any,
) -> Classifier:
    """Return a classifier of transformers.

    Args:
        name: a folder, or ORG/NAME on the hub.
        normalise: another normalisation than that of the image processor.
        allow_pickle: read weights that are no safetensors.
        revision: of the hub's repository.
        local_files_only: download nothing.
        **settings: others of `from_pretrained`, such as `subfolder`.
    """
    what = f"hf:{name}"
    transformers = import_extra("transformers", "transformers", what)
    place, where = find_place(name, what, revision, local_files_only)
    network = load_network("AutoModelForImageClassification", place, what, allow_pickle, where | settings)
    processor = find_processor(transformers, place, where)
    preprocessing = choose_normalisation(read_processor(processor, what), normalise, what)
    if processor.get("do_flip_channel_order"):
        network = nn.Sequential(FlipChannels(), network)
    return Classifier(network, preprocessing)


def find_place(name: str, what: str, revision: str | None, local_files_only: bool) -> tuple[str, dict[str, Any]]:
    """Return a folder or a name on the hub, and the settings that say where to look for its files."""
    folder = Path(name).expanduser()
    if not folder.is_dir() and name.startswith((".", "/", "~")):
        raise HapteraError(f"model {what}: there is no folder {folder}")
    where = {"revision": revision, "local_files_only": local_files_only or folder.is_dir()}
    return str(folder) if folder.is_dir() else name, where


def load_network(kind: str, place: str, what: str, allow_pickle: bool, settings: Mapping[str, Any]) -> nn.Module:
    """Return a network by one of the automatic classes of transformers; all of its weights are in its files."""
    transformers = import_extra("transformers", "transformers", what)
    bars = transformers.utils.logging
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        network, info = getattr(transformers, kind).from_pretrained(
            place, use_safetensors=None if allow_pickle else True, output_loading_info=True, **settings
        )
    except Exception as error:
        pickles = "" if allow_pickle else "; weights that are no safetensors need --allow-pickle"
        raise HapteraError(f"model {what}: transformers could not load it: {first_line(error)}{pickles}") from error
    finally:
        if shown:
            bars.enable_progress_bar()
    if missing := sorted(info["missing_keys"]):
        raise HapteraError(
            f"model {what}: {len(missing)} tensors of {type(network).__name__} are not in its files (first "
            f"{missing[0]!r}), and would be random; a network that was trained to classify was expected"
        )
    return network


def find_processor(transformers: Any, place: str, where: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the image processor; empty where there are none."""
    for name in PROCESSORS:
        path = transformers.utils.cached_file(place, name, _raise_exceptions_for_missing_entries=False, **where)
        if path is None:
            continue
        try:
            content = json.loads(Path(path).read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise HapteraError(f"cannot read {path}: {error}") from error
        if not isinstance(content, dict):
            raise HapteraError(f"{path} holds a {type(content).__name__}; keys and values were expected")
        return content.get("image_processor", content)
    return {}


def read_processor(config: Mapping[str, Any], what: str) -> Preprocessing:
    """Return the preprocessing of the settings of an image processor."""
    if "data_config" in config:
        return read_timm(config["data_config"], what)
    try:
        size, crop = _size(config, what)
        mean, std = _normalisation(config)
        resample = config.get("resample")
        interpolation = None if resample is None else Image.Resampling(resample).name.lower()
        return Preprocessing(size, crop, interpolation, mean, std)
    except (TypeError, ValueError, KeyError) as error:
        raise HapteraError(f"the image processor of model {what} makes no sense: {first_line(error)}") from error


def _size(config: Mapping[str, Any], what: str) -> tuple[int | None, float | str | None]:
    """Return the side of the images and the crop."""
    size = config.get("size")
    if size is None or not config.get("do_resize", True):
        return None, None
    sides = {"shortest_edge": size} if isinstance(size, int) else size
    short: Any = sides.get("shortest_edge")
    square: Any = sides.get("height")
    if short is None and (square is None or square != sides.get("width")):
        log.warning("model %s takes images of %s, and only squares are cut from files; give size", what, dict(sides))
        return None, None
    if config.get("do_center_crop") and config.get("crop_size") is not None:
        cut = config["crop_size"]
        own = cut if isinstance(cut, int) else cut["height"]
        if short is None and own != square:
            log.warning("model %s squeezes images into squares and cuts them; here their proportions are kept", what)
        return own, SQUASH if short is None and own == square else min(own / (short or square), 1.0)
    if (share := config.get("crop_pct")) is not None and short is not None:
        return short, short / int(short / share) if short < CONVNEXT_SQUASH else SQUASH
    if short is None or isinstance(size, int):
        return short or square, SQUASH
    return short, 1.0


def _normalisation(config: Mapping[str, Any]) -> tuple[tuple[float, ...], tuple[float, ...]] | tuple[None, None]:
    """Return mean and standard deviation for images in [0, 1], whatever scale the processor brings them to."""
    scale = 255 * config.get("rescale_factor", 1 / 255) if config.get("do_rescale", True) else 255.0
    if not config.get("do_normalize", "image_mean" in config):
        return ((0.0,), (1 / scale,)) if "do_normalize" in config else (None, None)
    if config.get("image_mean") is None or config.get("image_std") is None:
        return None, None
    values = (config["image_mean"], config["image_std"])
    mean, std = (tuple(float(value) / scale for value in ([own] if isinstance(own, float) else own)) for own in values)
    return mean, std
