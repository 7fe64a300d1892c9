import numpy as np
import pytest
from PIL import Image
from tests.data.layouts import PIXELS, encode

from haptera.data import open_data
from haptera.errors import HapteraError


def write(folder, *names):
    folder.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(encode(PIXELS[number]))


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_table_of_paths_and_numbers(tmp_path, separator):
    write(tmp_path, "b.png", "a.png")
    rows = [["filename", "class_id", "note"], ["b.png", "4", ""], ["a.png", "2", "x"]]
    (tmp_path / "t.csv").write_text("\n".join(separator.join(row) for row in rows) + "\n")
    data = open_data(tmp_path / "t.csv")
    assert data.targets.tolist() == [4, 2]
    np.testing.assert_array_equal((data.images(np.array([0]))[0] * 255).round().byte(), PIXELS[0].transpose(2, 0, 1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("path,label\nnone.png,0\n", r"line 2: there is no file .*none\.png"),
        ("path,label\na.png,0\na.png,0\n", r"lists a\.png twice"),
        ("path,label\na.png,0\nb.png,\n", "line 3: there is no label"),
        ("path,label\na.png\n", "row 2: found 1 fields, the header has 2"),
        ("name,label\na.png,0\n", "has the columns name, label; one of paths"),
        ("path,label\n", "lists no images"),
        ("path,lable\na.png,0\n", "no column of labels, but one called 'lable'; did you mean 'label'"),
    ],
)
def test_tables_that_cannot_be_right_are_refused(tmp_path, text, message):
    write(tmp_path, "a.png", "b.png")
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(HapteraError, match=message):
        open_data(tmp_path / "t.csv")


def test_a_table_without_labels_is_unlabelled_data(tmp_path):
    write(tmp_path, "a.png")
    (tmp_path / "t.csv").write_text("path,place\na.png,hall\n")
    assert open_data(tmp_path / "t.csv").targets is None


def test_the_flat_validation_folder_of_imagenet_with_its_ground_truth(tmp_path):
    """Its numbers are not the places of sorted WordNet ids: 1 is the kit fox, class 278."""
    folder = tmp_path / "val"
    folder.mkdir()
    for number in (1, 2, 3):
        Image.fromarray(PIXELS[number]).save(folder / f"ILSVRC2012_val_{number:08d}.JPEG")
    truth = tmp_path / "ILSVRC2012_validation_ground_truth.txt"
    truth.write_text("1\n356\n1000\n")
    data = open_data(folder)
    assert data.targets[:2].tolist() == [278, 0]
    assert data.rows.tolist() == [0, 1, 2]
    assert data.names[278] == "n02119789"
    truth.write_text("1\n1001\n3\n")
    with pytest.raises(HapteraError, match="line 2: '1001' is not one of ILSVRC's classes"):
        open_data(folder)
    truth.unlink()
    (tmp_path / "LOC_val_solution.csv").write_text(
        "ImageId,PredictionString\n"
        "ILSVRC2012_val_00000003,n01443537 85 1 499 272 \n"
        "ILSVRC2012_val_00000001,n02119789 1 1 2 2 n02119789 3 3 4 4\n"
        "ILSVRC2012_val_00000002,n01440764 1 1 2 2\n"
    )
    assert open_data(folder).targets.tolist() == [278, 0, 1]
