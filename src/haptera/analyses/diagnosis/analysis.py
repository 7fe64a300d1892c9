"""Diagnose: has unlabelled data shifted, where in the network, what will it cost, how should adaptation be set?

    diagnosis = haptera.diagnose(model, new_camera, old_camera)
    diagnosis.test.p_value, diagnosis.profile, diagnosis.predicted, diagnosis.priors

Source: thesis chapter 2 and appendix A. The statistics of activations on the data are compared with those on the
reference, or, without a reference, with those that BatchNorm layers keep from training. With a labelled reference,
known corruptions say what a shift costs, by every estimator of accuracy without labels (`error_prediction`; the
source's line per family is kept beside it), and which of them it looks like: the one whose change of statistics has the
largest cosine with that of the data.
Cost: passes over `samples` images: one for the data, one for the reference, and, with a reference, one for each known
corruption at three severities, for hold-out ones at five, on `known_samples` images.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
from torch import nn

from haptera.adapters.prior import Statistics, best_prior, prior_curve
from haptera.analyses.diagnosis import DiagnosisSettings
from haptera.analyses.diagnosis.error_prediction import ErrorPrediction
from haptera.analyses.diagnosis.findings import DEFINITIONS, findings
from haptera.analyses.diagnosis.known_shifts import KnownShifts, change_of_statistics, known_shifts
from haptera.analyses.diagnosis.page import sections
from haptera.analyses.diagnosis.shift_size import ShiftTest, shift_profile, shift_size, shift_test
from haptera.analysis import Analysis
from haptera.correctness import few_labels
from haptera.data import Data
from haptera.errors import HapteraError, check_keys, unknown
from haptera.measures.label_free import Reference
from haptera.observe import batchnorm_statistics, observe_moments
from haptera.observe.moments import Observation
from haptera.report.section import Finding, Section
from haptera.statistics.moments import Moments, live
from haptera.streams import Clean, Truncated

log = logging.getLogger("haptera")

CHOOSE_ON = ("all", "holdout")
BATCH_SIZES = (1, 8, 64, 256)


@dataclass(frozen=True)
class Diagnosis(Analysis):
    """Say whether data has shifted, where in the network, what it will cost, and how adaptation should be set.

    Attributes:
        profile: each layer's distances.
        test: whether the shift is more than chance.
        priors: `n`, `prior`: the best N for batches of n images, by the lower bound; `upper` and `simulated`, by these
            curves; then a column per layer, the best N of this layer alone. Empty without BatchNorm layers.
        known: known corruptions with `size`, `cosine` to the data's change and, with labels, `error`; empty without a
            reference.
        families: `family`, `error`, `inside`, `r2`, `slope`: what lines through the hold-out corruption of each family
            say of a shift of this size (table A.6); empty without a labelled reference.
        predicted: the error predicted without labels, with its interval; None without a labelled reference.
        reference_error: of the model on the reference, where it has labels.
        prior_curves: `n`, `prior`, `lower`, `upper`, `simulated`: means over layers, as figure 2.5.
        place: of the data on the map of known corruptions, whose places are `x` and `y` of `known`.
        measured_error: of the model on the data, where it has labels after all.
        regressions: table A.6 of this model, if `adapted` was asked for.
        data: the name of the data.
        reference: the name of the reference, if there is one.
        settings: what was asked.
    """

    kind: ClassVar[str] = "diagnose"
    definitions: ClassVar[Mapping[str, str]] = DEFINITIONS
    profile: pd.DataFrame
    test: ShiftTest
    priors: pd.DataFrame = field(default_factory=pd.DataFrame)
    known: pd.DataFrame = field(default_factory=pd.DataFrame)
    families: pd.DataFrame = field(default_factory=pd.DataFrame)
    predicted: ErrorPrediction | None = None
    reference_error: float | None = None
    prior_curves: pd.DataFrame = field(default_factory=pd.DataFrame)
    place: tuple[float, float] = (0.0, 0.0)
    measured_error: float | None = None
    regressions: pd.DataFrame = field(default_factory=pd.DataFrame)
    data: str = "the data"
    reference: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Return what is diagnosed."""
        return f"Diagnosis of {self.settings.get('data', self.data)}"

    def findings(self) -> list[Finding]:
        """Return what is asked, in a word, and the answer."""
        return findings(self)

    def sections(self) -> list[Section]:
        """Return every section for which something is known."""
        return sections(self)

    @property
    def nearest(self) -> pd.Series | None:
        """The known corruption that the shift looks most like."""
        return None if self.known.empty else self.known.iloc[int(self.known["cosine"].argmax())]


def diagnose(
    model: nn.Module,
    data: Data,
    reference: Data | None = None,
    *,
    layers: Sequence[str] = (),
    out: Path | str | None = None,
    progress: bool | None = None,
    **settings: Annotated[Any, DiagnosisSettings],
) -> Diagnosis:
    """Compare data with a reference through the eyes of a model.

    Args:
        model: any network; without `layers`, one with BatchNorm.
        data: unlabelled; labels, if it has any, serve for `measured_error` alone.
        reference: what the model was made for; labelled, if an error is to be predicted.
        layers: names or patterns of modules to compare at; BatchNorm layers if left out.
        out: a folder where every known corruption that was tried is kept; the same call goes on from there.
        progress: show a bar; by default on a terminal.
        settings: `samples`, `known_samples`, `batch_size`, `covariance`, `adapted`, `choose_on` and `seed`, as
            `DiagnosisSettings`.
    """
    if reference is None and layers:
        raise HapteraError("layers without BatchNorm statistics need a reference to compare with")
    check_keys("setting of diagnose", settings, DiagnosisSettings.__match_args__)
    asked = DiagnosisSettings(**settings)
    if asked.choose_on not in CHOOSE_ON:
        raise unknown("choose_on", asked.choose_on, CHOOSE_ON)

    def seen(source: Data) -> Observation:
        stream = Truncated(Clean(source, batch_size=asked.batch_size, seed=asked.seed), first=asked.samples)
        return observe_moments(model, stream, layers, covariance=asked.covariance)

    observed, known_side = seen(data), None if reference is None else seen(reference)
    here, there = observed.moments, batchnorm_statistics(model) if known_side is None else known_side.moments
    _remark_on_labels([data, reference], observed.outputs.shape[1])
    known, place, labelled = KnownShifts(), (0.0, 0.0), None
    if reference is not None and asked.known_samples:
        labelled = _labelled(known_side)
        more: dict[str, Any] = {"settings": asked, "labelled": labelled, "out": out, "progress": progress}
        known = known_shifts(model, reference, there, layers, **more)
        known, place = _placed(known, change_of_statistics(there, here))
    pairs, size = {} if layers else _pairs(there, here), shift_size(there, here)
    curves = pd.concat([_curve(pairs, n) for n in BATCH_SIZES], ignore_index=True) if pairs else pd.DataFrame()
    return Diagnosis(
        shift_profile(there, here),
        shift_test(there, here, seed=asked.seed),
        _priors(pairs, curves),
        known.frame,
        _by_family(known, size),
        known.predict(size, observed.outputs, labelled, asked.choose_on),
        None if known_side is None else known_side.error,
        curves,
        place,
        observed.error,
        known.regressions() if asked.adapted else pd.DataFrame(),
        *_names(data, reference),
        _settings(data, reference, layers, asked),
    )


def _settings(data: Data, reference: Data | None, layers: Sequence[str], asked: DiagnosisSettings) -> dict[str, Any]:
    """Return what was asked, as the page and the JSON say it."""
    compared = {"data": data.name, "reference": reference.name if reference else "BatchNorm statistics of the model"}
    return compared | {"layers": list(layers) or "BatchNorm", **vars(asked)}


def _names(data: Data, reference: Data | None) -> tuple[str, str | None]:
    """Return what sentences call the two; of the same name, as `old/val` and `new/val` are, each by what it is."""
    if reference is None:
        return data.name, None
    return ("the data", "the reference") if data.name == reference.name else (data.name, reference.name)


def _remark_on_labels(sources: Sequence[Data | None], outputs: int) -> None:
    for source in sources:
        if source is None or source.targets is None:
            continue
        if remark := few_labels(source.targets, outputs, source.classes, source.names):
            log.warning("%s: %s", source.name, remark)


def _placed(known: KnownShifts, own: np.ndarray) -> tuple[KnownShifts, tuple[float, float]]:
    """Known shifts with their likeness to the data's and with places on a map; and the data's place."""
    norms = np.linalg.norm(known.changes, axis=1) * np.linalg.norm(own)
    cosines = np.divide(known.changes @ own, norms, out=np.zeros_like(norms), where=norms > 0)
    places = _on_a_map(np.vstack([own, known.changes]))
    frame = known.frame.assign(cosine=cosines, x=places[1:, 0], y=places[1:, 1])
    return replace(known, frame=frame), (float(places[0, 0]), float(places[0, 1]))


def _labelled(seen: Observation | None) -> Reference | None:
    """Return what the model says about the reference, where it has labels and answers."""
    if seen is None or seen.targets is None or not np.isfinite(seen.outputs).all(1).any():
        return None
    return Reference.of(seen.outputs, seen.targets, seen.classes)


def _by_family(known: KnownShifts, size: float) -> pd.DataFrame:
    rows = []
    for family, line in (known.lines() if known.clean else {}).items():
        row = {"family": family, "error": line.predict(size), "inside": line.inside(size), "r2": line.r2}
        rows.append(row | {"slope": line.slope})
    return pd.DataFrame(rows)


def _priors(pairs: Mapping[str, tuple[Statistics, Statistics]], curves: pd.DataFrame) -> pd.DataFrame:
    """The best N of the network by each of the three curves, and of each layer by the lower bound."""
    rows = []
    for n in BATCH_SIZES if pairs else ():
        both, curve = list(pairs.values()), curves[curves["n"] == n]
        simulated = float(curve["prior"].iloc[int(curve["simulated"].argmin())])
        row = {"n": n, "prior": best_prior(both, n), "upper": best_prior(both, n, "upper"), "simulated": simulated}
        rows.append(row | {name: best_prior([pair], n) for name, pair in pairs.items()})
    return pd.DataFrame(rows)


def _pairs(there: Moments, here: Moments) -> dict[str, tuple[Statistics, Statistics]]:
    """Layer -> its source and target statistics, live channels only."""
    cut = [there.per_layer(values) for values in (*there.pool(), *here.pool(), here.between_images())]
    pairs = {}
    for name in there.names:
        if (kept := live(cut[1][name], cut[3][name])).any():
            mean_s, var_s, mean_t, var_t, between = (values[name][kept] for values in cut)
            pairs[name] = (Statistics(mean_s, var_s), Statistics(mean_t, var_t, between))
    return pairs


def _curve(pairs: Mapping[str, tuple[Statistics, Statistics]], n: int) -> pd.DataFrame:
    """The mean over layers of the curves of each."""
    curves = [prior_curve(source, target, n, draws=200) for source, target in pairs.values()]
    return pd.concat(curves).groupby("prior", as_index=False).mean()


def _on_a_map(changes: np.ndarray) -> np.ndarray:
    """Two coordinates whose distances are near those of the rows: classical multidimensional scaling."""
    centred = changes - changes.mean(0)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    return left[:, :2] * values[:2]
