"""PoseNetwork: any network that finds keypoints, behind one interface; `as_network` puts a module or function there.

A network takes images `(batch, 3, height, width)` in [0, 1], its normalisation included, and gives one of

- keypoints `(batch, parts, 2)` in pixels of these images and confidence `(batch, parts)` in [0, 1]: as a pair, as a
  dictionary or object with `keypoints` and `confidence`, or as one tensor `(batch, parts, 3)` of x, y and confidence;
- score maps `(batch, parts, rows, columns)`, alone, or with offsets `(batch, 2 parts, rows, columns)`, x and y of each
  part in turn, or `(batch, parts, 2, rows, columns)`: as a pair, as a dictionary or object with `scores` and `offsets`
  (`heatmap` and `locref` are known too), or as one tensor `(batch, 3 parts, rows, columns)`.

Inside haptera it is one tensor, keypoints `(batch, parts, 3)` or maps with the scores first, so that adapters, which
hand on whatever a network gives, need to know nothing of poses; `decode` makes keypoints of it.
The cell with the largest score is the keypoint, plus its offset (thesis chapter 5); where there are no offsets, the
middle of that cell. A keypoint whose scores are not numbers is missing.
Cost: a trial to see what the network gives (`haptera.pose.trial`); then a maximum over cells.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from haptera.checks import check_number
from haptera.errors import HapteraError, check_keys
from haptera.files.fingerprint import fingerprint
from haptera.models.opaque import CallableModel
from haptera.pose.trial import TRIAL, find_stride, try_network, try_smaller

LOGITS, CLIP = "logits", "probabilities"
ROUNDING = 1e-3
"""By which a confidence may miss 0 or 1."""
NAMES = {"scores": ("scores", "heatmap", "heatmaps"), "offsets": ("offsets", "locref")}
SHAPES = "keypoints and confidence, or score maps with or without offsets, (batch, parts, ...) each,"


@dataclass(frozen=True)
class Maps:
    """What the cells of maps mean.

    Attributes:
        stride: pixels from one cell to the next.
        unit: pixels of an offset of 1; the stride if None.
        first: where the centre of the first cell is, in pixels; (stride − 1) / 2, the middle of its pixels, if None.
        scores: `logits`, of which the sigmoid is the confidence, or `probabilities`, which are cut to [0, 1].
    """

    stride: float
    unit: float | None = None
    first: float | None = None
    scores: str = LOGITS

    def __post_init__(self) -> None:
        check_number("stride", self.stride, above=0, what="pixels of a cell")
        check_keys("kind of scores", [self.scores], (LOGITS, CLIP))

    def decode(self, maps: torch.Tensor, parts: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return keypoints and confidence of maps `(batch, parts or 3 parts, rows, columns)`, the scores first."""
        columns = maps.shape[-1]
        best, cell = maps[:, :parts].flatten(2).max(2)
        places = torch.stack([cell % columns, torch.div(cell, columns, rounding_mode="floor")], 2)
        first = (self.stride - 1) / 2 if self.first is None else self.first
        points = places * self.stride + first
        if maps.shape[1] > parts:
            offsets = maps[:, parts:].unflatten(1, (parts, 2)).flatten(3)
            chosen = offsets.gather(3, cell[:, :, None, None].expand(-1, -1, 2, 1))[..., 0]
            points = points + chosen * (self.stride if self.unit is None else self.unit)
        confidence = best.sigmoid() if self.scores == LOGITS else best.clamp(0, 1)
        return without_lost(points.to(maps.dtype), confidence)


class PoseNetwork(nn.Module):
    """A network from images to one tensor that `decode` makes keypoints of.

    Attributes:
        parts: their names.
        skeleton: pairs of parts, to draw.
        size: height and width to which images are brought before the network sees them; None leaves them.
        maps: what the cells of its outputs mean; None if they are keypoints, or maps that it decodes in its own way.
    """

    parts: tuple[str, ...]
    skeleton: tuple[tuple[str, str], ...] = ()
    size: tuple[int, int] | None = None
    maps: Maps | None = None

    def decode(self, outputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return keypoints `(batch, parts, 2)` in pixels and confidence `(batch, parts)`.

        Args:
            outputs: of `forward`; here `(batch, parts, 3)`, x, y and confidence.
        """
        return outputs[..., :2], outputs[..., 2]


class WrappedNetwork(PoseNetwork):
    """Somebody's network, whose outputs are brought into one tensor.

    Args:
        network: see the module.
        parts: their names.
        maps: what the cells mean, of a network that gives maps.
        skeleton: pairs of parts.
        size: see `PoseNetwork`.
        only: height and width of the only images for which `maps` holds; any if None.
    """

    def __init__(
        self,
        network: nn.Module,
        parts: Sequence[str],
        maps: Maps | None = None,
        *,
        skeleton: Sequence[tuple[str, str]] = (),
        size: tuple[int, int] | None = None,
        only: tuple[int, int] | None = None,
    ) -> None:
        super().__init__()
        self.network, self.maps, self.only = network, maps, only
        self.parts, self.skeleton, self.size = tuple(parts), tuple(skeleton), size
        if opaque := getattr(network, "opaque", None):
            self.opaque = opaque

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return keypoints `(batch, parts, 3)` or maps `(batch, parts or 3 parts, rows, columns)`."""
        if self.only is not None and tuple(images.shape[-2:]) != self.only:
            raise HapteraError(
                f"the network makes maps of one size, of images of {self.only[0]} x {self.only[1]}; found "
                f"{images.shape[-2]} x {images.shape[-1]} (height x width)"
            )
        packed = pack(self.network(images), len(self.parts))
        if len(packed) != len(images):
            raise HapteraError(
                f"the network gave answers to {len(packed)} of {len(images)} images; one for each, expected"
            )
        return packed if packed.ndim == 4 else with_checked_confidence(packed)

    def decode(self, outputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return keypoints and confidence; see `Maps.decode`."""
        if outputs.ndim == 3:
            return super().decode(outputs)
        assert self.maps is not None
        return self.maps.decode(outputs, len(self.parts))


def as_network(
    network: nn.Module | Callable[..., Any],
    parts: Sequence[str],
    *,
    stride: float | None = None,
    unit: float | None = None,
    first: float | None = None,
    scores: str = LOGITS,
    skeleton: Sequence[tuple[str, str]] = (),
    size: tuple[int, int] | None = None,
    version: str = "",
) -> PoseNetwork:
    """Return any network or function as one that all commands and functions of `haptera.pose` take.

    Args:
        network: an `nn.Module` from images to one of the outputs above, or a function from an array
            `(batch, 3, height, width)`, float32 in [0, 1], to them, which shows neither layers nor gradients.
        parts: their names.
        stride: of maps; found by a trial if left out.
        unit: see `Maps`.
        first: see `Maps`.
        scores: see `Maps`.
        skeleton: pairs of parts, to draw.
        size: height and width to which images are brought.
        version: of what is behind a function; results of another version are not taken for those of this one.

    >>> found = as_network(lambda images: (images[:, :2, :2, 0], images[:, :2, 0, 0]), ["nose", "tail"])
    >>> found.decode(found(torch.ones(1, 3, 8, 8)))[1]
    tensor([[1., 1.]])
    """
    if isinstance(network, PoseNetwork):
        return network
    if not parts:
        raise HapteraError("a pose network needs the names of its parts, at least one")
    if not isinstance(network, nn.Module):
        what = getattr(network, "__name__", type(network).__name__)
        if not callable(network):
            raise HapteraError(f"a {what} cannot be called; a function from images to keypoints was expected")
        try:
            print_ = fingerprint(network, version)
        except HapteraError:  # an object that is called, of which nothing is known but its class
            print_ = fingerprint(type(network), version)
        network = CallableModel(network, what, print_)
    height, width = size or (TRIAL, TRIAL)
    found = pack(try_network(network, height, width), len(parts))
    maps = only = None
    if found.ndim == 4:
        if stride is None:
            shape = found.shape[2], found.shape[3]
            stride, smaller = find_stride((height, width), shape), try_smaller(network, height, width)
            only = (height, width) if smaller is not None and pack(smaller, len(parts)).shape == found.shape else None
            if only and size is None:
                raise HapteraError(
                    f"the network makes maps of {shape[0]} x {shape[1]} whatever the size of the images, so its cells "
                    "have no size of their own; give size=(height, width), to which images are brought"
                )
        maps = Maps(stride, unit, first, scores)
    return WrappedNetwork(network, parts, maps, skeleton=skeleton, size=size, only=only)


def pack(outputs: Any, parts: int) -> torch.Tensor:
    """Return outputs in any of the forms above as one tensor."""
    one, two = _pair(outputs)
    if two is None:
        if one.ndim == 3 and one.shape[1:] == (parts, 3):
            return one
        if one.ndim == 4 and one.shape[1] in (parts, 3 * parts):
            return one
    elif one.ndim == 3 and one.shape[1:] == (parts, 2) and two.shape == one.shape[:2]:
        return torch.cat([one, two[..., None].to(one)], 2)
    elif one.ndim == 4 and one.shape[1] == parts:
        offsets = two.flatten(1, 2) if two.ndim == 5 else two
        if offsets.shape == (len(one), 2 * parts, *one.shape[2:]):
            return torch.cat([one, offsets.to(one)], 1)
    shapes = " and ".join(str(tuple(each.shape)) for each in (one, two) if each is not None)
    raise HapteraError(f"the network gave {shapes} for {parts} parts; {SHAPES} was expected")


def with_checked_confidence(packed: torch.Tensor) -> torch.Tensor:
    """Return keypoints whose confidence is in [0, 1]; a keypoint that has none was not found, and is missing.

    >>> with_checked_confidence(torch.tensor([[[3.0, 4.0, float("nan")]]]))
    tensor([[[nan, nan, 0.]]])
    """
    confidence = packed[..., 2]
    known = confidence[confidence == confidence]
    if len(known) and not -ROUNDING <= float(known.min()) <= float(known.max()) <= 1 + ROUNDING:
        raise HapteraError(
            f"the network gave confidence from {float(known.min()):g} to {float(known.max()):g}; 0 to 1 was expected"
        )
    if len(known) == confidence.numel():
        return packed
    points, confidence = without_lost(packed[..., :2], confidence)
    return torch.cat([points, confidence[..., None]], 2)


def without_lost(points: torch.Tensor, confidence: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return keypoints and confidence; where that is NaN the keypoint is NaN too, with a confidence of 0."""
    lost = confidence != confidence
    return points.masked_fill(lost[..., None], torch.nan), confidence.masked_fill(lost, 0.0)


def _pair(outputs: Any) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return keypoints and confidence, or scores and offsets; the second is None where one tensor holds all."""
    if isinstance(outputs, torch.Tensor):
        return outputs, None
    if isinstance(outputs, tuple | list) and len(outputs) == 2 and all(torch.is_tensor(each) for each in outputs):
        return outputs[0], outputs[1]
    named = outputs if isinstance(outputs, dict) else getattr(outputs, "__dict__", {})
    for first, second in ((("keypoints",), ("confidence",)), (NAMES["scores"], NAMES["offsets"])):
        one, two = (
            next((named[key] for key in keys if torch.is_tensor(named.get(key))), None) for keys in (first, second)
        )
        if one is not None and (two is not None or first != ("keypoints",)):
            return one, two
    keys = f" with {', '.join(map(str, named))}" if named else ""
    raise HapteraError(f"the network gave a {type(outputs).__name__}{keys}; {SHAPES} was expected")
