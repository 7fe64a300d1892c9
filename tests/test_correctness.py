"""Correctness: one rule, the same everywhere a model meets labels, class mappings included."""

import ast
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import haptera
from haptera import diagnose, stability
from haptera.adapters import BatchNorm, NoAdaptation
from haptera.analyses.diagnosis import DiagnosisSettings
from haptera.analyses.diagnosis.known_shifts import known_shifts
from haptera.correctness import correct
from haptera.data import ArrayData, Classes, MappedData
from haptera.errors import HapteraError
from haptera.observe import observe_moments
from haptera.run.calibrate import Scale, calibrate
from haptera.run.loop import evaluate
from haptera.shifts import GaussianNoise, SpeckleNoise
from haptera.streams import Clean
from haptera.tune import Search, tune

MAPPING = {"cat": (7, 9), "dog": (2,), "owl": (5,)}


def slow(logits, targets, classes=None):
    """By hand, sample by sample: the first largest of the columns that may be predicted, and is it accepted?"""
    answers = []
    for row, target in zip(logits, targets, strict=True):
        allowed = list(range(len(row))) if classes is None else classes.columns(len(row)).tolist()
        best = max(allowed, key=lambda column: (row[column], -column))
        wanted = (target,) if classes is None else classes.accepted[target]
        answers.append(best in wanted and not any(np.isnan(row[column]) for column in allowed))
    return answers


@given(st.integers(0, 10_000), st.booleans(), st.booleans())
def test_answers_are_those_of_a_slow_reference(seed, mapped, restrict):
    random = np.random.default_rng(seed)
    logits = random.integers(0, 4, (20, 10)).astype(np.float32)  # with ties
    logits[random.random(logits.shape) < 0.01] = np.nan
    classes = Classes(tuple(MAPPING.values()), restrict) if mapped else None
    targets = random.integers(0, 3 if mapped else 10, 20)
    assert correct(logits, targets, classes).tolist() == slow(logits, targets, classes)


def test_logits_beyond_float32_keep_their_order():
    logits = np.array([[1e39, 2e39, 3e39], [3e300, 2e300, 1e300]])
    assert correct(logits, np.array([2, 0])).tolist() == [True, True]


class Perfect(nn.Module):
    """Ten outputs, of which the one for the image's brightness is largest: 7 or 9 for cats, 2 for dogs, 5 for owls."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm2d(1)

    def forward(self, images):
        self.norm(images)
        kind = (images.flatten(1).median(1).values * 4).long().clamp(0, 3)
        return nn.functional.one_hot(torch.tensor([7, 2, 5, 9])[kind], 10) * 5.0


@pytest.fixture(scope="module")
def mapped():
    random = np.random.default_rng(0)
    kinds = random.integers(0, 4, 48)
    images = (kinds[:, None, None] * 64 + 32 + random.integers(-12, 13, (48, 16, 16))).astype(np.uint8)
    return MappedData(ArrayData(images, np.array([0, 1, 2, 0])[kinds], "zoo", ["cat", "dog", "owl"]), MAPPING)


def test_a_perfect_model_on_mapped_data_is_never_wrong(mapped, tmp_path):
    model = Perfect().eval()
    seen = observe_moments(model, Clean(mapped, batch_size=16))
    assert seen.error == 0
    known = known_shifts(
        model,
        mapped,
        seen.moments,
        settings=DiagnosisSettings(known_samples=16, adapted=True),
        severities=(1.0,),
        progress=False,
    )
    assert known.clean == {"error": 0, "adapted_error": 0, "clean_error": 0}
    found = diagnose(model, mapped, mapped, known_samples=0)
    assert (found.reference_error, found.measured_error) == (0, 0)
    assert evaluate(NoAdaptation(model), Clean(mapped)).correct().all()
    errors = stability(model, mapped, samples=16, draws=10).errors
    assert errors["error"].tolist() == [0.0]
    shifts = [GaussianNoise, SpeckleNoise]
    folder = tmp_path / "calibration"
    measured = calibrate(model, mapped, folder, shifts, Scale(16, 5.0, crop=0.0), progress=False)
    assert measured.clean == 16
    search = Search({"prior": [0, 16]}, shifts=[SpeckleNoise], severities=[0.5])
    tuned = tune({"perfect": model}, mapped, BatchNorm, search, out=tmp_path / "tuned", progress=False)
    assert set(tuned.table["error"]) == {0.0}


def test_data_with_other_classes_than_the_model_needs_a_mapping():
    images = np.random.default_rng(0).integers(0, 256, (8, 12, 12), dtype=np.uint8)
    six = ArrayData(images, np.arange(8) % 6, "six", [f"kind {i}" for i in range(6)])
    for outputs in (3, 1000):
        model = nn.Sequential(nn.BatchNorm2d(1), nn.Flatten(), nn.Linear(144, outputs)).eval()
        for meet in (
            lambda model=model: observe_moments(model, Clean(six)),
            lambda model=model: evaluate(NoAdaptation(model), Clean(six)),
            lambda model=model: stability(model, six, samples=4, draws=10),
        ):
            with pytest.raises(HapteraError, match=r"6 classes .'kind 0', .* outputs.*--mapping"):
                meet()


@pytest.mark.parametrize("names", [None, [f"kind {i}" for i in range(1000)]])
def test_few_labels_without_names_are_remarked_on(caplog, names):
    images = np.random.default_rng(0).integers(0, 256, (60, 8, 8), dtype=np.uint8)
    model = nn.Sequential(nn.BatchNorm2d(1), nn.Flatten(), nn.Linear(64, 1000)).eval()
    diagnose(model, ArrayData(images, np.arange(60) % 6, "six", names))
    assert ("labels go from 0 to 5 and the model has 1,000 outputs" in caplog.text) == (names is None)


def test_no_other_module_compares_decisions_with_targets():
    """`x.argmax(...) == targets`, in whatever order and however it is spelt, outside the one place that may."""
    found = []
    for path in Path(haptera.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq):
                sides = [ast.unparse(side) for side in (node.left, *node.comparators)]
                if any("argmax(" in side for side in sides) and any("target" in side for side in sides):
                    found.append(f"{path.name}:{node.lineno}")
    assert found == []
