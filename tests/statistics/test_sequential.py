"""Sequential tests: bins, recursions and vectors against sorting the whole bag and summing over every start."""

from math import log

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom

from haptera.errors import HapteraError
from haptera.statistics.sequential import BETS, DIRECTIONS, SCALE, ConformalMartingale, _log_densities


def slow_p_values(reference, stream, edges, ties):
    """Ranks in the whole bag, sorted anew for every image."""
    second = reference[len(reference) - len(reference) // 2 :]
    bag = [int((score >= edges).sum()) for score in second]
    found = []
    for score, tie in zip(stream, ties, strict=True):
        own = int((score >= edges).sum())
        bag = sorted([*bag, own])
        found.append((sum(each > own for each in bag) + tie * bag.count(own)) / len(bag))
    return found


def slow_density(direction, power, p):
    ends = 2 * min(p, 1 - p)
    u = {"higher": p, "lower": 1 - p, "more spread": ends, "less spread": 1 - ends}[direction]
    return power * u ** (power - 1)


def slow_evidence(p_values, promise):
    """Every bet from every start, one after the other; the evidence after each image, and the best start."""

    def left(k):
        return 1 / (1 + log(1 + k / SCALE)) if promise == "life" else 0.0

    runs, path = {}, []
    for k, p in enumerate(p_values):
        for place, (direction, power) in enumerate(BETS):
            weight = (left(k) - left(k + 1) if promise == "life" else 1.0) / len(BETS)
            runs[k, place] = weight
            for start in range(k + 1):
                runs[start, place] *= slow_density(DIRECTIONS[direction], power, p)
        path.append(sum(runs.values()) + left(k + 1))
    return path, max(runs, key=runs.get)


@pytest.mark.parametrize("promise", ["life", "rate"])
@pytest.mark.parametrize("kind", ["same", "grown", "spread", "ties"])
def test_evidence_is_what_the_whole_bag_and_every_start_give(promise, kind):
    random = np.random.default_rng(5)
    reference, stream = random.normal(size=(2, 61)), random.normal(size=(2, 90))
    stream[:, 40:] = {"grown": stream[:, 40:] + 1.5, "spread": stream[:, 40:] * 2.5}.get(kind, stream[:, 40:])
    if kind == "ties":
        reference, stream = np.round(reference), np.round(stream)
    tests = ConformalMartingale(reference, promise=promise, bins=12, seed=3)
    ties = np.random.default_rng(3).random((90, 2)).T
    peaks = tests.update(stream)
    for row in range(2):
        p = slow_p_values(reference[row], stream[row], tests.edges[row], ties[row])
        path, (start, place) = slow_evidence(p, promise)
        assert tests.evidence()[row] == pytest.approx(path[-1], rel=1e-9)
        assert peaks[row] == pytest.approx(max(path), rel=1e-9)
        assert tests.change(row) == (start, DIRECTIONS[BETS[place][0]])


@pytest.mark.parametrize("bet", range(len(BETS)))
def test_no_bet_pays_more_than_it_costs(bet):
    def density(p):
        return float(np.exp(_log_densities(np.array(p)))[bet])

    places = [
        1e-5,
        1e-4,
        1e-3,
        1e-2,
        0.1,
        0.3,
        0.499,
        0.49999,
        0.5,
        0.50001,
        0.501,
        0.7,
        0.9,
        0.99,
        0.999,
        0.9999,
        0.99999,
    ]
    parts = zip([0.0, *places], [*places, 1.0], strict=True)
    total = sum(quad(density, low, high, limit=200)[0] for low, high in parts)
    assert 0.6 < total < 1 + 1e-6


def test_false_alarms_are_at_most_what_was_promised():
    streams, images, alpha = 600, 640, 0.2
    random = np.random.default_rng(0)
    tests = ConformalMartingale(random.exponential(size=(streams, 80)), seed=1)
    count = int((tests.update(random.exponential(size=(streams, images))) >= 1 / alpha).sum())
    assert count <= binom.isf(1e-6, streams, alpha)
    assert count > 0  # a test that never speaks would pass as well


def test_false_alarms_by_rate_are_at_most_what_was_promised():
    streams, images = 600, 320
    random = np.random.default_rng(0)
    tests = ConformalMartingale(random.normal(size=(streams, 80)), promise="rate", seed=1)
    count = int((tests.update(random.normal(size=(streams, images))) >= 4 * images).sum())
    assert 0 < count <= binom.isf(1e-6, streams, 1 / 4)


def test_cuts_into_batches_do_not_count():
    random = np.random.default_rng(0)
    reference, stream = random.normal(size=(3, 200)), random.normal(size=(3, 150))
    stream[1, 60:] += 2
    found = []
    for size in (1, 7, 64, 150):
        tests = ConformalMartingale(reference, seed=2)
        for start in range(0, 150, size):
            tests.update(stream[:, start : start + size])
        found.append((tests.evidence(), [tests.change(row) for row in range(3)]))
    for evidence, changes in found[1:]:
        np.testing.assert_allclose(evidence, found[0][0], rtol=1e-9)
        assert changes == found[0][1]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda scores: scores + 1.5, "higher"),
        (lambda scores: scores - 1.5, "lower"),
        (lambda scores: 3 * scores, "more spread"),
        (lambda scores: scores / 5, "less spread"),
    ],
)
def test_a_late_change_is_found_soon_and_dated(change, word):
    random = np.random.default_rng(0)
    tests = ConformalMartingale(random.normal(size=(1, 1000)))
    assert tests.update(random.normal(size=(1, 20_000)))[0] < 20
    assert tests.update(change(random.normal(size=(1, 100))))[0] > 1e3
    start, found = tests.change(0)
    assert abs(start - 20_000) < 15
    assert found == word


def test_a_state_goes_on_to_the_same_numbers():
    random = np.random.default_rng(0)
    reference, stream = random.normal(size=(2, 100)), random.normal(size=(2, 100))
    first, second = ConformalMartingale(reference, seed=1), ConformalMartingale(reference, seed=1)
    first.update(stream[:, :41])
    second.restore(first.state())
    np.testing.assert_array_equal(first.update(stream[:, 41:]), second.update(stream[:, 41:]))
    np.testing.assert_array_equal(first.evidence(), second.evidence())


def test_capital_never_leaves_the_floats():
    tests = ConformalMartingale(np.random.default_rng(0).normal(size=(1, 2000)))
    tests.update(np.random.default_rng(1).normal(size=(1, 50_000)))
    for _ in range(5):
        assert np.isfinite(tests.update(np.full((1, 300), 1e9))).all()
    assert np.isfinite(tests.evidence()).all()


def test_what_is_not_a_number_counts_as_beyond_the_largest():
    random = np.random.default_rng(0)
    reference = random.normal(size=(1, 200))
    first, second = ConformalMartingale(reference), ConformalMartingale(reference)
    first.update(np.full((1, 5), np.nan))
    second.update(np.full((1, 5), 1e9))
    np.testing.assert_array_equal(first.evidence(), second.evidence())


def test_rows_that_are_not_given_wait():
    random = np.random.default_rng(0)
    tests = ConformalMartingale(random.normal(size=(3, 100)))
    before = tests.evidence()
    assert tests.update(random.normal(size=(2, 8)), np.array([0, 2])).shape == (2,)
    assert tests.seen.tolist() == [8, 0, 8]
    assert tests.evidence()[1] == before[1]


def test_wrong_input_is_named():
    with pytest.raises(HapteraError, match=r"reference has shape \(3,\); \(signals, images\)"):
        ConformalMartingale(np.zeros(3))
    with pytest.raises(HapteraError, match="unknown promise 'live'; did you mean 'life'"):
        ConformalMartingale(np.zeros((1, 9)), promise="live")
    with pytest.raises(HapteraError, match="no finite score"):
        ConformalMartingale(np.full((1, 9), np.nan))
    tests = ConformalMartingale(np.arange(9.0)[None])
    state = tests.state()
    with pytest.raises(HapteraError, match=r"capital of the state has shape \(3,\)"):
        tests.restore(state | {"capital": np.zeros(3)})
    with pytest.raises(HapteraError, match="random of the state is 'x'"):
        tests.restore(state | {"random": "x"})
