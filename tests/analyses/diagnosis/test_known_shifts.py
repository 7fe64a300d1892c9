"""Known shifts: lines go through hold-out corruptions alone, and the table compares them with the others."""

import numpy as np
import pandas as pd
import pytest
import torch

from haptera.analyses.diagnosis import DiagnosisSettings
from haptera.analyses.diagnosis.known_shifts import KnownShifts, known_shifts
from haptera.data import ArrayData, digits
from haptera.errors import HapteraError
from haptera.models import ResNet
from haptera.models.training import fit
from haptera.observe import observe_moments
from haptera.shifts import Contrast
from haptera.streams import Clean

HELD = [("speckle_noise", True, size, 0.1 + 0.5 * size) for size in (0.2, 0.4, 0.8)]
TESTED = [("gaussian_noise", False, 0.5, 0.95), ("shot_noise", False, 0.6, 0.35)]


def made(rows):
    frame = pd.DataFrame(rows, columns=["shift", "holdout", "size", "error"])
    return KnownShifts(frame.assign(family="noise", severity=1.0), clean={"error": 0.1})


def test_lines_are_fitted_on_hold_out_corruptions_only():
    line = made(HELD + TESTED).lines()["noise"]
    assert (line.slope, line.intercept) == (pytest.approx(0.5), pytest.approx(0.1))


def test_the_table_has_true_and_predicted_errors_of_the_others():
    row = made(HELD + TESTED).regressions().iloc[0]
    # At sizes .5 and .6 the line says .35 and .40.
    assert (row["regression"], row["family"], row["shifts"]) == ("unadapted", "noise", 2)
    assert (row["true"], row["predicted"]) == (pytest.approx(0.65), pytest.approx(0.375))
    assert row["off"] == pytest.approx((0.6 + 0.05) / 2)
    assert row["holdout_off"] == pytest.approx(0)


def test_a_family_whose_hold_out_corruption_changes_nothing_has_no_line():
    still = [("saturate", True, 0.001, 0.1) for _ in range(3)]
    frame = pd.concat([made(HELD).frame, made(still).frame.assign(family="digital")], ignore_index=True)
    assert set(KnownShifts(frame, clean={"error": 0.1}).lines()) == {"noise", "all"}


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    model = ResNet(width=8, stem=2)
    fit(model, digits("train", size=16), epochs=3)
    return model


@pytest.fixture(scope="module")
def reference():
    data = digits("test", size=16)
    return ArrayData((data.images(np.arange(200)).numpy() * 255).round().astype(np.uint8), data.targets[:200])


@pytest.fixture(scope="module")
def known(net, reference):
    moments = observe_moments(net, Clean(reference)).moments
    return known_shifts(
        net, reference, moments, settings=DiagnosisSettings(known_samples=64, adapted=True), severities=(5.0,)
    )


def test_errors_of_adapted_models_are_those_of_batchnorm_in_train_mode(net, reference, known):
    batch = next(iter(Clean(reference, batch_size=64)))
    shifted = Contrast(5)(batch.inputs, ids=batch.ids)
    with torch.no_grad():
        train = torch.nn.Sequential(*net).train()
        right = train(shifted).argmax(1) == batch.targets
    net.eval()
    row = known.frame[known.frame["shift"] == "contrast"].iloc[0]
    assert row["adapted_error"] == pytest.approx(1 - right.float().mean().item(), abs=0.04)
    assert row["adapted_error"] < row["error"]


def test_statistics_of_corrupted_images_hurt_on_clean_ones(known):
    assert known.frame["clean_error"].mean() > known.clean["clean_error"]
    assert known.clean["clean_error"] == known.clean["adapted_error"]


def test_all_three_regressions_are_made(known):
    table = known.regressions()
    assert list(table["regression"].unique()) == ["unadapted", "adapted", "adapted, on clean images"]
    assert {"noise", "weather", "all"} <= set(table["family"])


def test_adapted_errors_need_labels(net, reference):
    unlabelled = ArrayData(reference.images(np.arange(20)).numpy(), None)
    with pytest.raises(HapteraError, match="labelled reference"):
        known_shifts(
            net, unlabelled, observe_moments(net, Clean(unlabelled)).moments, settings=DiagnosisSettings(adapted=True)
        )
