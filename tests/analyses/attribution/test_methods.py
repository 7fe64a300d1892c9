"""Every method against captum, and against what defines it."""

from itertools import permutations

import captum.attr
import numpy as np
import pytest
import torch
from torch import nn

from haptera.analyses.attribution import METHODS
from haptera.analyses.attribution.maps import attribution_map, sample_attributions
from haptera.analyses.attribution.methods import (
    feature_ablation,
    integrated_gradients,
    jacobians,
    pseudo_inverse,
    shapley_sampling,
)
from haptera.contrastive.architectures import build_encoder
from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.errors import HapteraError

SAMPLES, INPUTS, LATENTS = 6, 4, 3


@pytest.fixture
def encoder():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(INPUTS, 8), nn.GELU(), nn.Linear(8, LATENTS)).eval()


@pytest.fixture
def inputs():
    return torch.randn(SAMPLES, INPUTS, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def baseline():
    return torch.randn(SAMPLES, INPUTS, generator=torch.Generator().manual_seed(2))


def by_captum(method, inputs, **options):
    found = [method.attribute(inputs, target=target, **options) for target in range(LATENTS)]
    return torch.stack(found, 1).detach()


def test_gradient_is_captums(encoder, inputs):
    expected = by_captum(captum.attr.Saliency(encoder), inputs.clone().requires_grad_(), abs=False)
    torch.testing.assert_close(jacobians(encoder, inputs), expected)


def test_integrated_gradients_are_captums(encoder, inputs, baseline):
    expected = by_captum(captum.attr.IntegratedGradients(encoder), inputs, baselines=baseline, n_steps=20)
    found = integrated_gradients(encoder, inputs, baseline, steps=20)
    torch.testing.assert_close(found, expected.float(), rtol=1e-4, atol=1e-6)


def test_integrated_gradients_sum_to_the_change_of_the_output(encoder, inputs, baseline):
    found = integrated_gradients(encoder, inputs, baseline).sum(2)
    torch.testing.assert_close(found, (encoder(inputs) - encoder(baseline)).detach(), rtol=1e-4, atol=1e-5)


def test_ablation_is_captums(encoder, inputs, baseline):
    expected = by_captum(captum.attr.FeatureAblation(encoder), inputs, baselines=baseline)
    torch.testing.assert_close(feature_ablation(encoder, inputs, baseline), expected)


def exact_shapley(encoder, inputs, baseline):
    """The mean over all orders."""
    total = torch.zeros(SAMPLES, LATENTS, INPUTS)
    orders = list(permutations(range(INPUTS)))
    for order in orders:
        current = baseline.clone()
        for feature in order:
            before = encoder(current)
            current[:, feature] = inputs[:, feature]
            total[:, :, feature] += (encoder(current) - before) / len(orders)
    return total


@torch.no_grad()
def test_shapley_values_approach_those_of_all_orders(encoder, inputs, baseline):
    exact = exact_shapley(encoder, inputs, baseline)
    few, many = (shapley_sampling(encoder, inputs, baseline, orders, seed=0) for orders in (4, 400))
    assert (many - exact).abs().max() < 0.02 * exact.abs().max()
    assert (many - exact).square().mean() < 0.1 * (few - exact).square().mean()


@torch.no_grad()
def test_shapley_values_are_captums_where_every_order_is_drawn(encoder, inputs, baseline):
    expected = by_captum(captum.attr.ShapleyValues(encoder), inputs, baselines=baseline)
    torch.testing.assert_close(exact_shapley(encoder, inputs, baseline), expected)


@torch.no_grad()
@pytest.mark.parametrize("orders", [1, 2, 7])
def test_shapley_values_sum_to_the_change_of_the_output_whatever_the_orders(encoder, inputs, baseline, orders):
    found = shapley_sampling(encoder, inputs, baseline, orders).sum(2)
    torch.testing.assert_close(found, encoder(inputs) - encoder(baseline), rtol=1e-4, atol=1e-6)


def test_an_order_and_its_reverse_make_interactions_of_two_exact(inputs, baseline):
    class Product(nn.Module):
        def forward(self, x):
            return torch.stack([x[:, 0] * x[:, 1] + x[:, 2], x[:, 1] * x[:, 3], x.sum(1)], 1)

    found = shapley_sampling(Product(), inputs, baseline, orders=2)
    torch.testing.assert_close(found, exact_shapley(Product(), inputs, baseline), rtol=1e-4, atol=1e-5)


def test_inverted_jacobian_of_a_linear_encoder_is_its_pseudo_inverse(inputs):
    layer = nn.Linear(INPUTS, LATENTS)
    found = sample_attributions(layer, inputs.numpy()).values
    expected = torch.linalg.pinv(layer.weight.detach()).T.numpy()
    np.testing.assert_allclose(found, np.broadcast_to(expected, found.shape), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_a_map_is_the_fold_of_the_samples_in_blocks_of_any_size(encoder, inputs, method, monkeypatch):
    data = inputs.numpy()
    whole = sample_attributions(encoder, data, method, orders=2, steps=5)
    assert whole.values.shape == (SAMPLES, LATENTS, INPUTS)
    np.testing.assert_allclose(whole.map("max"), np.abs(whole.values).max(0))
    if method != "shapley":  # which draws orders for each block
        monkeypatch.setattr("haptera.analyses.attribution.maps.BLOCK", 4)
    for by, expected in (("sum", np.abs(whole.values).sum(0)), ("max", np.abs(whole.values).max(0))):
        found = attribution_map(encoder, data, method, by=by, orders=2, steps=5)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_thresholding_keeps_what_exceeds_a_share_of_the_largest():
    layer = nn.Linear(2, 1)
    layer.weight.data = torch.tensor([[1.0, 0.3]])
    found = sample_attributions(layer, np.ones((3, 2)), "gradient")
    assert found.connections(0.2).tolist() == [[True, True]]
    assert found.connections(0.5).tolist() == [[True, False]]


def test_a_channel_outside_the_window_of_a_convolution_has_no_attribution():
    torch.manual_seed(0)
    encoder = build_encoder("offset5-model-mse", channels=3, hidden=4, dimensions=2)
    with torch.no_grad():
        encoder.stem.weight[:, 1] = 0  # the encoder does not read channel 1
    data = np.random.default_rng(0).normal(size=(12, 3))
    for method in METHODS:
        found = sample_attributions(encoder, data, method, orders=2, steps=3)
        by_window = method in ("inverted_jacobian", "gradient", "integrated_gradients")
        assert found.values.shape == ((12, 2, 3, 5) if by_window else (12, 2, 3))
        mapped = found.map()
        assert np.all(mapped[:, 1] < 1e-5 * mapped[:, [0, 2]].min(1))


def test_windows_are_those_of_transform():
    data = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    settings = {"output_dimension": 2, "max_iterations": 2, "batch_size": 16, "random_state": 0}
    model = ContrastiveEmbedding("offset5-model-mse", distance="euclidean", **settings).fit(data)
    moved = data.copy()
    moved[7, 1] += 1e-2
    change = (model.transform(moved) - model.transform(data)) / 1e-2
    found = sample_attributions(model, data, "gradient").values
    for place in range(5):  # sample 7 is at `place` of the window of sample 7 + 2 − place
        np.testing.assert_allclose(found[9 - place, :, 1, place], change[9 - place], rtol=0.05, atol=2e-3)


def test_attribution_leaves_the_mode_of_the_encoder_alone(encoder, inputs):
    encoder.train()
    sample_attributions(encoder, inputs.numpy())
    assert encoder.training


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "gradients"}, "did you mean 'gradient'"),
        ({"method": "shapley", "baseline": "zeros"}, "did you mean 'zero'"),
        ({"method": "shapley", "baseline": np.zeros(9)}, r"\(4,\) was expected"),
        ({"method": "shapley", "orders": 0}, "at least 1"),
    ],
)
def test_a_wrong_setting_is_named(encoder, inputs, options, message):
    with pytest.raises(HapteraError, match=message):
        sample_attributions(encoder, inputs.numpy(), **options)


def test_data_that_is_no_table_of_numbers_is_named(encoder):
    with pytest.raises(HapteraError, match=r"\(4,\); \(samples, inputs\)"):
        sample_attributions(encoder, np.zeros(4))
    with pytest.raises(HapteraError, match="NaN"):
        sample_attributions(encoder, np.full((2, 4), np.nan))


def test_standardised_inputs_are_those_of_an_encoder_of_standardised_data(encoder, inputs):
    data = inputs.numpy() * np.array([1, 10, 0.1, 3], np.float32)
    spread = torch.from_numpy(data.std(0))

    class Scaled(nn.Module):
        def forward(self, x):
            return encoder(x * spread)

    for method in METHODS:
        found = sample_attributions(encoder, data, method, standardised=True, orders=2, steps=5).values
        expected = sample_attributions(Scaled(), data / spread.numpy(), method, orders=2, steps=5).values
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)


def network(inputs: int, outputs: int, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(inputs, 16), nn.GELU(), nn.Linear(16, outputs))


def test_jacobians_of_a_batch_are_those_of_each_sample():
    encoder, inputs = network(7, 3), torch.randn(5, 7)
    found = jacobians(encoder, inputs)
    for sample, matrix in zip(inputs, found, strict=True):
        torch.testing.assert_close(matrix, torch.autograd.functional.jacobian(encoder, sample))


def test_jacobians_leave_no_gradients_behind():
    encoder = network(4, 2)
    jacobians(encoder, torch.randn(3, 4))
    assert all(parameter.grad is None for parameter in encoder.parameters())


@pytest.mark.parametrize("shape", [(3, 10), (10, 3), (4, 4), (1, 6)])
def test_pseudo_inverse_is_that_of_singular_values(shape):
    matrices = torch.randn(50, *shape, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(pseudo_inverse(matrices), torch.linalg.pinv(matrices.double()).float())


@pytest.mark.parametrize("smallest", [1e-2, 1e-4, 1e-7, 1e-12, 0.0])
def test_ill_conditioned_matrices_are_inverted_as_by_singular_values(smallest):
    generator = torch.Generator().manual_seed(1)
    left = torch.linalg.qr(torch.randn(20, 4, 4, generator=generator, dtype=torch.float64))[0]
    right = torch.linalg.qr(torch.randn(20, 9, 4, generator=generator, dtype=torch.float64))[0]
    values = torch.tensor([1.0, 0.5, 0.2, smallest], dtype=torch.float64)
    matrices = left * values @ right.transpose(1, 2)
    expected = torch.linalg.pinv(matrices, rtol=1e-9)
    found = pseudo_inverse(matrices, rtol=1e-9)
    assert (found - expected).abs().max() <= 1e-5 * expected.abs().max()


def test_well_and_ill_conditioned_matrices_share_a_batch():
    good, bad = torch.randn(3, 2, 5), torch.randn(3, 2, 5)
    bad[:, 1] = bad[:, 0]
    both = pseudo_inverse(torch.cat([good, bad]))
    torch.testing.assert_close(both[:3], torch.linalg.pinv(good), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(both[3:], torch.linalg.pinv(bad, rtol=1e-4), rtol=1e-4, atol=1e-5)


def test_zero_matrices_have_zero_inverses():
    assert pseudo_inverse(torch.zeros(2, 3, 4)).abs().max() == 0


def test_outputs_of_unit_length_are_inverted_in_the_directions_they_can_move():
    class Unit(nn.Module):
        def forward(self, inputs):
            return nn.functional.normalize(inputs @ self.weight.T, dim=1)

    encoder = Unit()
    encoder.weight = nn.Parameter(torch.randn(3, 6, generator=torch.Generator().manual_seed(2)))
    matrices = jacobians(encoder, torch.randn(30, 6, generator=torch.Generator().manual_seed(3)))
    inverse = pseudo_inverse(matrices)
    assert torch.linalg.matrix_rank(inverse, rtol=1e-3).tolist() == [2] * 30
    torch.testing.assert_close(matrices @ inverse @ matrices, matrices, rtol=1e-3, atol=1e-5)
