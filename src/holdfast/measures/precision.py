"""Precision: how many digits logits have, whatever type of file they came in.

A rank or a redundancy is a statement about what is exactly zero, and rounding makes noise of it: logits of rank 10 that
were stored in float16 have full rank, and so they have when somebody made float32 of them afterwards. So the values
decide, not the type: the coarsest format that holds all of them is the one they were rounded to. Whole numbers are
exact.
Rounding to nearest with a machine epsilon ε moves a number v by less than ε|v|/2, evenly: a variance of at most
ε²v²/12. In a second moment scaled to a unit diagonal that adds ε²/12 to every eigenvalue, and from N samples of n
classes up to (1 + √(n/N))² times as much (Marchenko and Pastur, 1967).
Cost: nothing after the first block that has all its digits.
"""

from math import sqrt

import numpy as np

HALF, SINGLE, DOUBLE = (float(np.finfo(kind).eps) for kind in (np.float16, np.float32, np.float64))
BRAIN = 2.0**-7
FORMATS = {"bfloat16": BRAIN, "float16": HALF, "float32": SINGLE, "float64": DOUBLE}
"""Name of a format -> its machine epsilon, the coarsest first."""
ROOM = 4.0
"""Noise eigenvalues are this many times below the edge: samples are not all of one size."""
ARITHMETIC = 8.0
"""Networks add up in float32, and a sum of hundreds of products is off by some units in its last place."""


class Precision:
    """The coarsest format that holds all values seen so far."""

    def __init__(self) -> None:
        self._possible = list(FORMATS)
        self._whole = True

    def see(self, rows: np.ndarray) -> None:
        """Look at a block of values."""
        rows = np.asarray(rows)
        if rows.dtype.kind in "iu":
            return
        if self._whole:
            with np.errstate(invalid="ignore"):
                self._whole = bool((rows == np.rint(rows)).all())
        stored = FORMATS.get(rows.dtype.name, DOUBLE)
        self._possible = [name for name in self._possible if FORMATS[name] <= stored or _holds(name, rows)]

    @property
    def name(self) -> str:
        """Of the format; `exact` for whole numbers, and where nothing was seen."""
        return "exact" if self._whole else self._possible[0]

    def noise(self, classes: int, samples: int) -> float:
        """What rounding adds to an eigenvalue of the second moment at a unit diagonal, at most; 0 for float64."""
        if self.name in ("exact", "float64") or not samples:
            return 0.0
        epsilon = max(FORMATS[self.name], ARITHMETIC * SINGLE)
        return ROOM * epsilon**2 / 12 * (1 + sqrt(classes / samples)) ** 2


def _holds(name: str, rows: np.ndarray) -> bool:
    """Whether a format coarser than that of the rows holds them all."""
    with np.errstate(over="ignore", invalid="ignore"):
        if name == "bfloat16":  # the upper half of a float32
            single = np.ascontiguousarray(rows, np.float32)
            return bool((single == rows).all() and not (single.view(np.uint32) & 0xFFFF).any())
        return bool((rows.astype(name) == rows).all())
