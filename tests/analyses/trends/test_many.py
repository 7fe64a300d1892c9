"""Many sets against one reference, and a line of chosen models that others are placed against."""

import numpy as np
import pandas as pd
import pytest

import haptera
from haptera.analyses.trends.analysis import Trends
from haptera.analyses.trends.many import ManyTrends
from haptera.analyses.trends.side import Side, join
from haptera.errors import HapteraError
from haptera.statistics.line import fit, r_squared
from haptera.theory.known_models import ProbitModels

NAMES = tuple(f"net-{place}" for place in range(12))
SKILLS = np.linspace(-0.2, 1.6, 12)
GAINS = np.random.default_rng(0).normal(0, 0.3, 12)


def sides(noise=0.5):
    """A reference, two sets on which the same models are robust, and one on which the others are."""
    found = []
    for place, gains in enumerate((GAINS, GAINS, -GAINS)):
        reference, shifted = ProbitModels(SKILLS, noise=noise, gains=gains).correct(800, 700, seed=place)
        found.append(Side.of_correct(f"set-{place}", NAMES, shifted))
    return Side.of_correct("clean", NAMES, reference), found


@pytest.fixture(scope="module")
def many():
    reference, others = sides()
    return ManyTrends.of(reference, others, draws=60, fit="probit")


def test_each_set_has_the_line_that_it_has_alone(many):
    reference, others = sides()
    alone = Trends(join(reference, others[1]), draws=60, fit="probit")
    assert many.trends["set-1"].verdict == alone.verdict
    pd.testing.assert_frame_equal(many.trends["set-1"].robustness, alone.robustness)
    assert many.verdicts["set"].tolist() == ["set-0", "set-1", "set-2"]


def test_r2_is_that_of_every_pair_of_sets(many):
    assert len(many.r2) == 12
    row = many.r2[(many.r2["from"] == "set-0") & (many.r2["to"] == "set-1")].iloc[0]
    x, y = (side.accuracy for side in sides()[1][:2])
    assert row["r2"] == pytest.approx(r_squared(y, fit(x, y, "probit").residual))


def test_sets_on_which_the_same_models_are_robust_agree(many):
    found = many.agreement.set_index(["one", "other"])["agree"].to_dict()
    assert found["set-0", "set-1"] == "agree"
    assert found["set-0", "set-2"] == "disagree"


def test_models_that_a_set_does_not_have_are_missing_there():
    reference, others = sides()
    found = ManyTrends.of(reference, [others[0], others[1].only(NAMES[:9])], draws=60)
    assert len(found.models) == 12
    assert found.accuracies["set-1"].isna().sum() == 3
    assert found.accuracies["set-1"]["net-2"] == others[1].accuracy[2]


def test_columns_of_a_wide_table_and_several_files_are_sets(tmp_path):
    reference, others = sides()
    frame = pd.DataFrame({"model": NAMES, "val": reference.accuracy, "v2": others[0].accuracy, "a": others[1].accuracy})
    frame.to_csv(tmp_path / "wide.csv", index=False)
    wide = haptera.trends(f"{tmp_path}/wide.csv:val", f"{tmp_path}/wide.csv", draws=60)
    assert list(wide.trends) == ["v2", "a"]
    files = haptera.trends(
        f"{tmp_path}/wide.csv:val", f"{tmp_path}/wide.csv:v2", f"{tmp_path}/wide.csv:a", draws=60, fit="linear"
    )
    assert files.json()["verdicts"][0]["set"] == "v2"
    with pytest.raises(HapteraError, match="given twice"):
        haptera.trends(f"{tmp_path}/wide.csv:val", f"{tmp_path}/wide.csv:v2", f"{tmp_path}/wide.csv:v2")
    with pytest.raises(HapteraError, match="needs shifted data"):
        haptera.trends(f"{tmp_path}/wide.csv:val")


def test_arrays_of_a_file_are_sets(tmp_path):
    reference, others = sides()
    arrays = {"val": reference, "one": others[0], "two": others[1]}
    packed = {name: np.packbits(side.correct, axis=1) for name, side in arrays.items()}
    sizes = {f"{name}_n": side.correct.shape[1] for name, side in arrays.items()}
    np.savez(tmp_path / "all.npz", models=np.array(NAMES), **packed, **sizes)
    found = haptera.trends(f"{tmp_path}/all.npz:val", f"{tmp_path}/all.npz", draws=60)
    assert list(found.trends) == ["one", "two"]
    assert found.trends["two"].accuracies[1].tolist() == others[1].accuracy.tolist()


def robust_ones():
    """Two of twelve models gain, and take the line of all with them."""
    gains = np.where(np.arange(12) > 9, 0.6, 0.0)
    reference, shifted = ProbitModels(SKILLS, gains=gains).correct(5000, 5000)
    return Side.of_correct("a", NAMES, reference), Side.of_correct("b", NAMES, shifted)


@pytest.mark.long
def test_others_are_placed_against_the_line_of_standard_models():
    one, other = robust_ones()
    standard = [f"net-{place}" for place in range(10)]
    found = Trends(join(one, other), draws=60, fit="probit", standard=["net-?"])
    line = fit(one.accuracy[:10], other.accuracy[:10], "probit").line
    rows = found.robustness.set_index("model")
    for name in ("net-10", "net-11"):
        place = NAMES.index(name)
        assert rows["effective"][name] == pytest.approx(other.accuracy[place] - float(line(one.accuracy[place])))
        assert rows["effective_low"][name] > 0.05
    alone = Trends(join(one.only(standard), other.only(standard)), draws=60, fit="probit")
    assert found.verdict.r2 == pytest.approx(alone.verdict.r2)
    assert found.verdict.models == 10
    assert found.fits.set_index("fit")["left_out"].to_dict() == pytest.approx(
        alone.fits.set_index("fit")["left_out"].to_dict()
    )
    everyone = Trends(join(one, other), draws=60, fit="probit").robustness.set_index("model")
    assert rows["effective"]["net-11"] > everyone["effective"]["net-11"]
    assert any("10 standard models; 2 others" in finding.sentence for finding in found.findings())


def test_relative_robustness_is_above_the_line_at_the_best_standard_model():
    one, other = robust_ones()
    found = Trends(join(one, other), draws=60, fit="probit", standard=["net-?"])
    line = fit(one.accuracy[:10], other.accuracy[:10], "probit").line
    row = found.robustness.set_index("model").loc["net-11"]
    assert row["relative"] == pytest.approx(other.accuracy[11] - float(line(one.accuracy[9])))
    assert row["relative_low"] < row["relative"] < row["relative_high"]


def test_a_column_of_groups_names_the_standard_models(tmp_path):
    one, other = robust_ones()
    groups = ["Standard"] * 10 + ["robust"] * 2
    for name, side in (("a", one), ("b", other)):
        frame = pd.DataFrame({"model": NAMES, "accuracy": side.accuracy, "group": groups})
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
        np.savez(tmp_path / f"{name}.npz", models=np.array(NAMES), correct=side.correct, groups=groups)
    for ending in ("csv", "npz"):
        found = haptera.trends(tmp_path / f"a.{ending}", tmp_path / f"b.{ending}", draws=60)
        assert found.seen.tolist() == [True] * 10 + [False] * 2


@pytest.mark.parametrize(
    ("patterns", "message"),
    [(["nett-1"], "did you mean 'net-1'"), (["net-1", "net-2"], "2 standard models; at least 3")],
)
def test_patterns_that_name_too_few_are_refused(patterns, message):
    with pytest.raises(HapteraError, match=message):
        Trends(join(*robust_ones()), standard=patterns)
