"""Adapters with deliberate faults are caught by the laws."""

import time

import numpy as np
import pytest
import torch
from tests.testing.test_broken_laws import BatchMean, Unseeded, broken
from torch import nn

from haptera.adapters import Adapter
from haptera.errors import HapteraError
from haptera.measures import accuracy
from haptera.testing import (
    check_adapter,
    check_named,
    check_object,
)
from haptera.testing.adapters import ADAPTER_LAWS, example_batches, example_models
from haptera.testing.law import run_laws


class WritesToTheModel(Adapter):
    def __init__(self, model, *, frozen=False):
        super().__init__(model, frozen=frozen)
        self.original = [model]

    def step(self, inputs):
        with torch.no_grad():
            next(self.original[0].parameters()).mul_(1.01)
        return self.predict(inputs)


class ForgetsToReset(Adapter):
    count = 0

    def step(self, inputs):
        self.count += 1
        return self.predict(inputs) * self.count


class LearnsFrozen(Adapter):
    def __init__(self, model, *, frozen=False):
        super().__init__(model, frozen=frozen)
        self.register_buffer("count", torch.zeros(()))

    def predict(self, inputs):
        self.count += 1
        return super().predict(inputs) + self.count


class MindsEval(Adapter):
    def step(self, inputs):
        return self.predict(inputs) * (2 if self.training else 1)


class NanForOne(Adapter):
    def step(self, inputs):
        return self.predict(inputs) / (len(inputs) - 1)


class MovesAtZero(Adapter):
    def __init__(self, model, lr=1.0, *, frozen=False):
        super().__init__(model, frozen=frozen)
        self.lr = lr

    def step(self, inputs):
        return self.predict(inputs) + 1


class LoadsIntoTheModel(Adapter):
    def state_dict(self, **kwargs):
        return nn.Module.state_dict(self, **kwargs)

    def load_state_dict(self, state_dict, strict=True, assign=False):
        with torch.no_grad():
            for own, value in zip(self.parameters(), state_dict.values(), strict=False):
                own.copy_(value)


class Unlocked(Adapter):
    def __init__(self, model, *, frozen=False):
        super().__init__(model, frozen=frozen)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, inputs):
        before = self.count.clone()
        outputs = self.predict(inputs)
        time.sleep(0.005)  # lets the other threads in, whatever else the machine does
        self.count.copy_(before + 1)
        return outputs + before


@pytest.mark.parametrize(
    ("adapter", "laws"),
    [
        (LoadsIntoTheModel, {"callers_model_is_unchanged", "a_state_belongs_to_its_model"}),
        (Unlocked, {"calls_from_threads_do_not_mix"}),
        (WritesToTheModel, {"callers_model_is_unchanged"}),
        (ForgetsToReset, {"reset_is_exact", "state_survives_a_round_trip"}),
        (LearnsFrozen, {"frozen_does_not_learn"}),
        (MindsEval, {"evaluation_mode_does_not_matter"}),
        (NanForOne, {"a_batch_of_one_works_or_says_why"}),
        (MovesAtZero, {"learning_rate_zero_is_the_parent"}),
    ],
)
def test_broken_adapters_are_caught(adapter, laws):
    case = (adapter, example_models()["batch"], example_batches())
    assert laws <= broken(run_laws([law for law in ADAPTER_LAWS if law.__name__ in laws], [case]))


@pytest.mark.long
def test_the_public_check_of_adapters_catches_one():
    assert broken(check_adapter(LoadsIntoTheModel))


@pytest.mark.long
def test_objects_are_told_apart():
    assert check_object(BatchMean)[0] == "shift"
    assert check_object(MindsEval)[0] == "adapter"
    assert check_object(Unseeded)[0] == "stream"
    assert check_object(accuracy)[0] == "measure"
    with pytest.raises(HapteraError, match="no law is about it"):
        check_object(np.ndarray)
    with pytest.raises(HapteraError, match="unknown name 'contrst'; did you mean 'contrast'"):
        check_named("contrst")
