import numpy as np
import pytest
from tests.data.layouts import PIXELS, encode

from haptera.data import CorruptedImages, open_data


def folders(root, content):
    number = 0
    for folder, names in content.items():
        for name in names:
            (root / folder / name).mkdir(parents=True)
            (root / folder / name / "x.png").write_bytes(encode(PIXELS[number % 12]))
            number += 1
    return root


def test_domains_share_their_classes_and_number_their_samples_through(tmp_path):
    data = open_data(folders(tmp_path, {"art": ["cat", "dog", "elk"], "photo": ["cat", "dog"]}))
    assert isinstance(data, CorruptedImages)
    assert [part.shift for part in data.parts] == ["art", "photo"]
    assert data.parts[1].data.names == ("cat", "dog", "elk")
    assert data.parts[1].data.targets.tolist() == [0, 1]
    assert data.parts[1].data.rows.tolist() == [3, 4]
    assert not data.paired
    assert np.isnan(data.parts[0].severity)


@pytest.mark.parametrize(
    "content",
    [
        {"cat": ["video1", "video2"], "dog": ["video3", "video4"]},  # classes with folders of their own
        {"cat": ["session"], "dog": ["session"]},  # one folder name in common says little
    ],
)
def test_classes_with_folders_inside_are_not_domains(tmp_path, content):
    data = open_data(folders(tmp_path, content))
    assert data.names == ("cat", "dog")
