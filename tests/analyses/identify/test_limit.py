"""Theorem 3 where it has a closed form: the limit, and how fast and from which side the loss reaches it."""

import numpy as np
import pytest
from scipy import stats

from haptera.analyses.identify.laws import GeneralisedNormal, VonMisesFisher
from haptera.analyses.identify.limit import box_limit, contrastive_limit, measured_box_loss, measured_loss
from haptera.errors import HapteraError


@pytest.mark.parametrize(("kappa", "dimensions"), [(2.0, 2), (5.0, 3), (1.0, 10)])
def test_the_limit_is_the_entropy_of_the_conditional(kappa, dimensions):
    centre = np.broadcast_to(np.eye(1, dimensions)[0], (40_000, dimensions))
    law = VonMisesFisher(kappa)
    entropy = -law.log_density("sphere", law.draw("sphere", centre, np.random.default_rng(0)), centre)
    error = entropy.std() / np.sqrt(len(entropy))
    assert contrastive_limit(kappa, dimensions).cross_entropy == pytest.approx(entropy.mean(), abs=5 * error)


def test_on_the_circle_it_is_that_of_von_mises():
    assert contrastive_limit(2.0).cross_entropy == pytest.approx(stats.vonmises(2.0).entropy())


@pytest.mark.parametrize("inside", [True, False])
def test_the_gap_falls_as_one_over_the_negatives_from_the_side_of_the_positive(inside):
    limit = contrastive_limit(2.0)
    for negatives in (32, 128, 512):
        value, error = measured_loss(2.0, negatives, inside, draws=4000)
        gap = value - limit.cross_entropy
        assert (gap > 0) == inside
        assert gap == pytest.approx(limit.gap(negatives, inside), abs=4 * error + 3 / negatives**2)


def test_the_coefficients_are_those_seen_on_the_circle():
    limit = contrastive_limit(2.0)  # about +1.4/M and −.7/M in simulations at finite M
    assert limit.gap(1, inside=True) == pytest.approx(1.5, abs=0.2)
    assert limit.gap(1, inside=False) == pytest.approx(-0.65, abs=0.1)


@pytest.mark.parametrize(("scale", "exponent", "dimensions"), [(0.2, 1.0, 1), (0.3, 2.0, 2), (0.2, 3.0, 3)])
def test_in_a_box_the_limit_is_the_entropy_of_truncated_conditionals(scale, exponent, dimensions):
    random = np.random.default_rng(0)
    centres, law = random.uniform(size=(20_000, dimensions)), GeneralisedNormal(scale, exponent)
    entropy = -law.log_density("box", law.draw("box", centres, random), centres)
    error = entropy.std() / np.sqrt(len(entropy))
    assert box_limit(scale, exponent, dimensions).cross_entropy == pytest.approx(entropy.mean(), abs=5 * error)


@pytest.mark.parametrize("inside", [True, False])
def test_in_a_box_the_gap_falls_as_one_over_the_negatives_too(inside):
    limit = box_limit(0.2)
    for negatives in (32, 128):
        value, error = measured_box_loss(0.2, negatives, inside, draws=8000)
        close = 4 * error + 6 / negatives**2
        assert value - limit.cross_entropy == pytest.approx(limit.gap(negatives, inside), abs=close)


@pytest.mark.parametrize("inside", [True, False])
def test_in_a_box_the_loss_of_a_wrong_encoder_has_its_limit_too(inside):
    limit = box_limit(0.2, encode=np.square)
    for negatives in (32, 128):
        value, error = measured_box_loss(0.2, negatives, inside, encode=np.square, draws=5000)
        expected = limit.cross_entropy + limit.gap(negatives, inside)
        assert value == pytest.approx(expected, abs=4 * error + 2 / negatives**2)


@pytest.mark.parametrize("exponent", [1.0, 2.0, 3.0])
def test_the_cross_entropy_is_least_for_the_right_encoder_and_those_that_keep_all_distances(exponent):
    def entropy(encode=None):
        return box_limit(0.2, exponent, encode=encode, grid=200).cross_entropy

    least = entropy()
    assert entropy(lambda z: 3 - z) == pytest.approx(least)
    wrong = [np.square, np.sqrt, lambda z: 1.3 * z, lambda z: 0.7 * z, lambda z: z + 0.05 * np.sin(6 * z)]
    assert all(entropy(encode) > least + 1e-4 for encode in wrong)


def test_a_box_without_a_scale_is_refused():
    with pytest.raises(HapteraError, match="scale is 0"):
        box_limit(0)
