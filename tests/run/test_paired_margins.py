"""Margins of one seed: the interval is that of the images themselves, and stays as it was where these do not pair."""

import numpy as np
import pytest
from scipy import stats

from haptera.measures import difference
from haptera.outputs import Outputs
from haptera.report.paper.table import paper_tables
from haptera.run.importing import import_predictions
from haptera.run.results import measure

SHIFTS = ("fog", "snow", "frost")
IMAGES = 400


def right_answers(seed=0):
    """Whether each of two adapters is right, `(shifts, images)`: mostly about the same images."""
    random = np.random.default_rng(seed)
    hard = random.random(IMAGES)
    second = random.random((len(SHIFTS), IMAGES)) > hard
    best = second | (random.random((len(SHIFTS), IMAGES)) < 0.1)
    return {"eta": best, "tent": second}


def write(folder, answers, shifts=SHIFTS, seed=0):
    targets = np.arange(IMAGES) % 10
    for adapter, right in answers.items():
        for own, shift in zip(right, shifts, strict=True):
            np.savez(folder / "file.npz", labels=np.where(own, targets, (targets + 1) % 10), targets=targets)
            names = {"model": "net", "stream": "c", "adapter": adapter, "shift": shift, "severity": 3.0}
            import_predictions(folder / "file.npz", folder / "study", seed=seed, **names)
    return measure(folder / "study")


def margin(table, name="shift_margin"):
    return table[table["measure"] == name].iloc[0]


@pytest.mark.long
@pytest.mark.parametrize("name", ["shift_margin", "adapter_margin"])
def test_the_interval_of_one_seed_is_students_over_the_means_of_images(tmp_path, name):
    answers = right_answers()
    row = margin(write(tmp_path, answers), name)
    units = (answers["eta"].astype(float) - answers["tent"]).mean(axis=0)
    low, high = stats.t.interval(0.95, IMAGES - 1, units.mean(), units.std(ddof=1) / IMAGES**0.5)
    assert (row["adapter"], row["against"], row["images"]) == ("eta", "tent", IMAGES)
    assert (row["value"], row["low"], row["high"]) == pytest.approx((units.mean(), low, high))


@pytest.mark.long
def test_a_single_shift_has_the_interval_of_paired_shares(tmp_path):
    answers = {name: right[:1] for name, right in right_answers().items()}
    row = margin(write(tmp_path, answers, SHIFTS[:1]))
    targets = np.arange(IMAGES) % 10
    one, other = (
        Outputs({"labels": np.where(answers[name][0], targets, (targets + 1) % 10)}, np.arange(IMAGES), targets)
        for name in ("eta", "tent")
    )
    assert (row["value"], row["low"], row["high"]) == pytest.approx(difference(one, other))


@pytest.mark.long
def test_hold_out_shifts_do_not_count_in_the_margin_over_shifts(tmp_path):
    answers = right_answers()
    row = margin(write(tmp_path, answers, ("fog", "speckle_noise", "frost")))
    units = (answers["eta"][[0, 2]].astype(float) - answers["tent"][[0, 2]]).mean(axis=0)
    assert row["value"] == pytest.approx(units.mean())
    assert row["images"] == IMAGES


@pytest.mark.long
def test_several_seeds_are_paired_by_seed(tmp_path):
    for seed in (0, 1, 2):
        table = write(tmp_path, right_answers(seed), seed=seed)
    row = margin(table)
    assert row["seeds"] == 3
    assert "images" not in table or np.isnan(row["images"])


@pytest.mark.long
def test_few_images_that_differ_keep_the_wide_interval(tmp_path):
    answers = right_answers()
    answers["eta"] = answers["tent"].copy()
    answers["eta"][:, :5] = True
    answers["tent"][:, :5] = False
    table = write(tmp_path, answers)
    assert "images" not in table or np.isnan(margin(table)["images"])
    assert margin(table)["low"] < 0


@pytest.mark.long
def test_the_papers_table_says_over_what_the_interval_is(tmp_path):
    [made] = paper_tables(write(tmp_path, right_answers()))
    assert "paired over 400 images, one seed" in made.margin
