"""The analysis as a whole: what it says with correctness, with n, and with accuracies alone."""

import json

import numpy as np
import pytest

from haptera.analyses.trends import analysis, reasons
from haptera.analyses.trends.analysis import Trends
from haptera.analyses.trends.side import Side, join
from haptera.analyses.trends.wedge import Wedge
from haptera.errors import HapteraError
from haptera.theory.known_models import ProbitModels

NAMES = [f"net-{place}" for place in range(9)]
PROMISED = {
    "models", "linear", "probit", "two_piece", "dominance", "events", "bound", "outliers", "effective_robustness",
}  # fmt: skip


def sentence(trends, word):
    return next(finding.sentence for finding in trends.findings() if finding.word == word)


@pytest.fixture
def joined():
    reference, shifted = ProbitModels(np.linspace(-0.2, 1.6, 9), noise=0.4).correct(600, 400)
    return join(Side.of_correct("a", NAMES, reference), Side.of_correct("b", NAMES, shifted))


def alone(joined, n=None):
    """The same with accuracies alone, or with n."""
    return join(*(Side(side.source, side.models, side.accuracy, n) for side in (joined.reference, joined.shifted)))


def test_the_json_has_every_promised_key(joined):
    content = Trends(joined, draws=60).json()
    assert set(content) >= PROMISED
    for kind in ("linear", "probit"):
        assert set(content[kind]) >= {"slope", "intercept", "r2", "max_residual"}
    assert set(content["two_piece"]) >= {"pieces", "r2", "max_residual"}
    assert set(content["dominance"]) >= {"pairs", "max", "share_below_0.05"}
    assert set(content["events"]) >= {"count", "outside", "wedge", "large", "large_inside"}
    assert set(content["verdict"]) >= {"answer", "r2", "r2_interval", "left_out", "without_line", "sampling_alone"}
    assert content["own_bounds"][0]["piece"] == "all models"
    assert set(content["tolerated"]) >= {"outside", "needed", "tolerated"}
    assert set(content["effective_robustness"]) == set(NAMES)
    assert json.loads(json.dumps(content, allow_nan=False)) == content


def test_the_default_wedge_holds_all_and_a_given_one_is_tested(joined):
    default, given = Trends(joined, draws=60), Trends(joined, draws=60, wedge=Wedge(0, 0, 0, 0))
    assert default.events.asked.outside == 0
    assert default.events.most.share_inside >= 0.95
    assert given.events.asked.wedge == Wedge(0, 0, 0, 0)
    assert given.events.asked.outside > 400
    assert given.guarantee.bound == 0


def test_accuracies_alone_give_lines_and_robustness(joined):
    trends = Trends(alone(joined), draws=60)
    content = trends.json()
    assert content["dominance"] is content["events"] is content["bound"] is None
    assert content["intervals_over"] is None
    assert content["effective_robustness_interval"] is content["relative_robustness_interval"] is None
    assert "robustness has no interval" in content["notes"][0]
    assert "--n" in content["notes"][0]
    assert "nobody knows whether that is more than chance" in sentence(trends, "robust")
    assert set(content["linear"]["slope_interval"]) == {"models"}
    assert set(content["effective_robustness"]) == set(NAMES)
    assert "accuracies alone" in trends.headline()
    assert "over models" in sentence(trends, "fit")
    assert sentence(trends, "line").startswith(f"yes: the {trends.line} line of 9 models")
    assert content["verdict"]["sampling_alone"] is None
    assert Trends(alone(joined), draws=60, wedge=Wedge(0.3, 0.3, 0, 0)).guarantee.bound > 0


def test_with_n_intervals_are_over_examples(joined):
    trends = Trends(alone(joined, np.full(9, 500)), draws=60)
    assert trends.json()["intervals_over"] == "examples"
    assert set(trends.json()["probit"]["slope_interval"]) == {"examples", "models"}
    assert "500 and 500 examples" in trends.headline()
    assert "500 to 508 and 500 to 508 examples" in Trends(alone(joined, np.arange(500, 509)), draws=60).headline()


def test_a_far_accuracy_is_an_outlier_where_only_accuracies_are_known(joined):
    sides = alone(joined)
    sides.shifted.accuracy[4] = 0.02
    assert Trends(sides, draws=60).outliers[0] == "net-4"


def test_the_line_can_be_chosen(joined):
    found = {kind: Trends(joined, fit=kind, draws=60) for kind in ("linear", "two_piece", "best")}
    assert found["linear"].line == "linear"
    assert found["two_piece"].line == "two_piece"
    assert found["best"].line == found["best"].best or found["best"].best == "chebyshev"
    assert "is what was asked for" in sentence(found["two_piece"], "fit")
    given = Trends(joined, switch=3, fit="two_piece", draws=60)
    assert given.lines["two_piece"].line.switch == np.sort(joined.reference.accuracy)[2]
    assert given.robustness["effective_low"].notna().all()
    assert len(given.prediction(np.array([0.5, 0.6]), "examples")) == 2


def test_named_models_are_placed(joined):
    rows = Trends(joined, placed=["net-3", "net-8"], draws=60).places
    assert rows["model"].tolist() == ["net-3", "net-8"]
    assert rows["events"].tolist() == [168, 168]


@pytest.mark.long
def test_few_models_are_enough(joined):
    for size_ in (3, 4, 5):
        names = NAMES[:size_]
        few = join(joined.reference.only(names), joined.shifted.only(names))
        content = Trends(few, draws=60).json()
        assert content["models"] == size_
        assert (content["two_piece"] is None) == (size_ < 4)
        assert content["outliers"] == []


def test_too_few_models_for_two_pieces_are_said_to_be(joined):
    few = join(joined.reference.only(NAMES[:3]), joined.shifted.only(NAMES[:3]))
    with pytest.raises(HapteraError, match="too few for two pieces"):
        Trends(few, fit="two_piece", draws=60).findings()


def test_the_same_data_twice_is_close_with_no_room_at_all(joined):
    same = Trends(join(joined.reference, joined.reference), draws=60)
    assert same.events.asked.wedge == Wedge(0, 0, 0, 0)
    assert same.guarantee.bound == 0
    assert same.outliers == []


def test_models_of_one_accuracy_have_no_line(joined):
    same = join(*(Side("a", tuple(NAMES), np.full(9, 0.5)) for _ in range(2)))
    with pytest.raises(HapteraError, match="the same accuracy"):
        Trends(same, draws=60).json()


def test_accuracies_alone_never_claim_that_a_model_is_off_the_line(joined):
    """Of 1,266 published models 92.9 % were said to be off it; with sizes it is 6.6 %."""
    trends = Trends(alone(joined), draws=60)
    ends = trends.robustness[["effective_low", "effective_high", "relative_low", "relative_high"]]
    assert ends.isna().all(axis=None)
    assert trends.places.empty
    assert Trends(alone(joined), draws=60, placed=["net-3"]).places["case"].tolist() == ["no interval, so no case"]
    n = join(*(side.with_n(500) for side in (alone(joined).reference, alone(joined).shifted)))
    assert Trends(n, draws=60).robustness["effective_low"].notna().all()


def test_n_is_not_given_against_what_a_side_says(joined):
    with pytest.raises(HapteraError, match="n is 500, but a itself says 600"):
        joined.reference.with_n(500)
    with pytest.raises(HapteraError, match="n of a is 0"):
        alone(joined).reference.with_n(0)


def test_many_models_are_drawn_less_often_and_their_triplets_are_not_counted(joined, monkeypatch):
    monkeypatch.setattr(analysis, "BUDGET", 9 * 300)
    monkeypatch.setattr(reasons, "MOST_IN_EVENTS", 8)
    trends = Trends(joined, draws=500)
    assert trends.over["models"].weights.shape == (300, 9)
    assert trends.over["examples"].reference.shape == (300, 9)
    assert trends.events is None
    assert trends.pairs is not None
    assert any("9 models are drawn 300 times, not 500" in note for note in trends.notes)
    assert any("too many to look at every triplet of them" in note for note in trends.notes)


def test_accuracies_of_0_and_1_need_n_on_probit_axes(joined):
    sides = alone(joined)
    sides.reference.accuracy[8] = 1.0
    with pytest.raises(HapteraError, match=r"a: net-8 with an accuracy of 0 or 1 .* a probit fit needs n"):
        Trends(sides, draws=60, fit="probit")
    trends = Trends(sides, draws=60)
    assert set(trends.lines) == {"linear", "two_piece", "chebyshev", "robust"}
    assert trends.json()["probit"] is None
    assert trends.json()["linear"]["r2"] > 0.5
    assert any("net-8 with an accuracy of 0 or 1" in note and "left out" in note for note in trends.notes)
    sized = alone(joined, np.full(9, 400))
    sized.reference.accuracy[8] = 1.0
    content = Trends(sized, draws=60).json()
    assert content["probit"]["r2"] > 0.5
    assert any("moved inside by 1 / (2n) on probit: net-8" in note for note in content["notes"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fit": "probitt"}, "did you mean 'probit'"),
        ({"placed": ["net-88"]}, "did you mean 'net-8'"),
        ({"baseline": "ned-1"}, "did you mean 'net-1'"),
        ({"share": 1.5}, "share is 1.5"),
        ({"draws": 0}, "draws is 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(joined, settings, message):
    with pytest.raises(HapteraError, match=message):
        Trends(joined, **settings)
