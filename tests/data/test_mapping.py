"""From the classes of a data set to those of a model."""

import logging
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from haptera.data import ArrayData, CorruptedImages, MappedData, open_data, read_mapping, with_mapping
from haptera.errors import HapteraError

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 4, 4), dtype=np.uint8)
LABELS = np.array([2, 0, 1, 2, 7, 1])


def written(folder: Path, text: str) -> Path:
    path = folder / "map.csv"
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize(
    "text",
    [
        "class,accepted\ncat,281 282\ndog,5\n",
        "class,accepted\ncat,282;281;281\ndog,5\n",
        "class,accepted\r\ncat,281\r\ndog,5\r\n\r\ncat,282\r\n",
        '\ufeffclass, accepted\n cat ,281 ; 282\n"dog",05\n',
    ],
)
def test_several_accepted_classes_stand_in_rows_or_in_one_field(tmp_path: Path, text: str) -> None:
    assert read_mapping(written(tmp_path, text)) == {"cat": (281, 282), "dog": (5,)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"map\.csv is empty; the header `class,accepted`"),
        ("\n", r"map\.csv is empty"),
        ("class,accepted\n", r"map\.csv holds a header and no rows"),
        ("class,acepted\na,1\n", r"is 'class,acepted'; .*\(for 'accepted': did you mean 'acepted'\?"),
        ("Class,accepted\na,1\n", r"\(for 'class': did you mean 'Class'\?"),
        ("accepted,class\n1,a\n", r"is 'accepted,class'; 'class,accepted' was expected$"),
        ("cat,281\n", r"is 'cat,281'; 'class,accepted' was expected"),
        ("class,accepted\na,1\nb,x\n", r"map\.csv, line 3: 'x' is not the index of a class of the model"),
        ("class,accepted\na,1 -2\n", r"line 2: '-2' is not the index"),
        ("class,accepted\na,1.0\n", r"line 2: '1\.0' is not the index"),
        ("class,accepted\na,99999999999999999999\n", r"line 2: '9+' is not the index"),
        ("class,accepted\na,²\n", r"line 2: '²' is not the index"),
        ("class,accepted\na,\n", r"line 2: nothing is accepted for 'a'; leave the line out"),
        ("class,accepted\n,3\n", r"line 2: the class has no name"),
        ("class,accepted\na,1,2\n", r"line 2: found 3 fields, expected class,accepted"),
        ("class,accepted\na\n", r"line 2: found 1 fields"),
        ('class,accepted\n"a,1\n', r"cannot read the mapping .*map\.csv as CSV"),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_read_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(HapteraError, match=message):
        read_mapping(written(tmp_path, text))


def test_a_missing_or_binary_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(HapteraError, match=r"there is no file .*none\.csv"):
        open_data("digits", mapping=tmp_path / "none.csv")
    (tmp_path / "map.csv").write_bytes(b"class,accepted\n\xff,1\n")
    with pytest.raises(HapteraError, match=r"cannot read the mapping .*map\.csv as CSV in UTF-8"):
        read_mapping(tmp_path / "map.csv")


def test_kept_samples_keep_their_rows_and_images() -> None:
    source = ArrayData(IMAGES, LABELS, ids=np.arange(6) + 10)
    data = MappedData(source, {"1": (5,), "2": (3, 4), "99": (0,)}, restrict=True)
    assert len(data) == 4
    assert data.rows.tolist() == [10, 12, 13, 15]
    assert data.targets is not None
    assert data.targets.tolist() == [1, 0, 1, 0]
    assert data.targets.dtype == np.int64
    assert data.names == ("1", "2")
    assert data.classes is not None
    assert data.classes.accepted == ((5,), (3, 4))
    assert data.classes.restrict
    assert data.classes.dropped == 2
    assert data.classes.columns(10).tolist() == [3, 4, 5]
    assert torch.equal(data.images(np.array([3, 0])), source.images(np.array([5, 0])))


def test_classes_go_by_name_where_there_are_names(class_folder: Path, tmp_path: Path) -> None:
    data = open_data(class_folder, mapping=written(tmp_path, "class,accepted\ndog,151\n"))
    assert isinstance(data, MappedData)
    assert data.names == ("dog",)
    assert data.rows.tolist() == [3, 4, 5]
    assert data.classes is not None
    assert data.classes.accepted == ((151,),)
    assert data.classes.dropped == 3
    assert not data.classes.restrict


def test_what_is_left_out_is_logged(class_folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = written(tmp_path, "class,accepted\ndog,1\nowl,2\n")
    with caplog.at_level(logging.INFO, "haptera"):
        open_data(class_folder, mapping=path)
    warning, info = caplog.records
    assert warning.levelno == logging.WARNING
    assert warning.getMessage() == f"pets: 1 of 2 classes are not in {path} ('cat'); 3 of 6 samples are dropped"
    assert info.levelno == logging.INFO
    assert info.getMessage() == f"pets: 1 classes of {path} are not in the data ('owl')"


def test_a_whole_mapping_is_silent(class_folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "haptera"):
        data = open_data(class_folder, mapping=written(tmp_path, "class,accepted\ndog,1\ncat,0\n"))
    assert not caplog.records
    assert data.names == ("cat", "dog")
    assert len(data) == 6


def test_nothing_left_is_an_error_with_examples_of_both_sides() -> None:
    expected = r"no class that has samples in array: the data has '0', '1', '2', \.\.\.; the mapping has 'cat'"
    with pytest.raises(HapteraError, match=expected):
        MappedData(ArrayData(IMAGES, LABELS), {"cat": (1,)})


def test_data_without_labels_cannot_be_mapped() -> None:
    with pytest.raises(HapteraError, match="array has no labels"):
        MappedData(ArrayData(IMAGES), {"1": (1,)})


def test_restrict_without_a_mapping_is_refused() -> None:
    with pytest.raises(HapteraError, match="restrict needs a mapping"):
        open_data("digits", restrict=True)


def test_every_part_of_corrupted_images_is_mapped_and_logged_once(
    cifar_c: Path, imagenet_c: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for root, row, rows in ((cifar_c, "2,7", [1, 3]), (imagenet_c, "n02,7", [1, 2])):
        caplog.clear()
        with caplog.at_level(logging.INFO, "haptera"):
            data = open_data(root, mapping=written(tmp_path, f"class,accepted\n{row}\n"), restrict=True)
        assert isinstance(data, CorruptedImages)
        assert data.name == root.name
        for part in data.parts:
            assert part.data.rows.tolist() == rows
            assert part.data.targets is not None
            assert part.data.targets.tolist() == [0, 0]
            assert part.data.classes is not None
            assert part.data.classes.accepted == ((7,),)
            assert part.data.classes.restrict
        assert len(caplog.records) == 1


def test_it_pickles_with_its_source(class_folder: Path) -> None:
    data = with_mapping(open_data(class_folder), {"dog": (1,)})
    assert isinstance(data, MappedData)
    again = pickle.loads(pickle.dumps(data))
    assert torch.equal(again.images(np.arange(3)), data.images(np.arange(3)))
    assert again.fingerprint() == data.fingerprint()


def test_the_fingerprint_sees_source_mapping_and_restriction() -> None:
    source, other = ArrayData(IMAGES, LABELS), ArrayData(IMAGES ^ 1, LABELS)
    data = [
        MappedData(source, {"1": (5,)}),
        MappedData(source, {"1": (6,)}),
        MappedData(source, {"1": (5,)}, restrict=True),
        MappedData(source, {"2": (5,)}),
        MappedData(other, {"1": (5,)}),
    ]
    assert len({one.fingerprint() for one in data}) == 5
    unused = MappedData(source, {"1": (5,), "cat": (8,)})
    assert unused.fingerprint() == data[0].fingerprint()
