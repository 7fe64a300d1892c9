"""A trial tells how many pixels a cell of a network's maps is, whatever the size of the images."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from haptera.errors import HapteraError
from haptera.pose import Maps, as_network, predict

PARTS = ("nose", "eye", "tail")


def test_the_stride_of_maps_is_found_by_a_trial():
    module = nn.Conv2d(3, 3, 8, 8)
    assert as_network(module, PARTS).maps == Maps(8.0)
    assert Maps(8.0).decode(torch.zeros(1, 3, 2, 2), 3)[0][0, 0].tolist() == [3.5, 3.5]  # the middle of 0 to 7


class Blocks(nn.Module):
    """Means over blocks of 8 pixels; those at the right and below may be smaller."""

    def forward(self, images):
        return nn.functional.avg_pool2d(images, 8, ceil_mode=True)


class Reduced(nn.Module):
    """Maps of 32 x 32, whatever the image."""

    def forward(self, images):
        return nn.functional.interpolate(images, (32, 32), mode="area")


def spots(height, width, places):
    """An image with a bright spot for each part, in a channel of its own, `(1, height, width, 3)`."""
    rows, columns = np.mgrid[:height, :width]
    spot = [np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / 50) for x, y in places]
    return np.stack(spot, 2)[None].astype(np.float32)


PLACES = [(30.0, 21.0), (100.0, 80.0), (139.0, 93.0)]


def test_images_that_are_no_multiple_of_the_stride_do_not_change_it():
    """13 rows of 100 pixels are cells of 8 pixels, not of 7.7."""
    network = as_network(Blocks(), PARTS, scores="probabilities", size=(100, 150))
    found = predict(network, spots(100, 150, PLACES)).keypoints[0]
    assert np.abs(found - PLACES).max() <= 4  # half of a cell


def test_maps_as_large_whatever_the_image_have_a_stride_for_images_of_one_size_alone(tmp_path):
    with pytest.raises(HapteraError, match=r"maps of 32 x 32 whatever the size of the images.*give size="):
        as_network(Reduced(), PARTS, scores="probabilities")
    network = as_network(Reduced(), PARTS, scores="probabilities", size=(160, 160))
    frame = (spots(100, 150, PLACES)[0] * 255).astype(np.uint8)
    Image.fromarray(frame).save(tmp_path / "frame.png")
    found = predict(network, [tmp_path / "frame.png"]).keypoints[0]
    assert np.abs(found - PLACES).max() <= 3  # a cell is 5 pixels of 160, and 4.7 of the frame
    with pytest.raises(HapteraError, match="of images of 160 x 160; found 100 x 150"):
        predict(network, frame[None])
    with pytest.raises(HapteraError, match=r"cells of 3\.12 x 4\.69 pixels, and square ones"):
        as_network(Reduced(), PARTS, size=(100, 150))
