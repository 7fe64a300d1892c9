"""Definition 1 as a verdict: against the obvious loop, and on classes whose answer is known."""

import numpy as np
import pandas as pd
import pytest

import haptera
from haptera.analyses.dependencies.second_moment import SecondMoment
from haptera.analyses.dependencies.verdict import GRID, Definition, FewClasses, judge, verdicts
from haptera.errors import HapteraError


def batches(logits, targets, size=64):
    for first in range(0, len(logits), size):
        rows = slice(first, first + size)
        yield logits[rows], logits[rows], None if targets is None else targets[rows]


def made(samples=900, classes=12, seed=0):
    generator = np.random.default_rng(seed)
    targets = generator.integers(0, classes, samples)
    logits = generator.standard_normal((samples, 6)) @ generator.standard_normal((6, classes))
    return logits + 0.4 * generator.standard_normal((samples, classes)) + 4 * np.eye(classes)[targets], targets


def test_a_judgement_is_what_the_loop_says():
    logits, targets = made()
    fit, rest = slice(0, 450), slice(450, None)
    few = FewClasses(SecondMoment.of(logits[fit]), 8)
    asked = Definition(at_most=4, epsilon=0.6, delta=0.2, keep=0.5)
    found = judge(few, batches(logits[rest], targets[rest]), SecondMoment.of(logits[rest]), asked)
    own, right = logits[rest], targets[rest]
    for place in range(12):
        for step in (*(1, 2, 3, 4, 5, 6), 8):
            on = few.order[place, :step]
            theta = np.linalg.lstsq(logits[fit][:, on], logits[fit][:, place], rcond=None)[0]
            derived = own.copy()
            derived[:, place] = own[:, on] @ theta
            if step != 4:
                continue
            error, size = np.abs(derived[:, place] - own[:, place]), np.sqrt((own[:, place] ** 2).mean())
            row = found.classes.iloc[place]
            assert row["delta"] == pytest.approx((error >= 0.6 * size).mean())
            assert row["relative_error"] == pytest.approx((error**2).mean() / size**2)
            holds = [share for share in GRID if (error >= share * size).mean() <= 0.2]
            assert row["epsilon"] == pytest.approx(min(holds))
            mine = right == place
            assert row["images"] == mine.sum()
            assert row["own_before"] == pytest.approx((own[mine].argmax(1) == place).mean())
            assert row["own_after"] == pytest.approx((derived[mine].argmax(1) == place).mean())
            lost = (own.argmax(1) == right).sum() - (derived.argmax(1) == right).sum()
            assert row["lost"] == pytest.approx(lost / (own[mine].argmax(1) == place).sum())
    curve = found.curve.set_index("classes")
    assert list(curve.index) == [1, 2, 3, 4, 5, 6, 8]
    assert curve.loc[4, "own_after"] == pytest.approx(found.classes["own_after"].mean())
    assert curve.loc[4, "close"] == (found.classes["delta"] < 0.2).mean()
    assert curve.loc[4, "relative_error"] == pytest.approx(found.classes["relative_error"].median())
    assert (np.diff(few_errors(few)) <= 1e-12).all()


def few_errors(few):
    return [few.at(step).error.sum() for step in range(1, 9)]


def test_verdicts_by_hand():
    frame = pd.DataFrame(
        {
            "images": [50, 50, 50, 50, 2, 50],
            "own_before": [0.9, 0.9, 0.9, 0.9, 1.0, 0.0],
            "own_after": [0.9, 0.72, 0.71, 0.9, 1.0, 0.0],
            "lost": [0.0, 0.2, 0.2, 0.3, 0.0, np.nan],
        }
    )
    close = pd.Series([False, True, True, True, True, True])
    assert verdicts(frame, close, Definition()).tolist() == [
        "too far off", "dependency", "costs its images", "costs others' images", "images unknown", "images unknown",
    ]  # fmt: skip


def test_close_everywhere_but_on_its_own_images_is_no_dependency(tmp_path):
    """A class that follows from two others but for its own images, one in twenty: the trap of a small mean error."""
    generator = np.random.default_rng(0)
    targets = np.arange(4000) % 20
    logits = 3 * generator.standard_normal((4000, 3)) @ generator.standard_normal((3, 20))
    logits += 0.1 * generator.standard_normal(logits.shape)
    logits[np.arange(4000), targets] += 30
    logits[:, 19] = logits[:, 0] + logits[:, 1]
    logits[targets == 19, 19] = logits[targets == 19].max(1) + 1
    np.savez(tmp_path / "net.npz", logits=logits, targets=targets)
    table = haptera.dependencies(tmp_path / "net.npz", at_most=2, resamples=0).judgement.classes
    assert table["delta"][19] < 0.1
    assert table["own_before"][19] == 1
    assert table["own_after"][19] < 0.5
    assert table["verdict"][19] == "costs its images"


def test_a_class_that_is_a_sum_of_two_others_has_a_dependency_and_needs_two(tmp_path):
    logits, _ = made(classes=14)
    logits[:, 7] = 0.7 * logits[:, 1] + 0.6 * logits[:, 2]
    np.savez(tmp_path / "net.npz", logits=logits, targets=logits.argmax(1))
    analysis = haptera.dependencies(tmp_path / "net.npz", at_most=3)
    assert analysis.judgement.classes["verdict"][7] == "dependency"
    assert analysis.ranking[0] in (1, 2, 7)
    stable = analysis.stable_edges
    own = stable[stable["class"] == 7].set_index("on")["coefficient"]
    assert own[1] == pytest.approx(0.7, abs=0.02)
    assert own[2] == pytest.approx(0.6, abs=0.02)
    curve = analysis.judgement.curve
    assert curve["dependencies"][0] == 0 < curve["dependencies"][1]


def test_rescaling_the_logits_changes_nothing_but_their_unit(tmp_path):
    logits, targets = made()
    for name, rows in {"one": logits, "two": 37.5 * logits}.items():
        np.savez(tmp_path / f"{name}.npz", logits=rows, targets=targets)
    one, two = (haptera.dependencies(tmp_path / f"{name}.npz", resamples=10) for name in ("one", "two"))
    pd.testing.assert_frame_equal(one.judgement.classes, two.judgement.classes)
    pd.testing.assert_frame_equal(one.stable_edges, two.stable_edges)
    pd.testing.assert_frame_equal(one.edges.drop(columns="covariance"), two.edges.drop(columns="covariance"))
    source = [
        haptera.dependencies(tmp_path / f"{name}.npz", unit="logit", alpha=1.0, resamples=0) for name in ("one", "two")
    ]
    assert source[0].dependencies.counts.sum() != source[1].dependencies.counts.sum()


def test_rescaling_one_class_changes_no_edge(tmp_path):
    logits, _ = made()
    scales = np.exp(np.random.default_rng(1).normal(0, 2, 12))
    np.savez(tmp_path / "one.npz", logits=logits)
    np.savez(tmp_path / "two.npz", logits=logits * scales)
    one, two = (haptera.dependencies(tmp_path / f"{name}.npz", resamples=10) for name in ("one", "two"))
    ends = ["class", "on", "share"]
    pd.testing.assert_frame_equal(one.stable_edges[ends], two.stable_edges[ends])
    assert np.array_equal(one.dependencies.coefficients.indices, two.dependencies.coefficients.indices)
    assert one.judgement.classes["delta"].tolist() == two.judgement.classes["delta"].tolist()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"at_most": 0}, "at_most is 0"),
        ({"epsilon": -1.0}, "epsilon is -1"),
        ({"delta": 2.0}, "delta is 2"),
        ({"keep": 0.0}, "keep is 0"),
        ({"resamples": -1}, "resamples is -1"),
        ({"unit": "owm"}, "did you mean 'own'"),
        ({"atmost": 3}, "did you mean 'at_most'"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path, settings, message):
    np.savez(tmp_path / "net.npz", logits=made()[0])
    with pytest.raises(HapteraError, match=message):
        haptera.dependencies(tmp_path / "net.npz", **settings)
