"""What people hand to adapters: empty batches, dictionaries, mixed precision, models run by several processes."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from haptera.adapters import DINO, LAME, MEMO, BatchNorm, CoTTA, NoAdaptation, RDumb, RoTTA, Tent, Watch
from haptera.errors import HapteraError, NotApplicable
from haptera.testing.adapters import example_models
from haptera.testing.networks import ModelOutput, Returns, images, plain

EVERY = [NoAdaptation, Watch, BatchNorm, Tent, MEMO, CoTTA, RoTTA, DINO, LAME, RDumb]


@pytest.mark.long
@pytest.mark.parametrize("make", EVERY)
def test_an_empty_batch_has_no_predictions_and_teaches_nothing(make):
    batches = images()
    adapter, other = make(plain()), make(plain())
    for one in (adapter, other):
        one(batches[0])
    assert adapter(batches[0][:0]).shape == (0, 10)
    assert torch.equal(adapter(batches[1]), other(batches[1]))


def test_an_empty_batch_that_the_model_does_not_take_is_a_sentence():
    class Viewing(nn.Module):
        def forward(self, inputs):
            return inputs.view(len(inputs), -1)

    with pytest.raises(HapteraError, match="the batch is empty"):
        NoAdaptation(Viewing())(torch.zeros(0, 3, 4))


@pytest.mark.parametrize(
    ("arguments", "keywords", "found"),
    [
        (({"pixel_values": torch.zeros(2, 1, 16, 16)},), {}, "found a dict"),
        (([torch.zeros(2, 1, 16, 16)],), {}, "found a list"),
        ((torch.zeros(2, 1, 16, 16),), {"attention_mask": None}, "attention_mask beside it"),
        ((torch.zeros(2, 1, 16, 16), torch.zeros(2)), {}, "Tensor beside it"),
        ((torch.tensor(1.0),), {}, "a single number"),
    ],
)
def test_inputs_other_than_one_tensor_are_refused_in_a_sentence(arguments, keywords, found):
    with pytest.raises(HapteraError, match=found):
        BatchNorm(plain())(*arguments, **keywords)


def test_an_unrelated_error_of_the_model_stays_what_it_is():
    with pytest.raises(RuntimeError, match="channels"):
        BatchNorm(plain())(torch.zeros(2, 3, 16, 16))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda logits: ModelOutput(logits=logits),
        lambda logits: {"logits": logits},
        lambda logits: SimpleNamespace(logits=logits),
    ],
)
def test_logits_are_found_in_what_models_return(wrap):
    inputs = images()[0]
    assert torch.equal(Tent(Returns(plain(), wrap), lr=0.1)(inputs), Tent(plain(), lr=0.1)(inputs))


@pytest.mark.parametrize("outputs", [(6,), (6, 1), (6, 3, 4, 4)])
def test_what_has_no_classes_is_not_learnt_from(outputs):
    class Fixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm2d(1)

        def forward(self, inputs):
            return self.norm(inputs).sum() + torch.zeros(outputs)

    with pytest.raises(NotApplicable, match="at least two classes"):
        Tent(Fixed())(images()[0])
    assert BatchNorm(Fixed())(images()[0]).shape == outputs


@pytest.mark.parametrize("norm", ["batch", "group", "layer"])
@pytest.mark.parametrize("make", [Tent, RoTTA, DINO, MEMO])
def test_mixed_precision_is_near_single_precision_on_the_cpu(make, norm):
    generator = torch.Generator().manual_seed(0)
    batches = [torch.rand(6, 1, 16, 16, generator=generator) for _ in range(2)]
    model = example_models()[norm]
    mixed, single = make(model, precision="bfloat16"), make(model)
    for inputs in batches:
        logits, expected = mixed(inputs), single(inputs)
        assert logits.dtype == torch.float32
        assert torch.allclose(logits, expected, atol=0.05 * float(expected.abs().max()))
    assert mixed.record["change"] == pytest.approx(single.record["change"], rel=0.5)


def test_statistics_in_mixed_precision_are_kept_in_single_precision():
    adapter = Tent(plain(), precision="bfloat16", prior=4)
    adapter(images()[0])
    assert all(buffer.dtype in (torch.float32, torch.int64) for buffer in adapter.buffers())


DISTRIBUTED = """
import os, sys
import torch
from torch import nn
from haptera.adapters import CoTTA, Tent
from haptera.testing.networks import images, plain

torch.distributed.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=0, world_size=1)
inputs = images()[0]
wrapped = nn.parallel.DistributedDataParallel(plain())
before = {name: value.clone() for name, value in wrapped.state_dict().items()}
assert torch.equal(Tent(wrapped, lr=0.1)(inputs), Tent(plain(), lr=0.1)(inputs))
assert torch.equal(CoTTA(wrapped, lr=0.1)(inputs), CoTTA(plain(), lr=0.1)(inputs))
assert all(torch.equal(value, before[name]) for name, value in wrapped.state_dict().items())
wrapped(inputs).sum().backward()  # it still trains
os._exit(0)  # gloo's threads sometimes wait for the lock that who joins them holds, when they are taken down in order
"""


@pytest.mark.long
@pytest.mark.skipif(not torch.distributed.is_gloo_available(), reason="torch was built without gloo")
def test_the_network_inside_distributed_data_parallel_is_adapted(tmp_path):
    command = [sys.executable, "-c", DISTRIBUTED, str(tmp_path / "store")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:torch.quantize_per_tensor", "ignore:TypedStorage")
@pytest.mark.filterwarnings("ignore:Please use quant_min")
def test_a_network_of_whole_numbers_is_not_learnt_from():
    net = nn.Sequential(
        torch.ao.quantization.QuantStub(), nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(784, 5),
        torch.ao.quantization.DeQuantStub(),
    ).eval()  # fmt: skip
    net.qconfig = torch.ao.quantization.get_default_qconfig("x86")
    torch.ao.quantization.prepare(net, inplace=True)
    net(images()[0])
    torch.ao.quantization.convert(net, inplace=True)
    inputs = images()[1]
    assert torch.equal(NoAdaptation(net)(inputs), net(inputs))
    for make in (MEMO, CoTTA, DINO):
        with pytest.raises(HapteraError, match=r"quantised|chooses none of"):
            make(net)(inputs)
