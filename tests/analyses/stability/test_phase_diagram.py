"""The phase diagram: boundaries from exact sums, shares of bijections from fields drawn at each temperature."""

from io import BytesIO
from math import pi

import numpy as np
import pytest
import torch
from PIL import Image

from haptera.analyses.stability.phase_diagram import phase_diagram
from haptera.errors import HapteraError
from haptera.shifts import Diffeo

IMAGE = torch.rand(3, 24, 40, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def diagram():
    return phase_diagram(IMAGE, draws=120)


def test_boundaries_are_the_exact_sums(diagram):
    lines = diagram.lines.set_index(["line", "cutoff"])["temperature"]
    assert lines["δ = 1", 3] == pytest.approx(1 / (0.5 * (39**2 + 23**2)))  # the sum over odd modes is ½ at c = 3
    assert lines["δ = ½", 3] == pytest.approx(lines["δ = 1", 3] / 4)
    assert lines["(8/π³)/c²", 10] == pytest.approx(8 / pi**3 / 100)


def test_shares_are_those_of_fields_drawn_at_each_temperature(diagram):
    for row in diagram.cells.sample(8, random_state=0).itertuples():
        fields = Diffeo(cutoff=row.cutoff, temperature=row.temperature).fields(range(120), 0, 24, 40)
        assert row.bijective == pytest.approx(1 - float(fields.folded().float().mean()), abs=1.5 / 120)
        assert row.delta == pytest.approx(Diffeo(cutoff=row.cutoff, temperature=row.temperature).delta(24, 40))
        assert row.good == (row.bijective >= 0.5 and row.delta >= 0.5)


def test_half_of_the_fields_fold_on_the_measured_line(diagram):
    heat = diagram.lines.set_index(["line", "cutoff"])["temperature"]["half of the fields fold", 5]
    folded = Diffeo(cutoff=5, temperature=heat).fields(range(500, 1100), 0, 24, 40).folded()
    assert float(folded.float().mean()) == pytest.approx(0.5, abs=0.12)


def test_cutoffs_end_where_the_image_does(diagram):
    assert list(diagram.cells["cutoff"].unique()) == [2, 3, 5, 10, 15]


def test_the_picture_has_a_tile_for_each_place(diagram):
    picture = np.asarray(Image.open(BytesIO(diagram.png)))
    assert picture.shape[2] == 3
    green = (picture == [0x1A, 0x7F, 0x37]).all(2)
    assert green.any() == bool(diagram.cells["good"].any())
    grey = phase_diagram(IMAGE[:1], (3,), (1e-3,), draws=10)
    assert Image.open(BytesIO(grey.png)).size[0] < picture.shape[1]


@pytest.mark.parametrize(
    ("image", "message"),
    [(torch.rand(8, 8), r"the image is \(8, 8\)"), (torch.rand(1, 3, 9), "3 x 9 pixels are too small")],
)
def test_what_is_no_image_is_said(image, message):
    with pytest.raises(HapteraError, match=message):
        phase_diagram(image)
