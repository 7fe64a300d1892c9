"""Accuracy without labels, as an analysis: how accurate each of many models is there, and when to believe it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from haptera.analyses.trends.agreement import BELIEVED
from haptera.analyses.trends.answers import Answers, read_answers
from haptera.analyses.trends.estimates import FEWEST_SETS, Predicted, predict
from haptera.analysis import Analysis
from haptera.errors import HapteraError
from haptera.report.figure import Figure, layer
from haptera.report.section import Finding, Listing, Section, answer

FEW_MODELS = 5
DEFINITIONS = {
    "agreement on the line": "where accuracies of models fall on a line, the agreement of pairs of models often falls "
    "on the same one, and agreement needs no labels",
    "known set": "labelled shifted data, which each method predicts as if it had no labels",
    "off": "mean absolute difference between predicted and true accuracy; with or without taking away, for each model, "
    "what the method is off on the known sets",
    "interval": "Student's, for one more error like those on known sets: it holds for shifts of their kind",
}
METHODS = (
    "Mean absolute error on known sets, each left out in turn, after what the method is off on the others was taken "
    "away, and without that; and on the new data, where it has targets."
)
METHOD = {"known": "off on known sets", "plain": "off, as it is", "new": "off on the new data"}


@dataclass(frozen=True, eq=False)
class Unlabelled(Analysis):
    """How accurate models are on data without labels.

    Attributes:
        reference: what they said on labelled data.
        new: what they said on the new data.
        known: what they said on labelled sets of shifted data.
    """

    kind: ClassVar[str] = "trends"
    definitions: ClassVar[Mapping[str, str]] = DEFINITIONS
    reference: Answers
    new: Answers
    known: Sequence[Answers] = ()

    @classmethod
    def read(cls, reference: str, new: str, known: Sequence[str] = ()) -> "Unlabelled":
        """Read files or streams of studies."""
        sides = [read_answers(str(source)) for source in (reference, *known)]
        for side in sides:
            if side.targets is None:
                raise HapteraError(f"{side.source} has no targets; only the data of --unlabelled may be without")
        return cls(sides[0], read_answers(str(new)), sides[1:])

    @property
    def title(self) -> str:
        """Return the name of the file."""
        return f"Accuracy without labels: {Path(self.new.source).name}"

    @property
    def settings(self) -> dict[str, Any]:
        """Return what was asked."""
        known = [side.source for side in self.known]
        return {"reference": self.reference.source, "unlabelled": self.new.source, "known": known}

    @cached_property
    def predicted(self) -> Predicted:
        """Accuracies, methods and the line of agreements."""
        return predict(self.reference, self.new, self.known)

    @property
    def notes(self) -> list[str]:
        """What a reader must know before believing it."""
        told = []
        if not len(self.known):
            told.append(
                "no labelled set of shifted data was given: nothing tells how far off this is, and there is no interval"
            )
        elif len(self.known) < FEWEST_SETS:
            told.append(f"{len(self.known)} known sets are too few for an interval; {FEWEST_SETS} at least are needed")
        if self.reference.logits is None or self.new.logits is None:
            told.append("there are no logits on both sides: methods that need confidences are left out")
        if self.new.targets is not None:
            told.append(f"{self.new.source} has targets: they are compared with, and decide nothing")
        return told

    def headline(self) -> str:
        """Return how many models and examples there are."""
        found, n = self.predicted, self.new.predictions.shape[1]
        return f"{len(found.frame):,} models, {n:,} examples without labels, {found.sets} known sets"

    def findings(self) -> list[Finding]:
        """Return how accurate the models are, whether to believe it, and what each method says."""
        found = self.predicted
        first, last = (_say(found.frame.iloc[place]) for place in (0, -1))
        known, truth = found.methods.set_index("method"), found.frame["truth"]
        error = known["known" if found.corrected else "plain"][found.method]
        how = "each left out, less what it is off on the others" if found.corrected else "as it is"
        off = f", {error:.4f} off on known sets, {how}" if found.sets > 1 else ""
        rows = found.frame.set_index("model")
        numbers: dict[str, Any] = {"models": len(rows), "method": found.method, "known_sets": found.sets}
        numbers |= {"examples": self.new.predictions.shape[1], "predicted_accuracy": rows["predicted"].to_dict()}
        numbers |= {"predicted_accuracy_interval": rows[["low", "high"]].T.to_dict("list")}
        told = answer(
            "accuracy", "How accurate are they there?", f"{first}, ... {last}, by {found.method}{off}", **numbers
        )
        told += answer("believe", "May it be believed?", *self._conditions(), agreement=self._agreement())
        told += answer(
            "methods", "What do the methods say?", *self._compare(), methods=found.methods.to_dict("records")
        )
        if truth.notna().all():
            error = float((found.frame["predicted"] - truth).abs().mean())
            held = ((found.frame["low"] <= truth) & (truth <= found.frame["high"])).mean()
            inside = f"; the interval holds {100 * held:.0f} % of them" if rows["low"].notna().all() else ""
            text = f"{error:.4f} off the true accuracies on average{inside}"
            told += answer("truth", "Is it right?", text, mean_absolute_error=error, held=float(held))
        return told

    def _agreement(self) -> dict[str, float]:
        line = self.predicted.line
        return {"r2": line.r2, "slope": line.slope, "intercept": line.intercept}

    def _conditions(self) -> list[str]:
        line, models = self.predicted.line, len(self.predicted.frame)
        enough = line.r2 >= BELIEVED
        told = [
            f"agreements of {len(line.new):,} pairs fall on a line with R² {line.r2:.4f}, "
            f"{'enough' if enough else 'too little'} for agreement on the line ({BELIEVED} is asked for); "
            "that is necessary, not sufficient"
        ]
        if models < FEW_MODELS:
            told.append(f"{models} models are few; five or more were expected, of different kinds")
        spread = float(self.predicted.every.drop(columns="mean of all methods").std(axis=1).mean())
        if self.predicted.every.shape[1] > 3:
            told.append(f"methods differ by {spread:.3f} (standard deviation), so one of them is that far off at least")
        return told

    def _compare(self) -> list[str]:
        rows = self.predicted.methods
        if rows["known"].notna().all():
            told = (f"{row.method} {row.known:.4f} ({row.plain:.4f})" for row in rows.itertuples())
            return ["off on known sets, less what they are off on the others (as they are): " + ", ".join(told)]
        means = self.predicted.every.mean()
        return ["mean accuracy: " + ", ".join(f"{name} {value:.3f}" for name, value in means.items())]

    def table(self) -> pd.DataFrame:
        """Return the numbers of the findings, and what each method predicts for each model."""
        every = self.predicted.every.reset_index().melt("model", var_name="method", value_name="value")
        rows = every.assign(finding="methods", measure=every["method"] + " · " + every["model"])
        means = self.predicted.every.mean()
        mean = {"finding": "methods", "measure": [f"mean · {name}" for name in means.index], "value": means.to_numpy()}
        parts = [super().table(), rows[["finding", "measure", "value"]], pd.DataFrame(mean), self._spread()]
        return pd.concat(parts, ignore_index=True)

    def _spread(self) -> pd.DataFrame:
        value = float(self.predicted.every.drop(columns="mean of all methods").std(axis=1).mean())
        return pd.DataFrame({"finding": ["believe"], "measure": ["spread of methods"], "value": [value]})

    def sections(self) -> list[Section | None]:
        """Return predicted accuracies, agreements, and what every method says."""
        found = self.predicted
        rows = found.frame
        points = layer("point", "predicted", **rows[["model", "reference", "predicted", "low", "high"]])
        parts = [points]
        if rows["truth"].notna().any():
            parts.append(
                layer("point", "true", model=rows["model"], reference=rows["reference"], predicted=rows["truth"])
            )
        ends = [rows["reference"].min(), rows["reference"].max()]
        parts.append(layer("line", "nothing lost", reference=ends, predicted=ends))
        axes = {"reference": f"accuracy on {Path(self.reference.source).name}", "predicted": "predicted accuracy"}
        style: dict[str, Any] = {"low": "low", "high": "high", "labels": axes}
        frame = pd.concat(parts, ignore_index=True)
        line = found.line
        at = np.array([line.reference.min(), line.reference.max()])
        shares = layer("point", "pairs of models", reference=line.reference, new=line.new)
        both = {"reference": "agreement on the reference", "new": "agreement on the new data"}
        same = layer("line", "nothing lost", reference=at, new=at)
        caption = f"A point is a pair of models; R² of their line is {line.r2:.4f} on probit axes."
        agree = pd.concat([shares, same], ignore_index=True)
        held = (
            "Bars hold 95 % of the accuracies if the new shift is like the known ones; for others they promise nothing."
        )
        bars = held if rows["low"].notna().any() else "There is no interval."
        wide = found.every.reset_index()
        return [
            Section.of(
                "Accuracy",
                "How accurate each model is on the data without labels.",
                Figure(
                    "Predicted accuracy",
                    f"By {found.method}. {bars}",
                    frame,
                    "layers",
                    "reference",
                    "predicted",
                    **style,
                ),
                Listing("Predicted accuracies", f"By {found.method}.", rows),
            ),
            Section.of(
                "Agreement",
                "How often two models predict the same.",
                Figure("Agreement of pairs", caption, agree, "layers", "reference", "new", labels=both, scale="probit"),
            ),
            Section.of(
                "Methods",
                "What every method says.",
                Listing("Methods", METHODS, found.methods, METHOD),
                Listing("Every method and model", "Predicted accuracy, before anything is taken away.", wide),
            ),
        ]


def _say(row: pd.Series) -> str:
    ends = "" if np.isnan(row["low"]) else f" ({row['low']:.3f} .. {row['high']:.3f})"
    return f"{row['model']} {row['predicted']:.3f}{ends}"
