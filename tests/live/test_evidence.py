import numpy as np
import pytest

from haptera.errors import HapteraError
from haptera.live.evidence import BETS, PairedEvidence


def slowly(looks, margin):
    """The wealth, bet by bet and start by start."""
    total = 0.0
    for bet in BETS:
        for start in range(1, len(looks) + 1):
            wealth = 1.0
            for look in looks[start - 1 :]:
                for difference in look:
                    wealth *= 1 - bet / (1 + margin) * (difference + margin)
            total += wealth / (start * (start + 1)) / len(BETS)
    return total + 1 / (len(looks) + 1)


def test_evidence_is_the_mean_over_bets_and_starts():
    random = np.random.default_rng(0)
    looks = [random.integers(-1, 2, size) for size in (5, 1, 8, 3)]
    evidence = PairedEvidence(0.1)
    for look in looks:
        evidence.update(look)
    assert evidence.value == pytest.approx(slowly(looks, 0.1), rel=1e-12)
    assert evidence.difference == pytest.approx(np.concatenate(looks).mean())


@pytest.mark.long
def test_a_model_that_is_as_good_is_rarely_called_worse():
    random, false = np.random.default_rng(1), 0
    for _ in range(300):
        evidence = PairedEvidence(0.0, alpha=0.1)
        false += any(evidence.update(random.choice([-1, 0, 1], 8, p=[0.2, 0.6, 0.2])) for _ in range(60))
    assert false / 300 <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 300)


def test_a_collapse_after_a_long_good_time_is_found_soon():
    random, evidence = np.random.default_rng(2), PairedEvidence(0.05)
    for _ in range(2000):
        assert not evidence.update(random.choice([-1, 0, 1], 16, p=[0.05, 0.8, 0.15]))
    looks = 0
    while not evidence.update(random.choice([-1, 0], 16, p=[0.6, 0.4])):
        looks += 1
    assert looks < 6


def test_a_loss_within_the_margin_is_not_evidence():
    evidence = PairedEvidence(0.25, alpha=0.05)
    for _ in range(500):
        assert not evidence.update(np.array([-1, 0, 0, 0, 0, 0, 0, 0]))


def test_evidence_goes_on_from_its_state():
    one, two = PairedEvidence(0.1), PairedEvidence(0.1)
    one.update(np.array([-1, 0, 1, -1]))
    two.restore(one.state())
    assert two.update(np.array([-1.0, -1.0])) == one.update(np.array([-1.0, -1.0]))
    assert two.value == one.value


def test_no_images_change_nothing():
    evidence = PairedEvidence()
    evidence.update(np.array([]))
    assert evidence.value == 1
    assert np.isnan(evidence.difference)


def test_a_margin_that_is_not_a_share_is_refused():
    with pytest.raises(HapteraError, match="margin is 1"):
        PairedEvidence(1.0)
