"""Compiled products give torch's convolution and its gradients, over one sequence and over windows, for any length."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from haptera.contrastive import convolution, gelu
from haptera.contrastive.convolution import convolve, gradient_of_matrix, gradient_of_sequence

tiles = pytest.importorskip("haptera.contrastive.tiles", reason="needs numba")


def draw(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


def by_torch(sequence, weight, gradient):
    """The convolution of `(batch, time, channels)`, and both gradients, in double precision."""
    sequence, weight = sequence.clone().requires_grad_(), weight.clone().requires_grad_()
    found = F.conv1d(sequence.transpose(1, 2), weight).transpose(1, 2)
    return [found.detach(), *torch.autograd.grad(found, (weight, sequence), gradient)]


@pytest.fixture
def everywhere(monkeypatch):
    """Compiled products whatever the processor, its threads and the size."""
    monkeypatch.setattr(gelu, "LEAST", 1)
    monkeypatch.setattr(gelu, "THREADS", 10_000)
    monkeypatch.setattr(convolution, "_tiles", lambda: tiles)


@pytest.mark.parametrize("kernel", [1, 2, 3])
@pytest.mark.parametrize("time", [3, 4, 11, 12, 300])  # 300 places are more than one chunk of a gradient
@pytest.mark.parametrize("batch", [None, 1, 2, 9, 131])
def test_convolution_and_gradients_are_torchs(everywhere, kernel, time, batch):
    del everywhere
    sequence, weight = draw(batch or 1, time, 32), draw(64, 32, kernel, seed=1)
    gradient = draw(batch or 1, time - kernel + 1, 64, seed=2)
    exact = by_torch(sequence, weight, gradient)
    single, slope = (one.float() if batch else one.float()[0] for one in (sequence, gradient))
    matrix = weight.transpose(1, 2).flatten(1).float()
    found = [
        convolve(single, matrix, torch.full_like(slope, torch.nan)),
        gradient_of_matrix(slope, single).reshape(64, kernel, 32).transpose(1, 2),
        gradient_of_sequence(slope, matrix, torch.full_like(single, torch.nan)),
    ]
    for own, true in zip(found, exact, strict=True):
        torch.testing.assert_close(own.double().view_as(true), true, rtol=1e-5, atol=1e-5 * true.abs().max().item())


def test_rows_that_are_no_multiple_of_a_tile_and_odd_channels_are_all_made(everywhere):
    del everywhere
    sequence, weight = draw(1, 53, 5), draw(32, 5, 2, seed=1)
    gradient = draw(1, 52, 32, seed=2)
    made, of_weight, _ = by_torch(sequence, weight, gradient)
    matrix = weight.transpose(1, 2).flatten(1).float()
    own = convolve(sequence.float(), matrix, torch.full((1, 52, 32), torch.nan))
    torch.testing.assert_close(own.double(), made, rtol=1e-5, atol=1e-5)
    own = gradient_of_matrix(gradient.float(), sequence.float()).reshape(32, 2, 5).transpose(1, 2)
    torch.testing.assert_close(own.double(), of_weight, rtol=1e-5, atol=1e-4)


def test_nothing_beside_the_result_is_written():
    generator = np.random.default_rng(0)
    room = np.full((3, 21, 32), 7, np.float32)
    sequence, columns = generator.random((1, 21, 4), np.float32), generator.random((8, 32), np.float32)
    tiles.convolve(sequence, columns, room[1:2, :20])
    assert (room[[0, 2]] == 7).all()
    assert (room[1, 20] == 7).all()
    assert (room[1, :20] != 7).all()


@pytest.mark.parametrize("outputs", [8, 31, 48])
def test_widths_that_are_no_multiple_of_a_tile_go_through_the_library(everywhere, outputs):
    del everywhere
    sequence, weight = draw(1, 40, 6), draw(outputs, 6, 3, seed=1)
    exact = by_torch(sequence, weight, draw(1, 38, outputs, seed=2))[0]
    matrix = weight.transpose(1, 2).flatten(1).float()
    own = convolve(sequence.float(), matrix, torch.empty(1, 38, outputs))
    torch.testing.assert_close(own.double(), exact, rtol=1e-5, atol=1e-5)


def test_tiles_that_do_not_compile_are_told_and_left_to_the_library(monkeypatch, caplog):
    def fail(*_):
        raise TypeError("a later numba")

    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    monkeypatch.setattr(tiles, "convolve", fail)
    with caplog.at_level("INFO", logger="haptera"):
        assert convolution._tiles.__wrapped__() is None
    assert "do not compile: TypeError: a later numba" in caplog.text
