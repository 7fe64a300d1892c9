"""Contrastive learning inverts a process: quick signs here, the figures of the tables in the slow tests."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from haptera.analyses.identify import Training
from haptera.analyses.identify.inversion import LatentEncoder, LatentModel, OutputSpace, invert
from haptera.analyses.identify.laws import Uniform, VonMisesFisher, laplace
from haptera.analyses.identify.processes import Process
from haptera.contrastive.loss import DotProduct, Lp
from haptera.errors import HapteraError


def test_output_spaces_are_what_they_say():
    points = torch.randn(50, 3)
    assert torch.allclose(OutputSpace("sphere", 2.0)(points).norm(dim=1), torch.tensor(2.0))
    box = OutputSpace("box", 3.0)(points)
    assert 0 < box.min() < box.max() < 3
    assert OutputSpace("tanh", 4.0)(points).abs().max() < 4
    assert torch.equal(OutputSpace("unbounded", 1.0)(points), points)
    assert OutputSpace("box", 3.0).size == pytest.approx(3)
    with pytest.raises(HapteraError, match="did you mean 'sphere'"):
        OutputSpace("spheer")


def test_the_size_of_a_space_is_learnt():
    encoder = LatentEncoder(2, [8], 2, "sphere", 1.0)
    (-encoder(torch.randn(20, 2)).square().sum()).backward()
    assert encoder.output.log_size.grad < 0


def test_models_have_the_similarity_of_their_law():
    assert isinstance(LatentModel.read("sphere/vmf").loss().similarity, DotProduct)
    similarity = LatentModel.read("box/gennorm=3").loss().similarity
    assert isinstance(similarity, Lp)
    assert similarity.p == 3
    assert LatentModel.read("box/laplace").loss().positive_inside


def test_radius_and_side_begin_where_the_process_has_them():
    sphere = Process("sphere", Uniform(), VonMisesFisher(9.0))
    box = Process("box", Uniform(), laplace(0.05))
    assert LatentModel.read("sphere/vmf").start(sphere) == pytest.approx(3)
    assert LatentModel.read("box/laplace").start(box) == pytest.approx(20)
    for text in ("laplace=0.05", "gennorm=0.05,3", "normal=0.05"):  # by the likelihood of many draws
        process = Process.read(f"unbounded/normal=1/{text}")
        draws = np.abs(process.conditional.draw("unbounded", np.zeros((200_000, 1)), np.random.default_rng(0)))
        for model in ("box/laplace", "box/normal", "unbounded/gennorm=3"):
            p, start = LatentModel.read(model).exponent, LatentModel.read(model).start(process)
            scales = start * np.array([0.97, 1.0, 1.03])
            likelihood = [np.log(scale) - ((scale * draws) ** p).mean() for scale in scales]
            assert np.argmax(likelihood) == 1


@pytest.mark.slow
def test_a_sphere_is_found_from_pairs():
    process = Process("sphere", Uniform(), VonMisesFisher(10.0), tried=100)
    found = invert(process, LatentModel.read("sphere/vmf"), Training(steps=250, batch_size=256))
    assert found.contrastive.r2.value > 0.95
    assert found.contrastive.r2.value > found.identity.r2.value
    assert found.loss[-20:].mean() < found.loss[:20].mean()


@pytest.mark.long
def test_a_seed_repeats_a_run_and_leaves_the_global_generator_alone():
    process = Process("box", Uniform(), laplace(0.05), dimensions=2, tried=100)
    before = torch.random.get_rng_state()
    short = Training(steps=5, batch_size=32)
    losses = [invert(process, LatentModel.read("box/laplace"), short).loss for _ in range(2)]
    np.testing.assert_array_equal(*losses)
    held = invert(process, LatentModel.read("box/laplace"), replace(short, start=7.0, fixed=True))
    assert held.encoder.output.size == pytest.approx(7)
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.slow
def test_four_latents_on_the_sphere_are_found_up_to_a_rotation():
    process = Process("sphere", Uniform(), VonMisesFisher(10.0))
    found = invert(process, LatentModel.read("sphere/vmf"), Training(steps=1000))
    assert found.contrastive.r2.value > 0.98


@pytest.mark.slow
def test_four_latents_in_the_box_are_found_up_to_their_order():
    found = []
    for seed in range(5):
        process = Process("box", Uniform(), laplace(0.05), seed=seed)
        inversion = invert(process, LatentModel.read("box/laplace"), Training(steps=2000), seed=seed)
        found.append(inversion.contrastive.mcc.value)
    assert sum(value > 0.95 for value in found) >= 4
