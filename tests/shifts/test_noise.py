"""Noise against its published constants and its distributions."""

import numpy as np
import pytest
import torch
from scipy import stats

from haptera.shifts import ImpulseNoise, SampleRandom, ShotNoise, SpeckleNoise
from haptera.shifts.noise import alias_table, poisson_counts

PUBLISHED = {
    (ShotNoise, "imagenet"): [60, 25, 12, 5, 3],
    (ShotNoise, "cifar"): [500, 250, 100, 75, 50],
    (ImpulseNoise, "imagenet"): [0.03, 0.06, 0.09, 0.17, 0.27],
    (ImpulseNoise, "cifar"): [0.01, 0.02, 0.03, 0.05, 0.07],
    (SpeckleNoise, "imagenet"): [0.15, 0.2, 0.35, 0.45, 0.6],
    (SpeckleNoise, "cifar"): [0.06, 0.1, 0.12, 0.16, 0.2],
}


@pytest.mark.parametrize(("shift", "table"), PUBLISHED, ids=lambda value: getattr(value, "name", value))
def test_constants_are_the_published_ones(shift, table):
    found = [shift(severity, table=table).constants()[0] for severity in range(6)]
    wanted = PUBLISHED[shift, table]
    assert found == [0, *([1 / photons for photons in wanted] if shift is ShotNoise else wanted)]


@pytest.mark.parametrize("peak", [0.5, 3.0, 12.0, 60.0, 500.0])
def test_alias_tables_hold_poisson_probabilities_to_24_bits(peak):
    table, lowest = (part.numpy() for part in alias_table(peak))
    table = table.reshape(256, -1)
    bins = table.shape[1]
    capacity = 2**24 // bins
    found = np.zeros_like(table, dtype=np.int64)
    for own in range(bins):
        alias, threshold = np.divmod(table[:, own], capacity)
        found[:, own] += threshold
        found[np.arange(256), alias] += capacity - threshold
    wanted = stats.poisson.pmf(lowest[:, None] + np.arange(bins), np.arange(256)[:, None] * peak / 255)
    assert (found.sum(1) == 2**24).all()
    assert abs(found / 2**24 - wanted).max() < 2**-24


@pytest.mark.parametrize("peak", [3.0, 12.0, 60.0, 250.0, 500.0, 2000.0])
@pytest.mark.parametrize("value", [1 / 255, 0.1234567, 0.5, 200 / 255, 1.0])
def test_counts_pass_a_chi_square_test(peak, value):
    images = torch.full((50, 1, 40, 50), value)
    counts = poisson_counts(images, peak, SampleRandom(range(50), seed=3)).double().numpy().ravel()
    mean, size = value * peak, counts.size
    assert abs(counts.mean() - mean) < 4.5 * np.sqrt(mean / size)
    assert abs(counts.var() - mean) < 4.5 * np.sqrt((mean + 2 * mean**2) / size)
    cuts = np.unique(stats.poisson.ppf(np.linspace(0, 1, 42)[1:-1], mean))
    inner = stats.poisson.cdf(cuts, mean)
    expected = np.diff(np.concatenate([[0], inner, [1]])) * size
    observed = np.bincount(np.searchsorted(cuts, counts), minlength=len(expected))
    kept = expected > 5
    assert observed[~kept].sum() < 30
    assert stats.chisquare(observed[kept], expected[kept] * observed[kept].sum() / expected[kept].sum()).pvalue > 1e-4


def test_no_light_no_photons():
    assert not ShotNoise(5)(torch.zeros(2, 3, 8, 8)).any()


def test_photons_come_whole():
    images = torch.rand(4, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    photons = ShotNoise(3)(images) * 12
    assert torch.allclose(photons, photons.round(), atol=1e-5)


@pytest.mark.parametrize("severity", [1e-300, 1e-12, 1e-4, 0.01])
def test_shot_noise_fades_towards_severity_zero(severity):
    images = torch.rand(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    change = (ShotNoise(severity)(images, seed=2) - images).double().square().mean().sqrt()
    assert change == pytest.approx(np.sqrt(0.5 * severity / 60), rel=0.1, abs=1e-7)


@pytest.mark.parametrize(("severity", "amount"), [(1, 0.03), (3, 0.09), (5, 0.27), (4.5, 0.22)])
def test_impulses_hit_half_black_half_white_and_every_channel_by_itself(severity, amount):
    images = torch.full((64, 3, 32, 32), 0.5)
    shifted = ImpulseNoise(severity)(images, seed=4)
    assert set(shifted.unique().tolist()) == {0, 0.5, 1}
    width = 4.5 * np.sqrt(amount / 2 / shifted.numel())
    assert abs(float((shifted == 0).double().mean()) - amount / 2) < width
    assert abs(float((shifted == 1).double().mean()) - amount / 2) < width
    hit = (shifted != 0.5).double()
    assert abs(float((hit[:, 0] * hit[:, 1]).mean()) - amount**2) < 4.5 * amount / np.sqrt(hit[:, 0].numel())


@pytest.mark.parametrize(("severity", "sigma"), [(1, 0.15), (3, 0.35), (5, 0.6), (4.5, 0.525)])
def test_speckles_are_in_proportion_to_the_light(severity, sigma):
    images = torch.tensor([0.05, 0.1, 0.2]).reshape(1, 3, 1, 1).expand(64, 3, 48, 48).contiguous()
    noise = (SpeckleNoise(severity)(images, seed=5) / images - 1).double()
    expected = stats.truncnorm(-1 / sigma, np.inf, scale=sigma)  # values below 0 are clamped, and left out here
    for seen in noise.unbind(1):
        inside = seen[seen > -1 + 1e-6]
        assert abs(float(inside.std()) - expected.std()) < 0.01 * sigma
        assert abs(float(inside.mean()) - expected.mean()) < 0.01 * sigma


def test_speckles_leave_black_alone():
    assert not SpeckleNoise(5)(torch.zeros(2, 1, 8, 8)).any()
