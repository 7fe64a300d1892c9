import numpy as np
import pytest
import torch
from tests.live.guarded_models import images, small_net

from haptera.adapters import RDumb, Tent
from haptera.errors import HapteraError
from haptera.live.snapshots import frozen_copy, merge_states, newest_state, read_snapshot, snapshots, write_snapshot


def learn(adapter, batches):
    for number in batches:
        adapter(images(16, seed=number))
    return adapter


def test_a_snapshot_is_read_as_it_was_written(tmp_path):
    adapter = learn(Tent(small_net(), lr=0.1), range(3))
    state = {
        "a": np.arange(6).reshape(2, 3),
        "b": [1, "x", None, {"c": np.float64(0.5)}],
        "d": float("inf"),
        "e": np.zeros(0),
    }
    write_snapshot(tmp_path, 7, adapter.state_dict(), state)
    (path,) = snapshots(tmp_path)
    own, guard = read_snapshot(path)
    assert np.array_equal(guard["a"], state["a"])
    assert guard["b"] == [1, "x", None, {"c": 0.5}]
    assert guard["d"] == float("inf")
    assert guard["e"].shape == (0,)
    other = Tent(small_net(), lr=0.1)
    other.load_state_dict(own)
    assert torch.equal(other(images(16, seed=9)), adapter(images(16, seed=9)))


def test_only_the_newest_snapshots_stay(tmp_path):
    (tmp_path / ".half.part").mkdir(parents=True)
    for step in (1, 20, 300, 4000):
        write_snapshot(tmp_path, step, None, {"step": step}, keep=2)
    assert [read_snapshot(path)[1]["step"] for path in snapshots(tmp_path)] == [4000, 300]
    assert not (tmp_path / ".half.part").exists()


def test_a_copy_is_out_of_reach_of_later_steps(tmp_path):
    values = np.zeros(3)
    copy = frozen_copy({"values": values, "list": [values]})
    values += 1
    write_snapshot(tmp_path, 1, None, copy)
    guard = read_snapshot(snapshots(tmp_path)[0])[1]
    assert guard["values"].tolist() == guard["list"][0].tolist() == [0, 0, 0]


def test_the_state_of_a_leader_is_found_and_its_absence_said(tmp_path):
    with pytest.raises(HapteraError, match="no snapshot of an adapter"):
        newest_state(tmp_path)
    adapter = learn(Tent(small_net()), range(2))
    write_snapshot(tmp_path / "snapshots", 2, adapter.state_dict(), {})
    follower = Tent(small_net(), frozen=True)
    follower.load_state_dict(newest_state(tmp_path))
    adapter.frozen = True
    assert torch.equal(follower(images(8)), adapter(images(8)))


def test_merged_weights_are_the_weighted_mean_and_counters_the_first_ones():
    one, two = (
        learn(RDumb(small_net(), lr=0.5, margin=2.0, redundancy=2.0), batches) for batches in (range(3), range(5, 9))
    )
    merged = merge_states([one.state_dict(), two.state_dict()], [1, 3])
    name = next(name for name in one.state_dict() if name.endswith("1.weight"))
    expected = (one.state_dict()[name] + 3 * two.state_dict()[name]) / 4
    assert not torch.equal(one.state_dict()[name], two.state_dict()[name])
    assert torch.allclose(merged[name], expected, rtol=0, atol=1e-6)
    assert merged["_extra_state"]["memory"]["steps"] == 3
    one.load_state_dict(merged)
    one(images(16))


def test_a_single_state_merges_to_itself():
    state = learn(Tent(small_net(), lr=0.5), range(3)).state_dict()
    merged = merge_states([state, state])
    assert all(torch.equal(merged[name], value) for name, value in state.items() if isinstance(value, torch.Tensor))


def test_states_that_do_not_belong_together_are_refused():
    state, other = Tent(small_net()).state_dict(), Tent(small_net(seed=1)).state_dict()
    with pytest.raises(HapteraError, match="state 2 belongs to another"):
        merge_states([state, other])
    for given, weights in (([], None), ([state], [1, 2]), ([state], [-1]), ([state], [0])):
        with pytest.raises(HapteraError, match=r"states|weights"):
            merge_states(given, weights)


def test_a_damaged_snapshot_is_one_sentence(tmp_path):
    write_snapshot(tmp_path, 1, None, {})
    (tmp_path / "step-000000001" / "guard.safetensors").write_bytes(b"torn")
    with pytest.raises(HapteraError, match=r"guard\.safetensors"):
        read_snapshot(snapshots(tmp_path)[0])
