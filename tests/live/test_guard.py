import json
import threading
from functools import partial

import pytest
import torch
from tests.live.guarded_models import (
    CLASSES,
    Collapsing,
    Failing,
    NotFinite,
    Told,
    even_images,
    events,
    images,
    listening,
    small_net,
)

from haptera.adapters import NoAdaptation, RDumb, Tent
from haptera.batch import Batch
from haptera.errors import HapteraError
from haptera.live import journal
from haptera.live.guard import Guard
from haptera.live.log import read_log
from haptera.live.profile import Profile

SOON = {"look": 32, "quarantine": 64, "probation": 64, "warmup": 10_000}


def test_a_guard_answers_as_its_adapter_does():
    model = small_net()
    adapter, guard = Tent(model, lr=0.1), Guard(model, partial(Tent, lr=0.1), warmup=10_000)
    for seed in range(6):
        assert torch.equal(guard(images(16, seed)), adapter(images(16, seed)))
    assert guard.status()["served"] == "adapted"


def test_without_an_adapter_the_model_answers():
    model = small_net()
    guard = Guard(model)
    with torch.no_grad():
        assert torch.equal(guard(images(4)), model(images(4)))
    assert guard.status()["phase"] == "watching"
    assert guard(torch.zeros(0, 1, 8, 8)).shape == (0, CLASSES)


def test_a_batch_that_is_not_understood_is_predicted_and_not_learnt_from():
    model = small_net()
    adapter = Tent(model, lr=0.5)
    guard, rows = listening(model, adapter, warmup=10_000)
    guard(images(16))
    before = adapter.state_dict()
    for odd in (255 * images(8), torch.zeros(8, 1, 8, 8), images(8, side=10), images(8) * float("nan")):
        assert guard(odd).shape == (8, CLASSES)
    after = adapter.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items() if isinstance(value, torch.Tensor))
    steps = [row for row in rows if row["kind"] == "step"]
    assert [row["skipped"] for row in steps] == [0, 1, 1, 1, 1]
    assert events(rows).count("skipped") == 1  # the first of them, not each
    assert not adapter.frozen


def test_a_collapse_falls_back_resets_and_comes_back_after_a_quarantine():
    model = Told()
    guard, rows = listening(model, partial(Collapsing, pace=0.2), **SOON)
    truth = model(even_images(16)).argmax(1)
    answers = []
    while "return" not in events(rows) and guard.steps < 400:
        answers.append(guard(even_images(16)).argmax(1))
    fall = next(row for row in rows if row["kind"] == "event" and row["event"] == "fallback")
    assert "class 0" in fall["sentence"]
    served = [row["served"] for row in rows if row["kind"] == "step"]
    assert served[fall["step"] - 1] == "unadapted"  # the batch that showed it, too
    back = next(row["step"] for row in rows if row["kind"] == "event" and row["event"] == "return")
    assert set(served[fall["step"] - 1 : back - 1]) == {"unadapted"}
    assert all(torch.equal(answer, truth) for answer in answers[fall["step"] - 1 : back - 1])
    assert guard.status()["served"] == "adapted"
    assert guard.status()["falls"] >= 1


def test_errors_and_answers_that_are_not_finite_never_reach_the_caller():
    for broken, word in ((Failing, "the optimiser broke"), (NotFinite, "not finite")):
        model = small_net()
        guard, rows = listening(model, broken, **SOON)
        with torch.no_grad():
            expected = model(images(8))
        for _ in range(5):
            assert torch.allclose(guard(images(8)), expected)
        (fall,) = [row for row in rows if row["kind"] == "event" and row["event"] == "fallback"]
        assert word in fall["sentence"]


def test_an_error_of_the_batch_is_raised_and_the_guard_goes_on():
    guard = Guard(small_net(), Tent, warmup=10_000)
    guard(images(8))
    with pytest.raises(RuntimeError, match="channels"):
        guard(torch.rand(2, 3, 8, 8))
    with pytest.raises(HapteraError, match="an adapter takes one tensor"):
        guard([1, 2])
    assert guard(images(8)).shape == (8, CLASSES)
    assert guard.safety.phase == "adapted"


def test_anchors_find_an_adapter_that_has_forgotten():
    model = Told()
    anchors = even_images(64, seed=5)
    targets = torch.arange(64) % CLASSES
    guard, rows = listening(
        model, partial(Collapsing, pace=0.1), anchors=(anchors, targets), anchor_every=2, largest=1.0, lost=9.0, **SOON
    )
    while "fallback" not in events(rows) and guard.steps < 40:
        guard(even_images(16))
    fall = next(row for row in rows if row["kind"] == "event" and row["event"] == "fallback")
    assert "anchor images" in fall["sentence"]
    assert fall["numbers"]["difference"] < -0.05


def test_anchors_contradict_a_sign_that_is_none():
    class Sorted(NoAdaptation):
        """Right about a stream of one class that the unadapted model takes for several."""

        def predict(self, inputs):
            one_class = bool((inputs[:, 0, 0, 1] == 2.0).all())
            return torch.eye(CLASSES)[[1] * len(inputs)] * 8 if one_class else super().predict(inputs)

    marked = even_images(16)
    marked[:, 0, 0, 1] = 2.0
    for anchors, expected in ((None, True), (even_images(64), False)):
        guard, rows = listening(Told(), Sorted, anchors=anchors, range=(0, 2), **SOON)
        for _ in range(12):
            guard(marked)
        assert ("fallback" in events(rows)) == expected


def test_a_shadow_serves_the_unadapted_model_and_reports_what_would_have_changed():
    model = Told()
    guard, rows = listening(model, partial(Collapsing, pace=0.25), shadow=True, largest=1.0, lost=9.0, warmup=10_000)
    for _ in range(3):
        assert torch.equal(guard(even_images(16)), NoAdaptation(model)(even_images(16)))
    steps = [row for row in rows if row["kind"] == "step"]
    assert [row["served"] for row in steps] == ["unadapted"] * 3
    assert [row["changed"] for row in steps] == [0, 3 / 16, 6 / 16]  # class 0 in the place of the three others
    status = guard.status()
    assert (status["compared"], status["changed"]) == (48, 9)


def test_a_guard_goes_on_from_its_snapshot_to_the_same_numbers(tmp_path):
    model = small_net()
    make = partial(RDumb, lr=0.1, margin=2.0, redundancy=2.0, every=7)
    whole = Guard(model, make, warmup=128)
    expected = [whole(images(16, seed), ids=range(seed * 16, seed * 16 + 16)) for seed in range(20)]
    first = Guard(model, make, log=tmp_path, snapshot_every=5, warmup=128)
    for seed in range(12):
        first(images(16, seed), ids=range(seed * 16, seed * 16 + 16))
    first._journal.log.flush()
    first._journal.log.close()  # as if it had been killed: no last snapshot
    second = Guard(model, make, log=tmp_path, warmup=128)
    assert second.steps == 10
    for seed in range(10, 20):
        assert torch.equal(second(images(16, seed), ids=range(seed * 16, seed * 16 + 16)), expected[seed])
    names = ("accuracy", "falls", "resets", "compared", "changed", "skipped", "images")
    assert [second.status()[name] for name in names] == [whole.status()[name] for name in names]
    second.close()
    steps, told = read_log(tmp_path)
    assert list(steps["step"]) == list(range(1, 21))
    assert {"start", "snapshot", "restored", "stop"} <= set(told["event"])
    about = json.loads((tmp_path / "live.json").read_text())
    assert (about["adapter"], about["settings"]["warmup"]) == ("RDumb", 128)


def test_a_snapshot_of_another_model_or_adapter_is_refused(tmp_path):
    with Guard(small_net(), Tent, log=tmp_path) as guard:
        guard(images(8))
    with pytest.raises(HapteraError, match="of another model; give another log folder"):
        Guard(small_net(seed=1), Tent, log=tmp_path)
    with pytest.raises(HapteraError, match="with an adapter"):
        Guard(small_net(), log=tmp_path)
    with Guard(small_net(seed=1), Tent, log=tmp_path, restore=False) as guard:
        assert guard.steps == 0


def test_a_damaged_snapshot_gives_way_to_an_older_one(tmp_path):
    with Guard(small_net(), Tent, log=tmp_path, snapshot_every=2) as guard:
        for seed in range(4):
            guard(images(8, seed))
    (tmp_path / "snapshots" / "step-000000004" / "guard.safetensors").write_bytes(b"x")
    with Guard(small_net(), Tent, log=tmp_path) as guard:
        assert guard.steps == 2
    assert "fault" in set(read_log(tmp_path)[1]["event"])


def test_a_profile_of_another_model_is_refused(tmp_path):
    batches = [Batch(images(64, seed), None, torch.arange(64), {}) for seed in range(2)]
    Profile.measure(small_net(), batches).save(tmp_path / "profile.safetensors")
    Guard(small_net(), reference=tmp_path / "profile.safetensors")(images(8))
    with pytest.raises(HapteraError, match="model"):
        Guard(small_net(seed=1), reference=tmp_path / "profile.safetensors")


def test_what_makes_no_adapter_is_refused():
    with pytest.raises(HapteraError, match="adapter is 'tent'"):
        Guard(small_net(), "tent")
    with pytest.raises(HapteraError, match="around another model"):
        Guard(small_net(), Tent(small_net(seed=1)))
    with pytest.raises(HapteraError, match="did you mean 'shadow'"):
        Guard(small_net(), shadwo=True)
    with pytest.raises(HapteraError, match="anchors is a list"):
        Guard(small_net(), Tent, anchors=([1], [2]))


def test_a_clock_that_jumps_is_an_event_and_changes_no_duration(monkeypatch):
    guard, rows = listening(small_net())
    guard(images(4))
    real = journal.time.time
    monkeypatch.setattr(journal.time, "time", lambda: real() - 3600)
    guard(images(4))
    (jump,) = [row for row in rows if row["kind"] == "event" and row["event"] == "fault"]
    assert "-3600 s" in jump["sentence"]
    steps = [row for row in rows if row["kind"] == "step"]
    assert steps[1]["time"] < steps[0]["time"]
    assert 0 <= steps[1]["monotonic"] - steps[0]["monotonic"] < 60
    assert 0 <= steps[1]["latency"] < 60


def test_a_listener_that_fails_never_reaches_the_caller(caplog):
    guard = Guard(small_net())
    guard.listeners.append(lambda row: 1 / 0)
    for _ in range(3):
        guard(images(4))
    assert guard.status()["log"]["listener_faults"] == 3 + 1  # the start is told with the first step
    assert sum("listener failed" in record.message for record in caplog.records) == 1


@pytest.mark.long
def test_threads_get_the_answers_to_their_own_batches():
    model = small_net()
    adapter = Tent(model, lr=0.1)
    adapter(images(16))
    adapter.frozen = True
    batches = [images(4, seed) for seed in range(32)]
    expected = [adapter(batch) for batch in batches]
    guard, wrong = Guard(model, adapter, largest=1.0, lost=9.0), []

    def ask(start):
        for number in range(start, start + 64):
            if not torch.equal(guard(batches[number % 32]), expected[number % 32]):
                wrong.append(number)  # noqa: PERF401

    threads = [threading.Thread(target=ask, args=(start,)) for start in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert guard.steps == 8 * 64


def test_a_replica_takes_the_state_of_its_leader():
    model = small_net()
    leader, follower = Guard(model, partial(Tent, lr=0.5)), Guard(model, partial(Tent, lr=0.5, frozen=True))
    leader(images(16))
    follower.adopt(leader.adapter.state_dict())
    leader.adapter.frozen = True
    assert torch.equal(follower.adapter(images(4)), leader.adapter(images(4)))
    with pytest.raises(HapteraError, match="no adapter"):
        Guard(model).adopt({})


def test_a_closed_guard_says_so():
    guard = Guard(small_net())
    guard.close()
    guard.close()
    with pytest.raises(HapteraError, match="closed"):
        guard(images(2))
