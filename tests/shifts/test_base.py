"""Random numbers per sample: independent, repeatable, and distributed as they should be."""

import numpy as np
import torch
from scipy import stats

from haptera.shifts import SampleRandom

IDS = torch.arange(400)


def test_normal_deviates_have_the_moments_of_a_normal_distribution():
    values = SampleRandom(IDS, seed=3).normal((2500,)).double().flatten().numpy()  # a million
    assert abs(values.mean()) < 4e-3
    assert abs(values.std() - 1) < 3e-3
    assert abs(stats.skew(values)) < 1e-2
    assert abs(stats.kurtosis(values)) < 2e-2


def test_normal_deviates_pass_a_kolmogorov_smirnov_test():
    values = SampleRandom(IDS, seed=4).normal((100,)).flatten().numpy()
    assert stats.kstest(values, "norm").pvalue > 1e-3


def test_uniform_deviates_pass_a_kolmogorov_smirnov_test_and_stay_below_one():
    values = SampleRandom(IDS, seed=5).uniform((100,)).flatten().numpy()
    assert stats.kstest(values, "uniform").pvalue > 1e-3
    assert values.min() >= 0
    assert values.max() < 1


def test_neighbouring_ids_seeds_and_salts_are_uncorrelated():
    base = SampleRandom(IDS, seed=0).normal((1000,)).numpy()
    correlations = np.corrcoef(base[:100])[~np.eye(100, dtype=bool)]
    assert abs(correlations).max() < 5.5 / np.sqrt(1000)
    for other in (SampleRandom(IDS, seed=1), SampleRandom(IDS, seed=0, salt=1), SampleRandom(IDS + 1000, seed=0)):
        assert abs(np.corrcoef(base.ravel(), other.normal((1000,)).numpy().ravel())[0, 1]) < 0.01


def test_calls_continue_a_sequence_and_do_not_repeat_it():
    random = SampleRandom(IDS[:3])
    one, two = random.normal((8,)), random.normal((8,))
    assert not torch.equal(one, two)
    assert torch.equal(SampleRandom(IDS[:3]).normal((8,)), one)


def test_a_sample_does_not_depend_on_its_neighbours_in_later_calls_either():
    together, alone = SampleRandom(IDS[:4], seed=9), SampleRandom(IDS[2:3], seed=9)
    together.uniform((5,))
    alone.uniform((5,))
    assert torch.equal(together.normal((3, 3))[2], alone.normal((3, 3))[0])


def test_generators_are_the_samples_own():
    one, two = SampleRandom([1, 2]).generators()
    again = SampleRandom([2]).generators()[0]
    assert two.integers(0, 2**60) == again.integers(0, 2**60)
    assert one.integers(0, 2**60) != two.integers(0, 2**60)


def test_negative_and_huge_ids_are_numbers_like_any_other():
    values = SampleRandom([-1, 0, 2**62]).uniform((4,))
    assert len({tuple(row) for row in values.tolist()}) == 3
