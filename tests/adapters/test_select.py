"""Which parameters adapt: by kind of layer, by name, and everything but."""

import pytest
import torch
from torch import nn

from haptera.adapters import SAR, SLR, Select, Tent
from haptera.errors import HapteraError, NotApplicable


def net():
    return nn.Sequential(
        nn.Conv1d(2, 4, 3, padding=1),
        nn.BatchNorm1d(4),
        nn.GroupNorm(2, 4),
        nn.InstanceNorm1d(4, affine=True),
        nn.Flatten(),
        nn.Linear(20, 6),
        nn.LayerNorm(6),
        nn.Linear(6, 3),
    )


NORM = {"1.weight", "1.bias", "2.weight", "2.bias", "3.weight", "3.bias", "6.weight", "6.bias"}
LAST = {"7.weight", "7.bias"}
REST = {"0.weight", "0.bias", "5.weight", "5.bias"}


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("norm", NORM),
        ("last", LAST),
        ("all", NORM | LAST | REST),
        ("5.*", {"5.weight", "5.bias"}),
        ("*.bias", {f"{i}.bias" for i in (0, 1, 2, 3, 5, 6, 7)}),
        ("!last", NORM | REST),
        ("!norm", LAST | REST),
        ("norm+last", NORM | LAST),
    ],
)
def test_words_and_patterns_choose(what, names):
    assert set(Select(what)(net())) == names


def with_names(*names, norm=nn.LayerNorm):
    """A module with a normalisation layer at each of these names, in this order, and a last linear layer."""
    model = nn.Module()
    for name in names:
        place = model
        for part in name.split(".")[:-1]:
            if part not in dict(place.named_children()):
                place.add_module(part, nn.Module())
            place = place.get_submodule(part)
        place.add_module(name.split(".")[-1], norm(2))
    model.head = nn.Linear(2, 2)
    return model


def layers(model, what):
    return list(dict.fromkeys(name.rpartition(".")[0] for name in Select(what)(model)))


VIT = [f"blocks.{i}.norm{j}" for i in range(12) for j in (1, 2)]


@pytest.mark.parametrize(
    ("names", "kept", "norm"),
    [
        (["bn1", "layer1.0.bn1", "layer3.5.bn2", "layer4.0.bn1", "layer4.2.bn3"], 3, nn.BatchNorm2d),
        (["net.bn1", "net.layer1.0.bn1", "net.layer4.0.bn1"], 2, nn.BatchNorm2d),
        ([*VIT, "norm"], 18, nn.LayerNorm),
        (["norm_pre", *VIT, "norm", "fc_norm"], 19, nn.LayerNorm),
        ([f"encoder.layers.encoder_layer_{i}.ln_1" for i in range(12)] + ["encoder.ln"], 9, nn.LayerNorm),
        ([f"vit.encoder.layer.{i}.layernorm_before" for i in range(12)] + ["vit.layernorm"], 9, nn.LayerNorm),
        ([f"encoder.layers.{i}.norm1" for i in range(4)], 3, nn.RMSNorm),
        ([f"encoder.layers.{i}.norm1" for i in range(3)] + ["norm"], 4, nn.LayerNorm),  # too few for a last quarter
        ([f"block{i}.layer.{j}.bn1" for i in (1, 2, 3) for j in range(4)] + ["bn1"], 13, nn.BatchNorm2d),
        ([str(i) for i in range(8)], 8, nn.LayerNorm),
        (
            [f"text.blocks.{i}.norm" for i in range(4)] + [f"image.blocks.{i}.norm" for i in range(12)] + ["norm"],
            13,
            nn.LayerNorm,
        ),
    ],
    ids=["resnet", "wrapped", "timm", "timm more", "torchvision", "transformers", "few", "fewer", "wrn", "flat", "two"],
)
def test_early_layers_are_all_but_the_last_stage(names, kept, norm):
    model = with_names(*names, norm=norm)
    assert layers(model, "norm") == names
    assert layers(model, "early") == names[:kept]


def test_slr_and_sar_leave_the_last_stage_alone_unless_told_otherwise():
    model = with_names("layer1.0.bn1", "layer4.0.bn1", norm=nn.BatchNorm1d)
    for method in (SLR, SAR):
        assert set(method(model).adapted) == {"layer1.0.bn1.weight", "layer1.0.bn1.bias"}
        assert len(method(model, parameters="norm").adapted) == 4


def test_a_norm_of_every_dimension_is_found():
    for layer in (nn.BatchNorm2d(3), nn.BatchNorm3d(3), nn.InstanceNorm3d(3, affine=True), nn.RMSNorm(3)):
        assert set(Select("norm")(nn.Sequential(layer))) == {f"0.{name}" for name, _ in layer.named_parameters()}


@pytest.mark.parametrize("what", ["", "!", "norm+", 3])
def test_what_is_no_choice_is_refused(what):
    with pytest.raises(HapteraError, match="parameters is"):
        Select(what)


def test_a_pattern_that_fits_nothing_names_a_parameter():
    with pytest.raises(HapteraError, match=r"layer9.*chooses none of the 14 parameters.*'0.weight'"):
        Select("layer9.*")(net())


def test_a_model_without_norms_does_not_apply_and_says_what_to_do():
    with pytest.raises(NotApplicable, match="parameters='last' or 'all'"):
        Tent(nn.Sequential(nn.Linear(4, 2)))


def test_only_what_was_chosen_moves_and_the_log_says_what():
    model = net().eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    adapter = Tent(model, lr=0.1, parameters="norm+last")
    adapter(torch.randn(8, 2, 5, generator=torch.Generator().manual_seed(0)))
    moved = {name for name, value in adapter.model.named_parameters() if not torch.equal(value, before[name])}
    assert {"3.weight", "6.weight", "7.weight"} <= moved <= NORM | LAST  # InstanceNorm undoes earlier scales
    assert adapter.choice().startswith("Tent adapts 57 of 211 parameters, in 10 tensors: 1.weight, 1.bias, ..., 7.bias")
