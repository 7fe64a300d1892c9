"""SlowVAE: its divergence by sampling, its bound on pairs, and a run through the command's function."""

import numpy as np
import pytest
import torch

from haptera.analyses.identify import Training, identify
from haptera.analyses.identify.inversion import LatentModel, invert
from haptera.analyses.identify.processes import Process
from haptera.analyses.identify.row import promise_of
from haptera.analyses.identify.slow_vae import SlowVAE, slow_divergence
from haptera.errors import HapteraError

MASKS = "box/uniform/laplace=0.05/masks"


@pytest.mark.parametrize(("apart", "before", "after"), [(0.0, 0.1, 0.2), (0.4, 0.01, 0.02), (-1.0, 0.3, 0.1)])
def test_the_divergence_is_that_of_draws(apart, before, after):
    random = np.random.default_rng(0)
    first, second = random.normal(0, before**0.5, 400_000), random.normal(apart, after**0.5, 400_000)
    normal = -0.5 * np.log(2 * np.pi * after) - (second - apart) ** 2 / 2 / after
    laplace = np.log(6 / 2) - 6 * np.abs(second - first)
    found = slow_divergence(*(torch.tensor([[value]]) for value in (apart, before, after)))
    assert found.item() == pytest.approx((normal - laplace).mean(), abs=0.02)


def test_a_decoder_that_says_the_mean_picture_costs_only_the_divergences():
    loss = SlowVAE(3, 1)
    unknown = torch.full((1, 32, 32), 0.3)
    loss.decoder.forward = lambda points: torch.full((len(points), 1, 32, 32), np.log(0.3 / 0.7))
    means = torch.zeros(8, 3)
    value = loss(means, torch.rand(8, 1, 32, 32), unknown)
    variance = np.exp(-2.0)
    normal = 3 * 0.5 * (variance - 1 + 2.0)
    slow = slow_divergence(torch.zeros(1, 3), *(torch.full((1, 3), variance),) * 2).item()
    assert value.item() == pytest.approx(normal + 10 * slow, rel=1e-4)


def test_it_learns_from_masks_and_a_seed_repeats_it():
    process = Process.read(MASKS, 3)
    training = Training(steps=15, batch_size=32)
    one, again = (invert(process, LatentModel.read("slowvae"), training) for _ in range(2))
    assert one.loss[-5:].mean() < one.loss[:5].mean()
    assert np.array_equal(one.loss, again.loss)
    assert promise_of(process, LatentModel.read("slowvae")) == "nothing"


def test_pictures_and_masks_run_as_rows_and_say_what_they_need():
    training = Training(steps=2, batch_size=16)
    found = identify(process=MASKS, model="box/laplace", dimensions=3, training=training)
    assert found.findings()[0].sentence == f"{MASKS}, 3 latents"
    assert found.json()["condition"] is None
    with pytest.raises(HapteraError, match="pictures have 6 factors in a box; the process has 4 latents"):
        identify(process="box/uniform/normal=0.1/pictures")
    with pytest.raises(HapteraError, match="slowvae is for pictures and masks"):
        identify(process="box/uniform/normal=0.1", model="slowvae", training=training)
    with pytest.raises(HapteraError, match="did you mean 'masks'"):
        identify(process="box/uniform/normal=0.1/mask", dimensions=3)
