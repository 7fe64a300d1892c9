"""Scenes and masks: small pictures of which every factor is known, and pairs of them that are near in those factors.

Source: in the spirit of 3DIdent and of the KITTI masks (thesis chapter 6, "Extensions to image data"), drawn here: one
object on a lit ground, with position, rotation, size, hue and light as factors, each from 0 to 1. Positives are drawn
as there: from a conditional around the factors of a picture, then the picture of a finite set whose factors are
nearest. Edges are soft, so that a picture changes smoothly with its factors. A mask is the outline of an upright
figure, whose place and size are the factors, as those of the pedestrians in KITTI masks.
Cost: about 20 µs for each picture of 32 x 32 pixels.
"""

import numpy as np
from scipy.spatial import cKDTree

from haptera.analyses.identify.laws import Law
from haptera.errors import HapteraError

FACTORS = ("x", "y", "rotation", "size", "hue", "light")
MASK_FACTORS = ("x", "y", "size")
PIXELS = 32
SOFT = 0.03
"""Width of an edge, as a share of the picture."""


def draw_scenes(factors: np.ndarray, pixels: int = PIXELS) -> np.ndarray:
    """Pictures from 0 to 1, `(count, 3, pixels, pixels)`.

    Args:
        factors: `(count, 6)` from 0 to 1, in the order of `FACTORS`. The object's middle goes from .3 to .7 of the
            picture, it turns by half a turn in all, its length goes from .15 to .35, its hue from red to blue, and the
            light comes from the left at 0, from the right at 1.
        pixels: height and width.
    """
    factors = _checked(factors, len(FACTORS))
    x, y, turn, size, hue, light = (column[:, None, None] for column in factors.T)
    places = (np.arange(pixels, dtype=np.float32) + 0.5) / pixels
    right, down = places[None, None, :] - (0.3 + 0.4 * x), places[None, :, None] - (0.3 + 0.4 * y)
    angle, length = np.pi * (turn - 0.5), 0.15 + 0.2 * size
    along = right * np.cos(angle) + down * np.sin(angle)
    across = down * np.cos(angle) - right * np.sin(angle)
    # An egg with a bright eye at one end, so that no turn looks like another.
    body = _inside(np.hypot(along / length, across / (0.55 * length)), length)
    eye = _inside(np.hypot(along - 0.55 * length, across) / (0.22 * length), 0.22 * length)
    colour = np.stack([_lamp(hue[:, 0, 0], peak) for peak in (0.0, 0.5, 1.0)], 1)[..., None, None]
    fall = 1 - np.abs(places[None, None, :] - light)
    ground = 0.15 + 0.45 * fall[:, None] * np.ones((1, 1, pixels, 1), np.float32)
    lit = colour * (0.5 + 0.5 * fall[:, None])
    body, eye = body[:, None], eye[:, None]
    return np.asarray((ground * (1 - body) + lit * body) * (1 - eye) + eye, np.float32)


def draw_masks(factors: np.ndarray, pixels: int = PIXELS) -> np.ndarray:
    """Masks from 0 to 1, `(count, 1, pixels, pixels)`.

    Args:
        factors: `(count, 3)` from 0 to 1, in the order of `MASK_FACTORS`. The middle of the figure goes from .25 to .75
            of the picture, its height from .2 to .5; it is half as wide.
        pixels: height and width.
    """
    x, y, size = (column[:, None, None] for column in _checked(factors, len(MASK_FACTORS)).T)
    places = (np.arange(pixels, dtype=np.float32) + 0.5) / pixels
    right, down = places[None, None, :] - (0.25 + 0.5 * x), places[None, :, None] - (0.25 + 0.5 * y)
    half = 0.1 + 0.15 * size
    return np.asarray(_inside(np.hypot(2 * right / half, down / half), half)[:, None], np.float32)


SEEN = {"pictures": (len(FACTORS), draw_scenes), "masks": (len(MASK_FACTORS), draw_masks)}
"""How latents in a box can be seen, by factors and what draws them; other latents are mixed by a network."""


def _checked(factors: np.ndarray, count: int) -> np.ndarray:
    factors = np.asarray(factors, np.float32)
    if factors.ndim != 2 or factors.shape[1] != count or factors.min() < 0 or factors.max() > 1:
        raise HapteraError(f"factors have shape {factors.shape}; (count, {count}) from 0 to 1 was expected")
    return factors


def nearest_pairs(
    factors: np.ndarray, conditional: Law, count: int, random: np.random.Generator, tree: cKDTree | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a finite set that make pairs: a reference, and the one nearest to a draw around its factors.

    Args:
        factors: of the set, `(pictures, factors)` in the unit box.
        conditional: of a positive around its reference.
        count: pairs.
        random: draws references and positives.
        tree: of the factors, if it is there already.
    """
    first = random.integers(len(factors), size=count)
    wanted = conditional.draw("box", np.asarray(factors[first], float), random)
    return first, np.asarray((tree or cKDTree(factors)).query(wanted)[1])


def _inside(radius: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """1 inside, 0 outside, with a soft edge where the radius, in such units, is 1."""
    return np.asarray(1 / (1 + np.exp(np.clip((radius - 1) * unit / (SOFT / 4), -60, 60))))


def _lamp(hue: np.ndarray, peak: float) -> np.ndarray:
    """How strong a colour is whose peak is at some hue."""
    return np.maximum(0.0, 1 - 2 * np.abs(hue - peak)).astype(np.float32)
