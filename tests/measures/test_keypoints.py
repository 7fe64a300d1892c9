"""Normalised error, PCK and OKS against hand-made cases and pycocotools; intervals over individuals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from haptera.errors import HapteraError
from haptera.measures import (
    box_sides,
    find_normaliser,
    head_lengths,
    keypoint_distances,
    keypoint_scales,
    mean_over_individuals,
    normalised_error,
    object_keypoint_similarity,
    pck,
)
from haptera.outputs import Outputs
from haptera.table import tidy
from haptera.testing.measures import example_poses

NAN = np.nan
PARTS = ["nose", "eye", "tail"]
# Head lengths: a 10 (two frames of 10, one of 40, median 10), b 5.
LABELS = np.array(
    [
        [[0, 0], [10, 0], [50, 0]],
        [[0, 0], [0, 10], [NAN, NAN]],
        [[0, 0], [40, 0], [20, 20]],
        [[0, 0], [3, 4], [NAN, NAN]],
    ],
    float,
)
WHO = np.array(["a", "a", "a", "b"])


def outputs(keypoints, labels=LABELS, who=WHO, **provenance):
    return Outputs(
        {"keypoints": keypoints},
        ids=np.arange(len(labels)),
        targets=labels,
        context={"individual": who},
        provenance={"parts": PARTS} | provenance,
    )


def values(rows):
    return {(row["part"], row["individual"]): row for row in rows}


def test_errors_are_in_units_of_each_individual_and_missing_labels_do_not_count():
    said = np.nan_to_num(LABELS, nan=99.0)
    said[0, 2] += [3, 4]  # 5 pixels, half a head of a
    said[3, 0] += [0, 5]  # 5 pixels, a whole head of b
    rows = values(normalised_error(outputs(said)))
    assert rows["", "a"]["value"] == pytest.approx(0.5 / 8)
    assert rows["", "b"]["value"] == pytest.approx(1 / 2)
    assert rows["", ""]["value"] == pytest.approx((0.5 / 8 + 0.5) / 2)  # individuals count the same
    assert rows["", ""]["n"] == 10
    assert rows["tail", ""]["value"] == pytest.approx(0.5 / 2)  # b has no label of it
    assert rows["nose", ""]["value"] == pytest.approx((0 + 1) / 2)
    assert "low" not in rows["", "b"]  # one individual has no interval


@pytest.mark.parametrize(("threshold", "of_a", "of_b"), [(0.3, 7 / 8, 0.5), (0.5, 1.0, 0.5), (1.0, 1.0, 1.0)])
def test_pck_counts_what_is_within_any_threshold(threshold, of_a, of_b):
    said = np.nan_to_num(LABELS, nan=99.0)
    said[0, 2] += [3, 4]
    said[3, 0] += [0, 5]
    rows = values(pck(outputs(said), threshold))
    assert rows["", "a"]["value"] == pytest.approx(of_a)
    assert rows["", "b"]["value"] == pytest.approx(of_b)
    assert rows["", ""]["value"] == pytest.approx((of_a + of_b) / 2)


def test_a_part_without_any_label_has_no_row():
    labels = LABELS.copy()
    labels[:, 2] = NAN
    rows = values(pck(outputs(np.zeros_like(labels), labels)))
    assert ("tail", "") not in rows
    assert ("nose", "") in rows


def test_the_box_is_used_without_nose_and_eye():
    assert box_sides(LABELS)[[2, 3]] == pytest.approx([np.sqrt(40 * 20), np.sqrt(12)])
    assert np.isnan(box_sides(LABELS)[0])  # all on one line
    assert keypoint_scales(LABELS, WHO, ["Nose", "Eye", "tail"]).tolist() == [10, 10, 10, 5]
    side = np.sqrt(40 * 20)  # of the one frame of a that has a box; its others take it
    assert keypoint_scales(LABELS, WHO, ["a", "b", "c"]) == pytest.approx([side, side, side, np.sqrt(12)])
    for parts, found in ((["a", "b"], "box"), (["snout"], "pixels"), (["Eye", "x", "NOSE"], "nose,eye")):
        assert find_normaliser(parts) == found
    assert {row["normalise"] for row in normalised_error(outputs(np.nan_to_num(LABELS)), "box")} == {"box"}


def test_an_animal_without_any_box_takes_that_of_the_others():
    labels = LABELS.copy()
    labels[3, 1:] = NAN  # all that is left of b is its nose
    assert keypoint_scales(labels, WHO, ["a", "b", "c"])[3] == pytest.approx(np.sqrt(40 * 20))
    with pytest.raises(HapteraError, match="no frame has labels that span a box; normalise by 'pixels'"):
        keypoint_scales(_only_nose(), WHO, ["a", "b", "c"])


def test_one_part_is_scored_in_pixels():
    labels = np.array([[[3.0, 4.0]], [[5.0, 5.0]]])
    apart = np.array([[[3.0, 4.0]], [[6.0, 8.0]]])
    said = Outputs({"keypoints": labels + apart}, np.arange(2), labels, provenance={"parts": ["a"]})
    error, *_ = normalised_error(said)
    assert (error["value"], error["normalise"]) == (7.5, "pixels")
    share, *_ = pck(said)
    assert (share["value"], share["threshold"]) == (0.5, 5.0)


def test_a_missing_prediction_is_a_miss_and_is_counted():
    said = np.nan_to_num(LABELS, nan=99.0)
    said[0, 0] = NAN
    said[2, 1, 1] = np.inf
    said[1, 2] = NAN  # not labelled: counts nowhere
    error, share = values(normalised_error(outputs(said))), values(pck(outputs(said)))
    for rows in (error, share):
        assert [rows[key]["missing"] for key in [("", ""), ("", "a"), ("", "b"), ("nose", "")]] == [2, 2, 0, 1]
    assert (error["", "a"]["value"], error["", "a"]["n"]) == (0, 6)
    assert (share["", "a"]["value"], share["", "a"]["n"]) == (6 / 8, 8)
    nothing = values(normalised_error(outputs(np.full_like(LABELS, NAN))))["", ""]
    assert np.isnan(nothing["value"])
    assert nothing["missing"] == 10


coordinates = arrays(float, (6, 4, 2), elements=st.floats(-100, 100, width=32))


@settings(max_examples=25)
@given(coordinates, coordinates, st.floats(0.1, 10), st.permutations(range(6)), st.permutations(range(4)))
@pytest.mark.parametrize("normalise", ["nose,eye", "box"])
def test_scores_know_neither_the_scale_nor_the_place_nor_the_order(normalise, labels, said, scale, frames, order):
    """Perfect predictions score 0; moved and scaled alike, or in another order, predictions score the same."""
    parts, who = ["nose", "eye", "a", "b"], np.array(["x", "x", "y", "y", "z", "z"])
    labels = labels + np.array([[0, 0], [200, 200], [0, 200], [200, 0]])  # every frame has a head and a box

    def score(measure, said, labels, parts=parts, who=who):
        content = {"context": {"individual": who}, "provenance": {"parts": parts, "normalise": normalise}}
        rows = values(measure(Outputs({"keypoints": said}, np.arange(6), labels, **content)))
        return {key: row["value"] for key, row in rows.items()}

    assert set(score(normalised_error, labels, labels).values()) == {0}
    assert set(score(pck, labels, labels).values()) == {1}
    plain = score(normalised_error, said, labels)
    assert score(normalised_error, said * scale - 7, labels * scale - 7) == pytest.approx(plain, rel=1e-6, abs=1e-9)
    mixed = [array[list(frames)][:, list(order)] for array in (said, labels)]
    names = {"parts": [parts[k] for k in order], "who": who[list(frames)]}
    for measure in (normalised_error, pck):
        assert score(measure, *mixed, **names) == pytest.approx(score(measure, said, labels))


def test_bad_settings_say_what_is_valid():
    with pytest.raises(HapteraError, match=r"'noze', which is not labelled; did you mean 'nose'"):
        keypoint_scales(LABELS, WHO, PARTS, "noze,eye")
    with pytest.raises(HapteraError, match="box, pixels, or two parts"):
        keypoint_scales(LABELS, WHO, PARTS, "nose")
    blind = LABELS.copy()
    blind[3, 1] = NAN
    with pytest.raises(HapteraError, match=r"individual 'b' has no frame .* 'box'"):
        head_lengths(blind, WHO, (0, 1))
    with pytest.raises(HapteraError, match="threshold is 0"):
        pck(outputs(np.nan_to_num(LABELS)), 0)


def _only_nose():
    labels = np.full_like(LABELS, NAN)
    labels[:, 0] = LABELS[:, 0]
    return labels


def test_the_interval_draws_individuals_not_frames():
    random = np.random.default_rng(0)
    who = np.repeat([f"i{k}" for k in range(12)], 50)
    own = random.normal(1, 0.3, 12)
    found = mean_over_individuals(np.repeat(own, 50) + random.normal(0, 0.01, 600), who)
    assert found.value == pytest.approx(own.mean(), abs=0.01)
    # As wide as Student's t over the twelve means says, a quarter more or less; frames alone would say far less.
    half = 2.2 * own.std(ddof=1) / np.sqrt(12)
    assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.25)
    copied = mean_over_individuals(np.tile(np.repeat(own, 50), 4), np.tile(who, 4))
    assert copied.high - copied.low == pytest.approx(found.high - found.low, rel=0.1)


def test_every_shift_has_rows_of_its_own():
    rows = tidy(pck(example_poses()))
    assert set(rows["shift"]) == {"clean", "fog"}
    fog = example_poses()
    own = fog.context["shift"] == "fog"
    alone = outputs(fog.arrays["keypoints"][own], fog.targets[own], fog.context["individual"][own])
    together = rows[(rows["shift"] == "fog") & (rows["part"] == "nose")]["value"].item()
    # Heads are measured over all frames of an individual, whatever their shift.
    scales = keypoint_scales(fog.targets, fog.context["individual"], PARTS)[own]
    near = keypoint_distances(alone.arrays["keypoints"], alone.targets)[:, 0] / scales <= 0.3
    known = np.isfinite(alone.targets[:, 0, 0])
    who = alone.context["individual"]
    assert together == pytest.approx(np.mean([near[known & (who == name)].mean() for name in np.unique(who)]))


def test_similarity_of_keypoints_equals_pycocotools():
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    random = np.random.default_rng(2)
    labels = random.uniform(0, 100, (6, 17, 2))
    labels[random.random((6, 17)) < 0.3] = NAN
    said = np.nan_to_num(labels) + random.normal(0, 8, labels.shape)
    areas = random.uniform(500, 4000, 6)
    sigmas = random.uniform(0.02, 0.1, 17)
    coco = COCO()
    seen = np.isfinite(labels[:, :, :1])
    flat = np.concatenate([np.nan_to_num(labels), 2.0 * seen], 2).reshape(6, -1)
    coco.dataset = {
        "images": [{"id": k} for k in range(1, 7)],
        "categories": [{"id": 1, "name": "animal"}],
        "annotations": [
            {
                "id": k + 1, "image_id": k + 1, "category_id": 1, "keypoints": flat[k].tolist(), "area": areas[k],
                "num_keypoints": int(seen[k].sum()), "bbox": [0, 0, 100, 100], "iscrowd": 0,
            }
            for k in range(6)
        ],
    }  # fmt: skip
    coco.createIndex()
    results = [
        {
            "image_id": k + 1, "category_id": 1, "score": 1.0,
            "keypoints": np.concatenate([said[k], np.ones((17, 1))], 1).ravel().tolist(),
        }
        for k in range(6)
    ]  # fmt: skip
    judge = COCOeval(coco, coco.loadRes(results), "keypoints")
    judge.params.kpt_oks_sigmas = sigmas
    judge._prepare()
    theirs = [float(judge.computeOks(k, 1)[0, 0]) for k in range(1, 7)]
    assert object_keypoint_similarity(said, labels, areas, sigmas) == pytest.approx(theirs, abs=1e-12)


def test_similarity_of_a_frame_without_labels_is_not_a_number():
    labels = np.full((2, 3, 2), NAN)
    labels[0] = 1.0
    found = object_keypoint_similarity(np.ones((2, 3, 2)), labels, np.array([100.0, 100.0]))
    assert found[0] == 1.0
    assert np.isnan(found[1])
    with pytest.raises(HapteraError, match="2 positive numbers"):
        object_keypoint_similarity(np.ones((2, 3, 2)), labels, np.array([100.0, 0.0]))
