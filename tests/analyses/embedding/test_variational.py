"""The bound of the autoencoder is that of its formula, it rises, and its latent holds what the counts hold."""

import numpy as np
import pytest
import torch

from haptera.analyses.embedding.consistency import linear_r2
from haptera.analyses.embedding.variational import divergence, fit_variational, log_likelihood


def test_terms_of_the_bound_are_those_of_torch_distributions():
    torch.manual_seed(0)
    means, logs, outputs, deviation = torch.randn(5, 2), torch.randn(5, 2), torch.randn(5, 3), torch.randn(3)
    truth = torch.randint(0, 5, (5, 3)).float()
    posterior = torch.distributions.Normal(means, (logs / 2).exp())
    slow = torch.distributions.kl_divergence(posterior, torch.distributions.Normal(0.0, 1.0)).sum(1)
    assert torch.allclose(divergence(means, logs), slow, atol=1e-5)
    counts = torch.distributions.Poisson(torch.nn.functional.softplus(outputs) + 1e-6)
    assert torch.allclose(log_likelihood(truth, outputs, None), counts.log_prob(truth).sum(1), atol=1e-4)
    normal = torch.distributions.Normal(outputs, deviation.exp())
    assert torch.allclose(log_likelihood(truth, outputs, deviation), normal.log_prob(truth).sum(1), atol=1e-3)


@pytest.mark.long
def test_the_latent_of_counts_is_found_and_repeats_with_its_seed():
    generator = np.random.default_rng(0)
    latent = generator.normal(size=(600, 2))
    counts = generator.poisson(np.log1p(np.exp(latent @ generator.normal(size=(2, 20)) * 2 + 2)))
    before = torch.get_rng_state()
    found = fit_variational(counts[:400], 2, steps=150)
    assert found.bounds[-20:].mean() > found.bounds[:20].mean() + 2
    assert linear_r2(found.transform(counts[400:]), latent[400:]) > 0.8
    again = fit_variational(counts[:400], 2, steps=150)
    assert np.allclose(found.transform(counts), again.transform(counts))
    assert torch.equal(before, torch.get_rng_state())
