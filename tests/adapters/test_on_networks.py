"""Adapters x networks: every combination is right, or refused in one sentence."""

import copy
from functools import partial

import pytest
import torch

from adapter_cases import ADAPTERS
from haptera.adapters import LAME, MEMO, RPL, BatchNorm, CoTTA, NoAdaptation, Tent
from haptera.adapters.passes import run
from haptera.catalog import entries
from haptera.errors import HapteraError
from haptera.modules import copy_modules, unwrap
from haptera.testing.adapters import works_or_says_why
from haptera.testing.networks import as_it_is, awkward_networks, images, networks_without_logits, plain

NETWORKS = awkward_networks() | networks_without_logits()
OTHERS = {
    "batchnorm, running": ADAPTERS["batchnorm, running"][0],
    "batchnorm, prior chosen by itself": ADAPTERS["batchnorm, prior chosen by itself"][0],
    "tent, small steps": Tent,
    "tent, every parameter, adam": partial(Tent, lr=0.01, parameters="all", optimiser="adam"),
    "tent, predictions after": ADAPTERS["tent, predictions after"][0],
    "rpl, of the source": partial(RPL, lr=0.1, teacher="never"),
    "lame, rbf": ADAPTERS["lame, rbf"][0],
}
MAKERS = {name: ADAPTERS[name][0] for name in entries("adapters") if name in ADAPTERS} | OTHERS
QUICK_ADAPTERS = ("tent", "cotta", "lame")
QUICK_NETWORKS = ("counter in a buffer", "half precision", "scripted")
CASES = [
    pytest.param(
        make,
        build,
        id=f"{adapter}, {network}",
        marks=[] if adapter in QUICK_ADAPTERS or network in QUICK_NETWORKS else [pytest.mark.slow],
    )
    for adapter, make in MAKERS.items()
    for network, build in NETWORKS.items()
]


@pytest.mark.long
@pytest.mark.parametrize(("make", "build"), CASES)
def test_it_works_or_says_why(make, build):
    works_or_says_why(make, *build())


REFUSED = ("bytes where floats belong", "half precision, single inputs", "not initialised yet")


@pytest.mark.parametrize("network", [name for name in NETWORKS if name not in REFUSED])
def test_the_unadapted_model_is_the_model_in_evaluation_mode(network):
    model, batches = NETWORKS[network]()
    with as_it_is():
        expected = copy_modules(unwrap(model)).eval()
    adapter = NoAdaptation(model)
    for inputs in batches:
        ours = adapter(inputs)
        with torch.no_grad():
            theirs = run(expected, inputs.detach())
        for one, two in zip(ours, theirs, strict=True):
            assert torch.allclose(one, two, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "network", "why"),
    [
        (NoAdaptation, "bytes where floats belong", "uint8.*divided by 255"),
        (Tent, "half precision, single inputs", "float32.*weights are float16"),
        (MEMO, "takes bytes", "views need images .* of floats"),
        (Tent, "returns a tuple", "Tent needs logits, and the model returned a tuple"),
        (Tent, "returns one number", "at least two classes"),
        (LAME, "returns a map of classes", r"\(batch, 4, 7, 7\)"),
        (CoTTA, "quantised", "no gradient reaches"),
        (BatchNorm, "not initialised yet", "has no shape yet"),
    ],
)
def test_refusals_name_the_cause(make, network, why):
    model, batches = NETWORKS[network]()
    with pytest.raises(HapteraError, match=why):
        make(model)(batches[0])


@pytest.mark.parametrize("network", ["scripted", "quantised", "half precision", "counter in a buffer"])
def test_states_of_awkward_networks_are_saved(network, tmp_path):
    model, batches = NETWORKS[network]()
    make = LAME if network == "quantised" else partial(CoTTA, augmentations=1, lr=0.1)
    adapter, other = make(model), make(model)
    adapter(batches[0])
    adapter.save_state(tmp_path / "state")
    other.load_state(tmp_path / "state")
    assert torch.equal(adapter(batches[1]), other(batches[1]))


def test_a_learner_around_torchscript_is_not_copied_but_its_state_is():
    adapter = Tent(NETWORKS["traced"]()[0], lr=0.1, parameters="all")
    with pytest.raises(HapteraError, match="load the state of this one"):
        copy.deepcopy(adapter)
    assert torch.allclose(adapter.release()(images()[0]), adapter.predict(images()[0]))


def test_a_model_without_values_is_refused():
    with pytest.raises(HapteraError, match="meta"):
        Tent(plain().to("meta"))


def test_a_model_that_hides_its_gradients_is_refused():
    class Hidden(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = plain()

        @torch.no_grad()
        def forward(self, inputs):
            return self.inner(inputs)

    with pytest.raises(HapteraError, match="no gradient reaches"):
        Tent(Hidden())(images()[0])
    assert torch.isfinite(BatchNorm(Hidden())(images()[0])).all()


@pytest.mark.long
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_small_steps_are_not_lost_in_half_precision(dtype):
    single, half = Tent(plain(), lr=1e-4, momentum=0.0), Tent(plain().to(dtype), lr=1e-4, momentum=0.0)
    for inputs in images(8):
        single(inputs)
        half(inputs.to(dtype))
    assert half.record["change"] == pytest.approx(single.record["change"], rel=0.2)


def test_an_adapter_may_be_turned_to_half_precision():
    adapter = Tent(plain(), lr=1e-3, optimiser="adam")
    batches = images(4)
    adapter(batches[0])
    adapter.half()
    for inputs in batches[1:]:
        assert torch.isfinite(adapter(inputs.half())).all()
    assert adapter.record["change"] > 1e-3
    adapter.float().reset()
    assert torch.allclose(adapter(batches[0]), Tent(plain())(batches[0]), atol=1e-2)


def test_a_state_in_half_precision_goes_on_to_the_same_numbers(tmp_path):
    batches = [batch.half() for batch in images(4)]
    for make in (partial(Tent, lr=1e-4), partial(CoTTA, lr=1e-4, augmentations=0, restore=0.1)):
        adapter, other = make(plain().half()), make(plain().half())
        for inputs in batches[:2]:
            adapter(inputs)
        adapter.save_state(tmp_path / "state")
        other.load_state(tmp_path / "state")
        for inputs in batches[2:]:
            assert torch.equal(adapter(inputs), other(inputs))
            assert adapter.record == other.record
