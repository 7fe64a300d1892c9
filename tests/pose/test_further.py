"""Further scores: in pixels, as DeepLabCut prints them, and whether the likelihood of keypoints is right."""

import json

import numpy as np
import pytest

from haptera.errors import HapteraError
from haptera.outputs import Outputs
from haptera.pose import Calibration, Counting, KeypointTable, load_calibration, score_predictions
from haptera.pose.confidence import calibration_error, cross_calibrate, error_exponent, fit_calibration
from haptera.pose.further import confidence_scores, further_rows

PARTS = ["nose", "eye", "tail"]


@pytest.fixture(scope="module")
def outputs():
    """60 frames of 6 individuals; errors grow as likelihood falls, and the likelihood says too much."""
    random = np.random.default_rng(0)
    labels = random.uniform(20, 80, (60, 3, 2))
    labels[:, 1] = labels[:, 0] + [10.0, 0.0]
    sure = random.uniform(0.05, 0.95, (60, 3))
    spread = np.where(random.random((60, 3)) < sure**2, 1.0, 8.0)
    predicted = labels + random.normal(size=labels.shape) * spread[:, :, None]
    labels[3, 2] = predicted[5, 0] = np.nan
    individuals = np.repeat([f"i{k}" for k in range(6)], 10)
    arrays = {"keypoints": predicted, "confidence": sure}
    return Outputs(arrays, np.arange(60), labels, context={"individual": individuals}, provenance={"parts": PARTS})


def test_rmse_is_the_mean_distance_with_and_without_the_cutoff(outputs):
    rows = {
        (row["measure"], row["part"], row["individual"]): row for row in further_rows(outputs, Counting(cutoff=0.6))
    }
    distances, likely = [], []
    for frame in range(60):
        for part in range(3):
            apart = np.linalg.norm(outputs.arrays["keypoints"][frame, part] - outputs.targets[frame, part])
            if np.isfinite(apart):
                distances.append(apart)
                if outputs.arrays["confidence"][frame, part] >= 0.6:
                    likely.append(apart)
    assert rows["rmse", "", ""]["value"] == pytest.approx(np.mean(distances))
    assert rows["rmse_cutoff", "", ""]["value"] == pytest.approx(np.mean(likely))
    assert (rows["rmse_cutoff", "", ""]["n"], rows["rmse_cutoff", "", ""]["cutoff"]) == (len(likely), 0.6)
    assert {row["normalise"] for row in rows.values()} == {"pixels", "area", "nose,eye"}
    assert ("rmse", "tail", "") in rows
    nobody = further_rows(outputs, Counting(cutoff=0.99))
    assert "rmse_cutoff" not in {row["measure"] for row in nobody}


def test_pixels_are_those_of_the_images_as_they_are(outputs):
    factors = np.tile([0.5, 0.25], (60, 1))
    small = Outputs(
        outputs.arrays | {"keypoints": outputs.arrays["keypoints"] * factors[0]}, outputs.ids,
        outputs.targets * factors[0], context=outputs.context, provenance=outputs.provenance,
    )  # fmt: skip
    whole, scaled = (
        next(row["value"] for row in rows if row["measure"] == "pixel_error")
        for rows in (further_rows(outputs, Counting()), further_rows(small, Counting(), factors=factors))
    )
    assert scaled == pytest.approx(whole)


def test_calibration_finds_the_numbers_that_made_the_data():
    random = np.random.default_rng(1)
    odds = random.normal(0, 2, 40_000)
    likelihood = 1 / (1 + np.exp(-odds))
    right = random.random(40_000) < 1 / (1 + np.exp(-(0.5 * odds - 1)))
    found = fit_calibration(likelihood, right)
    assert (found.slope, found.offset) == pytest.approx((0.5, -1), abs=0.05)
    assert calibration_error(likelihood, right) > 0.15
    assert calibration_error(found.apply(likelihood), right) < 0.015
    gradient = [np.mean((found.apply(likelihood) - right) * each) for each in (odds, 1)]
    assert gradient == pytest.approx([0, 0], abs=1e-6)  # the most likely one


def test_calibration_error_is_that_of_a_slow_count():
    random = np.random.default_rng(2)
    likelihood, right = random.random(300), random.random(300) < 0.4
    slow = 0.0
    for k in range(15):
        own = [i for i in range(300) if k / 15 <= likelihood[i] < (k + 1) / 15]
        slow += abs(sum(right[i] - likelihood[i] for i in own)) / 300
    assert calibration_error(likelihood, right) == pytest.approx(slow)


def test_probabilities_come_from_other_individuals():
    likelihood = np.full(40, 0.9)
    groups = np.repeat(["a", "b"], 20)
    right = groups == "a"
    found = cross_calibrate(likelihood, right, groups)
    assert found[groups == "a"].max() < 0.1  # b, which is always wrong, says so
    assert found[groups == "b"].min() > 0.9
    halves = cross_calibrate(likelihood, np.arange(40) < 20, np.full(40, "a"))
    assert halves[:20].max() < 0.1


@pytest.mark.parametrize("right", [np.ones(5, bool), np.zeros(5, bool)])
def test_keypoints_that_are_all_right_or_all_wrong_have_a_calibration(right):
    found = fit_calibration(np.array([0.0, 0.2, 0.5, 0.9, 1.0]), right)
    assert np.isfinite([found.slope, found.offset]).all()


def test_errors_fall_with_likelihood(outputs):
    found = confidence_scores(outputs, Counting())
    assert found.exponent > 0.2
    assert found.after < found.before
    assert found.bins["likelihood"].unique().tolist() == ["as given", "calibrated"]
    assert found.bins.query("likelihood == 'as given'")["n"].sum() == 60 * 3 - 2
    assert (found.cutoffs["kept"].diff().dropna() <= 0).all()
    assert np.isnan(error_exponent(np.full(3, 0.5), np.array([1.0, 2.0, 3.0]))).all()


def test_a_calibration_is_written_and_read(tmp_path):
    made = Calibration(0.5, -1.0, 0.3, "box")
    made.write(tmp_path / "calibration.json")
    assert load_calibration(tmp_path / "calibration.json") == made
    (tmp_path / "calibration.json").write_text(json.dumps({"slope": "steep"}))
    with pytest.raises(HapteraError, match="calibration of keypoints"):
        load_calibration(tmp_path / "calibration.json")


def test_scores_of_a_table_say_it_all(tmp_path, outputs):
    files = np.array([f"{owner}/{k}.png" for k, owner in enumerate(outputs.context["individual"])])
    KeypointTable(outputs.targets, tuple(PARTS), files, "me").write(tmp_path / "truth.csv")
    said = KeypointTable(outputs.arrays["keypoints"], tuple(PARTS), files, "net", outputs.arrays["confidence"])
    said.write(tmp_path / "said.csv")
    scores = score_predictions(tmp_path / "said.csv", tmp_path / "truth.csv", counting=Counting(cutoff=0.5))
    summary = scores.summary()
    for row in scores.table().query("part == '' and individual == ''").itertuples():
        assert f" {row.value:.3f}" in summary
    assert "RMSE of the likely (≥ 0.5)" in summary
    assert "calibrated on other individuals" in summary
    assert scores.settings["normalise"] == "nose,eye"
    page = scores.page()
    assert "Share of right keypoints against likelihood" in page
    paths = scores.save(tmp_path / "out")
    assert load_calibration(paths["calibration"]) == scores.confidence.calibration
    content = json.loads(paths["result"].read_text())
    assert content["off_by"] == pytest.approx(scores.confidence.before)
    assert content["settings"]["cutoff"] == 0.5
