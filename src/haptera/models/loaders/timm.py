"""Models of timm by name, with the input size, crop, interpolation and normalisation of their configuration.

Written against timm's documentation: `create_model`, and `resolve_model_data_config`, which fills in what a
configuration leaves open. timm rounds the size before the crop down; the crop here is the share that results.
"""

import logging
from collections.abc import Mapping
from typing import Any

from haptera.data.decode import INTERPOLATION, INTERPOLATIONS, SQUASH
from haptera.errors import HapteraError, first_line
from haptera.models.classifier import Classifier
from haptera.models.loaders.finding import import_extra
from haptera.models.preprocessing import Preprocessing, choose_normalisation

log = logging.getLogger("haptera")


def load(name: str, *, pretrained: bool = True, normalise: str | None = None, **settings: Any) -> Classifier:
    """Return a model of timm.

    Args:
        name: as in `timm.list_models()`, such as `resnet50.a1_in1k`; or `local-dir:FOLDER`, `hf-hub:ORG/NAME`.
        pretrained: load the weights, which downloads them unless they are on this machine already.
        normalise: another normalisation than that of the configuration.
        **settings: others of `timm.create_model`, such as `num_classes`.
    """
    what = f"timm:{name}"
    timm, data = import_extra("timm", "timm", what), import_extra("timm.data", "timm", what)
    try:
        network = timm.create_model(name, pretrained=pretrained, **settings)
    except Exception as error:
        raise HapteraError(f"model {what}: timm could not make it: {first_line(error)}") from error
    preprocessing = read_config(data.resolve_model_data_config(network), what)
    return Classifier(network, choose_normalisation(preprocessing, normalise, what))


def read_config(config: Mapping[str, Any], what: str) -> Preprocessing:
    """Return the preprocessing of a configuration of timm."""
    channels, height, width = config.get("input_size") or (3, None, None)
    interpolation = config.get("interpolation")
    mean, std = config.get("mean"), config.get("std")
    return Preprocessing(
        size=height if height == width else None,
        crop=_crop(config, height, what),
        interpolation=interpolation if interpolation in INTERPOLATIONS else INTERPOLATION,
        mean=None if mean is None else tuple(map(float, mean[:channels])),
        std=None if std is None else tuple(map(float, std[:channels])),
    )


def _crop(config: Mapping[str, Any], size: int | None, what: str) -> float | str | None:
    mode, share = config.get("crop_mode") or "center", config.get("crop_pct")
    if mode == SQUASH:
        return SQUASH
    if mode != "center":
        log.warning("model %s pads images (crop_mode %s), which is not done here; the centre is cut out", what, mode)
    return size / int(size / share) if size and share else share
