"""Scores of maps against their definition; the test of channels on data whose carriers are known."""

import sys

import numpy as np
import pytest

from haptera.analyses.attribution import DecoyTest
from haptera.analyses.attribution.carriers import carriers, compare_with_decoys
from haptera.analyses.attribution.maps import attribution_map, map_scores
from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.errors import HapteraError


def test_auroc_is_the_share_of_pairs_in_the_right_order():
    generator = np.random.default_rng(0)
    found, true = generator.normal(size=(4, 9)), generator.random((4, 9)) < 0.4
    pairs = [(a > b) + (a == b) / 2 for a in found[true] for b in found[~true]]
    assert map_scores(found, true).auroc == pytest.approx(np.mean(pairs))


def test_average_precision_is_the_mean_precision_at_each_connected_entry():
    generator = np.random.default_rng(1)
    found, true = generator.normal(size=(3, 8)), generator.random((3, 8)) < 0.4
    order = np.argsort(-found.ravel())
    hits = true.ravel()[order]
    precision = [hits[: place + 1].mean() for place in np.flatnonzero(hits)]
    assert map_scores(found, true).average_precision == pytest.approx(np.mean(precision))


def test_only_the_chosen_latents_are_scored():
    found = np.array([[0.0, 1.0], [5.0, 1.0]])
    true = np.array([[0, 1], [0, 1]])
    assert map_scores(found, true, [0]).auroc == 1
    assert map_scores(found, true, [1]).auroc == 0


def test_a_map_without_two_kinds_of_entries_is_an_error():
    with pytest.raises(HapteraError, match="every entry"):
        map_scores(np.ones((2, 2)), np.ones((2, 2)))
    with pytest.raises(HapteraError, match="shapes"):
        map_scores(np.ones((2, 2)), np.ones((2, 3)))


def tuned_and_silent(samples: int = 1200):
    """Eight cells tuned to an angle and six that fire alike whatever it is."""
    generator = np.random.default_rng(0)
    angle = np.cumsum(generator.normal(0, 0.3, samples)) % (2 * np.pi)
    preferred = np.arange(8) * 2 * np.pi / 8
    rates = np.hstack([0.2 + 3 * np.exp(np.cos(angle[:, None] - preferred) - 1), np.full((samples, 6), 1.5)])
    return generator.poisson(rates).astype(float), angle


REGULARISED = {"period": 2 * np.pi, "time_offsets": 5, "jacobian_weight": 0.1}


def settings(**others):
    return ContrastiveEmbedding(
        output_dimension=3, max_iterations=120, batch_size=256, learning_rate=3e-3, random_state=0, **others
    )


@pytest.mark.long
def test_tuned_cells_carry_the_label_and_others_do_not():
    signal, angle = tuned_and_silent()
    found = carriers(
        settings(period=2 * np.pi, time_offsets=5, jacobian_weight=0.1), signal, angle, test=DecoyTest(fits=2, copies=3)
    )
    assert set(found.channels) >= set(range(8))
    assert len(set(found.channels) - set(range(8))) <= 1
    assert found.null.mean() == pytest.approx(1, abs=0.2)
    assert len(found.null) == 3 * signal.shape[1]
    assert (found.table["q"] >= found.table["p"]).all()
    # the map is that of the test: what it shows of tuned cells is what they are named for
    share = found.map.sum(0) / found.map[:, 8:].sum(0).mean()
    assert np.corrcoef(share, found.table["value"])[0, 1] > 0.9
    assert share[:8].min() > share[8:].max()


def test_map_and_test_are_of_the_same_fits_and_decoys_are_the_same_in_all_of_them(monkeypatch):
    signal, angle = tuned_and_silent(200)
    seen, maps = [], []

    def watched(encoder, data, *arguments, **options):
        seen.append(data)
        maps.append(attribution_map(encoder, data, *arguments, **options))
        return maps[-1]

    monkeypatch.setattr(sys.modules[carriers.__module__], "attribution_map", watched)
    model = settings(period=2 * np.pi, jacobian_weight=0.1).set_params(max_iterations=5, batch_size=32)
    found = carriers(model, signal, angle, test=DecoyTest(fits=3, copies=2))
    assert len(seen) == 3
    assert all(np.array_equal(seen[0], one) for one in seen)
    assert np.array_equal(seen[0][:, :14], signal)
    expected = np.mean([one / one.mean() for one in maps], 0)
    assert np.allclose(found.map, expected[:, :14])
    members = expected.sum(0).reshape(3, 14)  # channels, then their decoys
    assert np.allclose(found.table["value"], members[0] / members[1])
    assert np.allclose(np.sort(found.null), np.sort(np.r_[members[1] / members[2], members[2] / members[1]]))


@pytest.mark.parametrize("own", [0.0, 0.3])
def test_p_values_of_channels_that_carry_nothing_are_even_and_those_that_do_are_found(own):
    """Attributions vary with the fit, and with what a channel or decoy is by chance (`own`), which all fits see."""
    generator = np.random.default_rng(0)
    p, false, right = [], [], []
    for _ in range(400):
        size = np.exp(own * generator.normal(size=(1, 9, 12)) + 0.3 * generator.normal(size=(3, 9, 12)))
        table, _ = compare_with_decoys(size * np.exp(generator.normal(size=12)))
        p += table["p"].tolist()
        false.append(table["carries"].any())
        size[:, 0, :4] *= 5
        table, _ = compare_with_decoys(size)
        right.append(table["carries"][:4].mean())
    for rank in (5, 49):  # of 96 decoys and the channel
        assert np.mean(np.array(p) <= rank / 97 + 1e-9) == pytest.approx(rank / 97, rel=0.25)
    assert np.mean(false) < 0.08
    assert np.mean(right) > 0.9


@pytest.mark.slow
def test_fits_to_recordings_without_carriers_have_even_p_values_and_known_carriers_are_found():
    p, false, right = [], [], []
    quick = {"period": 2 * np.pi, "time_offsets": 5, "jacobian_weight": 0.1}
    for run in range(25):
        generator = np.random.default_rng(run)
        angle = np.cumsum(generator.normal(0, 0.3, 800)) % (2 * np.pi)
        slow = np.exp(0.5 * np.cumsum(generator.normal(0, 0.2, (800, 8)), 0).clip(-2, 2))  # wander, as neurons do
        signal = generator.poisson(slow).astype(float)
        model = settings(**quick).set_params(max_iterations=80, batch_size=128)
        found = carriers(model, signal, angle, test=DecoyTest(fits=2, copies=10, seed=run))
        p += found.table["p"].tolist()
        false.append(bool(found.channels))
        preferred = np.arange(4) * np.pi / 2
        signal[:, :4] = generator.poisson(0.2 + 3 * np.exp(2 * np.cos(angle[:, None] - preferred) - 2))
        named = carriers(model, signal, angle, test=DecoyTest(fits=2, copies=10, seed=run)).channels
        right += [place in named for place in range(4)]
    assert np.mean(np.array(p) <= 0.1) < 0.17
    assert abs(np.mean(np.array(p) <= 0.5) - 0.5) < 0.12
    assert np.mean(false) <= 0.2  # .05 are expected, of 25
    assert np.mean(right) > 0.8


@pytest.mark.long
def test_of_a_shuffled_label_nothing_is_carried():
    signal, angle = tuned_and_silent()
    shuffled = np.random.default_rng(1).permutation(angle)
    found = carriers(
        settings(period=2 * np.pi, time_offsets=5, jacobian_weight=0.1),
        signal,
        shuffled,
        test=DecoyTest(fits=2, copies=3),
    )
    assert len(found.channels) <= 1


def test_a_wrong_number_is_named():
    signal, angle = tuned_and_silent(50)
    for options, message in (
        ({"fits": -1}, "at least 1"),
        ({"fits": 0}, "no model with this Jacobian term"),
        ({"copies": 1}, "2 decoys"),
        ({"level": 2.0}, "between 0 and 1"),
    ):
        with pytest.raises(HapteraError, match=message):
            carriers(settings(), signal, angle, test=DecoyTest(**options))
