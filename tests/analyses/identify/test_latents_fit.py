"""The loss of the latents themselves, beside its closed form and beside what an encoder reached."""

import numpy as np
import pytest
import torch

from haptera.analyses.identify.identifiability import fit_verdict, latents_fit
from haptera.analyses.identify.inversion import LatentModel, invert
from haptera.analyses.identify.limit import contrastive_limit
from haptera.analyses.identify.processes import Process
from haptera.analyses.identify.row import Row, run_row
from haptera.analyses.identify.settings import Training


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
