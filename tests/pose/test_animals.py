"""Several animals in a frame: each is a row with a crop, its prediction is found, and tables come back as they were."""

import json
import logging
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from haptera.errors import HapteraError
from haptera.files.deeplabcut import read_deeplabcut
from haptera.files.keypoints import KeypointTable
from haptera.files.sleap import read_analysis, write_analysis
from haptera.pose import as_network, open_pose, read_labels, score_predictions, split_individuals
from haptera.pose.animals import predict_animals
from haptera.pose.matching import match_predictions
from haptera.pose.project import find_cutoff, open_project
from haptera.pose.splits import read_parts

PARTS = ("nose", "tail")
ANIMALS = ("mouse1", "mouse2")
CONFIG = """Task: two mice
scorer: me
multianimalproject: true
bodyparts: MULTI!
individuals: [mouse1, mouse2, mouse3]
multianimalbodyparts: [nose, tail]
uniquebodyparts: [corner]
skeleton: [[nose, tail]]
pcutoff: 0.4
"""


def labels_of(video="cage", frames=3):
    """Two mice, one above the other, and a corner of the box; the second mouse is not in the first frame."""
    files = np.repeat([f"labeled-data/{video}/img{k:03d}.png" for k in range(frames)], 3)
    keypoints = np.full((3 * frames, 3, 2), np.nan)
    for k in range(frames):
        keypoints[3 * k, :2] = [[20 + k, 12], [40 + k, 14]]
        keypoints[3 * k + 1, :2] = [[24, 50 + k], [50, 52 + k]] if k else np.nan
        keypoints[3 * k + 2, 2] = [1, 1]
    animals = np.tile((*ANIMALS, "single"), frames)
    return KeypointTable(keypoints, (*PARTS, "corner"), files, "me", animals=animals, unique=("corner",))


@pytest.fixture
def project(tmp_path):
    for video in ("cage", "field"):
        table = labels_of(video)
        for number, file in enumerate(dict.fromkeys(table.files)):
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            pixels = np.zeros((64, 80, 3), np.uint8)
            for point in table.keypoints[table.files == file].reshape(-1, 2):
                if np.isfinite(point).all():
                    pixels[int(point[1]), int(point[0])] = (250, 40 * number, 0)
            Image.fromarray(pixels).save(tmp_path / file)
        table.write(tmp_path / "labeled-data" / video / "CollectedData_me.csv")
    (tmp_path / "config.yaml").write_text(CONFIG)
    return tmp_path


@pytest.mark.parametrize("suffix", [".csv", ".h5"])
def test_a_table_of_several_animals_comes_back_as_it_was(tmp_path, suffix):
    table = replace(labels_of(), confidence=np.linspace(0, 1, 27).reshape(9, 3))
    table.write(tmp_path / f"said{suffix}")
    found = read_deeplabcut(tmp_path / f"said{suffix}")
    assert (found.parts, found.unique) == (table.parts, ("corner",))
    assert found.files.tolist() == table.files.tolist()
    assert found.animals.tolist() == table.animals.tolist()
    assert np.allclose(found.keypoints, table.keypoints, equal_nan=True)
    if suffix == ".csv":
        written = pd.read_csv(tmp_path / "said.csv", header=[0, 1, 2, 3], index_col=0)
        assert list(written.columns.names) == ["scorer", "individuals", "bodyparts", "coords"]
        assert ("me", "single", "corner", "x") in written
        assert ("me", "mouse1", "corner", "x") not in written


def test_every_labelled_animal_is_a_crop_whose_labels_are_where_they_were(project, caplog):
    with caplog.at_level(logging.WARNING):
        opened = open_project(project / "config.yaml")
    data = opened.data
    assert "names the individual 'mouse3', which has no label in any frame" in caplog.text
    assert len(data) == 2 * 5  # the second mouse is not in the first frame
    assert (data.parts, data.skeleton, opened.cutoff) == (PARTS, (("nose", "tail"),), 0.4)
    assert set(data.individuals) == {"cage", "field"}
    expected = [row for row in labels_of().keypoints[:, :2] if np.isfinite(row).all()]
    assert np.allclose(data.in_source(data.keypoints)[:5], expected)
    x, y = data.keypoints[1, 0].round().astype(int)
    assert data.images(np.array([1]))[0, 0, y, x] > 0.9  # the nose is bright in the crop, too
    assert find_cutoff(project) == 0.4
    assert opened.videos == ()


def test_animals_of_a_frame_are_on_one_side_of_a_split(project):
    data = open_pose(project)
    split = split_individuals(data, 1, fraction=0.5)
    assert not set(data.files[split.train]) & set(data.files[split.within])
    assert len(split.train) + len(split.within) + len(split.out) == len(data)


def test_by_animal_both_sides_share_frames_and_a_warning_says_so(project, caplog):
    data = open_pose(project, individual="animal")
    assert set(data.individuals) == set(ANIMALS)
    with caplog.at_level(logging.WARNING):
        split_individuals(data, 1, fraction=1.0)
    assert "show animals of both sides of the split" in caplog.text


def test_a_split_by_animal_is_read_back_animal_by_animal(project, tmp_path):
    """Both are in the same frames; one was learnt from, the other is the test."""
    data = open_pose(project, individual="animal")
    split = split_individuals(data, 1, fraction=0.5)
    (tmp_path / "split.csv").write_text(split.text(data))
    assert read_parts(tmp_path / "split.csv", data).tolist() == split.names().tolist()
    with pytest.raises(HapteraError, match=r"is of out and (train|within), for one animal each.*--individual-by"):
        read_parts(tmp_path / "split.csv", open_pose(project))
    by_folder = open_pose(project, individual="image")
    (tmp_path / "split.csv").write_text(split_individuals(by_folder, 1).text(by_folder))
    assert set(read_parts(tmp_path / "split.csv", data)) == {"train", "out"}  # frames tell it, whoever is in them


def said_of(truth, shift=2.0):
    """Predictions of the labelled mice under other names, the surest first, and of one that is not there."""
    table, _ = truth.of_animals()
    keypoints, names = (
        table.keypoints + np.array([shift, 0.0]),
        np.where(table.animals == "mouse1", "track_1", "track_0"),
    )
    ghost = np.array([[70.0, 60.0], [75.0, 60.0]])
    keypoints = np.concatenate([keypoints, ghost[None]])
    confidence = np.full((len(keypoints), 2), 0.9)
    confidence[-1] = 0.3
    files = np.concatenate([table.files, table.files[:1]])
    return KeypointTable(keypoints, PARTS, files, "net", confidence, np.append(names, "track_9"))


def test_predictions_are_matched_to_animals_whatever_the_tracker_calls_them(project, tmp_path):
    said_of(labels_of()).write(tmp_path / "said.csv")
    scores = score_predictions(tmp_path / "said.csv", project / "labeled-data/cage/CollectedData_me.csv")
    every = scores.table().query("part == '' and individual == ''").set_index("measure")["value"]
    assert every["pixel_error"] == pytest.approx(2.0)
    assert every["rmse"] == pytest.approx(2.0)
    assert scores.extra == 1
    assert "1 prediction of no labelled animal" in scores.summary()
    with pytest.raises(HapteraError, match="unknown way to match animals 'nam'; did you mean 'name'"):
        score_predictions(tmp_path / "said.csv", project, match="nam")


def test_an_animal_that_nobody_predicted_is_a_miss(project):
    truth, _ = labels_of().of_animals()
    said = said_of(labels_of())
    lost = said.select(np.flatnonzero(said.animals == "track_1"))
    found = match_predictions(lost, truth, "said")
    assert np.isnan(found.keypoints[truth.animals == "mouse2"]).all()
    assert np.allclose(found.keypoints[truth.animals == "mouse1"], truth.keypoints[truth.animals == "mouse1"] + [2, 0])
    nameless = match_predictions(replace(lost, animals=None), truth, "said")  # of a network for one animal
    assert np.array_equal(nameless.keypoints, found.keypoints, equal_nan=True)


def test_a_frame_of_one_animal_without_a_label_changes_no_score(tmp_path):
    """Frames that were taken for labelling, and not labelled, are rows of a table too."""
    files, parts = np.array([f"clip/img{k}.png" for k in range(6)]), ("nose", "tail")
    points = np.random.default_rng(0).uniform(10, 50, (6, 2, 2))
    KeypointTable(points + 0.01, parts, files, "net", np.full((6, 2), 0.9)).write(tmp_path / "said.csv")
    found = []
    for kept in (np.array([0, 1, 2, 3]), np.arange(6)):
        own = points.copy()
        own[4:] = np.nan
        KeypointTable(own[kept], parts, files[kept], "me").write(tmp_path / "labels.csv")
        rows = score_predictions(tmp_path / "said.csv", tmp_path / "labels.csv").rows
        found.append(rows.set_index(["measure", "part", "individual"])[["value", "n"]])
    assert found[0].loc[("average_precision", "", "")].tolist() == [1.0, 4]
    pd.testing.assert_frame_equal(*found)


def test_a_network_for_one_animal_predicts_several_from_crops(project, tmp_path):
    brightest = as_network(lambda images: images[:, [0, 0]].max(axis=1, keepdims=True).repeat(2, 1), PARTS, stride=1)
    table = predict_animals(brightest, project / "labeled-data/cage/CollectedData_me.csv", tmp_path / "said.csv")
    found = read_deeplabcut(tmp_path / "said.csv")
    truth, _ = labels_of().of_animals()
    assert found.animals.tolist()[:2] == list(ANIMALS)
    near = np.linalg.norm(table.keypoints[:, :1] - truth.keypoints, axis=2).min(1)  # a bright pixel is a part
    assert near.max() < 1
    KeypointTable(truth.keypoints[:1], PARTS, truth.files[:1], "me").write(project / "alone.csv")
    with pytest.raises(HapteraError, match="one animal in a frame; a table of several"):
        predict_animals(brightest, project / "alone.csv", tmp_path / "no.csv")


def test_tracks_of_sleap_come_back(tmp_path):
    said = replace(said_of(labels_of()), files=np.array([*map(str, (0, 1, 1, 2, 2, 0))]))
    write_analysis(tmp_path / "said.analysis.h5", said, [("nose", "tail")])
    found = read_analysis(tmp_path / "said.analysis.h5")
    assert sorted(set(found.animals)) == ["track_0", "track_1", "track_9"]
    assert (len(found.files), len(found.of_animals()[1])) == (9, 6)
    one = np.flatnonzero((found.files == "2") & (found.animals == "track_1"))
    assert np.allclose(found.keypoints[one[0]], [[24.0, 12.0], [44.0, 14.0]])


def test_every_animal_of_a_coco_image_is_taken_on_request(tmp_path):
    Image.new("RGB", (60, 50)).save(tmp_path / "a.png")
    entry = {"image_id": 1, "category_id": 1, "bbox": [10, 10, 20, 20]}
    content = {
        "images": [{"id": 1, "file_name": "a.png"}],
        "categories": [{"id": 1, "name": "cow", "keypoints": list(PARTS)}],
        "annotations": [
            entry | {"id": 1, "keypoints": [12.5, 12.5, 2, 20.5, 20.5, 1], "area": 300},
            entry | {"id": 2, "keypoints": [40.5, 30.5, 2, 0, 0, 0], "bbox": [30, 25, 25, 20]},
            entry | {"id": 3, "keypoints": [0, 0, 0, 0, 0, 0]},  # a box without parts
        ],
    }
    (tmp_path / "two.json").write_text(json.dumps(content))
    with pytest.raises(HapteraError, match="no image with exactly one labelled animal"):
        open_pose(tmp_path / "two.json")
    data = open_pose(tmp_path / "two.json", animals="all")
    assert (len(data), data.animals.tolist()) == (2, ["animal_0", "animal_1"])
    assert np.allclose(data.in_source(data.keypoints)[0], [[12, 12], [20, 20]])
    assert read_labels(tmp_path / "two.json", animals="all").areas.tolist() == [300, 500]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("individuals", "individual", 1), "where the row 'bodyparts' was expected"),
        (
            lambda text: text.replace("coords,x,y", "coords,x,x", 1),
            "has the column 'x' of the part 'nose' of 'mouse1' twice",
        ),
        (lambda text: text + text.splitlines()[-1] + "\n", r"img002.png is there twice"),
        (lambda text: text.replace(",20.0,", ",twenty,", 1), "could not convert string to float: 'twenty'"),
    ],
)
def test_a_damaged_table_of_several_animals_is_refused(project, change, message):
    path = project / "labeled-data/cage/CollectedData_me.csv"
    path.write_text(change(path.read_text()))
    with pytest.raises(HapteraError, match=message):
        open_pose(project)


def test_tables_of_one_and_of_several_animals_are_not_joined(project):
    truth, _ = labels_of("field").of_animals()
    one = truth.select(np.flatnonzero(truth.animals == "mouse1"))
    path = project / "labeled-data/field/CollectedData_me.csv"
    replace(one, animals=None, parts=("nose", "tail")).write(path)
    with pytest.raises(HapteraError, match=r"has other parts than .*: 'corner' is not in .*field"):
        open_pose(project)
    (project / "config.yaml").write_text(CONFIG.replace("multianimalproject: true", "multianimalproject: false"))
    path.unlink()
    with pytest.raises(HapteraError, match="with one animal in a frame, its labels are of several"):
        open_project(project)


def test_categories_of_a_coco_file_may_name_their_parts_in_any_order(tmp_path):
    for name in ("a.png", "b.png"):
        Image.new("RGB", (60, 50)).save(tmp_path / name)
    content = {
        "images": [{"id": 1, "file_name": "a.png"}, {"id": 2, "file_name": "b.png"}],
        "categories": [
            {"id": 1, "name": "cow", "keypoints": ["nose", "ear", "tail"]},
            {"id": 2, "name": "dog", "keypoints": ["tail", "nose", "ear"]},
        ],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 1, "keypoints": [10, 11, 2, 20, 21, 2, 30, 31, 2]},
            {"id": 2, "image_id": 2, "category_id": 2, "keypoints": [30, 31, 2, 10, 11, 2, 0, 0, 0]},
        ],
    }
    (tmp_path / "labels.json").write_text(json.dumps(content))
    data = open_pose(tmp_path / "labels.json")
    assert data.parts == ("nose", "ear", "tail")
    assert data.keypoints[0].tolist() == [[9.5, 10.5], [19.5, 20.5], [29.5, 30.5]]
    assert np.array_equal(data.keypoints[1], [[9.5, 10.5], [np.nan, np.nan], [29.5, 30.5]], equal_nan=True)
    content["categories"][1]["keypoints"][0] = "hoof"
    (tmp_path / "labels.json").write_text(json.dumps(content))
    with pytest.raises(HapteraError, match="dog and cow have different keypoints"):
        open_pose(tmp_path / "labels.json")
