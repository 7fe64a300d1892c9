"""Alarms: the promise, when they are raised and cleared, and that they go on to the same numbers."""

import json

import numpy as np
import pytest
from scipy.stats import binom

from haptera.errors import HapteraError
from haptera.files.json import plain
from haptera.live.alarms import FOLLOW, Alarms
from haptera.live.profile import Profile

NAMES = ("brightness", "contrast", "early_distance")


def profile_of(random, images=400):
    scores = {name: random.normal(size=images) for name in (*NAMES, "confidence")}
    return Profile("abc", scores, np.zeros((images, 3), np.float32))


def batch(random, images=16, **more):
    return {name: random.normal(size=images) + more.get(name, 0.0) for name in (*NAMES, "confidence")}


def run(alarms, random, steps, first=0, images=16, **more):
    raised = [alarms.update(batch(random, images, **more), first + k, 10.0 * (first + k)) for k in range(steps)]
    return [each for each in raised if each is not None]


def test_false_alarms_over_the_life_are_at_most_alpha():
    streams, alpha = 60, 0.3
    random = np.random.default_rng(0)
    count = sum(bool(run(Alarms(profile_of(random), alpha=alpha, seed=k), random, 20)) for k in range(streams))
    assert count <= binom.isf(1e-6, streams, alpha)


@pytest.mark.parametrize("images", [1, 8, 64])
def test_a_change_is_found_soon_and_dated_whatever_the_batch_size(images):
    random = np.random.default_rng(1)
    alarms = Alarms(profile_of(random, 1000), alpha=0.001)
    before = 1280 // images
    assert not run(alarms, random, before, images=images)
    found = run(alarms, random, max(256 // images, 1), before, images, contrast=2.0)
    assert len(found) == 1
    alarm = found[0]
    assert (alarm.kind, alarm.signal, alarms.active) == ("alarm", "contrast", alarm)
    assert alarm.step - before <= 64 // images
    assert abs(alarm.since - before) <= max(16 // images, 1)
    assert alarm.since_time == 10.0 * alarm.since
    assert alarm.evidence >= len(NAMES) / alarm.level
    assert "contrast is higher than in the reference" in alarm.sentence


def test_an_alarm_is_raised_once_cleared_when_the_stream_is_back_and_the_next_one_costs_more():
    random = np.random.default_rng(2)
    alarms = Alarms(profile_of(random, 1000), alpha=0.1)
    assert alarms.level == pytest.approx(0.1 / 2)
    (alarm,) = run(alarms, random, 200, brightness=1.0)
    assert alarms.active is alarm
    (cleared,) = run(alarms, random, 200, 200)
    assert (cleared.kind, cleared.since, alarms.active) == ("cleared", alarm.step, None)
    assert 200 <= cleared.step < 300
    assert alarms.level == pytest.approx(0.1 / 6)
    (again,) = run(alarms, random, 50, 400, contrast=-1.5)
    assert again.signal == "contrast"
    assert "lower" in again.sentence


def test_shares_of_alpha_sum_to_alpha():
    alarms = Alarms(profile_of(np.random.default_rng(0)), alpha=0.1)
    shares = []
    for raised in range(10_000):
        alarms._raised = raised
        shares.append(alarms.level)
    assert 0.0999 < sum(shares) < 0.1


def test_without_a_profile_the_first_images_are_the_reference_and_it_says_so():
    random = np.random.default_rng(3)
    alarms = Alarms(warmup=320)
    assert "the first 320 images are the reference" in alarms.remarks[0]
    assert not run(alarms, random, 19, contrast=5.0)
    assert alarms.evidence == {}
    assert not run(alarms, random, 20, 19, contrast=5.0)
    assert set(alarms.evidence) == set(NAMES)
    assert run(alarms, random, 20, 39)[0].signal == "contrast"


@pytest.mark.parametrize("cut", [5, 60, 90, 140])
@pytest.mark.parametrize("warm", [True, False])
def test_a_state_goes_on_to_the_same_alarms(cut, warm):
    def alarms():
        return Alarms(None if warm else profile_of(np.random.default_rng(0)), warmup=160, thin=2)

    def stream(k):
        return batch(np.random.default_rng(100 + k), 32, contrast=1.5 * (70 <= k < 100))

    whole, first, second = alarms(), alarms(), alarms()
    told = [whole.update(stream(k), k, float(k)) for k in range(150)]
    for k in range(cut):
        first.update(stream(k), k, float(k))
    state = first.state()
    json.dumps(plain(state))
    second.restore(state)
    assert [second.update(stream(k), k, float(k)) for k in range(cut, 150)] == told[cut:]
    assert sum(each is not None for each in told) >= 1
    assert second.evidence == whole.evidence


def test_thinning_looks_at_every_so_many_th_image_whatever_the_batches():
    random = np.random.default_rng(4)
    profile, stream = profile_of(random), {name: random.normal(size=96) for name in NAMES}
    thin, every = Alarms(profile, thin=3), Alarms(profile)
    for start, stop in ((0, 1), (1, 8), (8, 40), (40, 41), (41, 96)):
        thin.update({name: values[start:stop] for name, values in stream.items()}, start, 0.0)
    every.update({name: values[::3] for name, values in stream.items()}, 0, 0.0)
    assert thin.evidence == pytest.approx(every.evidence)
    assert "every 3th image" in thin.remarks[0]


def test_signals_that_are_missing_wait_and_others_are_left_aside():
    random = np.random.default_rng(5)
    alarms = Alarms(profile_of(random))
    scores = batch(random) | {"unheard": np.zeros(16)}
    del scores["contrast"]
    assert alarms.update(scores, 0, 0.0) is None
    assert set(alarms.evidence) == set(NAMES)
    assert "confidence" not in FOLLOW
    assert alarms.update({}, 1, 0.0) is None


def test_outputs_count_where_they_are_named():
    random = np.random.default_rng(6)
    alarms = Alarms(profile_of(random), signals=["confidence"])
    assert run(alarms, random, 20, confidence=-2.0)[0].signal == "confidence"


def test_wrong_input_is_named():
    random = np.random.default_rng(7)
    profile = profile_of(random)
    with pytest.raises(HapteraError, match="alpha is 2; a chance between 0 and 1 was expected"):
        Alarms(profile, alpha=2)
    with pytest.raises(HapteraError, match="unknown signal 'contrats'; did you mean 'contrast'"):
        Alarms(profile, signals=["contrats"])
    with pytest.raises(HapteraError, match="unknown promise 'year'"):
        Alarms(profile, promise="year")
    alarms = Alarms(profile)
    with pytest.raises(HapteraError, match=r"brightness \(3,\), contrast \(4,\)"):
        alarms.update({"brightness": np.zeros(3), "contrast": np.zeros(4)}, 0, 0.0)
    with pytest.raises(HapteraError, match="the state is of alarms with"):
        alarms.restore(Alarms(profile, alpha=0.01).state())
    with pytest.raises(HapteraError, match="the state has no 'settings'"):
        alarms.restore({})
    with pytest.raises(HapteraError, match=r"none of the signals .* varies"):
        Alarms(Profile("abc", {"contrast": np.ones(200)}, np.zeros((200, 2))))
