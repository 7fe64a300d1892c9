"""Where deformations fold, and what is done about it."""

import logging
from math import log, pi

import numpy as np
import pytest
import torch

from haptera.errors import HapteraError
from haptera.shifts import Diffeo, SineFields


@pytest.mark.parametrize(("rule", "share"), [("printed", 0.90), ("reference", 0.68)])
def test_the_published_upper_temperature_is_not_safe(rule, share):
    heat = 4 / (pi**3 * 9 * log(3))
    fields = Diffeo(cutoff=3, temperature=heat, rule=rule).fields(range(1500), 0, 32, 32)
    assert 1 - float(fields.folded(64).float().mean()) == pytest.approx(share, abs=0.035)


@pytest.mark.parametrize(("rule", "low", "high"), [("printed", 0.13, 0.16), ("reference", 0.08, 0.08)])
def test_many_fine_waves_that_move_a_pixel_fold_small_pictures(rule, low, high):
    fields = Diffeo(1, 15, rule=rule).fields(range(500), 0, 32, 32)
    bijective = 1 - float(fields.folded(128).float().mean())
    assert low - 0.045 < bijective < high + 0.045


def test_delta_is_that_of_the_fields_that_are_used():
    """Against the displacement of the pixel in the centre, of fields that do not fold, one by one."""
    plain, again = Diffeo(8, 3), Diffeo(8, 3, resample=True)
    some = plain.fields(range(40), 1, 65, 65)
    assert torch.allclose(some.centres, some.pixels[:, :, 32, 32], atol=1e-4)
    fields = plain.fields(range(2000), 1, 65, 65)
    kept = [float(moved.norm()) for moved, folded in zip(fields.centres, fields.folded(), strict=True) if not folded]
    assert again.delta(65, 65) == pytest.approx(np.sqrt(np.mean(np.square(kept))), rel=0.05)
    assert again.delta(65, 65) < 0.95 * plain.delta(65, 65)
    assert plain.delta(65, 65) == pytest.approx(8)


def test_resampled_fields_do_not_fold_and_the_others_stay():
    plain, again = Diffeo(3, 6), Diffeo(3, 6, resample=True)
    fields, kept = (shift.fields(range(100), 0, 32, 32) for shift in (plain, again))
    folded = fields.folded()
    assert 20 < int(folded.sum()) < 90
    assert not kept.folded().any()
    assert torch.equal(fields.coefficients[~folded], kept.coefficients[~folded])
    alone = again.fields([int(folded.nonzero()[0])], 0, 32, 32)
    assert torch.equal(alone.coefficients[0], kept.coefficients[folded][0])


def test_where_all_fields_fold_resampling_is_an_error_and_the_rest_a_warning(caplog):
    images = torch.rand(4, 1, 32, 32)
    with pytest.raises(
        HapteraError, match=r"4 of 4 fields fold in each of 100 draws at delta 12 .* take a smaller delta"
    ):
        Diffeo(12, 5, resample=True)(images)
    with caplog.at_level(logging.WARNING, "haptera"):
        Diffeo(12, 5)(images)
        Diffeo(12, 5)(images)
    assert [record.getMessage()[:38] for record in caplog.records] == ["64 of 64 fields of diffeo fold at delt"]


def test_a_field_folds_from_the_scale_on_that_its_slopes_give():
    fields = Diffeo(2, 5).fields(range(40), 0, 32, 32)
    scales = fields.folding_scales()
    assert torch.equal(scales <= 1, fields.folded())
    for factor, expected in ((0.999, False), (1.001, True)):
        scaled = SineFields(fields.coefficients * (scales * factor)[:, None, None, None], 32, 32)
        assert (scaled.folded() == expected).all()
