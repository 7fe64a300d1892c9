"""Collapse: the first step from which an adapter stays below, against curves whose answer is known."""

import numpy as np
import pytest

from haptera.errors import HapteraError
from haptera.measures import collapse
from haptera.statistics.intervals import wilson
from haptera.table import tidy


def curve(adapter, accuracies, n=100, every=5, stream="walk", **names):
    rows = []
    for place, accuracy in enumerate(accuracies):
        right = round(accuracy * n)
        low, high = wilson(right, n)
        row = {"model": "net", "stream": stream, "adapter": adapter, "seed": 0, "shift": "fog", "severity": 3.0}
        row |= {"measure": "accuracy_over_steps", "step": every * place + every - 1}
        rows.append(row | {"value": right / n, "low": low, "high": high, "n": n} | names)
    return rows


def fall(level, low, at, length=60):
    return [level] * at + [low] * (length - at)


def found(rows, **settings):
    answers = collapse(tidy(rows), **settings)
    return {(row["adapter"], row["against"]): (row["value"], row.get("step")) for row in answers}


def test_the_first_step_below_for_good_is_found_at_the_edge_of_a_block():
    rows = curve("none", [0.5] * 60) + curve("tent", fall(0.6, 0.3, at=30))
    assert found(rows) == {("tent", "none"): (0.5, 150)}  # 60 windows of 5 steps in 20 blocks of 15


def test_a_dip_that_recovers_is_no_collapse():
    dipping = [0.6] * 20 + [0.2] * 20 + [0.6] * 20
    assert found(curve("none", [0.5] * 60) + curve("tent", dipping)) == {("tent", "none"): (0.0, None)}


def test_an_adapter_below_its_parent_and_above_the_unadapted_model():
    rows = curve("none", [0.2] * 60) + curve("batchnorm:prior=0", [0.6] * 60) + curve("tent", fall(0.65, 0.4, at=45))
    assert found(rows) == {
        ("batchnorm:prior=0", "none"): (0.0, None),
        ("tent", "none"): (0.0, None),
        ("tent", "batchnorm:prior=0"): (0.25, 225),
    }


def test_the_parent_is_what_the_cell_says_or_what_is_given():
    rows = curve("none", [0.2] * 60) + curve("plain", [0.6] * 60)
    rows += curve("tent", fall(0.65, 0.4, at=30), parent="plain")
    assert found(rows)["tent", "plain"] == (0.5, 150)
    unsaid = [{key: value for key, value in row.items() if key != "parent"} for row in rows]
    assert ("tent", "plain") not in found(unsaid)
    assert found(unsaid, parents={"tent": "plain"})["tent", "plain"] == (0.5, 150)
    with pytest.raises(HapteraError, match="parents is 'plain'; a mapping"):
        collapse(tidy(unsaid), parents="plain")


def noisy(accuracies, runs, n, seed):
    """Runs of two adapters with binomial noise around their accuracies, one seed each; the rows of all of them."""
    generator = np.random.default_rng(seed)
    rows = []
    for run in range(runs):
        for adapter, accuracy in accuracies.items():
            rows += curve(adapter, generator.binomial(n, accuracy, 60) / n, n, seed=run)
    return collapse(tidy(rows))


def test_noise_around_the_same_accuracy_is_rarely_taken_for_collapse():
    answers = noisy({"none": 0.5, "tent": 0.5}, runs=100, n=100, seed=0)
    assert len(answers) == 100
    assert sum(row["value"] > 0 for row in answers) <= 5


def test_a_small_but_lasting_loss_is_found_through_the_noise():
    answers = noisy({"none": 0.5, "tent": np.repeat([0.55, 0.4], 30)}, runs=50, n=200, seed=1)
    assert all(row["value"] > 0 for row in answers)
    assert np.median([row["step"] for row in answers]) == pytest.approx(150, abs=15)


def test_a_collapse_from_the_beginning_takes_the_whole_stream():
    assert found(curve("none", [0.5] * 8) + curve("tent", [0.2] * 8)) == {("tent", "none"): (1.0, 0)}


def test_every_part_of_a_stream_has_its_own_answer():
    rows = []
    for part, low in (("fog 1", 0.6), ("fog 5", 0.1)):
        rows += curve("none", [0.5] * 40, stream="corruptions", part=part)
        rows += curve("tent", fall(0.6, low, at=20, length=40), stream="corruptions", part=part)
    values = {row["part"]: (row["value"], row["shift"]) for row in collapse(tidy(rows))}
    assert values == {"fog 1": (0.0, "fog"), "fog 5": (0.5, "fog")}


def test_seeds_and_models_without_a_partner_are_left_out():
    rows = curve("none", [0.5] * 10) + curve("tent", [0.2] * 10, seed=1)
    assert collapse(tidy(rows)) == []
