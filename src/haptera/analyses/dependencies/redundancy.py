"""Redundancy: how little of a class's logit the other classes leave unexplained, without a determinant.

Source: "Neural Dependencies Emerging from Learning Massive Categories", (5), (A30) and (A33): R_i = det C / det C_−i,−i
= 1 / (C⁻¹)_ii = 1 / Σ_j α_ij² / σ_j², the error of (2) at λ = 0; and R_i / C_ii (A31). The determinants, which the
source calls numerically hopeless (remark 2), are never formed: one eigendecomposition of C, scaled to a unit diagonal,
answers for all classes. Eigenvalues within rounding of zero count as the null space: that of float64, or of the format
that the logits were stored in, see `precision`. Where its part in (A33) would
outweigh the rest, were they at the edge of rounding, a class lies in it, and its redundancy is 0. Wherever rounding
leaves less than two digits the class is flagged as not reliable.
With the logits themselves, the singular values of a triangular factor keep twice as many digits.
Cost: one eigendecomposition, n³; from logits N n² for the factor.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from haptera.analyses.dependencies.second_moment import BLOCK, Precision, SecondMoment, check_logits
from haptera.errors import HapteraError

CLEAR = 1e8
"""Times the edge of rounding: a gap above the null space that is beyond doubt."""
RELIABLE = 0.01
"""The largest bound on the relative error of a redundancy that is called reliable."""
_EPS = float(np.finfo(np.float64).eps)
Pair = tuple[np.ndarray, np.ndarray]
"""Redundancies and their uncertainties."""


@dataclass(frozen=True, eq=False)
class Redundancy:
    """What the spectrum of a second moment says about every class.

    Attributes:
        value: R, `(targets,)`, never negative: the least mean squared error with which the others explain a class.
        relative: `(targets,)`, R divided by the mean square of the logit, in [0, 1]; 0 for a logit that is always 0.
        null_mass: `(classes,)`, the squared length of the part of a class's axis in the null space.
        uncertainty: `(targets,)`, a bound on the relative error that rounding may have made in `value`; 1 or more where
            no digit is left, as for a class in the null space.
        spectrum: `(classes,)`, eigenvalues of C, the largest first.
        rank: how many of them are not within rounding of 0, when every logit is scaled to a mean square of 1.
        precision: the format whose rounding that is, such as `float16`; `exact` for whole numbers.
    """

    value: np.ndarray
    relative: np.ndarray
    null_mass: np.ndarray
    uncertainty: np.ndarray
    spectrum: np.ndarray
    rank: int
    precision: str = "exact"

    @property
    def reliable(self) -> np.ndarray:
        """`(targets,)`, whether rounding leaves two digits."""
        return self.uncertainty <= RELIABLE

    @classmethod
    def of(cls, moment: SecondMoment) -> Self:
        """Measure a second moment; between two networks, how little the first leaves unexplained of each target."""
        matrix, right, own = moment.problems()
        scale = np.sqrt(matrix.diagonal())
        scale = np.where(scale > 0, scale, 1.0)
        values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
        edge = len(matrix) * _EPS * max(values[-1], 0.0) + moment.precision.noise(len(matrix), moment.samples)
        parts = _Parts(values, vectors, scale, edge)
        found = parts.redundancy(own) if moment.cross is None else parts.onto(right, own, moment.left_out())
        return cls._of_parts(parts, found, own, np.linalg.eigvalsh(matrix)[::-1], moment.precision.name)

    @classmethod
    def of_logits(cls, logits: np.ndarray | Iterable[np.ndarray]) -> Self:
        """Measure logits, or batches of them, with twice as many digits as their second moment has."""
        if isinstance(logits, np.ndarray):
            rows = check_logits("logits", logits)
            logits = (rows[first : first + BLOCK] for first in range(0, len(rows), BLOCK))
        triangle, precision, samples = _triangle(logits)
        own = (triangle**2).sum(0)
        scale = np.where(own > 0, np.sqrt(own), 1.0)
        _, singular, vectors = np.linalg.svd(triangle / scale)
        edge = (len(triangle) * _EPS * singular[0]) ** 2 + precision.noise(len(triangle), samples)
        parts = _Parts(singular[::-1] ** 2, vectors[::-1].T, scale, edge, from_logits=True)
        spectrum = np.linalg.svd(triangle, compute_uv=False) ** 2
        return cls._of_parts(parts, parts.redundancy(own), own, spectrum, precision.name)

    @classmethod
    def _of_parts(cls, parts: "_Parts", found: Pair, own: np.ndarray, spectrum: np.ndarray, precision: str) -> Self:
        value, uncertainty = found
        relative = np.divide(value, own, out=np.zeros_like(value), where=own > 0)
        rank = int((~parts.null).sum())
        return cls(value, relative, parts.null_mass, uncertainty, np.maximum(spectrum, 0.0), rank, precision)


class _Parts:
    """Eigenvalues and eigenvectors of the scaled moment, cut at the edge of rounding."""

    def __init__(
        self, values: np.ndarray, vectors: np.ndarray, scale: np.ndarray, edge: float, from_logits: bool = False
    ) -> None:
        self.values, self.vectors, self.scale, self.edge, self.from_logits = values, vectors, scale, edge, from_logits
        self.null = values <= edge
        self.inverse = np.divide(1.0, values, out=np.zeros_like(values), where=~self.null)
        squares = vectors**2
        self.null_mass = np.clip(squares[:, self.null].sum(1), 0.0, 1.0)
        self.precision = squares @ self.inverse  # (C⁺)_ii of the scaled C
        self.column = squares @ self.inverse**2  # ‖C⁺e_i‖²
        # What the null space would add to the precision if its eigenvalues were at the edge, as a share of it. From
        # logits the edge is so low that what rounding turns an eigenvector by, its size over the gap, would count.
        mass = self.null_mass
        gap = values[~self.null].min(initial=np.inf)
        if from_logits and gap > CLEAR * edge:
            mass = np.where(mass > edge / gap, mass, 0.0)
        hidden = np.where(mass > 0, np.inf, 0.0)
        hidden = np.divide(mass, edge * self.precision, out=hidden, where=edge * self.precision > 0)
        self.in_null = hidden >= 1
        self.hidden = np.minimum(hidden, 1.0)

    def redundancy(self, own: np.ndarray) -> Pair:
        """R, and to first order how far a perturbation the size of rounding can move it, as a share of it."""
        known = ~self.in_null
        value, moved = np.zeros_like(own), np.zeros_like(own)
        value[known] = own[known] / self.precision[known]
        if self.from_logits:  # (C⁻¹)_ii changes by 2 ‖F x‖ ‖δF x‖ at most, with x = C⁻¹e_i
            moved[known] = 2 * np.sqrt(self.edge * self.column[known] / self.precision[known])
        else:  # by ‖δC‖ ‖x‖²
            moved[known] = self.edge * self.column[known] / self.precision[known]
        return np.minimum(value, own), moved + self.hidden

    def onto(self, right: np.ndarray, own: np.ndarray, left_out: np.ndarray) -> Pair:
        """What is left of targets: own − bᵀC⁺b, and what leaving out a class adds to it, (C⁺b)_i² / (C⁺)_ii."""
        along = (right / self.scale) @ self.vectors
        value = own - (along**2) @ self.inverse
        rows = np.flatnonzero(left_out >= 0)
        rows = rows[~self.in_null[left_out[rows]]]
        places = left_out[rows]
        pulled = ((along[rows] * self.inverse) * self.vectors[places]).sum(1)
        value[rows] += pulled**2 / self.precision[places]
        value = np.clip(value, 0.0, own)
        lost = self.edge * (along**2) @ self.inverse**2 + len(self.values) * _EPS * own  # rounding of the difference
        bound = np.divide(lost, value, out=np.full_like(own, np.inf), where=value > 0)
        return np.where(bound >= 1, 0.0, value), np.where(own > 0, bound, 0.0)


def _triangle(batches: Iterable[np.ndarray]) -> tuple[np.ndarray, Precision, int]:
    """The triangular factor of the logits divided by √N, of which one batch is held at a time; their precision; N."""
    triangle, samples, precision = np.empty((0, 0)), 0, Precision()
    for batch in batches:
        precision.see(check_logits("logits", batch))
        rows = check_logits("logits", batch).astype(np.float64)
        if not np.isfinite(rows).all():
            raise HapteraError(f"logits hold NaN or infinite values among samples {samples} to {samples + len(rows)}")
        if samples and rows.shape[1] != triangle.shape[1]:
            raise HapteraError(f"a batch has {rows.shape[1]} classes, those before it had {triangle.shape[1]}")
        stacked = np.vstack([triangle, rows]) if samples else rows
        triangle = np.asarray(np.linalg.qr(stacked, mode="r"))
        samples += len(rows)
    if not samples:
        raise HapteraError("the stream of logits is empty; at least one batch was expected")
    missing = triangle.shape[1] - len(triangle)
    whole = np.vstack([triangle, np.zeros((max(missing, 0), triangle.shape[1]))]) / np.sqrt(samples)
    return whole, precision, samples
