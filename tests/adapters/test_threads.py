"""One adapter, several threads: each call is answered as if it were alone, and has a record of its own."""

import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from haptera.adapters import BatchNorm, NoAdaptation, RDumb, Tent
from haptera.testing.adapters import example_batches, example_models


@pytest.fixture
def model():
    return example_models()["batch"]


def test_logits_of_batchnorm_are_those_of_its_own_batch(model):
    batches = [torch.cat([batch, batch]) for batch in example_batches()]
    expected = [BatchNorm(model, prior=4)(inputs) for inputs in batches]
    adapter, begin = BatchNorm(model, prior=4), threading.Barrier(4)

    def work(thread):
        begin.wait()
        return [adapter(batches[thread]) for _ in range(15)]

    with ThreadPoolExecutor(4) as pool:
        said = list(pool.map(work, range(4)))
    assert all(torch.equal(out, expected[thread]) for thread in range(4) for out in said[thread])


@pytest.mark.parametrize("make", [Tent, RDumb])
def test_learners_learn_from_every_call(model, make):
    adapter, begin = make(model, lr=0.01), threading.Barrier(4)
    inputs = example_batches()[0]

    def work(_):
        begin.wait()
        return [adapter(inputs) for _ in range(5)]

    with ThreadPoolExecutor(4) as pool:
        said = [out for part in pool.map(work, range(4)) for out in part]
    alone = make(model, lr=0.01)
    expected = [alone(inputs) for _ in range(20)]
    assert sorted(float(out.sum()) for out in said) == sorted(float(out.sum()) for out in expected)


def test_a_thread_reads_the_record_of_its_own_call_and_others_the_newest(model):
    class Noting(NoAdaptation):
        def step(self, inputs):
            self.record["first"] = float(inputs[0, 0, 0, 0])
            return super().step(inputs)

    adapter, both = Noting(model), threading.Barrier(2)

    def work(inputs):
        both.wait()
        adapter(inputs)
        both.wait()  # both calls are over before either record is read
        return adapter.record

    batches = example_batches()[:2]
    with ThreadPoolExecutor(2) as pool:
        records = list(pool.map(work, batches))
    assert records == [{"first": float(inputs[0, 0, 0, 0])} for inputs in batches]
    assert adapter.record in records
    assert copy.deepcopy(adapter).record == adapter.record


def test_an_adapter_that_is_busy_is_copied_when_it_is_done(model):
    started, go = threading.Event(), threading.Event()

    class Slow(NoAdaptation):
        def step(self, inputs):
            self.memory["half"] = True
            started.set()
            go.wait()
            del self.memory["half"]
            return super().step(inputs)

    adapter = Slow(model)
    with ThreadPoolExecutor(2) as pool:
        call = pool.submit(adapter, example_batches()[0])
        started.wait()
        copied = pool.submit(copy.deepcopy, adapter)
        go.set()
        call.result()
        assert copied.result().memory == {}


def test_an_adapter_can_be_sent_to_another_process(model):
    adapter = Tent(model, lr=0.1)
    batches = example_batches()
    adapter(batches[0])
    sent = pickle.loads(pickle.dumps(adapter))
    assert torch.equal(sent(batches[1]), adapter(batches[1]))
    assert sent.record == adapter.record
