"""One call fits, shuffles, holds out, compares, and what it says agrees with what was recorded."""

import json
from dataclasses import replace

import numpy as np
import pytest

from haptera.analyses.embedding.analysis import embed
from haptera.analyses.embedding.comparison import block_windows, summarise, value_of
from haptera.analyses.embedding.page import methods
from haptera.analyses.embedding.plan import Plan
from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.errors import HapteraError
from haptera.recordings.label import Label
from haptera.recordings.recording import Recording
from haptera.recordings.windows import Offset

QUICK = {"max_iterations": 60, "batch_size": 128, "num_hidden_units": 16}


def compass(samples=1600, units=12, seed=0):
    """Units that fire around a direction each, while a head turns; and a speed that they know nothing of."""
    generator = np.random.default_rng(seed)
    angle = np.mod(np.cumsum(generator.normal(0, 0.15, samples)), 2 * np.pi)
    counts = generator.poisson(
        0.1 + 4 * np.exp(3 * (np.cos(angle[:, None] - np.arange(units) * 2 * np.pi / units) - 1))
    )
    labels = {
        "heading": Label.of(angle, "angle"),
        "speed": Label.of(generator.normal(size=samples)),
        "side": Label.of(np.where(angle > np.pi, "left", "right")),
    }
    times = np.arange(samples) * 0.1
    return Recording({"spikes": counts.astype(np.float32)}, labels, None, times, source="mouse.npz")


def words(embedding):
    return [(finding.word, finding.sentence) for finding in embedding.findings()]


@pytest.fixture(scope="module")
def found():
    plan = Plan(labels=("heading",), seeds=2, shuffles=1, baselines=("pca",), settings=QUICK)
    return embed(compass(), plan, progress=False)


def test_true_labels_fit_held_out_samples_and_shuffled_ones_do_not(found):
    held = found.goodness_of_fit.query("part == 'held out'")
    assert held[~held["shuffled"]]["bits"].min() > 0.5
    assert held[held["shuffled"]]["bits"].abs().max() < 0.07
    assert len(held) == 3


def test_a_label_is_read_from_the_embedding_and_not_from_shuffled_ones(found):
    def error(what, decoder="knn"):
        return value_of(found.decoding, what=what, label="heading", decoder=decoder, measure="median_error")

    assert error("embedding") < 15
    assert error("shuffled decoder") > 60
    assert error("shuffled training") > 1.5 * error("embedding")
    assert error("windows", "bayesian, 5 bins") < 15
    assert error("constant", "constant") > 45
    assert error("pca") < 40
    assert error("nothing") is None
    table = summarise(found.decoding)
    row = table[(table["what"] == "embedding") & (table["decoder"] == "knn") & (table["measure"] == "median_error")]
    assert row["seeds"].item() == 2
    assert row["low"].item() <= row["value"].item() <= row["high"].item()


def test_seeds_agree_and_a_ring_is_found(found):
    assert set(found.consistency["source"]) == {"seed 0", "seed 1"}
    assert found.consistency["value"].min() > 0.5  # after 60 steps
    assert found.betti[1] >= 1
    assert found.ring_ratio > 1.5


@pytest.mark.long
def test_encoders_learn_from_the_first_part_and_nothing_else(found):
    assert found.parts.names.tolist() == ["train"] * 896 + ["validation"] * 224 + ["held out"] * 480
    changed = compass()
    signal = changed.signal("spikes").copy()
    signal[896:] = signal[896:][::-1]
    labels = dict(changed.labels) | {
        "heading": Label(np.concatenate([changed.label("heading").values[:896], np.arange(704) % 6.0]), "angle")
    }
    other = embed(
        Recording({"spikes": signal}, labels, None, changed.times),
        Plan(labels=("heading",), seeds=1, shuffles=0, baselines=(), topology=False, settings=QUICK),
        progress=False,
    )
    assert np.array_equal(found.embedding[:880], other.embedding[:880])  # but for windows at the cut


def test_history_and_tables_hold_every_fit(found):
    assert found.history.groupby(["shuffled", "seed"]).size().tolist() == [6, 6, 6]
    table = found.table()
    assert set(table["measure"]) >= {"median_error", "consistency", "goodness_of_fit_bits, held out"}
    assert table["value"].notna().all()


def test_json_has_the_errors_in_degrees_and_is_plain(found):
    content = found.json()
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert content["decoding"]["median_error"] < 15
    assert content["shuffled"]["median_error"] > 60
    assert content["shuffled"]["which"] == "labels of the decoder, in a random order"
    assert content["fit"]["held_out_shuffled"]["nats"] == pytest.approx(0, abs=0.05)
    assert content["topology"]["betti"] == list(found.betti)
    assert content["recording"]["labels"] == {"heading": "angle"}
    assert content["baselines"]["pca"]["median_error"] == value_of(
        found.decoding, what="pca", decoder="knn", measure="median_error"
    )


def test_sentences_say_it_in_words(found):
    assert found.headline().startswith("12 channels, 1,600 samples of 100 ms; heading is an angle")
    lines = dict(words(found))
    assert list(lines) == ["mode", "fit", "decoding", "baselines", "topology"]
    assert "2 seeds, consistency" in lines["fit"]
    assert "shuffled in training" in lines["decoding"]
    assert "deg median on the last 30%" in lines["decoding"]


def test_the_shape_that_normalised_dimensions_have_by_themselves_is_said(found):
    assert found.model.output_dimension == 3
    assert "by themselves" not in dict(words(replace(found, betti=(1, 1, 0))))["topology"]
    said = dict(words(replace(found, betti=(1, 0, 1))))["topology"]
    assert "3 normalised dimensions are a sphere by themselves" in said


def test_a_baseline_that_is_better_than_the_embedding_is_said(found):
    own = value_of(found.decoding, what="embedding", decoder="knn", measure="median_error")
    pca = value_of(found.decoding, what="pca", decoder="knn", measure="median_error")
    for change, better in ((0.5 * own / pca, True), (2 * own / pca, False)):
        table = found.decoding.copy()
        table.loc[table["what"] == "pca", "value"] *= change
        table.loc[table["what"] == "windows", "value"] = 2 * own
        told = replace(found, decoding=table)
        assert told.json()["beaten_by"] == ["pca"] * better
        said = dict(words(told)).get("baselines", "")
        assert said == (f"heading is read better from pca {0.5 * own:.1f} than from the embedding, {own:.1f} deg median"
                        if better else "")  # fmt: skip


def test_what_is_no_better_than_a_constant_guess_is_said_to_be_that_and_beats_nothing(found):
    told, table = dict(words(found)), found.decoding.copy()
    assert "constant guess" not in told["decoding"]
    guess = value_of(table, what="constant", decoder="constant", measure="median_error")
    table.loc[table["what"] != "constant", "value"] = guess + 1
    table.loc[table["what"] == "embedding", "value"] = guess + 2
    blind = replace(found, decoding=table)
    assert dict(words(blind))["decoding"].endswith("; the embedding is no better than the constant guess")
    assert blind.json()["beaten_by"] == []
    assert "baselines" not in dict(words(blind))


def test_a_decoder_of_the_signal_that_is_better_than_the_embedding_is_said_once(found):
    own = value_of(found.decoding, what="embedding", decoder="knn", measure="median_error")
    table = found.decoding.copy()
    table.loc[table["what"].isin(["windows", "pca"]), "value"] = 2 * own
    bayesian = table["decoder"].str.startswith("bayesian")
    table.loc[bayesian, "value"] = np.where(table["decoder"][bayesian] == "bayesian, 1 bin", 0.5, 0.8) * own
    told = replace(found, decoding=table)
    assert told.json()["beaten_by"] == ["a Bayesian decoder"]
    said = dict(words(told))
    assert f"read better from a Bayesian decoder {0.5 * own:.1f} than" in said["baselines"]
    assert f"Bayesian {0.5 * own:.1f}," in said["decoding"]  # of both windows the better one, there as well


def test_an_architecture_without_unit_length_learns_euclidean_distances():
    plan = Plan(labels=("heading",), settings={"model_architecture": "offset10-model-mse"})
    settings = plan.estimator_settings(compass(50), 0)
    assert settings["distance"] == "euclidean"
    assert settings["positive_in_denominator"] is True
    assert "distance" not in Plan(labels=("heading",)).estimator_settings(compass(50), 0)
    with pytest.raises(
        HapteraError, match=r"not of unit length.*distance='euclidean' was expected, or 'offset1-model'"
    ):
        ContrastiveEmbedding("offset1-model-mse", max_iterations=1).fit(compass(50).signal())


def test_the_page_has_every_section_and_the_methods(found, tmp_path):
    found.save(tmp_path)
    page = (tmp_path / "report.html").read_text()
    for heading in ("Embedding", "Fit", "Decoding", "Consistency", "Topology", "Methods"):
        assert f"<h2>{heading}</h2>" in page or f">{heading}</h2>" in page
    said = methods(found)
    assert said in page.replace("&#39;", "'")
    assert all(word in said for word in ("offset10-model", "60 steps of 128 pairs", "896", "224", "480", "2 seeds"))


@pytest.mark.slow
def test_time_alone_and_hybrid_and_several_labels():
    few = {"seeds": 1, "shuffles": 1, "baselines": (), "topology": False, "settings": QUICK}
    by_time = embed(compass(), Plan(labels=("heading",), mode="time", **few), progress=False)
    assert by_time.mode.startswith("time")
    assert value_of(by_time.decoding, what="embedding", decoder="knn", measure="median_error") < 40
    held = by_time.goodness_of_fit.query("part == 'held out'").set_index("shuffled")["bits"]
    assert held[False] > held[True] + 0.3  # not 0: windows 3 samples apart overlap, whatever is in them
    assert "whose windows overlap" in dict(words(by_time))["fit"]
    few |= {"shuffles": 0}
    both = embed(compass(), Plan(labels=("heading", "side"), mode="hybrid", **few), progress=False)
    assert both.mode.startswith("hybrid")
    assert set(both.decoding["label"]) == {"heading", "side"}
    assert value_of(both.decoding, what="embedding", label="side", decoder="knn", measure="accuracy") > 0.8
    assert both.json()["labels"]["side"]["decoding"]["accuracy"] > 0.8
    classes = embed(compass(), Plan(labels=("side",), **few), progress=False)
    assert classes.mode.startswith("discrete")
    assert classes.json()["decoding"]["accuracy"] > 0.8
    assert classes.json()["shuffled"]["accuracy"] < 0.7
    short = QUICK | {"max_iterations": 2}
    around = few | {"settings": short | {"conditional": "delta", "delta": 0.2}}
    assert "Gaussian" in embed(compass(300), Plan(labels=("heading",), **around), progress=False).mode
    alone = embed(compass(300), Plan(**few | {"settings": short}), progress=False)
    assert alone.decoding.empty
    assert alone.json()["decoding"] is None
    assert [word for word, _ in words(alone)] == ["mode", "fit"]


def test_windows_stay_inside_blocks():
    times = np.array([0.0, 1, 2, 10, 11, 12])
    recording = Recording({"x": np.arange(6.0)[:, None]}, times=times)
    rows = block_windows(recording, Offset(1, 2))
    assert rows.tolist() == [[0, 0, 1], [0, 1, 2], [1, 2, 2], [3, 3, 4], [3, 4, 5], [4, 5, 5]]


def test_it_draws_itself_as_its_page_does(found):
    shown = found.plot()
    np.testing.assert_array_equal(shown.frame["dimension 1"], found.embedding[:, 0])
    assert found.plot_temperature().frame["step"].max() == found.model.n_iter_
    loss = found.plot_loss(engine="plotly").frame
    assert set(loss["fit"]) == {"true labels", "shuffled", "a constant embedding"}
    pairs = found.plot_consistency().frame.query("source != target")
    assert pairs["value"].tolist() == found.consistency["value"].tolist()
    assert len(found.plot_overview().charts) == 3
    with pytest.raises(HapteraError, match="label 'nothing'"):
        found.plot("nothing")
