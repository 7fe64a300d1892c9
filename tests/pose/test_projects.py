"""Whole projects and other people's files: each frame is read once, found once, and belongs to an individual."""

import json
import logging
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from haptera.errors import HapteraError
from haptera.files.deeplabcut import KeypointTable, read_deeplabcut
from haptera.pose import open_pose, read_coco, score_predictions, split_individuals
from haptera.pose.coco import read_coco_labels
from haptera.pose.evaluate import join_predictions, match_files

PARTS = ("nose", "eye", "tail")
VIDEOS = ("ina", "rex", "tom")
OPENFIELD = Path(__file__).parents[3] / "shared" / "data" / "deeplabcut-openfield"


def frames_of(video, frames=4, scorer="me", seed=0):
    files = np.array([f"labeled-data/{video}/img{k:04d}.png" for k in range(frames)])
    keypoints = np.random.default_rng([seed, *video.encode()]).uniform(5, 35, (frames, 3, 2))
    return KeypointTable(keypoints, PARTS, files, scorer)


@pytest.fixture
def project(tmp_path):
    """Three videos whose images have the same names, a copy of the labels in `training-datasets`."""
    tables = [frames_of(video) for video in VIDEOS]
    for video, table in zip(VIDEOS, tables, strict=True):
        for file in table.files:
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (40, 40)).save(tmp_path / file)
        table.write(tmp_path / "labeled-data" / video / "CollectedData_me.csv")
        table.write(tmp_path / "labeled-data" / video / "CollectedData_me.h5")
    everything = KeypointTable(
        np.concatenate([table.keypoints for table in tables]),
        PARTS,
        np.concatenate([table.files for table in tables]),
        "me",
    )
    copy = tmp_path / "training-datasets" / "iteration-0" / "UnaugmentedDataSet_mouse"
    copy.mkdir(parents=True)
    everything.write(copy / "CollectedData_me.csv")
    everything.write(copy / "CollectedData_me.h5")
    return tmp_path


def test_a_frame_is_read_once(project):
    data = open_pose(project)
    assert len(data) == len(set(data.files)) == 12
    split = split_individuals(data, 1)
    learnt, tested = data.files[split.train], data.files[np.concatenate([split.within, split.out])]
    assert not set(learnt) & set(tested)
    assert len(open_pose(project / "labeled-data")) == 12


def test_a_video_with_hdf5_alone_is_read_beside_others_with_csv(project):
    (project / "labeled-data" / "rex" / "CollectedData_me.csv").unlink()
    for video in ("ina", "tom"):
        (project / "labeled-data" / video / "CollectedData_me.h5").unlink()
    found = read_deeplabcut(project)
    assert found.individuals.tolist() == ["ina"] * 4 + ["rex"] * 4 + ["tom"] * 4
    assert np.allclose(found.keypoints[4:8], frames_of("rex").keypoints)


def test_two_scorers_are_never_merged_in_silence(project):
    frames_of("rex", scorer="you", seed=1).write(project / "labeled-data" / "rex" / "CollectedData_you.csv")
    with pytest.raises(HapteraError, match=r"has 2 scorers \(me, you\); say whose"):
        open_pose(project)
    assert len(open_pose(project, scorer="me")) == 12
    yours = open_pose(project, scorer="you")
    assert np.allclose(yours.keypoints, frames_of("rex", seed=1).keypoints)
    with pytest.raises(HapteraError, match=r"rex/img0000.png is there twice, in .*CollectedData_me.csv and in"):
        open_pose(project, scorer="me,you")
    (project / "labeled-data" / "rex" / "CollectedData_me.csv").unlink()
    (project / "labeled-data" / "rex" / "CollectedData_me.h5").unlink()
    assert len(open_pose(project, scorer="me,you")) == 12  # each labelled videos of their own
    with pytest.raises(HapteraError, match=r"unknown scorer in .* 'yuo'; did you mean 'you'"):
        open_pose(project, scorer="yuo")


def test_parts_in_another_order_are_the_same_parts(project):
    table = frames_of("tom")
    turned = KeypointTable(table.keypoints[:, ::-1], PARTS[::-1], table.files, "me")
    turned.write(project / "labeled-data" / "tom" / "CollectedData_me.csv")
    assert np.allclose(read_deeplabcut(project).keypoints[8:], table.keypoints)


def test_predictions_are_joined_by_video_and_file_name(project, tmp_path):
    labels = read_deeplabcut(project)
    shifted = labels.keypoints + np.repeat([0.0, 6.0, 12.0], 4)[:, None, None]
    by_path = dict(zip(labels.files, shifted, strict=True))
    for cut in ("", "labeled-data/"):
        order = np.random.default_rng(1).permutation(12)
        names = np.array([file.removeprefix(cut) for file in labels.files])[order]
        said = KeypointTable(shifted[order], PARTS, names, "net")
        keypoints, places = join_predictions(said, PARTS, labels.files, "said.csv")
        assert places.tolist() == list(range(12))
        assert np.array_equal(keypoints, [by_path[file] for file in labels.files])
    bare = KeypointTable(shifted[:4], PARTS, np.array([file.rpartition("/")[2] for file in labels.files[:4]]), "net")
    bare.write(tmp_path / "bare.csv")
    with pytest.raises(HapteraError, match=r"img0000.png of .* could be .*ina/img0000.png or .*rex/img0000.png"):
        score_predictions(tmp_path / "bare.csv", project)
    alone = score_predictions(tmp_path / "bare.csv", project / "labeled-data/ina/CollectedData_me.csv").table()
    assert (alone[alone["measure"] == "normalised_error"]["value"] == 0).all()


@pytest.mark.parametrize(
    ("predicted", "labelled", "expected"),
    [
        (["a/1.png"], ["b/1.png"], [None]),  # another video, whatever the file is called
        (["x/a/1.png", "y/a/1.png"], ["y/a/1.png"], [1]),
        (["frames/a/1.png"], ["labeled-data/a/1.png"], [0]),
        (["1.png"], ["labeled-data/a/1.png", "labeled-data/a/2.png"], [0, None]),
        (["a/1.png"], ["1.png"], [0]),
    ],
)
def test_a_frame_is_found_by_its_folder_and_its_name(predicted, labelled, expected):
    assert match_files(predicted, labelled, "said.csv") == expected


def test_a_name_that_fits_two_predictions_is_refused():
    with pytest.raises(HapteraError, match=r"the labelled frame 1.png could be a/1.png or b/1.png of said.csv"):
        match_files(["a/1.png", "b/1.png"], ["1.png"], "said.csv")


def coco(path, fields, files=None, annotated=({},) * 6):
    """A file of COCO with six images, and what else they and their annotations say."""
    files = files or [f"{k}.png" for k in range(6)]
    random = np.random.default_rng(0)
    annotations = []
    for k, more in enumerate(annotated):
        points = np.concatenate([random.uniform(5, 35, (2, 2)), np.full((2, 1), 2)], 1)
        annotations.append(
            {"id": k, "image_id": k, "category_id": 1, "keypoints": points.ravel().tolist(), "bbox": [0, 0, 9, 9]}
            | more
        )
    for file in files:
        (path.parent / file).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (40, 40)).save(path.parent / file)
    images = [{"id": k, "file_name": file} | more for k, (file, more) in enumerate(zip(files, fields, strict=True))]
    categories = [{"id": 1, "name": "cow", "keypoints": ["snout", "tail"]}]
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return path


OWNERS = ["a", "a", "a", "b", "b", "b"]


@pytest.mark.parametrize(
    ("fields", "files", "annotated"),
    [
        ([{"video_id": owner} for owner in OWNERS], None, [{}] * 6),
        ([{"video_id": k, "individual": owner} for k, owner in enumerate(OWNERS)], None, [{}] * 6),
        ([{"video": k} for k in range(6)], None, [{"individual_id": owner} for owner in OWNERS]),
        ([{}] * 6, [f"{owner}/{k}.png" for k, owner in enumerate(OWNERS)], [{}] * 6),
    ],
)
def test_individuals_of_a_coco_file_are_what_it_says(tmp_path, fields, files, annotated):
    data = read_coco(coco(tmp_path / "coco.json", fields, files, annotated))
    assert data.individuals.tolist() == OWNERS
    few, many = (split_individuals(data, 1, fraction=fraction) for fraction in (0.34, 1.0))
    assert (len(few.train), len(few.within), len(few.out)) == (1, 2, 3)
    assert (len(many.train), len(many.within), len(many.out)) == (3, 0, 3)


def test_what_an_individual_is_in_a_coco_file_can_be_chosen(tmp_path, caplog):
    path = coco(tmp_path / "coco.json", [{"video_id": k // 3, "camera": k % 2} for k in range(6)])
    assert read_coco(path, individual="camera").individuals.tolist() == ["0", "1"] * 3
    with caplog.at_level(logging.INFO, "haptera"):
        assert len(set(read_coco(path, individual="image").individuals)) == 6
    assert "every image is an individual of its own" in caplog.text
    with pytest.raises(
        HapteraError, match=r"unknown field of every image or annotation .* 'cam'; did you mean 'camera'"
    ):
        read_coco(path, individual="cam")


def test_a_fraction_of_single_images_is_a_fraction_of_them(tmp_path):
    data = read_coco(coco(tmp_path / "coco.json", [{}] * 6))
    assert len(set(data.individuals)) == 6
    split = split_individuals(data, 4, fraction=0.5)
    assert (len(split.train), len(split.within), len(split.out)) == (2, 2, 2)


@pytest.mark.parametrize("size", [None, (20, 20), (64, 48)])
def test_perfect_predictions_score_zero_whatever_the_size(tmp_path, project, size):
    path = coco(tmp_path / "coco.json", [{}] * 6)
    for labels, data in ((path, read_coco_labels(path)), (project, read_deeplabcut(project))):
        KeypointTable(data.keypoints, data.parts, data.files, "net").write(tmp_path / "said.csv")
        rows = score_predictions(tmp_path / "said.csv", labels).table()
        assert (rows.loc[rows["measure"] == "normalised_error", "value"] == 0).all()
        frames = open_pose(labels, size=size)
        assert np.allclose(frames.in_source(frames.keypoints), data.keypoints)


@pytest.mark.skipif(not OPENFIELD.is_dir(), reason="DeepLabCut's example project is not there")
def test_the_example_project_of_deeplabcut_is_read():
    data = open_pose(OPENFIELD)
    assert (len(data), data.parts) == (116, ("snout", "leftear", "rightear", "tailbase"))
    assert set(data.individuals) == {"m4s1"}
