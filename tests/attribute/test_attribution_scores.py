"""Scores of maps against their definition; the test of channels on data whose carriers are known."""

import numpy as np
import pytest

from holdfast.attribute import carriers, map_scores
from holdfast.embed import ContrastiveEmbedding
from holdfast.errors import HoldfastError


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
    with pytest.raises(HoldfastError, match="every entry"):
        map_scores(np.ones((2, 2)), np.ones((2, 2)))
    with pytest.raises(HoldfastError, match="shapes"):
        map_scores(np.ones((2, 2)), np.ones((2, 3)))


def tuned_and_silent(samples: int = 1200):
    """Eight cells tuned to an angle and six that fire alike whatever it is."""
    generator = np.random.default_rng(0)
    angle = np.cumsum(generator.normal(0, 0.3, samples)) % (2 * np.pi)
    preferred = np.arange(8) * 2 * np.pi / 8
    rates = np.hstack([0.2 + 3 * np.exp(np.cos(angle[:, None] - preferred) - 1), np.full((samples, 6), 1.5)])
    return generator.poisson(rates).astype(float), angle


def settings(**others):
    return ContrastiveEmbedding(
        output_dimension=3, max_iterations=120, batch_size=256, learning_rate=3e-3, random_state=0, **others
    )


def test_tuned_cells_carry_the_label_and_others_do_not():
    signal, angle = tuned_and_silent()
    found = carriers(settings(period=2 * np.pi, time_offsets=5, jacobian_weight=0.1), signal, angle, fits=2, copies=3)
    assert set(found.channels) >= set(range(8))
    assert len(set(found.channels) - set(range(8))) <= 1
    assert found.null.mean() == pytest.approx(1, abs=0.2)
    assert len(found.null) == 2 * 3 * signal.shape[1]
    assert (found.table["q"] >= found.table["p"]).all()


def test_of_a_shuffled_label_nothing_is_carried():
    signal, angle = tuned_and_silent()
    shuffled = np.random.default_rng(1).permutation(angle)
    found = carriers(
        settings(period=2 * np.pi, time_offsets=5, jacobian_weight=0.1), signal, shuffled, fits=2, copies=3
    )
    assert len(found.channels) <= 1


def test_a_wrong_number_is_named():
    signal, angle = tuned_and_silent(50)
    for options, message in (
        ({"fits": 0}, "at least 1"),
        ({"fits": 1, "copies": 1}, "2 decoys"),
        ({"level": 2.0}, "between 0 and 1"),
    ):
        with pytest.raises(HoldfastError, match=message):
            carriers(settings(), signal, angle, **options)
