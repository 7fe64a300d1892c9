import logging

import numpy as np
import pytest
from tests.data.layouts import LABELS, NAMES, PIXELS, class_folders, encode

from haptera.data import open_data
from haptera.errors import HapteraError


@pytest.fixture
def folder(tmp_path):
    root = class_folders(tmp_path / "photos")
    (root / NAMES[LABELS[5]] / "005.png").write_bytes(encode(PIXELS[5])[:300])
    return root


def test_a_broken_image_stops_the_epoch_by_name(folder):
    data = open_data(folder, size=32)
    with pytest.raises(HapteraError, match=r"cannot read the image .*005\.png"):
        data.images(np.arange(12))


def test_broken_images_are_dropped_named_and_counted_where_that_is_asked_for(folder, caplog):
    with caplog.at_level(logging.WARNING):
        data = open_data(folder, broken="drop")
    assert "1 of 12 images are dropped" in caplog.text
    assert "005.png" in caplog.text
    assert data.rows.tolist() == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11]
    assert data.targets.tolist() == np.delete(LABELS, 5).tolist()
    np.testing.assert_array_equal((data.images(np.array([5]))[0] * 255).round().byte(), PIXELS[6].transpose(2, 0, 1))
    assert data.fingerprint() != open_data(folder).fingerprint()


def test_of_paired_corruptions_a_sample_is_dropped_everywhere(tmp_path):
    for severity in "12":
        class_folders(tmp_path / "c" / "fog" / severity)
    (tmp_path / "c" / "fog" / "2" / "ant" / "000.png").write_bytes(b"broken")
    data = open_data(tmp_path / "c", size=32, broken="drop")
    assert [part.data.rows.tolist() for part in data.parts] == [list(range(1, 12))] * 2


def test_nothing_but_broken_images_is_an_error(tmp_path):
    class_folders(tmp_path / "c")
    for place in (tmp_path / "c").rglob("*.png"):
        place.write_bytes(place.read_bytes()[:300])
    with pytest.raises(HapteraError, match="none of its 12 images can be decoded"):
        open_data(tmp_path / "c", size=32, broken="drop")


def test_another_word_is_answered_with_the_nearest(folder):
    with pytest.raises(HapteraError, match="did you mean 'drop'"):
        open_data(folder, broken="dropp")
