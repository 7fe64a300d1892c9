"""Diagnose: has unlabelled data shifted, where in the network, what will it cost, how should adaptation be set?

    found = diagnose(model, new_camera, old_camera)
    found.test.p_value, found.profile, found.prediction, found.priors

Source: thesis chapter 2 and appendix A. The statistics of activations on the data are compared with those on the
reference, or, without a reference, with those that BatchNorm layers keep from training. With a labelled reference, the
hold-out corruptions say what a shift of a given size costs (a line per family), and all known corruptions which of them
it looks like: the one whose change of statistics has the largest cosine with that of the data.
Cost: passes over `samples` images: one for the data, one for the reference, and, with a reference, one for each known
corruption at three severities, for hold-out ones at five, on `known_samples` images.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from torch import nn

from holdfast.catalog import entries, find
from holdfast.data import Data
from holdfast.errors import HoldfastError
from holdfast.measures.moments import Moments
from holdfast.measures.shift_line import ShiftLine
from holdfast.measures.shift_size import ShiftTest, shift_profile, shift_size, shift_test
from holdfast.observe import batchnorm_statistics, observe_moments
from holdfast.progress import Progress
from holdfast.streams import Clean, Shifted, Truncated
from holdfast.theory.prior import Statistics, best_prior, prior_curve

log = logging.getLogger("holdfast")

BATCH_SIZES = (1, 8, 64, 256)
SEVERITIES, HOLDOUT_SEVERITIES = (1.0, 3.0, 5.0), (1.0, 2.0, 3.0, 4.0, 5.0)


@dataclass(frozen=True)
class Diagnosis:
    """What was found.

    Attributes:
        profile: each layer's distances.
        test: whether the shift is more than chance.
        priors: `n`, `prior`: the best N for batches of n images; empty without BatchNorm layers.
        known: known corruptions with `size`, `cosine` to the data's change and, with labels, `error`; empty without a
            reference.
        prediction: `family`, `error`, `low`, `high`, `inside`, `r2`; empty without a labelled reference.
        reference_error: of the model on the reference, where it has labels.
        prior_curves: `n`, `prior`, `lower`, `upper`, `simulated`: means over layers, as figure 2.5.
        place: of the data on the map of known corruptions, whose places are `x` and `y` of `known`.
    """

    profile: pd.DataFrame
    test: ShiftTest
    priors: pd.DataFrame = field(default_factory=pd.DataFrame)
    known: pd.DataFrame = field(default_factory=pd.DataFrame)
    prediction: pd.DataFrame = field(default_factory=pd.DataFrame)
    reference_error: float | None = None
    prior_curves: pd.DataFrame = field(default_factory=pd.DataFrame)
    place: tuple[float, float] = (0.0, 0.0)

    @property
    def nearest(self) -> pd.Series | None:
        """The known corruption that the shift looks most like."""
        return None if self.known.empty else self.known.iloc[int(self.known["cosine"].argmax())]

    @property
    def predicted(self) -> pd.Series | None:
        """The prediction of the family that the shift looks most like, or else of all together."""
        if self.prediction.empty or self.nearest is None:
            return None
        rows = self.prediction[self.prediction["family"].isin([self.nearest["family"], "all"])]
        return rows.iloc[0]  # `all` is the last one


def diagnose(
    model: nn.Module,
    data: Data,
    reference: Data | None = None,
    *,
    layers: Sequence[str] = (),
    samples: int = 1000,
    known_samples: int = 256,
    batch_size: int = 64,
    covariance: bool = False,
    seed: int = 0,
    progress: bool | None = None,
) -> Diagnosis:
    """Compare data with a reference through the eyes of a model.

    Args:
        model: any network; without `layers`, one with BatchNorm.
        data: unlabelled; labels, if it has any, are not read.
        reference: what the model was made for; labelled, if an error is to be predicted.
        layers: names or patterns of modules to compare at; BatchNorm layers if left out.
        samples: how many images of each, at most.
        known_samples: how many images of the reference each known corruption is tried on, at most; 0 leaves them out.
        batch_size: images per forward pass.
        covariance: distances with whole covariance matrices as well.
        seed: of the choice of images and of the corruptions.
        progress: show a bar; by default on a terminal.
    """
    if reference is None and layers:
        raise HoldfastError("layers without BatchNorm statistics need a reference to compare with")

    def first(source: Data, most: int) -> Truncated:
        return Truncated(Clean(source, batch_size=batch_size, seed=seed), first=most)

    here = observe_moments(model, first(data, samples), layers, covariance=covariance).moments
    reference_error = None
    if reference is None:
        there = batchnorm_statistics(model)
    else:
        seen = observe_moments(model, first(reference, samples), layers, covariance=covariance)
        there, reference_error = seen.moments, seen.error
    known, place = pd.DataFrame(), (0.0, 0.0)
    if reference is not None and known_samples:
        known, place = _known(model, reference, layers, known_samples, batch_size, seed, here, there, progress)
    pairs = [] if layers else _pairs(there, here)
    return Diagnosis(
        shift_profile(there, here),
        shift_test(there, here, seed=seed),
        pd.DataFrame([{"n": n, "prior": best_prior(pairs, n)} for n in BATCH_SIZES] if pairs else []),
        known,
        _predictions(known, shift_size(there, here), reference_error),
        reference_error,
        pd.concat([_curve(pairs, n) for n in BATCH_SIZES], ignore_index=True) if pairs else pd.DataFrame(),
        place,
    )


def shift_regressions(known: pd.DataFrame, reference_error: float) -> dict[str, ShiftLine]:
    """Family -> the line through its hold-out corruption at every severity, and the clean reference (table A.6).

    `all` is the line through all. A family whose corruption changes nothing, as colours on grey images, has none.
    """
    held = known[known["holdout"]]
    lines = {}
    for family, rows in [*held.groupby("family"), ("all", held)]:
        sizes, errors = np.array([0.0, *rows["size"]]), np.array([reference_error, *rows["error"]])
        if np.ptp(sizes[1:]) > 0.01 * held["size"].max():
            lines[str(family)] = ShiftLine.fit(sizes, errors)
    return lines


def change_of_statistics(reference: Moments, data: Moments) -> np.ndarray:
    """Changes of mean and deviation in units of the reference's deviation, each layer with the same weight."""
    (mean_s, var_s), (mean_t, var_t) = reference.pooled(), data.pooled()
    scale = np.sqrt(np.where(var_s > 0, var_s, np.inf))
    weight = np.repeat(1 / np.sqrt(reference.channels), reference.channels)
    return np.concatenate([(mean_t - mean_s) / scale * weight, (np.sqrt(var_t) - np.sqrt(var_s)) / scale * weight])


def _known(
    model: nn.Module,
    reference: Data,
    layers: Sequence[str],
    most: int,
    batch_size: int,
    seed: int,
    here: Moments,
    there: Moments,
    progress: bool | None,
) -> tuple[pd.DataFrame, tuple[float, float]]:
    """Every corruption on the reference: size, likeness to the data, error, place on a map; and the data's place."""
    kinds: list[Callable] = [find("shifts", name) for name in entries("shifts")]
    tries = [
        kind(severity)
        for kind in kinds
        if getattr(kind, "family", "") and getattr(kind, "tables", None)
        for severity in (HOLDOUT_SEVERITIES if getattr(kind, "holdout", False) else SEVERITIES)
    ]
    own = change_of_statistics(there, here)
    rows, changes = [], [own]
    with Progress("known corruptions", len(tries), progress, unit="shifts") as bar:
        for shift in tries:
            stream = Truncated(Shifted(reference, shift, batch_size=batch_size, seed=seed), first=most)
            seen = observe_moments(model, stream, layers)
            change = change_of_statistics(there, seen.moments)
            changes.append(change)
            norm = np.linalg.norm(change) * np.linalg.norm(own)
            rows.append(
                {
                    "shift": shift.name,
                    "family": shift.family,
                    "holdout": shift.holdout,
                    "severity": float(shift.severity),
                    "size": shift_size(there, seen.moments),
                    "cosine": float(change @ own / norm) if norm else 0.0,
                    "error": seen.error,
                }
            )
            bar.advance(f"{shift.name} {shift.severity:g}")
    places = _on_a_map(np.stack(changes))
    return pd.DataFrame(rows).assign(x=places[1:, 0], y=places[1:, 1]), (float(places[0, 0]), float(places[0, 1]))


def _predictions(known: pd.DataFrame, size: float, reference_error: float | None) -> pd.DataFrame:
    if known.empty or reference_error is None:
        return pd.DataFrame()
    rows = []
    for family, line in shift_regressions(known, reference_error).items():
        error, low, high = line.predict(size)
        row = {"family": family, "error": error, "low": low, "high": high, "inside": line.inside(size), "r2": line.r2}
        rows.append(row | {"slope": line.slope})
    return pd.DataFrame(rows)


def _pairs(there: Moments, here: Moments) -> list[tuple[Statistics, Statistics]]:
    """Source and target statistics of each layer."""
    cut = [there.per_layer(values) for values in (*there.pooled(), *here.pooled(), here.between_images())]
    return [(Statistics(cut[0][k], cut[1][k]), Statistics(cut[2][k], cut[3][k], cut[4][k])) for k in there.names]


def _curve(pairs: Sequence[tuple[Statistics, Statistics]], n: int) -> pd.DataFrame:
    """The mean over layers of the curves of each."""
    curves = [prior_curve(source, target, n, draws=200) for source, target in pairs]
    return pd.concat(curves).groupby("prior", as_index=False).mean()


def _on_a_map(changes: np.ndarray) -> np.ndarray:
    """Two coordinates whose distances are near those of the rows: classical multidimensional scaling."""
    centred = changes - changes.mean(0)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    return left[:, :2] * values[:2]
