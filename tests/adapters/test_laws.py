"""Every adapter keeps every law, on every kind of model to which it applies."""

from functools import partial

import pytest

from haptera import catalog
from haptera.adapters import (
    CPL,
    DINO,
    EATA,
    ETA,
    LAME,
    MEMO,
    RPL,
    SAR,
    SLR,
    BatchNorm,
    Collapsed,
    CoTTA,
    NoAdaptation,
    Offline,
    PeriodicReset,
    PseudoLabels,
    RDumb,
    Reset,
    ResetWhen,
    RoTTA,
    Tent,
    Watch,
)
from haptera.testing.adapters import (
    ADAPTER_LAWS,
    check_adapter,
    example_batches,
    example_models,
    infinite_prior_is_the_model,
    memory_layout_does_not_matter,
)
from haptera.testing.batchnorm_networks import batchnorm_networks, convolutional_networks
from haptera.testing.law import run_laws

ANY = ("batch", "group", "layer", "none")
NORMED = ("batch", "group", "layer")
KEPT = {"margin": 1.1, "redundancy": 1.1}  # keeps every sample, so that the laws see it learn
ADAPTERS = {
    "none": (NoAdaptation, ANY),
    "watch": (Watch, ["batch"]),
    "batchnorm": (BatchNorm, ["batch"]),
    "batchnorm, statistics by size": (partial(BatchNorm, prior="sized"), ["batch"]),
    "batchnorm without prior": (partial(BatchNorm, prior=0), ["batch"]),
    "batchnorm with nothing but the prior": (partial(BatchNorm, prior=float("inf")), ["batch"]),
    "batchnorm, running": (partial(BatchNorm, statistics="running"), ["batch"]),
    "batchnorm, cumulative": (partial(BatchNorm, statistics="cumulative"), ["batch"]),
    "batchnorm, prior chosen by itself": (partial(BatchNorm, prior="auto"), ["batch"]),
    "batchnorm, window": (partial(BatchNorm, window=9), ["batch"]),
    "tent": (partial(Tent, lr=0.1), NORMED),
    "tent, every parameter": (partial(Tent, lr=0.01, parameters="all"), ANY),
    "tent, last layer, adam": (partial(Tent, lr=0.01, parameters="last", optimiser="adam"), ANY),
    "tent on statistics of the batch": (partial(Tent, lr=0.1, prior=0), ["batch"]),
    "tent with a prior": (partial(Tent, lr=0.1, prior=16.0), ["batch"]),
    "tent on training statistics": (partial(Tent, lr=0.1, prior=float("inf")), ["batch"]),
    "tent, predictions after": (partial(Tent, lr=0.1, predictions="after"), NORMED),
    "tent, three batches per update": (partial(Tent, lr=0.1, accumulate=3), ["batch", "layer"]),
    "tent, window": (partial(Tent, lr=0.1, window=9), ["batch", "layer"]),
    "pseudo_labels": (partial(PseudoLabels, lr=0.1), NORMED),
    "pseudo_labels, soft, of the source": (partial(PseudoLabels, lr=0.1, labels="soft", teacher="never"), NORMED),
    "pseudo_labels, threshold": (partial(PseudoLabels, lr=0.1, threshold=0.15), NORMED),
    "rpl": (partial(RPL, lr=0.1), NORMED),
    "rpl, teacher per epoch": (partial(RPL, lr=0.1, teacher="epoch"), ["batch", "layer"]),
    "slr": (partial(SLR, lr=0.01), NORMED),
    "cpl": (partial(CPL, lr=0.1), NORMED),
    "eta": (partial(ETA, lr=0.1, **KEPT), NORMED),
    "eta, plain average": (partial(ETA, lr=0.1, average="plain", **KEPT), ["batch"]),
    "eata": (partial(EATA, lr=0.1, fisher_samples=8, **KEPT), NORMED),
    "sar": (partial(SAR, lr=0.1, margin=1.1), NORMED),
    "sar that resets": (partial(SAR, lr=0.1, margin=1.1, floor=100.0), ["batch"]),
    "cotta": (partial(CoTTA, lr=0.1, augmentations=2, threshold=1.0, restore=0.1), ANY),
    "cotta without views": (partial(CoTTA, lr=0.1, augmentations=0, restore=0.1, decay=0.9), ["batch", "none"]),
    "cotta, predictions after, two batches per update": (
        partial(CoTTA, lr=0.1, augmentations=1, threshold=1.0, predictions="after", accumulate=2),
        ["layer"],
    ),
    "memo": (partial(MEMO, lr=0.1, augmentations=2), ANY),
    "memo, adam": (partial(MEMO, lr=0.01, augmentations=2, optimiser="adam", parameters="last"), ["none"]),
    "lame": (LAME, ANY),
    "lame, rbf": (partial(LAME, affinity="rbf"), ["batch"]),
    "lame, linear, window": (partial(LAME, affinity="linear", window=9), ["layer"]),
    "rotta": (partial(RoTTA, lr=0.1, capacity=8, frequency=5, decay=0.9), NORMED),
    "rotta, every parameter": (partial(RoTTA, lr=0.01, capacity=4, frequency=4, parameters="all"), ["none"]),
    "dino": (partial(DINO, lr=0.01, decay=0.9), ANY),
    "dino, linear layers, three views": (partial(DINO, lr=0.01, views=3, parameters="*linear*+*proj*"), ["layer"]),
    "rdumb": (partial(RDumb, every=2, lr=0.1, **KEPT), NORMED),
    "periodic reset": (PeriodicReset(partial(Tent, lr=0.1), every=3), ["batch", "layer"]),
    "reset when collapsed": (ResetWhen(partial(Tent, lr=0.1), Collapsed(images=5, largest=0.1)), ["batch", "layer"]),
    "offline": (partial(Offline, method=Tent, epochs=2), ["batch"]),
}


def later(name, norm, norms):
    """Whether a case is for the slow tests: GroupNorm is treated as LayerNorm is, and a variant is tried once."""
    return norm == "group" or (norm != norms[0] and ("," in name or name == "memo"))


CASES = [
    pytest.param(make, norm, id=f"{name}, {norm}", marks=pytest.mark.slow if later(name, norm, norms) else ())
    for name, (make, norms) in ADAPTERS.items()
    for norm in norms
]


@pytest.mark.parametrize(("make", "norm"), CASES)
def test_laws_hold(make, norm):
    verdict = run_laws(ADAPTER_LAWS, [(make, example_models()[norm], example_batches())])
    assert {law: why for law, why in verdict.items() if why} == {}


@pytest.mark.parametrize(
    "make", [pytest.param(make, id=name) for name, (make, norms) in ADAPTERS.items() if "batch" in norms]
)
def test_an_infinite_prior_is_the_model_for_layers_of_other_packages(make):
    cases = [(make, network, example_batches()) for network in batchnorm_networks().values()]
    assert not any(run_laws([infinite_prior_is_the_model], cases).values())


@pytest.mark.parametrize("name", ["batchnorm", "tent", "tent, every parameter", "cotta without views"])
def test_memory_layout_does_not_matter_for_awkward_convolutions(name):
    cases = [(ADAPTERS[name][0], network, example_batches(3)) for network in convolutional_networks().values()]
    assert not any(run_laws([memory_layout_does_not_matter], cases).values())


def test_every_adapter_of_the_catalog_is_in_the_list():
    listed = {make.func if isinstance(make, partial) else make for make, _ in ADAPTERS.values()}
    assert {entry.load() for entry in catalog.entries("adapters").values()} <= listed | {Reset}


def test_public_check_says_nothing_about_a_good_adapter():
    assert not any(check_adapter(Tent).values())
