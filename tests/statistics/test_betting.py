import numpy as np
import pytest

from haptera.statistics.betting import SHARES, anytime_interval, evidence_above, evidence_below

TERNARY = np.array([-1.0, 0.0, 1.0])


def counts_over_time(generator, chances, steps):
    """How often each of three values came, after each of so many observations: `(steps, 3)`."""
    drawn = generator.choice(3, steps, p=chances)
    return np.eye(3)[drawn].cumsum(0)


def test_capital_is_that_of_bets_made_one_after_the_other():
    values = np.random.default_rng(0).choice(TERNARY, 60, p=[0.3, 0.5, 0.2])
    capitals = np.ones(len(SHARES))
    for value in values:
        for place, share in enumerate(SHARES):
            capitals[place] *= 1 - share + share * (1 - value) / (1 - -0.05)
    found = evidence_below(*np.unique(values, return_counts=True), -0.05)
    assert found == pytest.approx(np.log(capitals.mean()))


def ever_misled(generator, chances, mean, alpha, people=300):
    """The share of people who, looking 30 times, ever see more evidence against the true mean than alpha allows."""
    misled = 0
    for _ in range(people):
        counts = counts_over_time(generator, chances, 600)[19::20]
        both = [(evidence_below(TERNARY, own, mean), evidence_above(TERNARY, own, mean)) for own in counts]
        misled += max(map(max, both)) >= np.log(2 / alpha)
    return misled / people


@pytest.mark.parametrize("chances", [(0.1, 0.8, 0.1), (0.12, 0.83, 0.05)])
def test_who_looks_after_every_batch_is_rarely_misled(chances):
    """So intervals, which are the means that there is too little evidence against, hold at all times at once."""
    share = ever_misled(np.random.default_rng(1), chances, chances[2] - chances[0], alpha=0.1)
    assert share <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 300)


def test_a_mean_below_is_found_the_sooner_the_further_it_is():
    def needed(chances):
        counts = counts_over_time(np.random.default_rng(3), chances, 20_000)
        enough = (step for step in range(0, 20_000, 10) if evidence_below(TERNARY, counts[step], 0.0) >= np.log(1000))
        return next(enough)

    assert needed([0.2, 0.75, 0.05]) < needed([0.1, 0.85, 0.05]) < 3_000


def test_an_interval_is_the_means_that_nobody_would_bet_against():
    counts = np.array([40, 940, 20])
    low, high = anytime_interval(TERNARY, counts, 0.05)
    assert evidence_below(TERNARY, counts, high) == pytest.approx(np.log(40), abs=1e-6)
    assert evidence_above(TERNARY, counts, low) == pytest.approx(np.log(40), abs=1e-6)
    assert low < -0.02 < high


def test_without_observations_every_mean_is_possible():
    assert anytime_interval(np.empty(0), np.empty(0), 0.05) == (pytest.approx(-1), pytest.approx(1))


def test_values_at_the_end_of_the_scale_are_no_evidence_against_it():
    assert evidence_below(np.array([1.0]), np.array([50]), 1.0) < 0
