"""Consistency and alignment of embeddings, against slow references and known maps."""

import numpy as np
import pandas as pd
import pytest
from scipy.spatial import procrustes as scipy_procrustes
from scipy.stats import ortho_group
from sklearn.linear_model import LinearRegression

from haptera.analyses.embedding.alignment import average, nearest_by_label, procrustes, trial_averages
from haptera.analyses.embedding.consistency import bin_means, consistency, group_consistency, linear_r2
from haptera.analyses.embedding.plots import plot_consistency
from haptera.errors import HapteraError
from haptera.recordings.label import Label

GENERATOR = np.random.default_rng(0)


def ring(angle, noise=0.0, seed=0):
    points = np.column_stack([np.cos(angle), np.sin(angle), 0.3 * np.cos(2 * angle)])
    points = points + noise * np.random.default_rng(seed).normal(size=points.shape)
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def test_value_is_r2_of_a_linear_regression():
    source, target = GENERATOR.normal(size=(60, 3)), GENERATOR.normal(size=(60, 2))
    assert linear_r2(source, target) == pytest.approx(LinearRegression().fit(source, target).score(source, target))


def test_linear_maps_are_consistent_and_noise_is_not():
    first = GENERATOR.normal(size=(500, 3))
    maps = {"a": first, "b": first @ GENERATOR.normal(size=(3, 3)) + 5, "noise": GENERATOR.normal(size=(500, 3))}
    frame = consistency(maps).set_index(["source", "target"])
    assert len(frame) == 6  # ordered pairs
    assert frame.loc[("a", "b"), "value"] == pytest.approx(1)
    assert frame.loc[("a", "noise"), "value"] < 0.05
    assert (frame["n"] == 500).all()


def test_subjects_with_other_samples_are_compared_in_bins_of_the_label():
    angles = {"rat": GENERATOR.uniform(0, 2 * np.pi, 900), "mouse": GENERATOR.uniform(0, 2 * np.pi, 1300)}
    turn = ortho_group.rvs(3, random_state=0)
    embeddings = {"rat": ring(angles["rat"]), "mouse": ring(angles["mouse"]) @ turn}
    labels = {name: [Label.of(angle, "angle")] for name, angle in angles.items()}
    found = consistency(embeddings, labels)
    assert found["value"].min() > 0.99
    assert (found["n"] == 100).all()
    shuffled = {"rat": labels["rat"], "mouse": [labels["mouse"][0].shuffle(0)]}
    assert consistency(embeddings, shuffled)["value"].max() < 0.3


def test_bins_are_means_normalised_on_the_sphere_and_plain_elsewhere():
    values = np.array([0.05, 0.06, 0.95, 0.45])
    labels = {"a": [Label.of(values)], "b": [Label.of(values)]}
    flat = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
    found = bin_means({"a": flat, "b": flat}, labels, bins=2)["a"]
    assert found.tolist() == [[11 / 3, 14 / 3], [5, 6]]  # .05, .06 and .45 lie in the lower half
    sphere = ring(np.array([0.0, 1.0, 2.0, 3.0]))
    means = bin_means({"a": sphere, "b": sphere}, labels, bins=2)["a"]
    expected = sphere[[0, 1, 3]].mean(0)
    assert np.allclose(means[0], expected / np.linalg.norm(expected))


def test_an_empty_bin_takes_the_samples_of_its_neighbours():
    whole, hole = np.array([0.0, 1.0, 2.0, 3.0, 4.0]), np.array([0.0, 1.0, 1.0, 3.0, 4.0])
    labels = {"whole": [Label.of(whole)], "hole": [Label.of(hole)]}
    points = np.column_stack([[1.0, 2.0, 4.0, 9.0, 16.0], np.zeros(5) + 3])
    found = bin_means({"whole": points, "hole": points}, labels, bins=5)
    assert found["whole"][:, 0].tolist() == [1, 2, 4, 9, 16]
    assert found["hole"][2, 0] == (2 + 4 + 9) / 3  # the samples of both sides, all together


def test_neighbours_of_an_angle_are_found_across_zero():
    full = np.deg2rad([5.0, 95, 185, 275])
    labels = {"a": [Label.of(full, "angle")], "b": [Label.of(full[[1, 2, 3, 3]], "angle")]}
    points = np.array([[0.0], [2.0], [4.0], [8.0]])
    found = bin_means({"a": points, "b": np.array([[2.0], [4.0], [8.0], [8.0]])}, labels, bins=4)["b"]
    assert found[0, 0] == pytest.approx((2 + 8 + 8) / 3)


def test_labels_may_have_several_dimensions_and_classes():
    made, labels = {}, {}
    for seed, name in enumerate(("rat", "mouse")):
        generator = np.random.default_rng(seed)
        place, side = generator.uniform(0, 1, (4000, 2)), generator.integers(0, 2, 4000)
        made[name] = np.column_stack([place, side, place[:, 0] * side]) @ generator.normal(size=(4, 4))
        labels[name] = [Label.of(place), Label.of(side)]
    found = consistency(made, labels)
    assert (found["n"] == 200).all()  # 10 x 10 places for each side
    assert found["value"].min() > 0.95


def test_within_a_group_of_neurons_embeddings_agree_more_than_between():
    generator = np.random.default_rng(0)
    latents = {"v1": generator.normal(size=(400, 2)), "ppc": generator.normal(size=(400, 2))}
    groups = ["v1"] * 20 + ["ppc"] * 20
    signal = np.concatenate([latents[area] @ generator.normal(size=(2, 20)) for area in ("v1", "ppc")], axis=1)
    seen = []

    def embed(part, seed):
        seen.append(part)
        return np.linalg.svd(part - part.mean(0), full_matrices=False)[0][:, :2]

    found = group_consistency(signal, groups, embed, neurons=10, repeats=2)
    assert found[found["where"] == "within"]["value"].min() > 0.99
    assert found[found["where"] == "between"]["value"].max() < 0.1
    assert found["repeat"].nunique() == 2
    columns = [tuple(part[0]) for part in seen[:2]]
    assert not set(columns[0]) & set(columns[1])  # disjoint neurons
    with pytest.raises(HapteraError, match="two disjoint sets of 11"):
        group_consistency(signal, groups, embed, neurons=11)


def test_a_rotation_is_found_and_undone():
    target = GENERATOR.normal(size=(100, 4))
    turn = ortho_group.rvs(4, random_state=1)
    found = procrustes(target @ turn.T, target)
    assert np.allclose(found.rotation, turn)
    assert np.allclose(found(target @ turn.T), target)
    moved = procrustes(3 * target @ turn.T + 7, target, scaled=True, centred=True)
    assert moved.scale == pytest.approx(1 / 3)
    assert np.allclose(moved(3 * target @ turn.T + 7), target)


def test_alignment_leaves_what_scipy_leaves():
    source, target = GENERATOR.normal(size=(50, 3)), GENERATOR.normal(size=(50, 3))
    _, _, disparity = scipy_procrustes(target, source)
    found = procrustes(source, target, scaled=True, centred=True)
    left = ((found(source) - target) ** 2).sum() / ((target - target.mean(0)) ** 2).sum()
    assert left == pytest.approx(disparity)


def test_other_samples_are_matched_by_the_nearest_label():
    among, of = GENERATOR.uniform(0, 2 * np.pi, 300), GENERATOR.uniform(0, 2 * np.pi, 200)
    rows = nearest_by_label(Label.of(among, "angle"), Label.of(of, "angle"))
    away = np.abs(np.angle(np.exp(1j * (among[:, None] - of[None, :]))))
    assert np.array_equal(rows, away.argmin(0))
    turn = ortho_group.rvs(3, random_state=2)
    found = procrustes(ring(among) @ turn.T, ring(of), (Label.of(among, "angle"), Label.of(of, "angle")))
    assert np.abs(found(ring(among) @ turn.T) - ring(among)).max() < 0.05


def test_the_average_of_turned_copies_has_less_noise_than_each():
    angle = GENERATOR.uniform(0, 2 * np.pi, 400)
    clean = ring(angle)
    copies = [ring(angle, 0.2, seed) @ ortho_group.rvs(3, random_state=seed) for seed in range(8)]
    mean = average(copies)
    assert np.allclose(np.linalg.norm(mean, axis=1), 1)
    off = [np.abs(procrustes(each, clean)(each) - clean).mean() for each in (mean, copies[0])]
    assert off[0] < 0.6 * off[1]


def test_trial_averages_are_means_over_trials_at_each_step():
    trials = np.array([1, 1, 1, 2, 2, 3, 3])
    conditions = np.array(["a", "a", "a", "a", "a", "b", "b"])
    embedding = np.arange(14.0).reshape(7, 2)
    frame = trial_averages(embedding, trials, conditions).set_index(["condition", "step"])
    assert frame.loc[("a", 0), "dimension_0"] == (0 + 6) / 2
    assert frame.loc[("a", 2)].tolist() == [1, 4.0, 5.0]  # only the first trial is that long
    assert frame.loc[("b", 1), "dimension_1"] == 13
    with pytest.raises(HapteraError, match="trial 3 has 2 conditions"):
        trial_averages(embedding, trials, np.array(["a"] * 5 + ["b", "c"]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: consistency({"a": np.zeros((5, 2))}), "needs two or more"),
        (lambda: consistency({"a": np.zeros((5, 2)), "b": np.zeros((6, 2))}), "5 and 6 samples"),
        (lambda: linear_r2(np.zeros((3, 3)), np.zeros((3, 3))), "an affine map fits them all"),
        (lambda: procrustes(np.zeros((5, 2)), np.zeros((5, 3))), "2 and 3 dimensions"),
        (lambda: procrustes(np.zeros((5, 2)), np.zeros((6, 2))), "give labels"),
        (lambda: bin_means({"a": np.zeros((2, 1)), "b": np.zeros((2, 1))},
                        {"a": [Label.of(np.array([0, 1]))], "b": [Label.of(np.array([0.0, 1.0]))]}), "different kinds"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_an_error(call, message):
    with pytest.raises(HapteraError, match=message):
        call()


def test_consistency_is_drawn_from_scores_or_from_embeddings():
    random = np.random.default_rng(0)
    points = random.normal(size=(50, 2))
    turned, noise = points @ np.array([[0.0, 2.0], [1.0, 0.0]]), random.normal(size=(50, 2))
    embeddings = {"one": points, "two": turned, "noise": noise}
    shown = plot_consistency(embeddings)
    drawn = shown.frame.set_index(["source", "target"])["value"]
    assert drawn["one", "one"] == 1
    assert drawn["one", "two"] == pytest.approx(1)
    assert drawn["one", "noise"] < 0.3
    again = plot_consistency(consistency(embeddings), engine="plotly")
    np.testing.assert_array_equal(again.frame["value"], shown.frame["value"])
    labels = dict.fromkeys(embeddings, points[:, 0])
    assert plot_consistency(embeddings, labels, bins=10).frame["n"].iloc[0] <= 10
    with pytest.raises(HapteraError, match="labels are of one; of one, two, noise"):
        plot_consistency(embeddings, {"one": points[:, 0]})
    with pytest.raises(HapteraError, match="no column value"):
        plot_consistency(pd.DataFrame({"source": [], "target": [], "n": []}))
