"""R, D and G from distances: ratios of means and medians, pairs in closed form, intervals that hold the truth."""

import numpy as np
import pytest

from haptera.errors import HapteraError
from haptera.statistics.power_law import local_slopes, log_average, power_law
from haptera.statistics.stability import Distances, pair_distances, stability_indices

SAME = {"mean": 1.0, "median": 1.0}


def example(n=80, seed=0):
    generator = np.random.default_rng(seed)
    outputs = generator.standard_normal((n, 3))
    return Distances(generator.gamma(2, 1, n), generator.gamma(2, 2, n), pair_distances(outputs), SAME), outputs


def values(frame):
    return frame.set_index(["index", "aggregate"])["value"]


def test_indices_are_ratios_of_means_and_of_medians():
    distances, outputs = example()
    found = values(stability_indices(distances))
    for name, take in (("mean", np.mean), ("median", np.median)):
        pairs = take([((a - b) ** 2).sum() for i, a in enumerate(outputs) for b in outputs[:i]])
        assert found["R", name] == pytest.approx(take(distances.deformed) / take(distances.noisy), rel=1e-12)
        assert found["D", name] == pytest.approx(take(distances.deformed) / pairs, rel=1e-9)
        assert found["G", name] == pytest.approx(take(distances.noisy) / pairs, rel=1e-9)
        assert found["R", name] == pytest.approx(found["D", name] / found["G", name], rel=1e-12)


def test_the_mean_over_pairs_is_twice_the_sum_of_variances():
    outputs = np.random.default_rng(0).standard_normal((57, 4)) + 100
    (matrix,) = pair_distances(outputs)
    assert matrix[np.triu_indices(57, 1)].mean() == pytest.approx(2 * outputs.var(0, ddof=1).sum(), rel=1e-9)


def test_many_images_are_paired_in_groups():
    outputs = np.random.default_rng(0).standard_normal((25, 4))
    groups = pair_distances(outputs, group=10)
    assert [len(group) for group in groups] == [9, 8, 8]
    assert groups[1][2, 5] == pytest.approx(((outputs[11] - outputs[14]) ** 2).sum())
    assert np.diag(groups[0]).tolist() == [0] * 9


def test_noise_of_the_norm_of_the_other_aggregate_is_scaled():
    distances, _ = example()
    scaled = Distances(distances.deformed, distances.noisy, distances.pairs, {"mean": 1.21, "median": 1.0})
    one, two = values(stability_indices(distances, draws=0)), values(stability_indices(scaled, draws=0))
    assert two["R", "mean"] == pytest.approx(one["R", "mean"] / 1.21)
    assert two["G", "mean"] == pytest.approx(one["G", "mean"] * 1.21)
    assert two["D", "mean"] == one["D", "mean"]
    assert two["R", "median"] == one["R", "median"]


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    truths = {"mean": 2.0 / 4.0, "median": 0.5}  # both gamma of shape 2, so the medians have the ratio of the scales
    pairs = {"mean": 6.0, "median": 2 * 2.365974}  # 2 χ² with 3 degrees of freedom
    hits = dict.fromkeys([(index, aggregate) for index in "RD" for aggregate in truths], 0)
    for seed in range(60):
        found = stability_indices(example(120, seed)[0], draws=200, seed=seed).set_index(["index", "aggregate"])
        for index, aggregate in hits:
            top = 2.0 if aggregate == "mean" else 1.678347
            truth = truths[aggregate] if index == "R" else top / pairs[aggregate]
            row = found.loc[(index, aggregate)]
            hits[index, aggregate] += row["low"] <= truth <= row["high"]
    assert all(50 <= count <= 60 for count in hits.values()), hits


def test_drawn_medians_over_pairs_are_those_of_the_pairs_drawn():
    from haptera.statistics.stability import _Pairs

    _, outputs = example(60)
    generator = np.random.default_rng(1)
    drawn = generator.integers(0, 60, (5, 60))
    times = np.stack([np.bincount(rows, minlength=60) for rows in drawn])
    pairs = _Pairs(pair_distances(outputs))
    for aggregate, take in (("mean", np.mean), ("median", np.median)):
        for rows, found in zip(drawn, pairs.drawn(aggregate, times), strict=True):
            obvious = [((outputs[i] - outputs[j]) ** 2).sum() for i in rows for j in rows if i != j]
            assert found == pytest.approx(take(obvious), rel=0.02 if aggregate == "median" else 1e-5)


def test_nothing_that_changes_has_no_ratio():
    still = Distances(np.zeros(4), np.zeros(4), [np.zeros((4, 4))], SAME)
    assert stability_indices(still)["value"].isna().all()


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((np.ones(3), np.ones(2), [np.ones((3, 3))]), "3 deformed and 2 noisy"),
        ((np.ones(1), np.ones(1), [np.ones((1, 1))]), "at least two images, found 1"),
        ((np.ones(2), np.ones(2), [np.ones((1, 1))] * 2), "no pairs of images"),
    ],
)
def test_distances_that_do_not_belong_together_are_refused(parts, message):
    with pytest.raises(HapteraError, match=message):
        stability_indices(Distances(*parts, SAME))


def test_a_power_law_is_found_with_its_correlation():
    generator = np.random.default_rng(0)
    x = np.exp(generator.uniform(-5, 0, 15))
    y = 0.2 * np.sqrt(x) * np.exp(0.2 * generator.standard_normal(15))
    law = power_law(x, y)
    slope, intercept = np.polyfit(np.log(x), np.log(y), 1)
    assert (law.exponent, np.log(law.prefactor)) == (pytest.approx(slope), pytest.approx(intercept))
    assert law.correlation == pytest.approx(np.corrcoef(np.log(x), np.log(y))[0, 1])
    assert law.exponent_low < 0.5 < law.exponent_high
    assert law.correlation_low < law.correlation < law.correlation_high < 1
    assert law(np.array([1.0, 4.0])) == pytest.approx(law.prefactor * np.array([1, 4**slope]))


def test_points_without_a_logarithm_are_left_out_and_counted():
    law = power_law([1, 2, 4, 0, 3], [1, 2, 4, 1, np.nan])
    assert (law.n, law.left_out, law.exponent) == (3, 2, pytest.approx(1))
    assert np.isnan(law.correlation_low)
    with pytest.raises(HapteraError, match="at least 3 points"):
        power_law([1, 1, 1], [1, 2, 3])


def test_seeds_are_averaged_in_logarithms_and_slopes_are_local():
    assert log_average([1, 4, 16]) == pytest.approx(4)
    assert log_average([0, 4]) == 0
    assert local_slopes([1, 2, 8], [1, 4, 4]) == pytest.approx([2, 0])
