"""Answers: what many models said about one set of data, with targets or without.

    FILE.npz      `models`; `predictions` (models, examples), or `logits` or `probabilities` (models, examples,
                  classes); and `targets` (examples,), where they are known
    FOLDER:STREAM a stream of a study, with the logits where they were kept

Whether models agree needs what they predict; who is right is not enough.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from haptera.analyses.trends.reading import ANSWERS, most_likely, read_answers_of_stream, split_source
from haptera.correctness import among
from haptera.errors import HapteraError
from haptera.files.atomic import check_plain_file
from haptera.files.npz import read_npz


@dataclass(frozen=True, eq=False)
class Answers:
    """What models said.

    Attributes:
        source: where it comes from, for messages.
        models: their names.
        predictions: `(models, examples)`, classes.
        logits: `(models, examples, classes)`, or logarithms of probabilities; None where only decisions are known.
        targets: `(examples,)`; None where they are not known.
    """

    source: str
    models: tuple[str, ...]
    predictions: np.ndarray
    logits: np.ndarray | None = None
    targets: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.predictions.ndim != 2 or self.predictions.shape[0] != len(self.models) or not self.predictions.size:
            raise HapteraError(
                f"{self.source}: predictions are {self.predictions.shape} of {len(self.models)} models; "
                "(models, examples) was expected"
            )
        if len(set(self.models)) < len(self.models):
            raise HapteraError(f"{self.source}: names of models repeat; one row for each was expected")
        if self.targets is not None and self.targets.shape != self.predictions.shape[1:]:
            raise HapteraError(
                f"{self.source}: targets are {self.targets.shape}; {self.predictions.shape[1:]} was expected"
            )

    @property
    def accuracy(self) -> np.ndarray:
        """`(models,)`; an error where there are no targets."""
        if self.targets is None:
            raise HapteraError(f"{self.source} has no targets, so no accuracies")
        return np.array([among(row[:, None], self.targets).mean() for row in self.predictions])

    def only(self, models: Sequence[str]) -> "Answers":
        """The same for some of the models, in that order."""
        rows = [self.models.index(name) for name in models]
        logits = None if self.logits is None else self.logits[rows]
        return replace(self, models=tuple(models), predictions=self.predictions[rows], logits=logits)


def read_answers(source: str) -> Answers:
    """What models said, from a file or a stream of a study."""
    path, names = split_source(source)
    if path.is_dir():
        models, predictions, logits, targets = read_answers_of_stream(source, path, names)
        return Answers(source, models, predictions, logits, targets)
    check_plain_file(path)
    if path.suffix.lower() in (".csv", ".tsv"):
        raise HapteraError(
            f"{path} has accuracies alone; predictions or logits of each model were expected: agreement needs them"
        )
    return _read_npz(path)


def _read_npz(path: Path) -> Answers:
    content = read_npz(path)
    kind = next((name for name in ANSWERS if name in content), None)
    if "models" not in content or kind is None:
        raise HapteraError(
            f"{path} has {', '.join(content)}; models, and predictions, logits or probabilities, were expected: "
            "agreement needs what the models predict, not only whether that is right"
        )
    models = tuple(str(name) for name in content["models"].astype(str).tolist())
    scores = next((content[name] for name in ANSWERS[1:] if name in content), None)
    logits = None
    if scores is not None:
        predictions = most_likely(path, kind, scores)
        if "logits" in content:
            logits = scores
        elif scores.min() < 0 or scores.max() > 1 + 1e-3:
            raise HapteraError(f"{path}: {kind} go from {scores.min():g} to {scores.max():g}; 0 to 1 was expected")
        else:
            logits = np.log(np.maximum(scores, np.finfo(float).tiny))
    if "predictions" in content:
        predictions = content["predictions"]
        if predictions.dtype.kind not in "iuUS":
            raise HapteraError(f"{path}: predictions are {predictions.dtype}; classes were expected")
    return Answers(str(path), models, predictions, logits, content.get("targets"))
