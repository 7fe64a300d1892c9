"""The public checks catch what they are there to catch: one broken class for each law."""

from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import pytest
import torch

from haptera.analysis import Analysis
from haptera.errors import HapteraError
from haptera.measures import accuracy, measure, rows_of
from haptera.report.section import answer
from haptera.run.ledger import Ledger, Piece
from haptera.shifts import Shift
from haptera.streams import Clean
from haptera.testing import (
    check_analysis,
    check_measure,
    check_named,
    check_object,
    check_shift,
    check_stream,
)
from haptera.testing.analyses import ANALYSIS_LAWS


def broken(verdicts):
    return {law for law, why in verdicts.items() if why}


@dataclass(frozen=True)
class GlobalNoise(Shift):
    name = "global_noise"

    def apply(self, images, random):
        return images + 0.1 * torch.randn_like(images)


@dataclass(frozen=True)
class BatchMean(Shift):
    name = "batch_mean"

    def apply(self, images, random):
        return images * 0.5 + images.mean() * 0.5


@dataclass(frozen=True)
class InPlace(Shift):
    name = "in_place"

    def apply(self, images, random):
        return images.mul_(0.5)


@dataclass(frozen=True)
class Restless(Shift):
    name = "restless"
    calls: list = field(default_factory=list, compare=False)

    def apply(self, images, random):
        self.calls.append(1)
        return images * (0.5 ** len(self.calls))


@dataclass(frozen=True)
class NeedsRoom(Shift):
    name = "needs_room"

    def apply(self, images, random):
        return torch.nn.functional.pad(images, (0, 0, 2, 0), mode="reflect")[..., :-2, :]


@pytest.mark.parametrize(
    ("shift", "laws"),
    [
        (GlobalNoise, {"leaves_global_generators_alone", "same_seed_same_images", "does_not_depend_on_batches"}),
        (BatchMean, {"does_not_depend_on_batches"}),
        (InPlace, {"keeps_shape_dtype_and_range"}),
        (Restless, {"same_seed_same_images"}),
        (NeedsRoom, {"takes_small_and_narrow_images"}),
    ],
)
def test_broken_shifts_are_caught(shift, laws):
    assert laws <= broken(check_shift(shift))


@dataclass(frozen=True)
class Unseeded(Clean):
    def __getitem__(self, index):
        batch = super().__getitem__(index)
        return type(batch)(batch.inputs + torch.rand(()), batch.targets, batch.ids, batch.context)


@dataclass(frozen=True)
class TurnsTargets(Clean):
    def __getitem__(self, index):
        batch = super().__getitem__(index)
        return type(batch)(batch.inputs, batch.targets.flip(0), batch.ids, batch.context)


@dataclass(frozen=True)
class DropsTheLast(Clean):
    @property
    def samples(self):
        return super().samples + 1


@pytest.mark.parametrize(
    ("stream", "laws"),
    [
        (Unseeded, {"two_passes_are_equal", "any_position_can_be_read"}),
        (TurnsTargets, {"targets_are_untouched"}),
        (DropsTheLast, {"length_is_known_beforehand"}),
    ],
)
def test_broken_streams_are_caught(stream, laws):
    assert laws <= broken(check_stream(stream))


@measure(bounds=(0, 1))
def first_sample(outputs):
    return [{"measure": "first_sample", "value": float(outputs.logits[0, 0]), "n": 1}]


def nameless(outputs):
    outputs.logits[:] = 0
    return [{"value": 1.0}]


@measure(bounds=(0, 1))
def whole_accuracy(outputs):
    if outputs.targets is None:
        return []
    return [{"measure": "whole_accuracy", "value": float(outputs.correct().mean()), "n": len(outputs)}]


@measure(bounds=(0, 1), of="table")
def error_of_all_seeds(table):
    errors = rows_of(table, "error").groupby("model")["value"].mean()
    return [
        {"model": model, "measure": "error_of_all_seeds", "value": value, "n": 1} for model, value in errors.items()
    ]


def test_measures_that_average_over_repetitions_are_caught():
    assert broken(check_measure(whole_accuracy)) == {"repetitions_are_not_averaged"}
    assert broken(check_measure(error_of_all_seeds)) == {"repetitions_are_not_averaged"}


def test_broken_measures_are_caught():
    assert {"order_of_rows_does_not_matter"} <= broken(check_measure(first_sample))
    assert {"rows_are_named_and_counted", "outputs_are_not_written_to"} <= broken(check_measure(nameless))
    assert not broken(check_measure(accuracy))


@dataclass(frozen=True, eq=False)
class Lies(Analysis):
    """An analysis that breaks one law, or none."""

    lie: str = ""
    asked: list = field(default_factory=list)
    kind, title = "lies", "Lies"
    settings = MappingProxyType({})

    def findings(self):
        self.asked.append(1)
        value = len(self.asked) if self.lie == "asked_again_it_says_the_same" else 3
        sentence = "7.25 of 9" if self.lie == "every_sentence_has_its_number_in_the_table" else f"{value} of them"
        more = answer("more", "More?", "nothing", **({"size": 3} if self.lie == "names_of_numbers_are_unique" else {}))
        return [*answer("size", "How large?", sentence, size=value), *more]

    def table(self):
        return super().table() if self.lie != "every_number_is_in_the_table" else super().table().assign(value=3.2)

    def summary(self, notes=True):
        return "" if self.lie == "page_json_and_summary_say_the_same" else super().summary(notes)

    def write_table(self, path):
        if self.lie == "saved_and_read_again_it_says_the_same":
            super().table().assign(value=4.0).to_parquet(path)
        else:
            super().write_table(path)

    def sections(self):
        return []


@pytest.mark.parametrize("lie", [law.__name__ for law in ANALYSIS_LAWS])
def test_broken_analyses_are_caught(lie):
    assert lie in broken(check_analysis(Lies(lie)))
    assert not broken(check_analysis(Lies()))


def forgetful(out: Path | None = None) -> Lies:
    """An analysis that reads what it finds in its folder without looking at it."""
    if out is None:
        return Lies()
    with Ledger(out, "lies") as ledger:
        again = ledger.exists
        ledger.plan([Piece("one", "one.txt")], {})
    return Lies("names_of_numbers_are_unique" if again else "")


def test_an_analysis_that_ends_otherwise_when_it_is_started_again_is_caught():
    kind, verdicts = check_object(forgetful)
    assert kind == "analysis"
    assert broken(verdicts) == {"started_again_it_ends_the_same"}


def test_an_analysis_that_needs_arguments_is_told_how():
    with pytest.raises(HapteraError, match=r"trends needs reference; check functools.partial\(trends, reference=...\)"):
        check_named("trends")
