"""Published architectures by name, and one network for the units of several sessions."""

import numpy as np
import pytest
import torch

from haptera.contrastive import ContrastiveEmbedding
from haptera.contrastive.architectures import build_encoder, keeps_length, unify
from haptera.contrastive.encoder import encode_sequence, encode_windows
from haptera.errors import HapteraError

T = np.arange(150)
FIRST = np.stack([np.sin(T / 7), np.cos(T / 5), np.sin(T / 11)], 1)
SECOND = np.stack([np.cos(T / 7), np.sin(T / 3)], 1)
LABEL = np.sin(T / 7)


def count(encoder):
    return sum(one.numel() for one in encoder.parameters())


def shapes(name, hidden=6, dimensions=4):
    return [tuple(one.shape) for one in build_encoder(name, 5, hidden, dimensions).parameters() if one.ndim > 1]


def test_a_wide_model_goes_by_the_dimensions_and_not_by_the_hidden_units():
    assert shapes("offset1-wide-model-mse") == [(120, 5), (120, 120), (40, 120), (4, 40)]


def test_layers_of_deep_models_are_not_tied():
    assert shapes("offset1-model-mse-v2-3layers") == [(6, 5), (6, 6), (6, 6), (6, 6), (3, 6), (4, 3)]
    assert shapes("offset1-model-mse-resnet-2layers") == [(6, 5), (6, 6), (6, 6), (3, 6), (4, 3)]
    encoder = build_encoder("offset1-model-mse-resnet-2layers", 5, 6, 4)
    assert len({id(block) for block in encoder.blocks}) == 3


@pytest.mark.parametrize(("name", "join"), [("offset1-model-v4", "around"), ("offset1-model-v5", "inside")])
def test_shortcuts_join_where_they_should(name, join):
    encoder = build_encoder(name, 5, 6, 4).double()
    sample = torch.randn(1, 5, 1, dtype=torch.float64)
    hidden = torch.nn.functional.gelu(encoder.stem.weight @ sample[0, :, 0] + encoder.stem.bias)
    for block in encoder.blocks:
        found = block.weight @ hidden + block.bias
        gelu = torch.nn.functional.gelu
        hidden = hidden + gelu(found) if join == "around" else gelu(hidden + found)
    expected = encoder.last.weight @ hidden + encoder.last.bias
    torch.testing.assert_close(encode_windows(encoder, sample)[0], expected / expected.norm())


def test_a_shortcut_that_does_not_fit_is_cut_or_filled_with_zeros():
    encoder = build_encoder("offset1-model-mse-resnet-1layers", 5, 8, 4).double()
    for one in encoder.parameters():
        torch.nn.init.zeros_(one)
    torch.nn.init.ones_(encoder.last.weight)
    sample = torch.randn(1, 5, 1, dtype=torch.float64)
    gelu = torch.nn.functional.gelu
    expected = gelu(gelu(gelu(sample[0, :4, 0]))).sum()  # 5 channels fill 8 units, of which 4 are left
    torch.testing.assert_close(encode_windows(encoder, sample)[0], expected.expand(4))


def test_tanh_bounds_every_coordinate():
    windows = 1e3 * torch.randn(8, 5, 10)
    points = encode_windows(build_encoder("offset10-model-mse-tanh", 5, 6, 4), windows)
    assert points.abs().max() <= 1
    assert keeps_length("offset10-model-mse-tanh")
    with pytest.raises(HapteraError, match="offset10-model-tanh"):
        build_encoder("offset10-model-tanh", 5, 6, 4)


@pytest.mark.parametrize("name", ["offset36-model-dropout", "offset36-model-more-dropout"])
def test_dropout_leaves_out_other_channels_in_every_window_and_none_once_trained(name):
    encoder, plain = build_encoder(name, 5, 6, 4), build_encoder("offset36-model", 5, 6, 4)
    plain.load_state_dict(encoder.state_dict())
    windows = torch.randn(1, 5, 36).expand(30, -1, -1)
    torch.manual_seed(0)
    assert encode_windows(encoder.train(), windows).std(0).max() > 1e-3
    assert not encoder.convolutional
    torch.testing.assert_close(encode_windows(encoder.eval(), windows), encode_windows(plain, windows))
    assert encoder.convolutional


@pytest.mark.parametrize("name", ["offset1-model", "offset10-model-mse"])
def test_a_unified_network_is_one_network_that_sees_units_of_other_sessions_at_zero(name):
    encoders = [build_encoder(f"{name}-unified", channels, 6, 4).double() for channels in (3, 2)]
    unify(encoders, name)
    joint = build_encoder(name, 5, 6, 4).double()
    state = encoders[0].state_dict()
    state["stem.weight"] = torch.cat([one.stem.weight for one in encoders], 1).detach()
    joint.load_state_dict(state)
    signals = [torch.tensor(FIRST.T), torch.tensor(SECOND.T)]
    shown = [torch.cat([signals[0], torch.zeros(2, 150)]), torch.cat([torch.zeros(3, 150), signals[1]])]
    for encoder, signal, padded in zip(encoders, signals, shown, strict=True):
        torch.testing.assert_close(encode_sequence(encoder, signal), encode_sequence(joint, padded.double()))
    assert count(torch.nn.ModuleList(encoders)) == count(joint)


def test_a_unified_fit_shares_its_layers_and_is_saved_and_adapted(tmp_path):
    settings = {"num_hidden_units": 4, "output_dimension": 3, "max_iterations": 4, "batch_size": 16, "random_state": 0}
    model = ContrastiveEmbedding("offset5-model-unified", **settings).fit([FIRST, SECOND], [LABEL, LABEL])
    one, two = model.encoders_
    assert one.blocks is two.blocks
    assert one.stem.bias is two.stem.bias
    assert one.stem.weight is not two.stem.weight
    model.save(tmp_path / "model.safetensors")
    again = ContrastiveEmbedding.load(tmp_path / "model.safetensors")
    for number, signal in enumerate((FIRST, SECOND)):
        np.testing.assert_array_equal(again.transform(signal, number), model.transform(signal, number))
    assert again.encoders_[0].last is again.encoders_[1].last
    again.max_adapt_iterations = 2
    before = again.encoders_[0].last.weight.detach().clone()
    again.fit(SECOND, LABEL, adapt=True, session_id=0)
    torch.testing.assert_close(again.encoders_[0].last.weight, before)


@pytest.mark.parametrize("name", ["offset40-model-4x-subsample-unified", "offset1-model-mse-resnet-1layers-unified"])
def test_a_first_layer_that_zeros_would_change_is_not_unified(name):
    distance = "euclidean" if keeps_length(name) else "cosine"
    with pytest.raises(HapteraError, match="first layer is not a single linear one"):
        ContrastiveEmbedding(name, distance=distance).fit([FIRST, SECOND], [LABEL, LABEL])
