"""A replay asks a guard as a service would: at its rate, from its threads, with labels that come later."""

import threading
from time import monotonic

import numpy as np
import pytest
import torch

from haptera.data import ArrayData
from haptera.errors import HapteraError
from haptera.live.simulate import Replay, simulate
from haptera.streams import Clean

GENERATOR = np.random.default_rng(0)
DATA = ArrayData(torch.rand(60, 1, 8, 8), GENERATOR.integers(0, 3, 60), "few")


class Answering:
    """In the place of a guard: class 0 for everything; keeps what it was asked and told."""

    def __init__(self):
        self.asked, self.told, self.threads, self.lock = [], [], set(), threading.Lock()

    def __call__(self, inputs, ids=None):
        with self.lock:
            self.asked.append((np.asarray(ids), inputs))
            self.threads.add(threading.get_ident())
        return torch.eye(3)[torch.zeros(len(inputs), dtype=torch.long)]

    def label(self, ids, targets):
        self.told.append((len(self.asked), np.asarray(ids), np.asarray(targets)))


@pytest.fixture
def stream():
    return Clean(DATA, batch_size=10)


def test_every_batch_is_asked_in_order_with_ids_of_its_own_also_when_streams_repeat(stream):
    guard = Answering()
    summary = simulate(guard, [stream, stream])
    assert summary.batches == 12
    assert np.concatenate([ids for ids, _ in guard.asked]).tolist() == list(range(120))
    for (_, inputs), batch in zip(guard.asked, [*stream, *stream], strict=True):
        assert torch.equal(inputs, batch.inputs)
    assert summary.accuracy == np.mean(DATA.targets == 0)


def test_labels_arrive_late_and_are_those_of_their_images(stream):
    guard = Answering()
    simulate(guard, stream, Replay(labels=1.0, delay=2))
    targets = np.concatenate([batch.targets for batch in stream])
    assert [place for place, _, _ in guard.told] == [3, 4, 5, 6]
    for _, ids, known in guard.told:
        assert known.tolist() == targets[ids].tolist()


def test_a_share_of_the_labels_is_a_share(stream):
    guard = Answering()
    simulate(guard, [stream] * 20, Replay(labels=0.25, delay=0))
    assert sum(len(ids) for _, ids, _ in guard.told) == pytest.approx(300, abs=60)  # four standard deviations


def test_the_rate_is_kept(stream):
    begun = monotonic()
    summary = simulate(Answering(), stream, Replay(rate=50))
    assert monotonic() - begun >= 5 / 50
    assert summary.seconds >= 5 / 50


def test_several_threads_answer_every_batch_once(stream):
    guard = Answering()
    barrier = threading.Barrier(3)
    answer = guard.__call__

    class Together(Answering):
        def __call__(self, inputs, ids=None):
            barrier.wait(timeout=30)  # nobody goes on until three ask at once
            return answer(inputs, ids)

    assert simulate(Together(), stream, Replay(threads=3)).batches == 6
    assert len(guard.threads) == 3
    assert sorted(np.concatenate([ids for ids, _ in guard.asked])) == list(range(60))


def test_what_a_guard_raises_in_any_thread_is_raised(stream):
    class Broken(Answering):
        def __call__(self, inputs, ids=None):
            raise RuntimeError("no memory")

    with pytest.raises(RuntimeError, match="no memory"):
        simulate(Broken(), stream, Replay(threads=2))


def test_it_can_be_stopped(stream):
    stop = threading.Event()
    summary = simulate(Answering(), stream, stop=stop, progress=lambda done: stop.set() if done == 2 else None)
    assert summary.batches == 2


@pytest.mark.parametrize("wrong", [{"rate": -1}, {"labels": 1.5}, {"threads": 0}, {"delay": 0.5}])
def test_settings_out_of_bounds_are_refused(wrong):
    with pytest.raises(HapteraError, match=next(iter(wrong))):
        Replay(**wrong)
