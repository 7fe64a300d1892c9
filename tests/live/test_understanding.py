import pytest
import torch
from tests.live.guarded_models import images

from haptera.errors import HapteraError
from haptera.live.settings import GuardSettings
from haptera.live.understanding import Understanding


def expecting(**settings):
    one = Understanding(**settings)
    assert one.puzzle(images(64)) == ""
    return one


ODD = {
    "another shape": (images(4, side=9), "shape"),
    "another type": (images(4).double(), "float64"),
    "a NaN": (images(4).index_put((torch.tensor([1]),), torch.tensor(float("nan"))), "not finite"),
    "infinity": (images(4) + torch.tensor([0.0, 0.0, float("inf"), 0.0]).view(4, 1, 1, 1), "not finite"),
    "bytes": (255 * images(4), "values go from"),
    "a dead camera": (torch.cat([images(3), torch.zeros(1, 1, 8, 8)]), "1 of 4 images"),
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_odd_is_said(name):
    batch, word = ODD[name]
    one = expecting()
    assert word in one.puzzle(batch)
    assert one.puzzle(images(8, seed=1)) == ""  # and nothing is learnt from it


def test_noise_and_darkness_are_not_odd():
    one = expecting()
    assert one.puzzle(images(8) + 0.3) == ""
    assert one.puzzle(0.01 * images(8)) == ""


def test_a_warm_up_call_of_zeros_sets_no_expectation():
    one = Understanding()
    assert one.puzzle(torch.zeros(1, 1, 4, 4)) != ""
    assert one.puzzle(images(4)) == ""


def test_a_range_that_is_given_counts():
    one = Understanding((0.0, 1.0))
    assert one.puzzle(images(4)) == ""
    assert "0 to 1 was expected" in one.puzzle(images(4) + 0.3)


def test_expectations_go_on_from_their_state():
    one, two = expecting(), Understanding()
    two.restore(one.state())
    assert two.puzzle(255 * images(4)) == one.puzzle(255 * images(4)) != ""


def test_settings_that_make_no_sense_are_refused():
    for name, value in {"alpha": 0, "look": 0, "largest": 1.5, "range": (1.0, 0.0), "lost": 0.0}.items():
        with pytest.raises(HapteraError, match=name):
            GuardSettings(**{name: value})
