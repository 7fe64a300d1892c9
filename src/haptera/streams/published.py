"""The orders in which the fifteen corruptions come: the usual one, and the ten of CoTTA.

Source: the order of ImageNet-C's and CIFAR-10-C's own tables, and the ten random orders on which CoTTA (Wang et al.
2022) reports its means; they are the same for ImageNet-C and CIFAR-10-C.
"""

from collections.abc import Iterable

from haptera.families import FAMILIES

USUAL = tuple(name for family in ("noise", "blur", "weather", "digital") for name in FAMILIES[family])
"""gaussian_noise, shot_noise, impulse_noise, ... jpeg_compression."""
_LETTERS = "abcdefghijklmno"
_ORDERS = (
    *("knafgecodmbihjl", "obgiljdmakecnhf", "ldabhiegmonkcfj", "bjenhmkcdilafog", "neghjckfioabldm"),
    *("fhjbdlgkimeanoc", "icolgenhdfkmbja", "egcjhoaibklfndm", "dfgbaeojlnihkmc", "ladgieojnmbchfk"),
)
PUBLISHED = tuple(tuple(USUAL[_LETTERS.index(letter)] for letter in order) for order in _ORDERS)
"""The ten orders of CoTTA; number 1 is the first."""


def usual_order(names: Iterable[str]) -> list[str]:
    """Return names in the usual order, then any others sorted.

    >>> usual_order(["near_focus", "fog", "gaussian_noise", "bit_error"])
    ['gaussian_noise', 'fog', 'bit_error', 'near_focus']
    """
    return sorted(names, key=lambda name: (USUAL.index(name) if name in USUAL else len(USUAL), name))
