"""Every adapter keeps every law, on every kind of model to which it applies."""

from functools import partial

import pytest

from holdfast.adapters import BatchNorm, NoAdaptation
from holdfast.testing.adapters import ADAPTER_LAWS, check_adapter, example_batches, example_models
from holdfast.testing.law import run_laws

ADAPTERS = {
    "none": (NoAdaptation, ["batch", "group", "layer", "none"]),
    "batchnorm": (BatchNorm, ["batch"]),
    "batchnorm without prior": (partial(BatchNorm, prior=0), ["batch"]),
    "batchnorm with nothing but the prior": (partial(BatchNorm, prior=float("inf")), ["batch"]),
}
CASES = [pytest.param(make, norm, id=f"{name}, {norm}") for name, (make, norms) in ADAPTERS.items() for norm in norms]


@pytest.mark.parametrize(("make", "norm"), CASES)
@pytest.mark.parametrize("law", ADAPTER_LAWS, ids=lambda law: law.__name__)
def test_law_holds(law, make, norm):
    verdict = run_laws([law], [(make, example_models()[norm], example_batches())])
    assert verdict == {law.__name__: ""}


@pytest.mark.parametrize("make", [make for make, _ in ADAPTERS.values()], ids=ADAPTERS)
def test_public_check_passes(make):
    assert not any(check_adapter(make).values())
