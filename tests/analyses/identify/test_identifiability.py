"""Scores of embeddings against known latents: exact where the answer is known, and their null."""

from itertools import permutations

import numpy as np
import pytest

from haptera.analyses.identify.identifiability import assigned, correlations, identifiability, rotation_mcc
from haptera.errors import HapteraError


@pytest.fixture
def latents():
    return np.random.default_rng(0).uniform(size=(2000, 4))


def rotated(latents, seed=1):
    return latents @ np.linalg.qr(np.random.default_rng(seed).normal(size=(4, 4)))[0]


def test_order_and_sign_and_scale_do_not_matter(latents):
    found = identifiability(latents, 3 - latents[:, [2, 0, 3, 1]] * [1, -2, 5, 0.1])
    assert found.mcc.value == pytest.approx(1)
    assert found.r2.value == pytest.approx(1)
    assert found.permutation.tolist() == [1, 3, 0, 2]


def test_a_rotation_keeps_r2_and_loses_mcc(latents):
    found = identifiability(latents, rotated(latents))
    assert found.r2.value == pytest.approx(1)
    assert found.mcc.value < 0.95


def test_monotone_maps_keep_the_correlation_of_ranks(latents):
    found = identifiability(latents, np.exp(6 * latents))
    assert found.mcc_spearman.value == pytest.approx(1)
    assert found.mcc.value < 0.9


def test_the_assignment_is_the_best_of_all_permutations(latents):
    sizes = correlations(latents, rotated(latents))
    best = max(np.mean([sizes[row, column] for row, column in enumerate(order)]) for order in permutations(range(4)))
    chosen = assigned(sizes)
    assert sizes[np.arange(4), chosen].mean() == pytest.approx(best)


def test_an_unrelated_embedding_scores_nothing(latents):
    noise = np.random.default_rng(5).normal(size=latents.shape)
    found = identifiability(latents, noise)
    assert found.r2.low < 0.01
    assert abs(found.r2.value) < 0.03
    assert found.mcc.value < 0.1


def test_a_dimension_too_many_is_left_out_by_the_assignment(latents):
    wide = np.column_stack([np.random.default_rng(2).normal(size=2000), latents])
    assert identifiability(latents, wide).permutation.tolist() == [1, 2, 3, 4]


def test_dimensions_that_repeat_others_do_no_harm(latents):
    twice = np.column_stack([latents, latents @ np.random.default_rng(0).normal(size=(4, 20))])
    twice += 1e-9 * np.random.default_rng(1).normal(size=twice.shape)
    assert identifiability(latents, twice).r2.value == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(("dimensions", "known"), [(4, 0.77), (10, 0.59)])
def test_random_rotations_have_the_mcc_that_is_known(dimensions, known):
    found = rotation_mcc(np.eye(dimensions), np.random.default_rng(0), 400)
    assert found.mean() == pytest.approx(known, abs=0.02)


def test_the_null_is_the_mcc_of_embeddings_that_are_rotations(latents):
    standard = (latents - latents.mean(0)) / latents.std(0)
    seen = [identifiability(latents, rotated(standard, seed), resamples=2).mcc.value for seed in range(40)]
    found = identifiability(latents, latents, resamples=2)
    assert found.rotation_mcc == pytest.approx(np.mean(seen), abs=0.04)
    assert found.rotation_high > found.rotation_mcc


def test_intervals_cover_the_score_of_many_samples():
    random = np.random.default_rng(3)

    def sample(count):
        z = random.normal(size=(count, 3))
        return z, z + random.normal(size=(count, 3))

    truth = identifiability(*sample(100_000), resamples=2)
    covered = []
    for _ in range(30):
        found = identifiability(*sample(600), resamples=200)
        covered += [found.mcc.low <= truth.mcc.value <= found.mcc.high, found.r2.low <= truth.r2.value <= found.r2.high]
    assert 0.85 < np.mean(covered) < 1


@pytest.mark.parametrize(
    ("embedding", "message"),
    [
        (np.zeros((10, 4)), "same samples"),
        (np.zeros((2000, 3)), "at least as many"),
        (np.full((2000, 4), np.nan), "NaN"),
    ],
)
def test_a_wrong_embedding_is_named(latents, embedding, message):
    with pytest.raises(HapteraError, match=message):
        identifiability(latents, embedding)


def test_too_few_samples_and_constant_latents_are_named(latents):
    with pytest.raises(HapteraError, match="too few"):
        identifiability(latents[:12], latents[:12])
    with pytest.raises(HapteraError, match="latent 2 never changes"):
        identifiability(latents * [1, 1, 0, 1], latents)


def test_the_table_has_every_score(latents):
    table = identifiability(latents, latents).table()
    assert table["measure"].tolist() == ["r2", "mcc", "mcc_spearman", "rotation_mcc"]
