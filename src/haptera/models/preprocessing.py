"""Preprocessing: how images become what a network was trained on, as its own configuration says it.

Size, crop and interpolation are for whoever reads image files (`haptera.data.open_data`); mean and standard deviation
are applied inside the model (`haptera.models.Classifier`), so that everything else sees images in [0, 1].
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from haptera.checks import check_number, check_whole_number
from haptera.data.decode import INTERPOLATIONS, Resize, check_crop
from haptera.errors import HapteraError, hint, unknown

log = logging.getLogger("haptera")
KEYS = ("size", "crop", "interpolation")
"""What whoever reads image files needs to know."""
Values = tuple[float, ...]

NORMALISATIONS: dict[str, tuple[Values, Values]] = {
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "half": ((0.5,), (0.5,)),
}
"""Name -> mean and standard deviation of the normalisations that most networks were trained with."""
NONE = "none"


@dataclass(frozen=True)
class Preprocessing:
    """What a model's configuration says about its inputs; None is what it does not say.

    Attributes:
        size: height and width.
        crop: share of the shorter side that is kept: it is resized to `round(size / crop)`, and the centre is cut out;
            or `squash`: all of the image is made a square.
        interpolation: how image files are resized, such as `bilinear`.
        mean: of each channel, or one for all, for images in [0, 1].
        std: the same for the standard deviation.
    """

    size: int | None = None
    crop: float | str | None = None
    interpolation: str | None = None
    mean: Values | None = None
    std: Values | None = None

    def __post_init__(self) -> None:
        if self.size is not None:
            check_whole_number("size", self.size)
        if self.crop is not None:
            check_crop(self.crop)
        if self.interpolation is not None and self.interpolation not in INTERPOLATIONS:
            raise unknown("interpolation", self.interpolation, INTERPOLATIONS)
        if (self.mean is None) != (self.std is None):
            given, missing = ("mean", "std") if self.std is None else ("std", "mean")
            raise HapteraError(f"there is a {given} and no {missing}; both or none were expected")
        if self.mean is not None and self.std is not None:
            _check_values(self.mean, self.std)

    def resize(self) -> Resize:
        """Return how image files are brought to the size of the model; the usual for what is not known."""
        known = {key: getattr(self, key) for key in KEYS}
        return Resize(**{key: value for key, value in known.items() if value is not None})

    def __str__(self) -> str:
        """Return what is known, in a few words.

        >>> str(Preprocessing(224, 0.875, "bicubic", (0.5,), (0.5,)))
        'size 224, crop 0.875, bicubic, mean 0.5, std 0.5'
        """
        words = [] if self.size is None else [f"size {self.size}"]
        words += [] if self.crop is None else [self.crop if isinstance(self.crop, str) else f"crop {self.crop:.4g}"]
        words += [] if self.interpolation is None else [self.interpolation]
        for name, values in (("mean", self.mean), ("std", self.std)):
            words += [] if values is None else [f"{name} {' '.join(f'{value:.4g}' for value in values)}"]
        return ", ".join(words) or "nothing known"


def read_normalisation(text: str) -> tuple[Values, Values] | tuple[None, None]:
    """Return mean and standard deviation as a person writes them; `none` has neither.

    >>> read_normalisation("half")
    ((0.5,), (0.5,))
    >>> read_normalisation("0.49,0.48,0.45/0.25,0.24,0.26")
    ((0.49, 0.48, 0.45), (0.25, 0.24, 0.26))
    """
    if text == NONE:
        return None, None
    if text in NORMALISATIONS:
        return NORMALISATIONS[text]
    parts = text.split("/")
    try:
        mean, std = (tuple(float(value) for value in part.split(",")) for part in parts)
    except ValueError as error:
        names = [*NORMALISATIONS, NONE]
        raise HapteraError(
            f"normalise is {text!r};{hint(text, names)} {', '.join(names)}, or MEAN/STD such as "
            "0.49,0.48,0.45/0.25,0.24,0.26 was expected"
        ) from error
    try:
        _check_values(mean, std)
    except HapteraError as error:
        raise HapteraError(f"normalise is {text!r}: {error}") from error
    return mean, std


def choose_normalisation(preprocessing: Preprocessing, normalise: str | None, what: str) -> Preprocessing:
    """Return the preprocessing of a configuration with mean and standard deviation, which must be known by now.

    Args:
        preprocessing: of the configuration.
        normalise: what a person says instead, if anything.
        what: the model is called in messages.
    """
    if normalise is not None:
        mean, std = read_normalisation(normalise)
        return replace(preprocessing, mean=mean, std=std)
    if preprocessing.mean is None:
        raise HapteraError(
            f"the configuration of model {what} has no mean and std; say what it was trained with: --normalise "
            "imagenet, half, MEAN/STD or none"
        )
    return preprocessing


def default_resize(models: Mapping[str, Preprocessing], given: Collection[str] = ()) -> Resize | None:
    """Return how image files are read where nobody says it: as all models that say anything want them.

    Args:
        models: name -> what its configuration says.
        given: what somebody says, of size, crop and interpolation; models may disagree about it.
    """
    agreed: dict[str, Any] = {}
    for key in KEYS:
        wanted = {name: getattr(own, key) for name, own in models.items() if getattr(own, key) is not None}
        if key in given or not wanted:
            continue
        (first, value), *others = wanted.items()
        if other := next((name for name, another in others if another != value), ""):
            raise HapteraError(
                f"model {first} takes images with {key} {value} and model {other} with {key} {wanted[other]}; give one "
                f"for both (--{key}), or run them in two studies"
            )
        agreed[key] = value
    for name, own in models.items():
        if own != Preprocessing():
            log.info("model %s: %s, as its configuration says", name, own)
    return Resize(**agreed) if agreed else None


def _check_values(mean: Sequence[float], std: Sequence[float]) -> None:
    if len(mean) != len(std) or len(mean) not in (1, 3):
        raise HapteraError(f"mean has {len(mean)} values and std {len(std)}; 1 or 3 of each were expected")
    for value in mean:
        check_number("mean", value, least=-1000, most=1000)
    for value in std:
        check_number("std", value, above=0, most=1000)
