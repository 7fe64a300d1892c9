"""Label: what was going on in each sample of a recording, and of what kind it is.

The kind decides how values are averaged, compared and given to an estimator: an `angle` lives on a circle, so that 359
degrees are near 1 degree; a `discrete` label has classes; a `continuous` one is a number, or several.
Where nobody says the kind, `haptera.recordings.kinds` decides it. The kind decides as well how predictions are scored:
R², median absolute error, errors on the circle, accuracy.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import pandas as pd

from haptera.errors import HapteraError, unknown
from haptera.recordings.kinds import doubt_of_unit, guess_kind, turn_of

Kind = Literal["continuous", "discrete", "angle"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_TURN = 2 * np.pi


@dataclass(frozen=True, eq=False)
class Label:
    """One label of every sample.

    Attributes:
        values: `(samples,)`, or `(samples, dimensions)` where it is continuous; angles in radians, from 0 to 2π;
            classes as codes from 0 on.
        kind: `continuous`, `discrete` or `angle`.
        classes: of a discrete label, what each code stands for.
        note: what was decided about it that nobody said; empty if nothing was.
    """

    values: np.ndarray
    kind: Kind
    classes: tuple[str, ...] = ()
    note: str = ""

    @classmethod
    def of(cls, values: np.ndarray, kind: str | None = None, name: str = "label") -> "Label":
        """A label from plain values; the kind, where nobody says it, from their type, range and name.

        Args:
            values: one for each sample; text is classes, and so are integers with few different values.
            kind: `continuous`, `discrete`, `angle` (radians) or `degrees`; None decides by itself.
            name: of the label; one such as `head_direction` says that it is an angle, if its range allows it.

        >>> Label.of(np.array([-90.0, 0.0]), "degrees").values.round(2).tolist()
        [4.71, 0.0]
        """
        values = np.asarray(values)
        if kind is not None and kind not in (*KINDS, "degrees"):
            raise unknown(f"kind of label {name!r}", kind, (*KINDS, "degrees"))
        if values.ndim == 0 or values.ndim > 2:
            raise HapteraError(f"label {name!r} has shape {values.shape}; one value or row for each sample expected")
        values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
        kind, note = (kind, doubt_of_unit(values, kind, name)) if kind else guess_kind(values, name)
        if kind == "discrete":
            return replace(cls._discrete(values, name), note=note)
        try:
            numbers = values.astype(float)
        except (TypeError, ValueError) as error:
            raise HapteraError(f"label {name!r} holds {values.dtype}, not numbers; it can only be discrete") from error
        if kind == "continuous":
            return cls(numbers, "continuous", note=note)
        if numbers.ndim != 1:
            raise HapteraError(f"label {name!r} has {numbers.shape[1]} columns; an angle has one")
        return cls(np.mod(np.deg2rad(numbers) if kind == "degrees" else numbers, _TURN), "angle", note=note)

    @classmethod
    def _discrete(cls, values: np.ndarray, name: str) -> "Label":
        if values.ndim != 1:
            raise HapteraError(f"label {name!r} has {values.shape[1]} columns; a discrete label has one")
        if missing := int(missing_values(values).sum()):
            raise HapteraError(
                f"label {name!r} has no value in {missing:,} samples; Recording.from_arrays leaves such samples out"
            )
        found, codes = np.unique(values, return_inverse=True)
        return cls(codes.astype(np.int64), "discrete", tuple(map(_text, found)))

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice | np.ndarray) -> "Label":
        """The label of these samples; classes keep their codes."""
        return Label(self.values[rows], self.kind, self.classes, self.note)

    @property
    def features(self) -> np.ndarray:
        """What an estimator takes: angles as points on the circle `(samples, 2)`, classes as integers, else numbers.

        >>> Label.of(np.array([0.0, np.pi / 2]), "angle").features.round(2).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        if self.kind == "angle":
            return np.column_stack([np.cos(self.values), np.sin(self.values)])
        return self.values if self.kind == "discrete" else self.values.reshape(len(self.values), -1)

    @property
    def readable(self) -> np.ndarray:
        """Return one value for each sample as people read it: degrees, a class, a number or the first of several."""
        if self.kind == "angle":
            return np.rad2deg(self.values)
        if self.kind == "discrete":
            return np.array(self.classes)[self.values]
        return self.values if self.values.ndim == 1 else self.values[:, 0]

    @property
    def turn(self) -> float | None:
        """Return the turn at which a number wraps for certain; None of all others."""
        return turn_of(self.values) if self.kind == "continuous" else None

    @property
    def missing(self) -> np.ndarray:
        """Say of every sample whether its label is not a number."""
        if self.kind == "discrete":
            return np.zeros(len(self.values), bool)
        return np.isnan(self.values.reshape(len(self.values), -1)).any(1)

    def shuffle(self, seed: int) -> "Label":
        """The same values in another order, over all samples (figure 7.7)."""
        return self[np.random.default_rng(seed).permutation(len(self))]


def _text(value: object) -> str:
    """Return what a class is called: a whole number in the same way whether a file holds integers or floats."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def estimator_targets(labels: Sequence[Label]) -> list[np.ndarray]:
    """Labels as the `*y` of an estimator: all continuous ones side by side, then each discrete one."""
    numbers = [label.features for label in labels if label.kind != "discrete"]
    classes = [label.features for label in labels if label.kind == "discrete"]
    return ([np.concatenate(numbers, axis=1)] if numbers else []) + classes


def missing_values(values: np.ndarray) -> np.ndarray:
    """Say of every sample whether a value of it is absent: not a number, infinite, or an empty cell of a table.

    >>> missing_values(np.array([[1.0, 2.0], [np.nan, 0.0]])).tolist()
    [False, True]
    """
    absent = np.asarray(pd.isna(values))
    if values.dtype.kind == "f":
        absent |= np.isinf(values)
    elif values.dtype.kind in "US":
        absent |= np.char.str_len(values) == 0
    elif values.dtype.kind == "O":
        absent |= values == ""
    return np.asarray(absent.reshape(len(values), -1).any(1))


def circular_difference(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The way from one angle to another, the short way round, from -π to π.

    >>> np.rad2deg(circular_difference(np.deg2rad([350.0]), np.deg2rad([10.0]))).round().tolist()
    [-20.0]
    """
    return np.mod(first - second + np.pi, 2 * np.pi) - np.pi


def circular_mean(angles: np.ndarray, axis: int = -1) -> np.ndarray:
    """The direction of the mean of points on the circle, from 0 to 2π."""
    return np.mod(np.arctan2(np.sin(angles).mean(axis), np.cos(angles).mean(axis)), 2 * np.pi)


def r2(true: np.ndarray, predicted: np.ndarray) -> float:
    """R², the mean over dimensions that change at all; not a number if none does.

    >>> r2(np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 2.0]))
    0.0
    """
    true, predicted = (np.asarray(values, float).reshape(len(values), -1) for values in (true, predicted))
    total = ((true - true.mean(0)) ** 2).sum(0)
    left = ((true - predicted) ** 2).sum(0)
    # Against rounding: a constant column has a sum of squares that is almost, not exactly, zero.
    changes = total > 1e-12 * np.maximum((true**2).sum(0), 1e-300)
    return float((1 - left[changes] / total[changes]).mean()) if changes.any() else float("nan")


def label_scores(true: Label, predicted: np.ndarray) -> dict[str, float]:
    """All that can be said about predictions of a label.

    Angles have `median_error` and `mean_error` in degrees and `r2` of their points on the circle; numbers have
    `median_error` (the Euclidean distance where there are several) and `r2`; classes have `accuracy`, and
    `balanced_accuracy`, the mean over classes.
    """
    if true.kind == "discrete":
        right = predicted == true.values
        shares = [right[true.values == each].mean() for each in np.unique(true.values)]
        return {"accuracy": float(right.mean()), "balanced_accuracy": float(np.mean(shares))}
    if true.kind == "angle":
        error = np.rad2deg(np.abs(circular_difference(true.values, predicted)))
        fit = r2(true.features, Label(predicted, "angle").features)
    else:
        error = np.linalg.norm((true.values - predicted).reshape(len(true), -1), axis=1)
        fit = r2(true.values, predicted)
    return {"median_error": float(np.median(error)), "mean_error": float(error.mean()), "r2": fit}


def objective(true: Label, predicted: np.ndarray) -> float:
    """What settings are chosen by, higher is better: accuracy of classes, or else R², of angles on the circle."""
    return label_scores(true, predicted)["accuracy" if true.kind == "discrete" else "r2"]
