"""Ways to hand images to a model: the normalisations that people use, and both orders of the colours.

A model may do one already, inside, that it should not; so every pair is tried, of one that is undone and one that is
done in its place.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import torch


@dataclass(frozen=True)
class Normalisation:
    """(x - mean) / std, with a value for each channel.

    Attributes:
        name: as `--normalise` takes it, or a few words.
        words: what a sentence calls it.
        mean: a number for each channel.
        std: likewise.
    """

    name: str
    words: str
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def apply(self, images: torch.Tensor) -> torch.Tensor:
        """Return normalised images."""
        return (images - self._shaped(self.mean)) / self._shaped(self.std)

    def undo(self, images: torch.Tensor) -> torch.Tensor:
        """Return what the images were before."""
        return images * self._shaped(self.std) + self._shaped(self.mean)

    @staticmethod
    def _shaped(values: Sequence[float]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.float32).view(1, -1, 1, 1)


def normalisations(images: torch.Tensor) -> list[Normalisation]:
    """Return those that people use, the one that changes nothing first."""
    channels = images.shape[1]
    flat = images.double().transpose(0, 1).flatten(1)
    own = tuple(flat.mean(1).tolist()), tuple(flat.std(1).clamp_min(1e-6).tolist())
    known = [
        Normalisation("none", "values from 0 to 1", (0.0,) * channels, (1.0,) * channels),
        Normalisation("half", "(x - .5) / .5", (0.5,) * channels, (0.5,) * channels),
        Normalisation("bytes", "values from 0 to 255", (0.0,) * channels, (1 / 255,) * channels),
        Normalisation("data", "mean and std of the data", *own),
    ]
    if channels == 3:
        imagenet = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
        known.insert(1, Normalisation("imagenet", "mean and std of ImageNet", *imagenet))
    return known


@dataclass(frozen=True)
class Setup:
    """A way to hand images to a model: as they are, or changed so that the network inside sees others.

    Attributes:
        undone: what the model does already, and should not.
        applied: what it should do in the place of that.
        turned: whether the colours are handed over in the other order.
    """

    undone: Normalisation
    applied: Normalisation
    turned: bool = False

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        """Return the images as the model shall get them."""
        images = images.flip(1) if self.turned else images
        return images if self.same_scale else self.undone.undo(self.applied.apply(images))

    @property
    def scale(self) -> tuple[str, str]:
        """Return the names of what is undone and of what is applied, equal ones where nothing changes."""
        return self.undone.name, self.applied.name

    @property
    def same_scale(self) -> bool:
        """Say whether the scale is the one that is there."""
        return self.undone.name == self.applied.name

    @property
    def words(self) -> str:
        """Return what a sentence calls the scale."""
        if self.same_scale:
            return "as it is"
        if self.undone.name == "none":
            return self.applied.words
        return f"{self.applied.words} in the place of {self.undone.words}"

    @property
    def advice(self) -> str:
        """Return what to do."""
        if self.undone.name == "bytes":
            more = "" if self.applied.name == "none" else f" and normalise them by {self.applied.words}"
            return f"divide the images by 255{more}"
        if self.applied.name == "none":
            return f"leave out the normalisation of the model ({self.undone.words}; --normalise none)"
        if self.applied.name == "bytes":
            return "multiply the images by 255: wrap the model so that it does (--normalise 0/0.00392)"
        values = "/".join(",".join(f"{value:.3g}" for value in each) for each in (self.applied.mean, self.applied.std))
        own = self.applied.name if self.applied.name != "data" else values
        return f"normalise by {self.applied.words} (--normalise {own})"


def setups(images: torch.Tensor) -> list[Setup]:
    """Return every scale to try, the one that is there first, with the colours as they are."""
    known = normalisations(images)
    pairs = [(one, other) for one, other in product(known, known) if one is not other]
    return [Setup(one, other) for one, other in [(known[0], known[0]), *pairs]]


def exchanged(images: torch.Tensor, likeliest: Setup) -> list[Setup]:
    """Return the scale that is there and the likeliest with red and blue exchanged; nothing where there are none."""
    if not has_colour(images):
        return []
    scales = {
        (known.name, other.name): (known, other) for known, other in product(normalisations(images.flip(1)), repeat=2)
    }
    wanted = dict.fromkeys([("none", "none"), likeliest.scale])
    return [Setup(*scales[scale], turned=True) for scale in wanted]


def has_colour(images: torch.Tensor) -> bool:
    """Say whether the order of the channels makes a difference."""
    return images.shape[1] == 3 and bool((images[:, 0] - images[:, 2]).abs().max() > 1.5 / 255)
