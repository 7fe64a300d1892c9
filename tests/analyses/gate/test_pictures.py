from io import BytesIO

import numpy as np
import pandas as pd
import torch
from PIL import Image

import haptera
from haptera.analyses.gate.pictures import shifted_image, thumbnails
from haptera.data import ArrayData, digits
from haptera.shifts import Contrast
from recorded_studies import record


def test_an_image_is_shown_under_the_shift_in_which_it_got_lost():
    data = digits("test", size=16)
    number = int(data.rows[5])
    shown = shifted_image(data, number, "contrast 4")
    assert torch.equal(shown, Contrast(4)(data.images(np.array([5])), ids=[number])[0])
    assert torch.equal(shifted_image(data, number, "clean"), data.images(np.array([5]))[0])
    assert torch.equal(shifted_image(data, number, "evil.py:shift 4"), data.images(np.array([5]))[0])


def test_images_that_the_data_does_not_have_are_left_out():
    data = ArrayData(np.zeros((3, 8, 8), np.uint8), None, "few")
    worst = pd.DataFrame({"image": [1, 77], "shifts": ["fog 1", "fog 1"]})
    (picture,) = thumbnails(worst, data)
    assert Image.open(BytesIO(picture.png)).size[0] < 2 * 96
    assert thumbnails(worst[1:], data) == []


def test_the_page_has_thumbnails_where_there_is_data(tmp_path):
    right = np.arange(100) < 90
    record(tmp_path / "released", {("contrast", 4): right})
    record(tmp_path / "candidate", {("contrast", 4): np.arange(100) < 30})
    data = ArrayData(np.zeros((100, 8, 8, 3), np.uint8), None, "few")
    studies = (tmp_path / "candidate", tmp_path / "released")
    with_data, without = (haptera.gate(*studies, data=each) for each in (data, None))
    assert with_data.pictures[0].source in with_data.page()
    assert not without.pictures
    assert len(without.page()) < len(with_data.page())
