"""Scores of embeddings against known latents: exact where the answer is known, and their null."""

from itertools import permutations

import numpy as np
import pytest
import torch

from haptera.analyses.identify import Training
from haptera.analyses.identify.identifiability import (
    best_assignment,
    correlations,
    fit_verdict,
    identifiability,
    latents_fit,
    rotation_mcc,
)
from haptera.analyses.identify.inversion import LatentModel, invert
from haptera.analyses.identify.limit import contrastive_limit
from haptera.analyses.identify.processes import Process
from haptera.analyses.identify.row import Row, run_row
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
    chosen = best_assignment(sizes)
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


@pytest.mark.parametrize("kappa", [1.0, 10.0])
def test_on_the_sphere_it_is_the_limit_of_theorem_3(kappa):
    limit = contrastive_limit(kappa, 4)
    exact = limit.alignment + limit.uniformity + limit.gap(512, inside=True) + np.log(512 / 513)
    found = latents_fit(
        Process.read(f"sphere/uniform/vmf={kappa}"), LatentModel.read("sphere/vmf").loss(), 512, np.sqrt(kappa)
    )
    assert found == pytest.approx(exact, abs=0.01 + 0.02 * abs(exact))


def test_the_best_size_is_found_wherever_the_search_begins():
    process, loss = Process.read("box/uniform/laplace=0.05"), LatentModel.read("box/normal").loss()
    random, losses = np.random.default_rng(0), []
    parts = (*process.pairs(2048, random), process.latents(2048, random))
    batches = [torch.from_numpy(part).float().split(64) for part in parts]
    for size in np.geomspace(3, 40, 30):
        values = [loss(*(size * part for part in batch)).item() for batch in zip(*batches, strict=True)]
        losses.append(np.mean(values) - loss.chance(64))
    for guess in (4.0, 10.0, 30.0):
        assert latents_fit(process, loss, 64, guess) == pytest.approx(min(losses), abs=0.08)


@pytest.mark.long
def test_a_run_of_few_steps_has_not_reached_it_and_a_loss_that_wants_something_else_goes_below():
    record = run_row(Row("sphere/uniform/vmf=1", "sphere/vmf", dimensions=4, steps=3, batch_size=64), 0)
    assert fit_verdict(record["goodness_of_fit"], record["latents_fit"]) == "not reached"
    # Normal pairs of a normal marginal: points of one length are told apart better than the latents are.
    process, model = Process.read("unbounded/normal=1/normal=1"), LatentModel.read("unbounded/normal")
    random = np.random.default_rng(0)
    parts = [*process.pairs(512, random), process.latents(512, random)]
    rings = [torch.from_numpy(1.5 * part / np.linalg.norm(part, axis=1, keepdims=True)).float() for part in parts]
    own = latents_fit(process, model.loss(), 512, model.start(process))
    assert model.loss()(*rings).item() - model.loss().chance(512) < own - 0.2
    other = Row("box/uniform/normal=0.05", "sphere/vmf", dimensions=2, steps=1, batch_size=8)
    assert np.isnan(run_row(other, 0)["latents_fit"])


@pytest.mark.slow
def test_pairs_that_say_little_of_each_other_need_steps_and_nothing_else():
    process, model = Process.read("sphere/uniform/vmf=1"), LatentModel.read("sphere/vmf")
    found = invert(process, model, Training(steps=5000, learning_rate=1e-3))
    own = latents_fit(process, model.loss(), 512, 1.0)
    assert fit_verdict(found.loss[-100:].mean(), own) == "reached"
    assert found.contrastive.r2.value > 0.98
