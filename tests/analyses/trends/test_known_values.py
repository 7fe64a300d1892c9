"""The figures of the source on its own predictions, as exact counts where they are counts.

The files are not part of the repository; they are looked for beside it, in `../shared/data`.
"""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from haptera.analyses.trends.analysis import Trends
from haptera.analyses.trends.closeness import closeness, events
from haptera.analyses.trends.dominance import share_below, zeta
from haptera.analyses.trends.guarantee import corollary, region, triplet_residuals
from haptera.analyses.trends.own_bound import tolerated
from haptera.analyses.trends.reading import read_side
from haptera.analyses.trends.residual_bound import lower_bounds, residual_bound
from haptera.analyses.trends.side import join
from haptera.analyses.trends.wedge import Wedge
from haptera.statistics.line import fit, r_squared

DATA = Path(__file__).parents[4] / "shared" / "data"
WHOLE, MOST = Wedge(0.31, 0.38, 0.005, 0.008), Wedge(0, 0.25, 0.005, 0.005)


def analysis(name, *sides, **settings):
    path = DATA / name
    if not path.is_file():
        pytest.skip(f"there is no {path}")
    return Trends(join(*(read_side(f"{path}:{side}" if side else str(path)) for side in sides)), **settings)


@pytest.fixture(scope="module")
def imagenet():
    return analysis("imagenet_66_models_correct.npz", "imagenet", "imagenetv2", wedge=WHOLE, draws=50)


@pytest.fixture(scope="module")
def cifar():
    return analysis("cifar10_30_models_correct.npz", "cifar10", "cifar10_1", draws=50)


def test_events_of_66_models(imagenet):
    assert imagenet.events.asked.events == 274_560
    assert imagenet.events.asked.outside == 0
    most = closeness(*imagenet.events.counts, MOST)
    assert most.events - most.outside == 259_427


def test_narrowest_wedges_of_66_models_hold_what_they_should(imagenet):
    for share, held in ((1.0, imagenet.events.frontiers[1.0]), (0.95, imagenet.events.frontiers[0.95])):
        bounds = held["bound"].to_numpy()
        reached = Wedge(*(held.iloc[bounds.argmin()][["delta1", "delta2", "nu", "nu"]].to_numpy(float)))
        assert closeness(*imagenet.events.counts, reached).share_inside >= share
        printed = WHOLE if share == 1 else MOST
        span = np.ptp(imagenet.accuracies[0])
        assert bounds.min() <= corollary(span, printed) + 0.0005  # as good as what was found by eye, or better


def test_linear_and_probit_fits_of_66_models(imagenet):
    fits = imagenet.fits.set_index("fit")
    assert round(fits["r2"]["linear"], 5) == 0.98824
    assert round(fits["max_residual"]["linear"], 4) == 0.0443
    assert round(fits["r2"]["probit"], 5) == 0.99802
    assert round(fits["max_residual"]["probit"], 4) == 0.0099


def test_two_pieces_of_66_models(imagenet):
    x, y = imagenet.accuracies
    for joined, expected in ((True, 0.99720), (False, 0.99744)):
        found = fit(x, y, "two_piece", switch=6, joined=joined)
        assert round(r_squared(y, found.residual), 5) == expected
        assert (x <= found.line.switch).sum() == 6


def test_dominance_of_66_models(imagenet):
    pairs = imagenet.pairs
    assert len(pairs) == 2145
    assert round(share_below(pairs, 0.05) * len(pairs)) == 1558
    assert (pairs["count"] == 2500).sum() == 4
    largest = pairs.loc[pairs["dominance"].idxmax()]
    assert (largest["worse"], largest["better"], largest["dominance"]) == ("alexnet", "squeezenet1_0", 0.09094)
    assert round(pairs["excess"].mean(), 3) == 0.218


def test_dominance_falls_as_the_difference_of_66_models_grows(imagenet):
    pairs = imagenet.pairs
    assert round(spearmanr(pairs["difference"], pairs["dominance"]).statistic, 3) == -0.779
    small, large = pairs[pairs["difference"] < 0.01], pairs[pairs["difference"] >= 0.4]
    assert (round(small["dominance"].mean(), 4), round(large["dominance"].mean(), 4)) == (0.0557, 0.0133)
    assert large["dominance"].max() < small["dominance"].median()
    random, found = np.random.default_rng(0), []
    for _ in range(200):  # other models, drawn from these
        drawn = Counter(random.choice(imagenet.models, 66))
        weight = pairs["worse"].map(drawn).fillna(0) * pairs["better"].map(drawn).fillna(0)
        again = pairs.loc[pairs.index.repeat(weight.astype(int))]
        found.append(spearmanr(again["difference"], again["dominance"]).statistic)
    assert np.percentile(found, 97.5) < -0.6


def test_how_far_accuracies_fall(imagenet, cifar):
    falls = [100 * (before - after) for before, after in (imagenet.accuracies, cifar.accuracies)]
    assert [(round(fall.min(), 1), round(fall.max(), 1)) for fall in falls] == [(6.2, 13.6), (4.1, 15.4)]
    assert ((falls[0] > 10.5) & (falls[0] < 14.5)).sum() == 64
    least = falls[0].argsort()[:2]
    assert {imagenet.models[at]: round(falls[0][at], 1) for at in least} == {"fv_4k": 6.2, "nasnetalarge": 10.3}


def test_guarantees_of_66_models(imagenet):
    triplets = imagenet.guarantee.triplets
    assert len(triplets) == 45_760
    assert not triplets["broken"].any()
    assert round(triplets["residual"].max(), 4) == 0.0444
    assert triplet_residuals(*imagenet.accuracies, MOST)["broken"].sum() == 155
    assert round(imagenet.guarantee.bound, 3) == 0.107
    assert round(imagenet.guarantee.best, 4) == 0.0222


def test_there_is_a_line_of_66_and_of_30_models(imagenet, cifar):
    for trends, models in ((imagenet, 66), (cifar, 30)):
        assert (trends.verdict.word, trends.verdict.models) == ("yes", models)
        assert trends.verdict.low > 0.97
        assert trends.verdict.sampling < trends.verdict.left_out < 0.15 * trends.verdict.without
        assert trends.verdict.beyond


@pytest.mark.long
def test_the_guarantee_at_the_own_zeta_of_66_models(imagenet):
    whole, *pieces = imagenet.own_bounds
    assert whole.ends == ("fv_4k", "pnasnet_large_tf")
    assert whole.zeta == 0.04068
    assert (whole.models["residual"] <= whole.models["bound"]).all()
    assert whole.models["ordered"].max() < whole.value < imagenet.asked_bound.value
    assert max(piece.value for piece in pieces) < whole.value / 2
    # Three models at the largest dominance of any pair: more than twice what proposition 1 says.
    assert round(residual_bound([0.6, 0.7, 0.8], WHOLE, zeta(imagenet.pairs)).value, 3) == 0.123


def test_most_events_outside_are_tolerated(imagenet):
    outside = closeness(*imagenet.events.counts, MOST).outside
    found = tolerated(imagenet.accuracies[0], imagenet.events.counts, imagenet.models, MOST)
    assert found["outside"] == outside == 274_560 - 259_427
    assert found["needed"] < 0.01 * outside


@pytest.mark.long
def test_no_file_of_the_source_is_suspected(imagenet):
    plain = Trends(imagenet.sides, draws=50)
    assert plain.outliers == ["fv_4k"]
    assert plain.suspects == []
    assert [each.question for each in plain.findings() if each.word == "look at"] == ["Who is unlike the others?"]


def test_events_of_30_models(cifar):
    wide, narrow = Wedge(0, 1.7, 0.005, 0.02), Wedge(0, 0.8, 0.005, 0.01)
    assert cifar.events.asked.events == 24_360
    assert closeness(*cifar.events.counts, wide).outside == 0
    assert round(closeness(*cifar.events.counts, narrow).share_inside, 4) == 0.9514
    assert closeness(*cifar.events.counts, narrow).large == 3775
    assert round(closeness(*cifar.events.counts, narrow).large_inside, 4) == 0.9910
    large = events(*cifar.events.counts)
    large = large[(large["p"] * 10_000).round() >= 300]
    inside = (large["q"] <= narrow.upper(large["p"]) + 1e-12) & (large["q"] >= narrow.lower(large["p"]) - 1e-12)
    assert len(large) == 3775
    assert round(inside.mean(), 4) == 0.9910


def test_dominance_of_30_models(cifar):
    assert zeta(cifar.pairs) == 0.0729
    assert round((cifar.pairs["count"] <= 400).mean(), 3) == 0.977


@pytest.mark.long
def test_one_file_in_another_order_is_the_outlier(imagenet):
    names = list(imagenet.models)
    shifted = imagenet.sides.shifted.correct.copy()
    moved = names.index("resnet50")
    shifted[moved] = np.random.default_rng(0).permutation(shifted[moved])
    side = type(imagenet.sides.shifted).of_correct("moved", names, shifted)
    found = Trends(join(imagenet.sides.reference, side), draws=50)
    assert found.outliers[0] == "resnet50"
    assert found.suspects == ["resnet50"]


def test_the_json_of_66_models(imagenet):
    content = imagenet.json()
    assert content["models"] == 66
    assert (content["events"]["count"], content["events"]["outside"]) == (274_560, 0)
    assert content["events"]["wedge"] == list(WHOLE)
    assert content["dominance"]["pairs"] == 2145
    assert content["dominance"]["max"] == 0.09094
    assert content["dominance"]["share_below_0.05"] == 1558 / 2145
    assert content["bound"] == pytest.approx(0.107, abs=5e-4)
    assert content["outliers"] == []
    assert len(content["effective_robustness"]) == 66


def test_results_of_timm_are_read_by_name_and_largest_size():
    files = [DATA / name for name in ("results-imagenet.csv", "results-imagenetv2-matched-frequency.csv")]
    if not all(path.is_file() for path in files):
        pytest.skip(f"there is no {files[0]}")
    joined = join(*map(read_side, map(str, files)))
    assert len(joined.reference.models) == len(set(joined.reference.models)) == 1266
    assert joined.reference.accuracy.max() == pytest.approx(0.90056)
    assert sum("top1 is in percent" in note for note in joined.notes) == 2
    assert sum("290 rows" in note for note in joined.notes) == 2


def test_lower_bounds_follow_the_probit_curve_in_the_narrow_wedge_and_not_in_the_wide_one(imagenet):
    """Figure 4: where the curve is above the least accuracy that (6) allows between the worst and the best model."""
    x, y = imagenet.accuracies
    line = fit(x, y, "probit").line

    def gaps(wedge, zeta):
        bounds = lower_bounds(x, y, wedge, (zeta,))
        return line(bounds["accuracy"].to_numpy()) - bounds["least"].to_numpy()

    assert [round(end(gaps(MOST, 0.0)), 3) for end in (min, max)] == [0.002, 0.011]
    assert [round(end(gaps(MOST, 0.05)), 3) for end in (min, max)] == [0.024, 0.032]
    assert [round(end(gaps(WHOLE, 0.05)), 3) for end in (min, max)] == [0.052, 0.126]


def test_regions_of_figure_2_are_exact_and_shrink_with_a_third_model():
    wedge, at = Wedge(0.2, 0.2, 0, 0), np.array([0.5, 0.6, 0.7])
    once = region(np.array([0.4, 0.8]), np.array([0.3, 0.7]), wedge, at)
    assert once["low"].tolist() == pytest.approx([0.37, 0.46, 0.57])
    assert once["high"].tolist() == pytest.approx([0.43, 0.54, 0.63])
    exact = [residual_bound((0.4, middle, 0.8), wedge, 0.0).value for middle in at]
    assert exact == pytest.approx([0.03, 0.04, 0.03])  # some distribution reaches the edge of the region
    thrice = region(np.array([0.4, 0.6, 0.8]), np.array([0.3, 0.46, 0.7]), wedge, at[[0, 2]])
    assert (thrice["high"] - thrice["low"]).tolist() == pytest.approx([0.01, 0.01])
