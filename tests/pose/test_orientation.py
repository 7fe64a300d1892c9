"""Images to be turned by EXIF: labels and declared sizes decide; where they do not, a warning names one."""

import json
import logging

import numpy as np
import pytest
from PIL import Image, ImageOps

from haptera.pose import PoseData, open_pose, predict
from haptera.pose.predict import predict_table

ORIENTATION = 0x0112
PARTS = ["nose", "tail"]


def write(path, orientation=6, height=40, width=64):
    """Write an image stored lying, with a light left half, and return how it looks turned."""
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[:, : width // 2] = 200
    image, exif = Image.fromarray(pixels), Image.Exif()
    exif[ORIENTATION] = orientation
    image.save(path, exif=exif, quality=95)
    with Image.open(path) as stored:
        return np.asarray(stored), np.asarray(ImageOps.exif_transpose(stored))


def read(data, row=0):
    return np.rint(255 * data.images(np.array([row]))[0].permute(1, 2, 0).numpy())


@pytest.mark.parametrize("orientation", [5, 6, 7, 8])
def test_labels_that_fit_the_turned_image_alone_turn_it(orientation, tmp_path):
    _, turned = write(tmp_path / "a.jpg", orientation)
    data = PoseData([tmp_path / "a.jpg"], np.array([[[30.0, 60.0], [1.0, 2.0]]]), PARTS)
    assert (data.height, data.width) == (64, 40)
    assert np.array_equal(read(data), turned)
    assert np.isfinite(data.keypoints).all()


def test_labels_that_fit_the_stored_image_alone_leave_it(tmp_path, caplog):
    stored, _ = write(tmp_path / "a.jpg")
    data = PoseData([tmp_path / "a.jpg"], np.array([[[60.0, 30.0], [1.0, 2.0]]]), PARTS)
    assert np.array_equal(read(data), stored)
    assert "EXIF" not in caplog.text


def test_other_images_of_the_same_labels_go_with_those_that_say_it(tmp_path, caplog):
    for name in ("a", "b"):
        _, turned = write(tmp_path / f"{name}.jpg")
    _, over = write(tmp_path / "c.jpg", 3, 64, 40)
    files = [tmp_path / f"{name}.jpg" for name in "abc"]
    keypoints = np.array([[[30.0, 60.0], [1.0, 2.0]], [[3.0, 6.0], [1.0, 2.0]], [[3.0, 6.0], [1.0, 2.0]]])
    data = PoseData(files, keypoints, PARTS)
    assert np.array_equal(read(data, 1), turned)
    assert np.array_equal(read(data, 2), over)  # upside down: no side says it
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_where_nothing_says_it_images_stay_and_one_warning_names_the_first(tmp_path, caplog):
    for name in ("a", "b"):
        stored, _ = write(tmp_path / f"{name}.jpg")
    data = PoseData([tmp_path / "a.jpg", tmp_path / "b.jpg"], np.full((2, 2, 2), 5.0), PARTS)
    assert np.array_equal(read(data), stored)
    [record] = [record for record in caplog.records if "EXIF" in record.message]
    assert f"EXIF says that 2 images are to be turned (first: {tmp_path / 'a.jpg'}, orientation 6)" in record.message


def test_labels_that_contradict_one_another_decide_for_their_own_image_alone(tmp_path, caplog):
    for name in ("a", "b", "c"):
        stored, turned = write(tmp_path / f"{name}.jpg")
    keypoints = np.array([[[30.0, 60.0]], [[60.0, 30.0]], [[3.0, 3.0]]])
    data = PoseData([tmp_path / f"{name}.jpg" for name in "abc"], keypoints, ["nose"], size=(64, 64))
    assert np.allclose(data.factors, 1)
    for row, expected in enumerate((turned, stored, stored)):
        assert np.array_equal(read(data, row)[: expected.shape[0], : expected.shape[1]], expected)
    assert f"EXIF says that 1 image is to be turned (first: {tmp_path / 'c.jpg'}" in caplog.text


@pytest.mark.parametrize(("height", "width", "turns"), [(64, 40, True), (40, 64, False)])
@pytest.mark.parametrize("animals", ["one", "all"])
def test_the_size_that_a_file_of_coco_declares_decides(height, width, turns, animals, tmp_path, caplog):
    stored, turned = write(tmp_path / "a.jpg")
    content = {
        "images": [{"id": 1, "file_name": "a.jpg", "height": height, "width": width}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 1, "keypoints": [20, 20, 2, 22, 22, 2], "bbox": [18, 18, 8, 8]}
        ],
        "categories": [{"id": 1, "name": "horse", "keypoints": PARTS}],
    }
    (tmp_path / "labels.json").write_text(json.dumps(content))
    data = open_pose(tmp_path / "labels.json", animals=animals)
    expected = turned if turns else stored
    left, top = data.frames.corners[0]
    assert np.array_equal(read(data), expected[top : top + data.height, left : left + data.width])
    assert "nothing says" not in caplog.text


def test_prediction_of_files_warns_once(trained, tmp_path, caplog):
    for name in "abcd":
        write(tmp_path / f"{name}.jpg")
    predict(trained, tmp_path, batch_size=1)
    assert caplog.text.count("EXIF says that 4 images are") == 1
    caplog.clear()
    predict_table(trained, tmp_path, tmp_path / "out.csv", batch_size=1, progress=False)
    assert caplog.text.count("EXIF") == 1
