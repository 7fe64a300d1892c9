"""Windows and encoders: which samples a point depends on, and that it does not matter how points are computed."""

import numpy as np
import pytest
import torch
from torch import nn

from haptera.contrastive import signals
from haptera.contrastive.architectures import ARCHITECTURES, LAYERS, build_encoder
from haptera.contrastive.encoder import ConvolutionalEncoder, encode_sequence, encode_windows
from haptera.contrastive.signals import embed
from haptera.errors import HapteraError
from haptera.recordings.windows import Offset

OFFSETS = {
    "offset1-model": (0, 1),
    "offset5-model": (2, 3),
    "offset10-model": (5, 5),
    "offset15-model": (7, 8),
    "offset20-model": (10, 10),
    "offset36-model": (18, 18),
    "offset36-model-dropout": (18, 18),
    "offset36-model-more-dropout": (18, 18),
    "offset40-model": (20, 20),
    "offset50-model": (25, 25),
    "offset1-model-v2": (0, 1),
    "offset1-model-v3": (0, 1),
    "offset1-wide-model": (0, 1),
    "offset4-model-2x-subsample": (2, 2),
    "offset20-model-4x-subsample": (10, 10),
    "offset40-model-4x-subsample": (20, 20),
}
CPU = torch.device("cpu")
QUICK = [name for name in ARCHITECTURES if not any(f"-{layers}layers" in name for layers in LAYERS if layers != 3)]


def encoder_of(name, channels=4, hidden=6, dimensions=3):
    torch.manual_seed(0)
    return build_encoder(name, channels, hidden, dimensions).double().eval()


@pytest.mark.parametrize("name", OFFSETS)
def test_every_point_sees_exactly_the_samples_of_its_window(name):
    encoder, (left, right) = encoder_of(f"{name}-mse"), OFFSETS[name]
    assert encoder.offset == Offset(left, right)
    signal = torch.randn(4, 90, dtype=torch.float64, requires_grad=True)
    index = 45
    encode_sequence(encoder, signal)[index - left].sum().backward()
    seen = torch.nonzero(signal.grad.abs().sum(0)).flatten()
    assert seen.tolist() == list(range(index - left, index + right))


@pytest.mark.parametrize("name", QUICK)
def test_sequence_windows_and_long_sequences_give_the_same_points(name):
    encoder = encoder_of(name)
    signal = np.random.default_rng(0).normal(size=(400, 4))
    sequence = torch.tensor(signal.T)
    points = encode_sequence(encoder, sequence)
    assert points.shape == (400 - len(encoder.offset) + 1, 3)
    indices = np.arange(encoder.offset.left, 400 - encoder.offset.right + 1)
    windows = torch.tensor(encoder.offset.windows(signal, indices)).transpose(1, 2)
    torch.testing.assert_close(points, encode_windows(encoder, windows))
    short = encode_sequence(encoder, sequence[:, 100 : 100 + len(encoder.offset) + 2])
    torch.testing.assert_close(points[100:103], short)


def test_normalised_unless_for_euclidean_distances():
    windows = torch.randn(5, 4, 10, dtype=torch.float64)
    lengths = encode_windows(encoder_of("offset10-model"), windows).norm(dim=1)
    torch.testing.assert_close(lengths, torch.ones(5, dtype=torch.float64))
    assert encode_windows(encoder_of("offset10-model-mse"), windows).norm(dim=1).std() > 1e-3


def test_offset10_is_the_published_network_written_with_loops():
    encoder = encoder_of("offset10-model")
    window = np.random.default_rng(1).normal(size=(4, 10))

    def convolve(signal, layer, kernel):
        weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
        places = signal.shape[1] - kernel + 1
        return np.stack([np.einsum("oik,ik->o", weight, signal[:, t : t + kernel]) + bias for t in range(places)], 1)

    def gelu(values):
        return nn.functional.gelu(torch.tensor(values)).numpy()

    hidden = gelu(convolve(window, encoder.stem, 2))
    for block in encoder.blocks:
        hidden = hidden[:, 1:-1] + gelu(convolve(hidden, block, 3))
    out = convolve(hidden, encoder.last, 3)[:, 0]
    found = encode_windows(encoder, torch.tensor(window)[None])[0].detach().numpy()
    np.testing.assert_allclose(found, out / np.linalg.norm(out))


def test_offset1_has_four_layers_and_the_third_is_half_as_wide():
    shapes = [tuple(weight.shape) for weight in encoder_of("offset1-model", hidden=8).parameters() if weight.ndim == 2]
    assert shapes == [(8, 4), (8, 8), (4, 8), (3, 4)]


def test_windows_at_the_ends_are_moved_inwards():
    signal = np.arange(20.0)[:, None]
    windows = Offset(5, 5).windows(signal, np.array([0, 5, 10, 15, 19]))
    assert windows[:, :, 0].astype(int).tolist() == [
        list(range(10)),
        list(range(10)),
        list(range(5, 15)),
        list(range(10, 20)),
        list(range(10, 20)),
    ]


@pytest.mark.parametrize("name", ["offset1-model", "offset10-model", "offset5-model", "offset40-model-4x-subsample"])
def test_batched_embedding_equals_the_whole_one_and_is_as_long_as_the_signal(name, monkeypatch):
    encoder = encoder_of(name).float()
    signal = np.random.default_rng(0).normal(size=(203, 4)).astype(np.float32)
    whole = embed(encoder, signal, encoder.offset, CPU)
    assert whole.shape == (203, 3)
    padded = torch.tensor(encoder.offset.pad(signal))
    with torch.no_grad():
        slow = torch.cat([encode_windows(encoder, padded[t : t + len(encoder.offset)].T[None]) for t in range(203)])
    np.testing.assert_allclose(whole, slow, atol=1e-5)
    for pieces in (7, 50, 202):
        monkeypatch.setattr(signals, "AT_ONCE", pieces)
        np.testing.assert_allclose(embed(encoder, signal, encoder.offset, CPU), whole, atol=1e-5)
    without = embed(encoder, signal, encoder.offset, CPU, pad=False)
    left, right = encoder.offset.left, encoder.offset.right
    np.testing.assert_allclose(without, whole[left : 203 - right + 1], atol=1e-5)


@pytest.mark.parametrize("count", [2, 14, 30, 200])  # so few that the last layers run for them alone, to all and more
@pytest.mark.parametrize("name", ["offset5-model", "offset10-model", "offset40-model-4x-subsample"])
def test_some_rows_of_a_sequence_are_those_of_all_with_their_gradients(name, count):
    encoder = encoder_of(name)
    sequence = torch.tensor(np.random.default_rng(0).normal(size=(4, 150)))
    rows = torch.tensor(np.random.default_rng(1).integers(150 - len(encoder.offset) + 1, size=count))
    weights = list(encoder.parameters())
    some = encode_sequence(encoder, sequence, rows)
    windows = torch.stack([sequence[:, row : row + len(encoder.offset)] for row in rows.tolist()])
    each = encode_windows(encoder, windows)
    torch.testing.assert_close(some, each)
    for first, second in zip(
        torch.autograd.grad(some.pow(3).sum(), weights), torch.autograd.grad(each.pow(3).sum(), weights), strict=True
    ):
        torch.testing.assert_close(first, second)


def test_signal_shorter_than_the_window_is_padded():
    encoder = encoder_of("offset10-model").float()
    assert embed(encoder, np.ones((3, 4), np.float32), encoder.offset, CPU).shape == (3, 3)


def test_unknown_architecture_names_the_nearest():
    with pytest.raises(HapteraError, match="did you mean 'offset10-model'"):
        build_encoder("offset10model", 3, 8, 2)


class EverySecond(torch.nn.Module):
    """Somebody's encoder of whole sequences that leaves out half of the points."""

    convolutional, offset = True, Offset(1, 1)

    def forward(self, signal):
        return signal[..., :-1:2]


def test_an_encoder_without_a_point_for_every_window_is_refused():
    with pytest.raises(HapteraError, match="gives 10 points for 20 windows"):
        embed(EverySecond(), np.ones((20, 3), np.float32), EverySecond.offset, CPU)


def test_a_signal_shorter_than_a_window_is_refused():
    encoder = ConvolutionalEncoder(4, 8, 3)
    with pytest.raises(HapteraError, match="3 samples are fewer than a window, which has 10"):
        embed(encoder, np.ones((3, 4), np.float32), encoder.offset, CPU, pad=False)
