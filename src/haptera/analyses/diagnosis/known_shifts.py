"""Known shifts: every corruption at several severities on the reference, as seen by one model, and lines through them.

Source: thesis figure 2.3 and table A.6. For each corruption the size of the shift in the network's statistics, and
three errors: of the model as it is (i), of the model with BatchNorm statistics of the corrupted images (ii), and of the
latter on clean images (iii). Within a family, the line through the hold-out corruption predicts the others.
Differs: the line also goes through clean data, where the size is 0, since users' shifts are often small.
Cost: a pass over `samples` images for each corruption and severity; three where adapted errors are wanted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from torch import nn

from haptera.adapters import BatchNorm
from haptera.analyses.diagnosis import DiagnosisSettings
from haptera.analyses.diagnosis.error_prediction import ErrorPrediction, predict_error
from haptera.analyses.diagnosis.shift_size import Scale, shift_size
from haptera.batch import Stream
from haptera.catalog import entries, find
from haptera.correctness import correct
from haptera.data import Data
from haptera.errors import HapteraError
from haptera.files.fingerprint import fingerprint, of_model
from haptera.measures.label_free import ESTIMATES, Reference
from haptera.observe import observe_moments
from haptera.run.ledger import Piece
from haptera.run.tasks import JsonTask, finish
from haptera.shifts import Shift
from haptera.statistics.line import ShiftLine
from haptera.statistics.moments import Moments
from haptera.streams import Clean, Shifted, Truncated

SEVERITIES, HOLDOUT_SEVERITIES = (1.0, 3.0, 5.0), (1.0, 2.0, 3.0, 4.0, 5.0)
REGRESSIONS = {"error": "unadapted", "adapted_error": "adapted", "clean_error": "adapted, on clean images"}
"""Column of the frame -> what the line through it predicts."""


@dataclass(frozen=True)
class KnownShifts:
    """What corruptions do to one model.

    Attributes:
        frame: `shift`, `family`, `holdout`, `severity`, `size`, `error` and, where wanted, `adapted_error` and
            `clean_error`, and what every estimator without labels says of the accuracy; errors and estimates are
            missing without labels.
        changes: `(shifts, statistics)`, how the statistics of the activations move.
        clean: column of an error -> its value on clean images; empty without labels.
        images: how many each corruption was tried on.
    """

    frame: pd.DataFrame = field(default_factory=pd.DataFrame)
    changes: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    clean: dict[str, float] = field(default_factory=dict)
    images: int = 0

    def predict(
        self, size: float, outputs: np.ndarray, labelled: Reference | None, choose_on: str = "all"
    ) -> ErrorPrediction | None:
        """The error on images with a shift of this size and these outputs; None without labels.

        Args:
            size: of the shift.
            outputs: `(images, outputs)`, what the model says about them.
            labelled: the reference that estimates were made with.
            choose_on: which corruptions choose: `all` or `holdout`.
        """
        if labelled is None or not set(self.frame) & set(ESTIMATES):
            return None
        clean = labelled.own_estimates() | {"error": 1 - labelled.accuracy}
        told = labelled.estimates(outputs) | {"size": size}
        return predict_error(self.frame, clean, told, (self.images, len(outputs)), choose_on)

    def lines(self, column: str = "error") -> dict[str, ShiftLine]:
        """Family -> the line through its hold-out corruption at every severity, and through clean images.

        `all` is the line through all. A family whose corruption changes nothing, as colours on grey images, has none.
        """
        held = self.frame[self.frame["holdout"]]
        lines = {}
        for family, rows in [*held.groupby("family"), ("all", held)]:
            sizes = np.array([0.0, *rows["size"]])
            if np.ptp(sizes[1:]) > 0.01 * held["size"].max():
                lines[str(family)] = ShiftLine.fit(sizes, np.array([self.clean[column], *rows[column]]))
        return lines

    def regressions(self) -> pd.DataFrame:
        """Table A.6: for each regression and family the true and predicted mean errors, and how far off it is.

        Columns: `regression`, `family`, `true`, `predicted`, `off` (mean absolute difference), and the same of the
        hold-out corruption that the line was fitted on, `holdout_true`, `holdout_predicted`, `holdout_off`; `slope`,
        `intercept`, `r2`, `shifts`.
        """
        rows = []
        for column, regression in REGRESSIONS.items():
            if column not in self.clean:
                continue
            for family, line in self.lines(column).items():
                own = self.frame if family == "all" else self.frame[self.frame["family"] == family]
                row: dict[str, object] = {"regression": regression, "family": family}
                for prefix, part in (("", own[~own["holdout"]]), ("holdout_", own[own["holdout"]])):
                    predicted = np.array([line.predict(size) for size in part["size"]])
                    row[f"{prefix}true"], row[f"{prefix}predicted"] = part[column].mean(), predicted.mean()
                    row[f"{prefix}off"] = np.abs(part[column] - predicted).mean()
                shifts = own[~own["holdout"]]["shift"].nunique()
                rows.append(row | {"slope": line.slope, "intercept": line.intercept, "r2": line.r2, "shifts": shifts})
        return pd.DataFrame(rows)


class Trial(JsonTask):
    """One corruption at one severity on the reference.

    Args:
        shift: the corruption.
        look: returns a row of the frame, and the change of statistics.
        identity: of everything else that decides them.
    """

    def __init__(self, shift: Shift, look: Callable[[Shift], dict[str, Any]], identity: str) -> None:
        self.shift, self.look = shift, look
        key = fingerprint(shift, identity)
        self.piece = Piece(key, f"known/{key}.json", f"{shift.name} {shift.severity:g}")

    def run(self) -> dict[str, Any]:
        """Look at it."""
        return self.look(self.shift)


def known_shifts(
    model: nn.Module,
    reference: Data,
    moments: Moments,
    layers: Sequence[str] = (),
    *,
    settings: DiagnosisSettings | None = None,
    severities: Sequence[float] = SEVERITIES,
    labelled: Reference | None = None,
    out: Path | str | None = None,
    progress: bool | None = None,
) -> KnownShifts:
    """Try every known corruption on the reference.

    Args:
        model: not changed.
        reference: labelled, if errors are wanted.
        moments: of the reference in the model, at the same layers.
        layers: as `observe_moments` takes them.
        settings: how closely to look: `known_samples`, `batch_size`, `adapted` and `seed` count here.
        severities: of the test corruptions; hold-out ones are tried at 1, 2, 3, 4 and 5.
        labelled: what the model says about labelled images without a shift; with it, also what every estimator
            without labels says, so that the error of other data can be predicted.
        out: a folder where every corruption that was tried is kept; the same call goes on from there.
        progress: show a bar; by default on a terminal.
    """
    asked = settings or DiagnosisSettings()
    adapted = asked.adapted
    cut: dict[str, Any] = {"batch_size": asked.batch_size, "seed": asked.seed}
    if adapted and reference.targets is None:
        raise HapteraError("errors of adapted models need a labelled reference")
    clean = Truncated(Clean(reference, **cut), first=asked.known_samples)
    error = observe_moments(model, clean, layers).error
    errors = {} if error is None else {"error": error} | (_adapted_errors(model, clean, clean) if adapted else {})

    def look(shift: Shift) -> dict[str, Any]:
        stream = Truncated(Shifted(reference, shift, **cut), first=asked.known_samples)
        seen = observe_moments(model, stream, layers)
        row = {"shift": shift.name, "family": shift.family, "holdout": shift.holdout}
        row |= {"severity": float(shift.severity), "size": shift_size(moments, seen.moments), "error": seen.error}
        row |= _adapted_errors(model, stream, clean) if adapted else {}
        row |= {} if labelled is None else labelled.estimates(seen.outputs)
        return {"row": row, "change": change_of_statistics(moments, seen.moments).tolist()}

    identity = (
        ""
        if out is None
        else fingerprint(
            of_model(model),
            reference.fingerprint(),
            list(layers),
            replace(asked, choose_on="all"),
            None if labelled is None else (labelled.accuracy, labelled.scores),
        )
    )
    trials = [Trial(shift, look, identity) for shift in _corruptions(severities)]
    tried = finish(trials, out, "diagnosis", noun="known corruption", progress=progress).finished
    changes = np.array([each["change"] for each in tried], float)
    frame = pd.DataFrame([each["row"] for each in tried])
    return KnownShifts(frame, changes, errors, clean.samples)


def change_of_statistics(reference: Moments, data: Moments) -> np.ndarray:
    """Changes of mean and deviation in units of the reference's deviation, each layer with the same weight."""
    (mean_s, var_s), (mean_t, var_t) = reference.pool(), data.pool()
    divisors = Scale.between(reference, data)
    scale = np.sqrt(np.where(divisors.live, np.maximum(var_s, divisors.floor), np.inf))
    weight = np.repeat(1 / np.sqrt(reference.channels), reference.channels)
    return np.concatenate([(mean_t - mean_s) / scale * weight, (np.sqrt(var_t) - np.sqrt(var_s)) / scale * weight])


def _corruptions(severities: Sequence[float]) -> list[Shift]:
    """Every corruption of the catalog that has published constants."""
    kinds: list[Callable] = [find("shifts", name) for name in entries("shifts")]
    return [
        kind(severity)
        for kind in kinds
        if getattr(kind, "family", "") and getattr(kind, "tables", None)
        for severity in (HOLDOUT_SEVERITIES if getattr(kind, "holdout", False) else severities)
    ]


def _adapted_errors(model: nn.Module, stream: Stream, clean: Stream) -> dict[str, float]:
    """Return the error with the statistics of each batch: its own, and that on a batch of clean images."""
    adapter = BatchNorm(model, prior=0)
    wrong = {"adapted_error": 0, "clean_error": 0}
    images = 0
    for own, other in zip(stream, clean, strict=True):
        for column, batch, adapter.frozen in (("adapted_error", own, False), ("clean_error", other, True)):
            assert batch.targets is not None
            logits = adapter(batch.inputs.to(adapter.device)).float().cpu().numpy()
            wrong[column] += int((~correct(logits, batch.targets.numpy(), stream.classes)).sum())
        images += len(own)
    return {column: count / images for column, count in wrong.items()}
