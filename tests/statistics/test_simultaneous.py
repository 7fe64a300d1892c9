import numpy as np
import pytest

from haptera.measures.pairs import paired_interval
from haptera.statistics.simultaneous import critical_value, simultaneous_intervals


def test_one_comparison_has_the_interval_of_bonett_and_price():
    differences = np.repeat([1.0, -1.0, 0.0], [9, 21, 170])
    found = simultaneous_intervals([differences], [np.arange(200)])
    assert (found.low[0], found.high[0]) == pytest.approx(paired_interval(9, 21, 200))
    assert found.value[0] == pytest.approx(-12 / 200)


def test_the_order_of_units_and_of_comparisons_does_not_count():
    generator = np.random.default_rng(0)
    both = generator.choice([-1.0, 0.0, 1.0], (2, 300))
    mixed = generator.permutation(300)
    one = simultaneous_intervals(list(both), [np.arange(300)] * 2)
    other = simultaneous_intervals([both[1][mixed], both[0]], [mixed, np.arange(300)])
    assert one.low == pytest.approx(other.low[::-1], abs=2e-4)  # draws differ


def test_comparisons_that_go_together_are_corrected_less():
    independent = critical_value(np.eye(20))
    assert independent == pytest.approx(3.016, abs=0.01)  # 1 - 2 (1 - Φ(3.016)) is 0.95 ** (1 / 20)
    assert critical_value(np.full((20, 20), 0.9) + 0.1 * np.eye(20)) < independent - 0.4
    assert critical_value(np.ones((20, 20))) == pytest.approx(1.96, abs=0.04)


@pytest.mark.parametrize(
    ("images", "loss", "win"),
    [
        (60, 0.1, 0.1),
        *(pytest.param(400, loss, win, marks=pytest.mark.long) for loss, win in [(0.02, 0.02), (0.15, 0.05)]),
    ],
)
def test_all_intervals_hold_at_once_as_often_as_they_say(images, loss, win):
    """Twelve comparisons of the same images, of which an image that gets lost in one mostly gets lost in the next."""
    generator, held = np.random.default_rng(4), 0
    repetitions = 150
    for _ in range(repetitions):
        shared = generator.random(images)
        fates = [np.where(generator.random(images) < 0.7, shared, generator.random(images)) for _ in range(12)]
        differences = [np.where(fate < loss, -1.0, np.where(fate > 1 - win, 1.0, 0.0)) for fate in fates]
        found = simultaneous_intervals(differences, [np.arange(images)] * 12)
        held += bool(((found.low <= win - loss) & (win - loss <= found.high)).all())
    assert held / repetitions >= 0.93 - 3 * np.sqrt(0.05 * 0.95 / repetitions)


def test_comparisons_of_other_images_are_independent():
    differences = np.random.default_rng(5).choice([-1.0, 0.0, 1.0], 200)
    same = simultaneous_intervals([differences] * 5, [np.arange(200)] * 5)
    apart = simultaneous_intervals([differences] * 5, [np.arange(200) + 1000 * place for place in range(5)])
    assert same.critical < apart.critical == pytest.approx(critical_value(np.eye(5)))


def test_numbers_without_bounds_get_no_pairs_beside_them():
    values = np.random.default_rng(6).normal(0.3, 1, 500)
    found = simultaneous_intervals([values], [np.arange(500)], shares=False)
    half = 1.96 * values.std(ddof=1) / np.sqrt(500)
    assert (found.low[0], found.high[0]) == pytest.approx((values.mean() - half, values.mean() + half), abs=1e-4)
