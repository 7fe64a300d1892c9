"""Models of torchvision by name, with the size, crop, interpolation and normalisation of their weights.

Written against torchvision's documentation: `get_model`, `get_model_weights`, and the transforms of weights, which have
`crop_size`, `resize_size`, `interpolation`, `mean` and `std`.
"""

from typing import Any

from haptera.errors import HapteraError, first_line, unknown
from haptera.models.classifier import Classifier
from haptera.models.loaders.finding import import_extra
from haptera.models.preprocessing import Preprocessing, choose_normalisation


def load(
    name: str, *, weights: str = "DEFAULT", pretrained: bool = True, normalise: str | None = None, **settings: Any
) -> Classifier:
    """Return a model of torchvision.

    Args:
        name: as in `torchvision.models.list_models()`, such as `resnet50`.
        weights: which of its weights, such as `IMAGENET1K_V1`; their transforms are the preprocessing.
        pretrained: load them, which downloads them unless they are on this machine already.
        normalise: another normalisation than that of the weights.
        **settings: others of the model, such as `num_classes`.
    """
    what = f"torchvision:{name}"
    models = import_extra("torchvision.models", "torchvision", what)
    try:
        kinds = models.get_model_weights(name)
    except ValueError as error:
        raise unknown("model of torchvision", name, models.list_models()) from error
    if not hasattr(kinds, weights):
        raise unknown(f"weights of {what}", weights, [each.name for each in kinds])
    chosen = getattr(kinds, weights)
    try:
        network = models.get_model(name, weights=chosen if pretrained else None, **settings)
    except Exception as error:
        raise HapteraError(f"model {what}: torchvision could not make it: {first_line(error)}") from error
    preprocessing = read_transforms(chosen.transforms())
    return Classifier(network, choose_normalisation(preprocessing, normalise, what))


def read_transforms(transforms: Any) -> Preprocessing:
    """Return the preprocessing of the transforms of weights."""
    size, before = (_side(getattr(transforms, name, None)) for name in ("crop_size", "resize_size"))
    interpolation = getattr(transforms, "interpolation", None)
    mean, std = getattr(transforms, "mean", None), getattr(transforms, "std", None)
    return Preprocessing(
        size=size,
        crop=min(size / before, 1.0) if size and before else None,
        interpolation=getattr(interpolation, "value", interpolation),
        mean=None if mean is None else tuple(map(float, mean)),
        std=None if std is None else tuple(map(float, std)),
    )


def _side(size: Any) -> int | None:
    """Return the side of a square that is given as one number, or as a list of one or two."""
    sides = {size} if isinstance(size, int) else set(size or ())
    return int(sides.pop()) if len(sides) == 1 else None
