"""Tables of DeepLabCut, COCO's JSON, image files of different sizes: read, written, refused with a reason."""

import json
import logging

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from haptera.errors import HapteraError
from haptera.files.deeplabcut import KeypointTable, read_deeplabcut
from haptera.pose import PoseData, open_pose, read_coco

PARTS = ("nose", "eye", "tail")
FILES = [f"labeled-data/{video}/img{k:03d}.png" for video in ("rex", "ina") for k in range(3)]


@pytest.fixture
def table():
    keypoints = np.random.default_rng(0).uniform(0, 30, (6, 3, 2))
    keypoints[1, 2] = np.nan
    return KeypointTable(keypoints, PARTS, np.array(FILES), "me")


def write_images(root, sizes=((40, 30),) * 6):
    for file, size in zip(FILES, sizes, strict=True):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", size, (10, 200, 30)).save(root / file)


def same(one, two):
    assert np.array_equal(one.keypoints, two.keypoints, equal_nan=True)
    assert (one.parts, one.scorer, one.files.tolist()) == (two.parts, two.scorer, two.files.tolist())


def test_a_table_is_what_deeplabcut_reads_and_comes_back_equal(table, tmp_path):
    path = tmp_path / "CollectedData_me.csv"
    table.write(path)
    frame = pd.read_csv(path, header=[0, 1, 2], index_col=0)  # as DeepLabCut does
    assert frame.columns.names == ["scorer", "bodyparts", "coords"]
    assert frame.index.tolist() == FILES
    assert np.allclose(frame["me"]["eye"]["y"], table.keypoints[:, 1, 1])
    assert frame["me"]["tail"].iloc[1].isna().all()
    same(read_deeplabcut(path), table)


def test_predictions_carry_their_likelihood(table, tmp_path):
    said = KeypointTable(table.keypoints, PARTS, table.files, "net", np.linspace(0, 1, 18).reshape(6, 3))
    said.write(tmp_path / "said.csv")
    assert np.array_equal(read_deeplabcut(tmp_path / "said.csv").confidence, said.confidence)
    frame = pd.read_csv(tmp_path / "said.csv", header=[0, 1, 2], index_col=0)
    assert frame["net"]["nose"].columns.tolist() == ["x", "y", "likelihood"]


def test_hdf5_is_what_pandas_reads_and_comes_back_equal(table, tmp_path):
    path = tmp_path / "CollectedData_me.h5"
    try:
        import tables  # noqa: F401
    except ImportError:
        with pytest.raises(HapteraError, match=r"pip install 'haptera\[pose\]'"):
            table.write(path)
        return
    table.write(path)
    frame = pd.read_hdf(path)
    assert list(frame.columns.names) == ["scorer", "bodyparts", "coords"]
    assert np.array_equal(frame.to_numpy(), table.keypoints.reshape(6, -1), equal_nan=True)
    same(read_deeplabcut(path), table)


def test_a_path_in_three_columns_is_joined(table, tmp_path):
    frame = table.frame()
    frame.index = pd.MultiIndex.from_tuples([tuple(file.split("/")) for file in FILES])
    frame.to_csv(tmp_path / "new.csv")
    same(read_deeplabcut(tmp_path / "new.csv"), table)
    frame.index = [file.replace("/", "\\") for file in FILES]
    frame.to_csv(tmp_path / "windows.csv")
    same(read_deeplabcut(tmp_path / "windows.csv"), table)


def test_a_project_is_read_with_its_images_and_videos_are_individuals(table, tmp_path):
    write_images(tmp_path)
    for video in ("ina", "rex"):
        own = np.array([video in file for file in FILES])
        part = KeypointTable(table.keypoints[own], PARTS, table.files[own], "me")
        part.write(tmp_path / "labeled-data" / video / "CollectedData_me.csv")
    data = open_pose(tmp_path)
    assert data.individuals.tolist() == ["ina"] * 3 + ["rex"] * 3
    assert (data.height, data.width) == (30, 40)
    assert data.images(np.array([0, 5])).shape == (2, 3, 30, 40)
    one = open_pose(tmp_path / "labeled-data" / "rex" / "CollectedData_me.csv")  # the project's root is found
    assert np.array_equal(one.keypoints, table.keypoints[:3], equal_nan=True)
    with pytest.raises(HapteraError, match="6 of 6 images are not there"):
        open_pose(tmp_path, tmp_path / "elsewhere")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("scorer,me\nbodypart,nose\ncoords,x\n", "has 'bodypart' where the row 'bodyparts' was expected"),
        ("a,b\n1,2\n", "has 'a' where the row 'scorer' was expected"),
        ("scorer,a,a\nindividuals,r,r\nbodyparts,n,n\ncoords,x,y\n", "has no frames"),
        ("scorer,me,me\nbodyparts,nose,nose\ncoords,x,z\ni.png,1,2\n", "no column 'y' of the part 'nose'"),
        ("scorer,me,me\nbodyparts,nose,nose\ncoords,x,y\ni.png,1,far\n", "row of i.png: could not convert"),
        ("scorer,me,me\nbodyparts,nose,nose\ncoords,x,y\ni.png,1\n", "row of i.png has 2 cells, 3 were expected"),
        ("scorer,me,me\nbodyparts,nose,nose\ncoords,x,y\n", "has no frames"),
        ("scorer,me,you\nbodyparts,nose,nose\ncoords,x,y\ni.png,1,2\n", r"2 scorers \(me, you\)"),
    ],
)
def test_a_wrong_table_is_refused_with_the_reason(tmp_path, text, message):
    (tmp_path / "wrong.csv").write_text(text)
    with pytest.raises(HapteraError, match=message):
        read_deeplabcut(tmp_path / "wrong.csv")


def test_one_of_several_scorers_can_be_chosen(table, tmp_path):
    other = KeypointTable(table.keypoints + 1, PARTS, table.files, "you")
    pd.concat([table.frame(), other.frame()], axis=1).to_csv(tmp_path / "both.csv")
    same(read_deeplabcut(tmp_path / "both.csv", "you"), other)
    with pytest.raises(HapteraError, match=r"unknown scorer in .*both.csv 'yo'; did you mean 'you'"):
        read_deeplabcut(tmp_path / "both.csv", "yo")


def test_images_of_different_sizes_need_a_size_and_keypoints_follow(table, tmp_path):
    write_images(tmp_path, ((40, 30), (80, 60), (80, 30), (40, 30), (40, 30), (40, 30)))
    table.write(tmp_path / "CollectedData_me.csv")
    with pytest.raises(HapteraError, match=r"img001.png is 80 x 60 and .*img000.png is 40 x 30 .*give size"):
        open_pose(tmp_path)
    data = open_pose(tmp_path, size=(30, 40))
    assert np.allclose(data.keypoints[0], table.keypoints[0])
    known = np.isfinite(table.keypoints[1]).all(1)
    assert np.allclose(data.keypoints[1][known] + 0.5, (table.keypoints[1][known] + 0.5) / 2)
    assert np.allclose(data.keypoints[2] + 0.5, (table.keypoints[2] + 0.5) / 2)
    third = data.images(np.array([2]))[0]
    assert third[:, :15].max() > 0.5
    assert third[:, 15:].max() == 0  # 80 x 30 fits as 40 x 15, black below
    assert np.allclose(data.in_source(data.keypoints), table.keypoints, equal_nan=True)


def test_labels_outside_the_frame_count_as_missing_and_the_log_says_so(caplog):
    keypoints = np.array([[[5.0, 5.0], [50.0, 5.0]], [[5.0, np.nan], [3.0, 3.0]]])
    with caplog.at_level(logging.WARNING):
        data = PoseData(np.zeros((2, 20, 30, 3), np.uint8), keypoints, ["a", "b"])
    assert np.isnan(data.keypoints[0, 1]).all()
    assert np.isnan(data.keypoints[1, 0]).all()
    assert "1 keypoints lie outside their frame and count as missing (first: frame 0, b)" in caplog.text


def test_data_that_makes_no_sense_is_refused():
    images = np.zeros((2, 20, 30, 3), np.uint8)
    with pytest.raises(HapteraError, match=r"keypoints are \(2, 3, 2\); .* = \(2, 2, 2\)"):
        PoseData(images, np.zeros((2, 3, 2)), ["a", "b"])
    with pytest.raises(HapteraError, match="no keypoint is labelled"):
        PoseData(images, np.full((2, 1, 2), np.nan), ["a"])
    with pytest.raises(HapteraError, match="'a' is there twice"):
        PoseData(images, np.zeros((2, 2, 2)), ["a", "a"])
    with pytest.raises(HapteraError, match=r"individuals are \(3,\)"):
        PoseData(images, np.zeros((2, 1, 2)), ["a"], ["x", "y", "z"])
    with pytest.raises(HapteraError, match=r"names 'nos', which is not a part; did you mean 'nose'"):
        PoseData(images, np.zeros((2, 1, 2)), ["nose"], skeleton=[("nose", "nos")])


def test_a_part_without_labels_is_announced(table, tmp_path, caplog):
    write_images(tmp_path)
    blind = table.keypoints.copy()
    blind[:, 2] = np.nan
    KeypointTable(blind, PARTS, table.files, "me").write(tmp_path / "CollectedData_me.csv")
    with caplog.at_level(logging.WARNING):
        open_pose(tmp_path / "CollectedData_me.csv")
    assert "the part 'tail' has no label in any frame" in caplog.text


@pytest.fixture
def coco(tmp_path):
    for name in ("a.png", "b.png", "c.png"):
        Image.new("RGB", (40, 30)).save(tmp_path / name)
    content = {
        "images": [{"id": k, "file_name": f"{name}.png"} for k, name in enumerate("abc", 1)],
        "categories": [
            {"id": 7, "name": "cow", "keypoints": ["nose", "eye"], "skeleton": [[1, 2]]},
            {"id": 8, "name": "sheep", "keypoints": ["nose", "eye"]},
        ],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 7, "keypoints": [3, 4, 2, 0, 0, 0], "bbox": [0, 0, 20, 10]},
            {"id": 2, "image_id": 2, "category_id": 8, "keypoints": [5, 6, 1, 7, 8, 2], "area": 90.0, "bbox": [0] * 4},
            {"id": 3, "image_id": 3, "category_id": 8, "keypoints": [1, 1, 2, 1, 1, 2], "bbox": [0] * 4},
            {"id": 4, "image_id": 3, "category_id": 8, "keypoints": [1, 1, 2, 1, 1, 2], "bbox": [0] * 4},
        ],
    }
    path = tmp_path / "animals.json"
    path.write_text(json.dumps(content))
    return path


def test_coco_gives_single_animals_with_species_and_areas(coco):
    data = read_coco(coco)
    assert data.files.tolist() == ["a.png", "b.png"]  # c has two animals
    assert data.species.tolist() == ["cow", "sheep"]
    assert data.areas.tolist() == [200, 90]
    assert data.skeleton == (("nose", "eye"),)
    assert data.keypoints[0, 0].tolist() == [2.5, 3.5]  # corners of pixels to centres
    assert np.isnan(data.keypoints[0, 1]).all()


def test_a_wrong_json_is_refused(coco):
    content = json.loads(coco.read_text())
    del content["annotations"][0]["image_id"]
    coco.write_text(json.dumps(content))
    with pytest.raises(HapteraError, match=r"annotations\[0\] has no 'image_id'"):
        read_coco(coco)
    del content["annotations"]
    coco.write_text(json.dumps(content))
    with pytest.raises(HapteraError, match="has no 'annotations'"):
        read_coco(coco)
    coco.write_text("{")
    with pytest.raises(HapteraError, match="is not JSON"):
        read_coco(coco)
