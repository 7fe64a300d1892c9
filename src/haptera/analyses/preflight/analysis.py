"""Preflight: is a model set up for its images as it was trained, so that its numbers can be trusted?

    preflight = haptera.check_model(model, data)
    print(preflight.summary())
    preflight.complaints, preflight.verdict

A few hundred clean images, spread over the classes, are passed as they will be and in the ways in which people get it
wrong: `inputs` (scale and colour order), `crop`, `labels`, `passes` (mode, chance, batches), `selection` (subsets and
copies). Each answer is a sentence with its number and what to do. It is an error only where a result would mean
nothing; everything else is the reader's to judge.
Cost: about ten passes over the images, and `settings.seconds` at most, about; fewer images where a pass is slow.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pandas as pd
from torch import nn

from haptera.analyses.preflight import PreflightSettings
from haptera.analyses.preflight.check import ERROR, FINE, VERDICTS, Check
from haptera.analyses.preflight.crop import check_crop
from haptera.analyses.preflight.inputs import Trial, check_inputs
from haptera.analyses.preflight.labels import Order, check_accuracy, check_labels
from haptera.analyses.preflight.page import DEFINITIONS, leads, sections
from haptera.analyses.preflight.passes import check_outputs_are_logits, check_passes
from haptera.analyses.preflight.probe import Probe
from haptera.analyses.preflight.sample import Sample
from haptera.analyses.preflight.selection import check_duplicates, check_subset, hash_images
from haptera.analysis import Analysis
from haptera.correctness import check_classes, check_targets
from haptera.data import Data
from haptera.errors import HapteraError, check_keys
from haptera.files.atomic import write_text
from haptera.report.section import Finding, Section, lead
from haptera.words import count

PASSES = 10
"""Whole passes over all images that the checks take, about."""
FEWEST = 32
HASHING = 0.15
"""Share of the time for reading images that are only hashed."""


@dataclass(frozen=True, eq=False)
class Preflight(Analysis):
    """Say of a set-up what is as it should be, and what to do about the rest.

    Attributes:
        checks: every answer.
        trials: ways to hand over the images that were tried: `scale`, `colours`, `distance`, `accuracy`.
        crops: crops that were tried: `crop`, `distance`, `accuracy`.
        order: another order of the labels, where one was found.
        model: what the model is called.
        data: what the data is called.
        images: how many were looked at.
        names: of the classes of the data, where it has any.
        settings: what was asked.
        notes: what a reader must know about the images.
    """

    kind: ClassVar[str] = "check-model"
    definitions: ClassVar[Mapping[str, str]] = DEFINITIONS
    checks: Sequence[Check]
    trials: pd.DataFrame = field(default_factory=pd.DataFrame)
    crops: pd.DataFrame = field(default_factory=pd.DataFrame)
    order: Order | None = None
    model: str = "the model"
    data: str = "the data"
    images: int = 0
    names: tuple[str, ...] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()

    @property
    def title(self) -> str:
        """Return what was checked."""
        return f"Preflight of {self.model} on {self.data}"

    def headline(self) -> str:
        """Return how many checks there were, and how many complain."""
        told = [f"{count(number, verdict)}" for verdict in VERDICTS[:2] if (number := self.count_of(verdict))]
        seen = f"{count(len(self.checks), 'check')} on {count(self.images, 'image')} of {self.data}"
        return f"{seen}: {' and '.join(told) or 'nothing to complain of'}"

    def count_of(self, verdict: str) -> int:
        """Return how many checks ended with a verdict."""
        return sum(check.verdict == verdict for check in self.checks)

    @property
    def complaints(self) -> list[Check]:
        """Return the checks that somebody should do something about, errors first."""
        return sorted(
            (check for check in self.checks if check.complaint), key=lambda each: VERDICTS.index(each.verdict)
        )

    @property
    def verdict(self) -> str:
        """Return the gravest verdict of all; what is unknown is not grave."""
        return self.complaints[0].verdict if self.complaints else FINE

    @property
    def objections(self) -> list[str]:
        """Return the sentences of checks without which a result means nothing."""
        return [check.sentence for check in self.checks if check.verdict == ERROR]

    def findings(self) -> list[Finding]:
        """Return every answer."""
        return lead([each.finding() for each in self.checks], leads(self))

    def sections(self) -> list[Section]:
        """Return the answers, and what was tried."""
        return sections(self)

    def files(self) -> dict[str, Callable[[Path], None]]:
        """Return a mapping from labels to outputs, where the labels are in another order."""
        return {} if self.order is None else {"mapping.csv": partial(_write_mapping, self.order, self.names)}


def check_model(
    model: nn.Module,
    data: Data,
    reference: Data | None = None,
    *,
    name: str = "the model",
    notes: Sequence[str] = (),
    key: str = "",
    **settings: Annotated[Any, PreflightSettings],
) -> Preflight:
    """Check that a model is set up for its images as it was trained.

    Args:
        model: any network; it stays as it was.
        data: clean images of the kind that the model was trained on; labels make most checks sharper.
        reference: the images it was trained on, of which none should be among the data.
        name: what it is called.
        notes: what a reader must know about the images.
        key: fingerprint of model and data, to be kept with the answers.
        settings: `samples`, `batch_size`, `seconds`, `seed`, as `PreflightSettings`.
    """
    if not isinstance(data, Data):
        raise HapteraError(f"data is a {type(data).__name__}; one data set was expected, not several parts")
    check_keys("setting of check_model", settings, PreflightSettings.__match_args__)
    asked, start = PreflightSettings(**settings), time.perf_counter()
    probe = Probe(model, asked.batch_size)
    sample = _choose(probe, data, asked)
    logits = probe.logits(sample.images)
    check_classes(data.classes, logits.shape[1], data.names if data.targets is not None else None)
    if sample.targets is not None:
        check_targets(sample.targets, logits.shape[1], data.classes)
    checks = [check_outputs_are_logits(logits), *check_passes(model, probe, sample.images)]
    labels, order = check_labels(sample, logits, data.names)
    known = sample if order is None else order.applied(sample)  # what is judged by answers needs the right labels
    inputs = check_inputs(probe, known, logits)
    crop, crops = check_crop(probe, data, known, inputs.setup)
    if order is None:
        labels, order = check_labels(sample, inputs.logits, data.names)
    explained = any(check.complaint for check in (*inputs.checks, labels))
    checks += [*inputs.checks, crop, check_accuracy(sample, logits, explained), labels]
    checks.append(check_subset(data, tuple(sample.images.shape[1:]), logits.shape[1]))
    left = max(asked.seconds - (time.perf_counter() - start), 0.0)
    hashing = min(HASHING * asked.seconds, left / 2)
    others = None if reference is None else hash_images(reference, hashing, asked.seed)
    checks.append(check_duplicates(data, hash_images(data, hashing, asked.seed), reference, others))
    return Preflight(
        checks,
        _trials_frame(inputs.trials),
        _crops_frame(crops),
        order,
        name,
        data.name,
        len(sample),
        data.names,
        {"model": name, "data": data.name, "reference": reference.name if reference else None, "key": key}
        | vars(asked),
        list(notes),
    )


def _choose(probe: Probe, data: Data, asked: PreflightSettings) -> Sample:
    """Return as many images as there is time for."""
    each = probe.seconds_per_image(Sample.of(data, 8, asked.seed).images)
    affordable = asked.seconds * (1 - 2 * HASHING) / (PASSES * max(each, 1e-9))
    return Sample.of(data, min(asked.samples, max(FEWEST, int(affordable))), asked.seed)


def _trials_frame(trials: Sequence[Trial]) -> pd.DataFrame:
    rows = [
        {
            "scale": trial.setup.words,
            "colours": "exchanged" if trial.setup.turned else "as they are",
            "distance": trial.distance,
            "accuracy": trial.accuracy,
        }
        for trial in trials
    ]
    return pd.DataFrame(rows, columns=["scale", "colours", "distance", "accuracy"])


def _crops_frame(trials: Mapping[float, Trial]) -> pd.DataFrame:
    rows = [{"crop": crop, "distance": trial.distance, "accuracy": trial.accuracy} for crop, trial in trials.items()]
    return pd.DataFrame(rows, columns=["crop", "distance", "accuracy"])


def _write_mapping(order: Order, names: Sequence[str] | None, path: Path) -> None:
    """Write which output counts as right for each label, as `--mapping` reads it."""
    known = [(label, output) for label, output in enumerate(order.outputs.tolist()) if output >= 0]
    lines = [f"{names[label] if names else label},{output}" for label, output in known]
    write_text(path, "\n".join(["class,accepted", *lines]) + "\n")
