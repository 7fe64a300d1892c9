"""Uses of dependencies: removal, pairs by a computed similarity, theorems, new classes, before and after."""

import numpy as np
import pandas as pd
import pytest

import haptera
from haptera.analyses.dependencies import compare_cut, learn_new_classes
from haptera.analyses.dependencies.covariance_lasso import CovarianceLasso
from haptera.analyses.dependencies.cutting import cut_state
from haptera.analyses.dependencies.new_classes import NewClasses, accuracy_by_group
from haptera.analyses.dependencies.replacement import removable, without
from haptera.analyses.dependencies.screening import Screening
from haptera.analyses.dependencies.second_moment import SecondMoment
from haptera.analyses.dependencies.similarity import confusion_similarity, feature_similarity
from haptera.analyses.dependencies.theorems import SHARES, theorems_table
from haptera.errors import HapteraError


def made(samples=800, classes=10, seed=0):
    generator = np.random.default_rng(seed)
    targets = generator.integers(0, classes, samples)
    features = generator.standard_normal((samples, 6)) + 2 * generator.standard_normal((classes, 6))[targets]
    logits = features @ generator.standard_normal((6, classes)) + 4 * np.eye(classes)[targets]
    return logits + 0.3 * generator.standard_normal((samples, classes)), targets, features


@pytest.fixture
def saved(tmp_path):
    logits, targets, features = made()
    np.savez(tmp_path / "net.npz", logits=logits, targets=targets, features=features)
    return tmp_path / "net.npz"


def test_theorems_hold_on_the_data_and_are_what_a_loop_finds():
    logits, _, _ = made()
    moment = SecondMoment.of(logits).scaled()
    table = theorems_table(Screening(moment)).set_index("share")
    assert tuple(table.index) == SHARES
    assert (table["screened_wrongly"] == 0).all()
    assert (table["slope"] <= 1 + 1e-9).all()
    matrix = moment.matrix()
    largest, excluded, wrong, edges = 0.0, 0, 0, 0
    for place in range(10):
        top = 2 * np.abs(np.delete(matrix[place], place)).max()
        theta = CovarianceLasso(0.25 * top).fit_moment(matrix).coef_[place]  # λ is half of λ_max
        slope = (matrix @ theta - matrix[place]) / (0.5 * top) + matrix[place] / top
        left = np.delete(np.delete(matrix, place, 0), place, 1)
        reach = np.delete(matrix[place], place) @ np.linalg.solve(left, np.delete(matrix[place], place))
        for other in np.delete(np.arange(10), place):
            bound = np.sqrt(matrix[other, other] * reach) * abs(1 / (0.5 * top) - 1 / top)
            largest = max(largest, abs(slope[other]) / bound)
            excluded += abs(matrix[place, other]) < 0.25 * top
            edges += theta[other] != 0
            wrong += abs(matrix[place, other]) < 0.25 * top and theta[other] != 0
    assert table.loc[0.5, "slope"] == pytest.approx(largest, rel=1e-6)
    assert table.loc[0.5, "excluded"] == pytest.approx(excluded / 90)
    assert table.loc[0.5, "dependencies"] == pytest.approx(edges / 10)
    assert table.loc[0.5, "excluded_wrongly"] == pytest.approx(wrong / max(edges, 1))


def test_removal_is_decided_on_one_half_and_judged_on_the_other(saved):
    logits, targets, _ = made()
    analysis = haptera.dependencies(saved, remove=0.02, alpha=0.01)
    fitted = analysis.fitted_on
    gone = removable(logits[fitted], targets[fitted], analysis.lasso, drop=0.02)
    assert analysis.removal.gone["class"].tolist() == gone["class"].tolist()
    assert len(gone)
    rest, right = logits[~fitted], targets[~fitted]
    assert analysis.removal.before == pytest.approx((rest.argmax(1) == right).mean())
    assert analysis.removal.after == pytest.approx((without(rest, gone).argmax(1) == right).mean())
    assert haptera.dependencies(saved).removal is None


def test_similarities_are_what_a_loop_finds():
    logits, targets, features = made()
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    means = np.stack([shares[targets == place].mean(0) for place in range(10)])
    found = confusion_similarity(
        [(logits[:300], logits[:300], targets[:300]), (logits, logits[300:], targets[300:])], 10
    )
    assert found[2, 5] == pytest.approx(np.sqrt(means[2] * means[5]).sum())
    assert found.diagonal() == pytest.approx(1)
    centred = np.stack([(features - features.mean(0))[targets == place].mean(0) for place in range(10)])
    cosine = centred[2] @ centred[5] / np.linalg.norm(centred[2]) / np.linalg.norm(centred[5])
    assert feature_similarity(features, targets, 10)[2, 5] == pytest.approx(max(cosine, 0))


def test_pairs_are_strong_stable_edges_among_unlike_classes(saved, tmp_path):
    plain = haptera.dependencies(saved, similarity="none", false_edges=1.0).pairs
    assert (plain["share"] >= 0.5).all()
    assert plain["score"].tolist() == pytest.approx(plain["strength"].tolist())
    first = plain.iloc[0]
    alike = np.zeros((10, 10))
    alike[int(first["class"]), int(first["on"])] = 1
    np.savez(tmp_path / "alike.npz", similarity=alike)
    given = haptera.dependencies(saved, similarity=str(tmp_path / "alike.npz"), false_edges=1.0).pairs
    last = given.iloc[-1]
    assert (last["class"], last["on"], last["score"]) == (first["class"], first["on"], 0)
    assert haptera.dependencies(saved, similarity="features", false_edges=1.0).pairs["similarity"].max() > 0
    for wrong, message in {"confusoin": "did you mean 'confusion'", "net.npz": "there is no"}.items():
        with pytest.raises(HapteraError, match=message):
            haptera.dependencies(saved, similarity=wrong).pairs  # noqa: B018


def test_a_trial_takes_classes_away_and_learns_them(saved):
    logits, targets, _ = made()
    trial = learn_new_classes(saved, new=3, runs=2)
    means = trial.means.set_index(["learnt_on", "method", "group"])["mean"]
    assert means["all classes", "old logits, dense", "new within"] > 0.6
    assert means["all classes", "network trained on all classes", "all"] == pytest.approx(
        (logits.argmax(1) == targets).mean(), abs=0.05
    )
    assert {"old logits, sparse", "new linear head"} <= set(trial.rows["method"])
    assert (trial.rows.query("group == 'seconds' and method == 'old logits, dense'")["value"] > 0).all()
    generator = np.random.default_rng([0, 0])
    taken = np.sort(generator.permutation(10)[:3])
    order = [*(place for place in range(10) if place not in taken), *taken]
    shuffled = generator.permutation(800)
    moved = np.array([order.index(target) for target in targets])
    base = logits[:, order[:7]]
    fitted = NewClasses(3, most=120).fit(base[shuffled[:400]], moved[shuffled[:400]])
    expected = accuracy_by_group(fitted.logits(base[shuffled[400:]]), moved[shuffled[400:]], 7)
    found = trial.rows.query("run == 0 and learnt_on == 'all classes' and method == 'old logits, dense'")
    values = found.set_index("group")["value"]
    assert [values[each.group] for each in expected] == pytest.approx([each.value for each in expected])


def test_one_new_class_is_judged_on_as_many_others_and_unseen_classes_are_taken_as_they_are(tmp_path):
    logits, targets, _ = made()
    np.savez(tmp_path / "all.npz", logits=logits, targets=targets)
    one = learn_new_classes(tmp_path / "all.npz", new=1, runs=1)
    assert "positives and negatives" in set(one.rows["group"])
    assert "trained on the classes" in one.notes[0]
    np.savez(tmp_path / "never.npz", logits=logits[:, :8], targets=targets)
    never = learn_new_classes(tmp_path / "never.npz")
    assert (never.new, never.runs, never.notes) == (2, 1, [])
    assert "network trained on all classes" not in set(never.rows["method"])
    with pytest.raises(HapteraError, match="targets hold 8"):
        haptera.dependencies(tmp_path / "never.npz")
    for settings, message in [({"new": 9}, "new is 9"), ({"runs": 0}, "runs is 0"), ({"sparse": 0.0}, "sparse is 0")]:
        with pytest.raises(HapteraError, match=message):
            learn_new_classes(tmp_path / "all.npz", **settings)
    np.savez(tmp_path / "none.npz", logits=logits)
    with pytest.raises(HapteraError, match="has no targets"):
        learn_new_classes(tmp_path / "none.npz")


def test_before_and_after_are_two_cut_states(tmp_path):
    logits, targets, _ = made()
    other = logits.copy()
    other[:, 3] = np.random.default_rng(1).standard_normal(800)
    for name, rows in {"before": logits, "after": other}.items():
        np.savez(tmp_path / f"{name}.npz", logits=rows, targets=targets, classes=[f"c{k}" for k in range(10)])
        np.savez(tmp_path / f"{name}-unseen.npz", logits=rows[::2] / 3)
    on, _ = CovarianceLasso(0.05, unit="own").fit(logits).dependencies_.on(3)[0]
    unseen = tmp_path / "before-unseen.npz", tmp_path / "after-unseen.npz"
    found = compare_cut(tmp_path / "before.npz", tmp_path / "after.npz", pair=("c3", str(on)), unseen=unseen)
    for state, rows in zip(found.states, (logits, other), strict=True):
        expected = cut_state(rows, targets, (3, on), alpha=0.05, unit="own", unseen=rows[::2] / 3)
        assert vars(state) == vars(expected)
    assert found.states[1].coefficient == 0 != found.states[0].coefficient
    assert found.json()["after"]["accuracy"] == found.states[1].accuracy
    assert pd.Series(found.table()["measure"]).str.contains("coefficient").any()
    assert found.pair == ("c3", f"c{on}")
    with pytest.raises(HapteraError, match="did you mean 'c5'"):
        compare_cut(tmp_path / "before.npz", tmp_path / "after.npz", pair=("c3", "cc5"))
