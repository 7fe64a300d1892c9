"""Baselines embed every sample and know the training part only."""

import numpy as np
import pytest
import torch

from haptera.analyses.embedding.baselines import available_baselines, baseline


@pytest.mark.long
@pytest.mark.parametrize("name", ["pca", "factors", "vae", "tsne"])
def test_baselines_embed_every_sample(name):
    signal = np.random.default_rng(0).normal(size=(120, 6))
    embedding = baseline(name, signal[:80], signal, 2)
    assert embedding.shape == (120, 2)
    assert np.isfinite(embedding).all()
    assert np.array_equal(embedding, baseline(name, signal[:80], signal, 2))


def test_pca_knows_the_training_part_only():
    generator = np.random.default_rng(0)
    signal = generator.normal(size=(100, 4))
    changed = signal.copy()
    changed[60:] *= 50
    assert np.array_equal(baseline("pca", signal[:60], signal, 2)[:60], baseline("pca", changed[:60], changed, 2)[:60])
    assert "pca" in available_baselines()


@pytest.mark.slow
def test_umap_embeds_every_sample_and_leaves_the_threads_of_torch_as_they_are():
    pytest.importorskip("umap", reason="umap-learn is not installed")
    signal = np.random.default_rng(0).normal(size=(200, 6))
    before = torch.get_num_threads()
    torch.set_num_threads(before + 1)
    try:
        assert baseline("umap", signal, signal, 2).shape == (200, 2)
        assert torch.get_num_threads() == before + 1
    finally:
        torch.set_num_threads(before)
