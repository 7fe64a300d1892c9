"""Second moment: all that the dependencies among classes need of the logits, gathered in one pass, and its precision.

Source: "Neural Dependencies Emerging from Learning Massive Categories", section 2.2: Cov = E[f fᵀ], neither centred nor
scaled (remark 1). Between two networks f and g, the cross moment E[f gᵀ] and the diagonal of E[g gᵀ] join it.
Sums are in float64 whatever the logits are.

A rank or a redundancy is a statement about what is exactly zero, and rounding makes noise of it: logits of rank 10 that
were stored in float16 have full rank, and so they have when somebody made float32 of them afterwards. So the values
decide, not the type: the coarsest format that holds all of them is the one they were rounded to. Whole numbers are
exact. Rounding to nearest with a machine epsilon ε moves a number v by less than ε|v|/2, evenly: a variance of at most
ε²v²/12. In a second moment scaled to a unit diagonal that adds ε²/12 to every eigenvalue, and from N samples of n
classes up to (1 + √(n/N))² times as much (Marchenko and Pastur, 1967).
Cost: N n² multiplications, a block of rows and two n x n arrays of memory; digits are looked at up to the first block
that has them all.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import sqrt
from typing import Any, Self

import numpy as np

from haptera.errors import HapteraError

HALF, SINGLE, DOUBLE = (float(np.finfo(kind).eps) for kind in (np.float16, np.float32, np.float64))
BRAIN = 2.0**-7
FORMATS = {"bfloat16": BRAIN, "float16": HALF, "float32": SINGLE, "float64": DOUBLE}
"""Name of a format -> its machine epsilon, the coarsest first."""
ROOM = 4.0
"""Noise eigenvalues are this many times below the edge: samples are not all of one size."""
ARITHMETIC = 8.0
"""Networks add up in float32, and a sum of hundreds of products is off by some units in its last place."""
BLOCK = 512
"""Rows that are turned into float64 at once."""
STRIPE = 256
"""Columns whose products are computed at once."""


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
        """Return the name of the format; `exact` for whole numbers, and where nothing was seen."""
        return "exact" if self._whole else self._possible[0]

    def noise(self, classes: int, samples: int) -> float:
        """What rounding adds to an eigenvalue of the second moment at a unit diagonal, at most; 0 for float64."""
        if self.name in ("exact", "float64") or not samples:
            return 0.0
        epsilon = max(FORMATS[self.name], ARITHMETIC * SINGLE)
        return ROOM * epsilon**2 / 12 * (1 + sqrt(classes / samples)) ** 2


def _holds(name: str, rows: np.ndarray) -> bool:
    """Say whether a format coarser than that of the rows holds them all."""
    with np.errstate(over="ignore", invalid="ignore"):
        if name == "bfloat16":  # the upper half of a float32
            single = np.ascontiguousarray(rows, np.float32)
            return bool((single == rows).all() and not (single.view(np.uint32) & 0xFFFF).any())
        return bool((rows.astype(name) == rows).all())


@dataclass
class SecondMoment:
    """Sums over the samples seen so far.

    Attributes:
        samples: how many.
        within: `(classes, classes)`, sum of f fᵀ.
        cross: `(classes, targets)`, sum of f gᵀ; None within one network.
        onto: `(targets,)`, sum of g²; None within one network.
        precision: of the logits f.
    """

    samples: int = 0
    within: np.ndarray | None = None
    cross: np.ndarray | None = None
    onto: np.ndarray | None = None
    precision: Precision = field(default_factory=Precision)

    @classmethod
    def of(cls, logits: np.ndarray, onto: np.ndarray | None = None) -> Self:
        """The moment of logits `(samples, classes)`, and of those of another network on the same samples.

        >>> SecondMoment.of(np.array([[2.0, 1.0], [0.0, 1.0]])).matrix().tolist()
        [[2.0, 1.0], [1.0, 1.0]]
        """
        return cls().add(logits, onto)

    @classmethod
    def of_stream(cls, batches: Iterable[Any]) -> Self:
        """The moment of batches: arrays `(batch, classes)`, or pairs of them for two networks."""
        moment = cls()
        for batch in batches:
            logits, onto = batch if isinstance(batch, tuple) else (batch, None)
            moment.add(logits, onto)
        if not moment.samples:
            raise HapteraError("the stream of logits is empty; at least one batch was expected")
        return moment

    @classmethod
    def given(cls, matrix: np.ndarray, cross: np.ndarray | None = None, onto: np.ndarray | None = None) -> Self:
        """A moment that was computed elsewhere.

        Args:
            matrix: `(classes, classes)`, E[f fᵀ].
            cross: `(classes, targets)`, E[f gᵀ].
            onto: `(targets,)`, E[g²].
        """
        matrix = np.array(matrix, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
            raise HapteraError(f"the second moment has shape {matrix.shape}; (classes, classes) was expected")
        if (cross is None) != (onto is None):
            raise HapteraError("cross and onto belong together: E[f gᵀ] and E[g²] of the other network")
        for name, array in (("the second moment", matrix), ("cross", cross), ("onto", onto)):
            if array is not None and not np.isfinite(array).all():
                raise HapteraError(f"{name} holds NaN or infinite values")
        diagonal = matrix.diagonal()
        if (diagonal < 0).any():
            worst = int(diagonal.argmin())
            raise HapteraError(f"the second moment has {diagonal[worst]:g} at ({worst}, {worst}), a mean of squares")
        off = np.abs(matrix - matrix.T).max()
        if off > 1e-8 * max(diagonal.max(), np.finfo(float).tiny):
            raise HapteraError(
                f"the second moment is not symmetric: entries differ by {off:g} from the transposed ones"
            )
        matrix = (matrix + matrix.T) / 2
        values = np.linalg.eigvalsh(matrix)
        if values[0] < -1e-8 * max(values[-1], np.finfo(float).tiny):
            raise HapteraError(f"the second moment has the eigenvalue {values[0]:g}; a mean of f fᵀ has none below 0")
        if cross is None or onto is None:
            return cls(1, matrix)
        cross, onto = np.array(cross, dtype=np.float64), np.array(onto, dtype=np.float64)
        if onto.ndim != 1 or cross.shape != (len(matrix), len(onto)):
            raise HapteraError(
                f"cross has shape {cross.shape}, onto {onto.shape}; "
                f"({len(matrix)}, targets) and (targets,) were expected"
            )
        return cls(1, matrix, cross, onto)

    def add(self, logits: np.ndarray, onto: np.ndarray | None = None) -> Self:
        """Add samples; returns itself."""
        logits = check_logits("logits", logits)
        if onto is not None:
            onto = check_logits("onto", onto)
            if len(onto) != len(logits):
                raise HapteraError(f"onto has {len(onto)} samples, logits have {len(logits)}; they must be the same")
        self._begin(logits.shape[1], None if onto is None else onto.shape[1])
        assert self.within is not None
        for first, rows in _blocks(logits):
            self.precision.see(logits[first : first + BLOCK])
            with np.errstate(invalid="ignore", over="ignore"):  # looked for below
                _add_products(self.within, rows)
            _check_finite("logits", self.within.diagonal(), logits, first, self.samples)
            if onto is not None and self.cross is not None and self.onto is not None:
                others = onto[first : first + BLOCK].astype(np.float64)
                with np.errstate(invalid="ignore", over="ignore"):
                    squares = np.einsum("ij,ij->j", others, others)
                _check_finite("onto", squares, onto, first, self.samples)
                self.cross += rows.T @ others
                self.onto += squares
        self.samples += len(logits)
        return self

    def without(self, others: "SecondMoment") -> "SecondMoment":
        """The moment of all samples but some of them."""
        if self.within is None or others.within is None or others.samples >= self.samples:
            raise HapteraError(f"{others.samples} samples cannot be taken from {self.samples}")
        rest = SecondMoment(self.samples - others.samples, self.within - others.within, precision=self.precision)
        if self.cross is not None and others.cross is not None and self.onto is not None and others.onto is not None:
            rest.cross, rest.onto = self.cross - others.cross, self.onto - others.onto
        return rest

    def matrix(self) -> np.ndarray:
        """`(classes, classes)`, E[f fᵀ]."""
        if self.within is None:
            raise HapteraError("the second moment has seen no samples")
        return self.within / self.samples

    def sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """The root mean square of every logit, `(classes,)` and `(targets,)`; 1 for one that is always 0."""
        own = np.sqrt(self.matrix().diagonal())
        onto = own if self.onto is None else np.sqrt(self.onto / self.samples)
        return np.where(own > 0, own, 1.0), np.where(onto > 0, onto, 1.0)

    def scaled(self) -> "SecondMoment":
        """The moment of the same logits, each in units of its own root mean square.

        >>> SecondMoment.given([[4.0, 1.0], [1.0, 1.0]]).scaled().matrix().tolist()
        [[1.0, 0.5], [0.5, 1.0]]
        """
        own, onto = self.sizes()
        assert self.within is not None  # or sizes would have complained
        rest = SecondMoment(self.samples, self.within / np.outer(own, own), precision=self.precision)
        if self.cross is not None and self.onto is not None:
            rest.cross, rest.onto = self.cross / np.outer(own, onto), self.onto / onto**2
        return rest

    def __add__(self, other: "SecondMoment") -> "SecondMoment":
        """The moment of both sets of samples; the precision stays that of the first."""
        if self.within is None or other.within is None:
            raise HapteraError("the second moment has seen no samples")
        both = SecondMoment(self.samples + other.samples, self.within + other.within, precision=self.precision)
        if self.cross is not None and other.cross is not None and self.onto is not None and other.onto is not None:
            both.cross, both.onto = self.cross + other.cross, self.onto + other.onto
        return both

    def problems(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What the lasso needs: E[f fᵀ], right sides `(targets, classes)`, the targets' own squares `(targets,)`."""
        matrix = self.matrix()
        if self.cross is None or self.onto is None:
            return matrix, matrix, matrix.diagonal().copy()
        return matrix, np.ascontiguousarray(self.cross.T) / self.samples, self.onto / self.samples

    def left_out(self) -> np.ndarray:
        """`(targets,)`, the class that may not explain a target: itself; -1 where the networks have other classes."""
        if self.cross is None:
            return np.arange(len(self.matrix()))
        classes, targets = self.cross.shape
        return np.arange(targets) if classes == targets else np.full(targets, -1)

    def _begin(self, classes: int, targets: int | None) -> None:
        if self.within is None:
            self.within = np.zeros((classes, classes))
            if targets is not None:
                self.cross, self.onto = np.zeros((classes, targets)), np.zeros(targets)
        found = None if self.cross is None else self.cross.shape[1]
        if len(self.within) != classes or found != targets:
            before = f"{len(self.within)} classes" + (f" onto {found}" if found else "")
            now = f"{classes}" + (f" onto {targets}" if targets else "")
            raise HapteraError(f"a batch has {now} classes, those before it had {before}")


def check_logits(name: str, logits: np.ndarray) -> np.ndarray:
    """An array `(samples, classes)` of numbers, or an error that says what was found instead."""
    logits = np.asarray(logits)
    if logits.ndim != 2 or logits.dtype.kind not in "fiu" or not logits.size:
        raise HapteraError(f"{name} are {logits.dtype} {logits.shape}; numbers (samples, classes) were expected")
    return logits


def check_finite(name: str, rows: np.ndarray, before: int) -> None:
    """Refuse a batch with NaN or infinite values; `before` rows came before it."""
    if not np.isfinite(rows).all():
        _check_finite(name, np.array([np.nan]), rows, 0, before)


def _blocks(logits: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Blocks of rows in float64, in one buffer, with the number of their first row."""
    buffer = np.empty((min(BLOCK, len(logits)), logits.shape[1]))
    for first in range(0, len(logits), BLOCK):
        rows = logits[first : first + BLOCK]
        np.copyto(buffer[: len(rows)], rows)
        yield first, buffer[: len(rows)]


def _add_products(total: np.ndarray, rows: np.ndarray) -> None:
    """Add `rows.T @ rows`, a few columns at a time: a whole product for each block would be as large as the moment.

    One triangle is computed and mirrored, so it is exactly symmetric.
    """
    for first in range(0, rows.shape[1], STRIPE):
        own, others = rows[:, first : first + STRIPE], rows[:, first + STRIPE :]
        stop = first + own.shape[1]
        total[first:stop, first:stop] += own.T @ own
        if others.size:
            part = own.T @ others
            total[first:stop, stop:] += part
            total[stop:, first:stop] += part.T


def _check_finite(name: str, squares: np.ndarray, logits: np.ndarray, first: int, before: int) -> None:
    """A single NaN makes its sum of squares NaN, so only then is it looked for."""
    if np.isfinite(squares).all():
        return
    rows = logits[first:]
    bad = np.argwhere(~np.isfinite(rows))
    if not len(bad):
        raise HapteraError(f"{name} are so large that their squares overflow")
    row, column = bad[0]
    where = f"sample {before + first + row}, class {column}"
    raise HapteraError(f"{name} hold {rows[row, column]} in {where}; finite numbers were expected")
