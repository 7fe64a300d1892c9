"""The Jacobian term: against automatic differentiation, unbiased, ramped, and with the effect that it is for."""

import numpy as np
import pytest
import torch
from torch import nn

from haptera.analyses.attribution.methods import jacobians
from haptera.contrastive.architectures import build_encoder
from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.contrastive.jacobian import JacobianTerm, choose_jacobian_weight, squared_norms
from haptera.contrastive.model_file import known_settings
from haptera.errors import HapteraError


@pytest.fixture
def encoder():
    torch.manual_seed(0)
    return build_encoder("offset5-model", channels=4, hidden=6, dimensions=3)


@pytest.fixture
def windows():
    return torch.randn(6, 4, 5, generator=torch.Generator().manual_seed(1))


def frobenius(encoder, windows):
    """‖J‖² sample by sample, by torch's own Jacobian."""
    found = [
        torch.autograd.functional.jacobian(lambda x: encoder(x[None])[0, :, 0], one, create_graph=True)
        for one in windows
    ]
    return torch.stack([each.square().sum() for each in found])


def test_the_exact_norm_is_that_of_automatic_differentiation(encoder, windows):
    torch.testing.assert_close(squared_norms(encoder, windows, exact=True), frobenius(encoder, windows))


def test_its_gradient_is_that_of_automatic_differentiation(encoder, windows):
    parameters = list(encoder.parameters())
    found, expected = (
        torch.autograd.grad(norms.sum(), parameters, allow_unused=True, materialize_grads=True)
        for norms in (squared_norms(encoder, windows, exact=True), frobenius(encoder, windows))
    )
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.long
def test_random_projections_are_unbiased(encoder, windows):
    torch.manual_seed(3)
    draws = torch.stack([squared_norms(encoder, windows).detach() for _ in range(600)])
    exact = squared_norms(encoder, windows, exact=True).detach()
    error = draws.std(0) / len(draws) ** 0.5
    assert ((draws.mean(0) - exact).abs() < 4.5 * error).all()
    assert (draws.std(0) > 0).all()


def test_the_weight_waits_then_rises_then_stays():
    term = JacobianTerm.of(0.4, (10, 20), exact=False, steps=100)
    assert [term.at(step) for step in (1, 10, 20, 30, 31, 1000)] == pytest.approx([0, 0, 0.2, 0.4, 0.4, 0.4])
    assert JacobianTerm.of(0.4, None, False, 80).at(10) == 0
    assert JacobianTerm.of(0.4, None, False, 80).at(20) == 0.4
    assert JacobianTerm(0.4).at(1) == 0.4


def walk(samples=600):
    """Two latents that walk in a box, and eight inputs."""
    generator = np.random.default_rng(0)
    position = np.cumsum(generator.normal(0, 0.1, (samples, 2)), 0)
    latent = 1 - np.abs(np.mod(position, 4) - 2)
    return np.tanh(latent @ generator.normal(size=(2, 8))) + 0.05 * generator.normal(size=(samples, 8)), latent


def estimator(**settings):
    common = {"output_dimension": 2, "distance": "euclidean", "positive_in_denominator": True, "batch_size": 128}
    return ContrastiveEmbedding(
        "offset1-model-mse", **common, max_iterations=150, learning_rate=3e-3, random_state=0, **settings
    )


def mean_norm(model, signal):
    found = jacobians(lambda x: model.encoders_[0](x)[..., 0], torch.from_numpy(signal.astype(np.float32))[..., None])
    return float(found.square().flatten(1).sum(1).mean())


@pytest.fixture(scope="module")
def plain():
    """Without the term; nothing may change it."""
    return estimator().fit(walk()[0])


@pytest.mark.long
@pytest.mark.parametrize("exact", [False, True])
def test_the_term_makes_jacobians_smaller_and_is_recorded(exact, plain):
    signal, _ = walk()
    small = estimator(jacobian_weight=0.1, jacobian_ramp=(20, 30), jacobian_exact=exact).fit(signal)
    assert mean_norm(small, signal) < 0.5 * mean_norm(plain, signal)
    assert len(small.jacobian_history_) == 130
    assert len(plain.jacobian_history_) == 0
    assert small.jacobian_history_[-20:].mean() == pytest.approx(mean_norm(small, signal), rel=0.3)


def test_a_weight_of_zero_changes_nothing():
    signal, latent = walk()
    without, zero = estimator(), estimator(jacobian_weight=0.0, jacobian_ramp=(0, 0))
    found = [one.set_params(max_iterations=10).fit(signal, latent).transform(signal) for one in (without, zero)]
    np.testing.assert_array_equal(*found)


def test_goodness_of_fit_does_not_count_the_term():
    signal, _ = walk()
    model = estimator(jacobian_weight=100.0, jacobian_ramp=(0, 0)).set_params(max_iterations=3).fit(signal)
    assert np.abs(model.goodness_of_fit_history_).max() < 2
    assert model.loss_history_.max() < 2 + np.log(129)


def test_sessions_and_separate_encoders_have_the_term():
    signal, latent = walk()
    settings = {"jacobian_weight": 0.1, "jacobian_ramp": (0, 0), "max_iterations": 5}
    several = estimator().set_params(**settings).fit([signal, signal[:, :5]], [latent, latent])
    assert len(several.jacobian_history_) == 5
    separate = estimator(separate_encoders=True).set_params(**settings).fit(signal, latent)
    assert len(separate.jacobian_history_) == 5


def test_a_file_keeps_the_history(tmp_path):
    signal, _ = walk()
    model = estimator(jacobian_weight=0.1, jacobian_ramp=(0, 2)).set_params(max_iterations=4).fit(signal)
    model.save(tmp_path / "model.safetensors")
    again = ContrastiveEmbedding.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.jacobian_history_, model.jacobian_history_)
    assert tuple(again.jacobian_ramp) == (0, 2)
    again.partial_fit(signal)
    assert len(again.jacobian_history_) == 8


@pytest.mark.long
def test_the_largest_weight_that_keeps_the_fit_is_chosen():
    signal, _ = walk()
    short = estimator().set_params(max_iterations=60)
    found = choose_jacobian_weight(short, signal, weights=[1e-4, 100.0], loss=0.1)
    assert found.table["weight"].tolist() == [0, 1e-4, 100]
    assert not found.table["kept"].iloc[-1]
    assert found.weight == 1e-4
    assert found.model.jacobian_weight == 1e-4


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"jacobian_weight": -1.0}, "jacobian_weight is -1"),
        ({"jacobian_ramp": (1, 2, 3)}, "steps of the ramp"),
        ({"jacobian_ramp": (-1, 2)}, "no negative"),
    ],
)
def test_a_wrong_setting_is_named_before_anything_is_fitted(settings, message):
    with pytest.raises(HapteraError, match=message):
        estimator(**settings).fit(walk()[0])


def test_an_encoder_of_ones_own_has_the_term():
    class Own(nn.Module):
        offset = (0, 1)

        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 2)

        def forward(self, windows):
            return self.layer(windows[..., 0])

    signal, _ = walk()
    model = ContrastiveEmbedding(
        Own(),
        output_dimension=2,
        distance="euclidean",
        max_iterations=4,
        jacobian_weight=1.0,
        jacobian_ramp=(0, 0),
        random_state=0,
    ).fit(signal)
    weight = model.encoders_[0].layer.weight.detach()
    assert model.jacobian_history_[-1] == pytest.approx(float(weight.square().sum()), rel=0.5)


class Scaled(nn.Module):
    """A linear encoder whose points are so many times larger."""

    offset = (0, 1)

    def __init__(self, scale):
        super().__init__()
        self.scale = scale
        self.layer = nn.Linear(8, 2)
        with torch.no_grad():
            self.layer.weight.copy_(torch.linspace(-1, 1, 16).reshape(2, 8))
            self.layer.bias.zero_()

    def forward(self, windows):
        return self.scale * self.layer(windows[..., 0])


@pytest.mark.parametrize("mode", ["constant", "auto"])
def test_the_weight_means_the_same_at_every_temperature(mode):
    """Half as large an embedding at a quarter of the temperature has the same similarities; the term must follow."""
    signal, _ = walk()
    common = {"output_dimension": 2, "distance": "euclidean", "positive_in_denominator": True, "batch_size": 64}
    common |= {"jacobian_weight": 0.5, "jacobian_ramp": (0, 0), "max_iterations": 20, "learning_rate": 0.01}
    common |= {"temperature_mode": mode, "random_state": 0}
    layers = [
        ContrastiveEmbedding(Scaled(scale), temperature=scale**2, **common).fit(signal).encoders_[0].layer
        for scale in (1.0, 0.5)
    ]
    torch.testing.assert_close(layers[0].weight, layers[1].weight, rtol=1e-3, atol=1e-4)
    assert (layers[0].weight - Scaled(1.0).layer.weight).abs().max() > 0.05  # it has learnt


def test_a_learnt_temperature_follows_the_term():
    """Where nothing but the temperature can learn, a term that is divided by it must raise it."""
    signal, _ = walk()
    common = {"output_dimension": 2, "distance": "euclidean", "positive_in_denominator": True, "batch_size": 64}
    common |= {"jacobian_ramp": (0, 0), "max_iterations": 20, "learning_rate": 0.01, "temperature_mode": "auto"}
    learnt = [
        ContrastiveEmbedding(Scaled(1.0).requires_grad_(False), jacobian_weight=weight, random_state=0, **common)
        .fit(signal)
        .temperature_history_[-1]
        for weight in (1e-9, 10.0)
    ]
    assert learnt[1] > learnt[0] + 0.05


def test_a_kept_fit_is_told_from_one_with_another_meaning_of_the_term(monkeypatch):
    for settings, changes in (
        ({"jacobian_weight": 0.1, "temperature": 0.2}, True),
        ({"jacobian_weight": 0.1, "temperature": 1.0, "temperature_mode": "auto"}, True),
        ({"jacobian_weight": 0.1, "temperature": 1.0}, False),  # where it always meant the same
        ({"jacobian_weight": 0.0, "temperature": 0.2}, False),
    ):
        now = known_settings(settings)
        with monkeypatch.context() as other:
            other.setattr("haptera.contrastive.model_file.MEANING", "another")
            assert (known_settings(settings) != now) is changes


def test_of_cosines_the_term_is_that_of_points_of_unit_length():
    """Where only directions count, an encoder cannot escape the term by growing smaller."""
    signal, _ = walk()
    windows = torch.as_tensor(signal[:5, :, None], dtype=torch.float32)
    encoder = Scaled(0.1)
    found = squared_norms(encoder, windows, exact=True, on_sphere=True)
    for window, value in zip(windows, found, strict=True):
        jacobian = torch.autograd.functional.jacobian(
            lambda inputs: nn.functional.normalize(encoder(inputs[None])[0], dim=0), window
        )
        assert value.item() == pytest.approx(jacobian.square().sum().item(), rel=1e-4)
    common = {"output_dimension": 2, "distance": "cosine", "batch_size": 64, "max_iterations": 1, "random_state": 0}
    common |= {"jacobian_weight": 1.0, "jacobian_ramp": (0, 0)}
    sizes = [ContrastiveEmbedding(Scaled(scale), **common).fit(signal).jacobian_history_[0] for scale in (1.0, 0.1)]
    assert sizes[0] == pytest.approx(sizes[1], rel=1e-4)
