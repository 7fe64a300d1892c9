"""Decoding across sessions and consistency of sessions, on embeddings whose answer is known."""

import numpy as np
import pandas as pd

from haptera.analyses.embedding.plan import Parts, Plan
from haptera.analyses.sessions.scores import OTHERS, OTHERS_CONSTANT, decode_across, subject_consistency
from haptera.analyses.sessions.session import Session
from haptera.recordings.recording import Recording


def sessions(count=3, samples=600):
    """Sessions whose embedding is known: a ring."""
    made, rings = [], []
    for place in range(count):
        generator = np.random.default_rng(place)
        angle = generator.uniform(0, 2 * np.pi, samples)
        recording = Recording.from_arrays(
            {"spikes": generator.normal(size=(samples, 2))}, {"heading": (angle, "angle")}, source=f"s{place}.npz"
        )
        made.append(Session(f"s{place}", Parts.of(recording, Plan(labels=("heading",), baselines=()))))
        rings.append(np.column_stack([np.cos(angle), np.sin(angle)]))
    return made, rings


def value(table, session, what=OTHERS, decoder="knn"):
    rows = table[(table["session"] == session) & (table["what"] == what) & (table["decoder"] == decoder)]
    return float(rows.loc[rows["measure"] == "median_error", "value"].iloc[0])


def test_a_shared_ring_is_read_by_decoders_of_the_others():
    made, rings = sessions()
    table = decode_across(made, rings, "heading", seed=0, distance="cosine")
    assert max(value(table, one.name) for one in made) < 2
    assert min(value(table, one.name, OTHERS_CONSTANT, "constant") for one in made) > 60


def test_a_session_that_is_turned_is_read_wrong_by_that_angle():
    made, rings = sessions()
    turned = [*rings[:2], rings[2] @ np.array([[0.0, 1.0], [-1.0, 0.0]])]  # by 90 degrees
    table = decode_across(made, turned, "heading", seed=0, distance="cosine")
    assert 80 < value(table, "s2") < 100


def test_no_sample_of_a_session_reaches_the_decoder_that_reads_it():
    made, rings = sessions(2)
    far = [rings[0], rings[1] + 50.0]  # nearest neighbours of its own would read it without error
    table = decode_across(made, far, "heading", seed=0, distance="euclidean")
    assert value(table, "s1") > 45


def test_shuffled_labels_of_the_decoder_are_chance():
    made, rings = sessions()
    table = decode_across(made, rings, "heading", what="x", seed=0, distance="cosine", shuffle=True)
    assert table["decoder"].unique().tolist() == ["knn"]
    assert 70 < value(table, "s0", "x") < 110


def test_consistency_is_that_of_affine_maps_and_low_where_there_is_none():
    made, rings = sessions()
    maps = [np.eye(2), np.array([[2.0, 0.3], [0.0, 1.0]]), np.array([[0.0, 1.0], [1.0, 0.0]])]
    mapped = [ring @ one for ring, one in zip(rings, maps, strict=True)]
    same = subject_consistency(made, mapped, ["heading"], what="x", seed=0)
    assert len(same) == 6
    assert same["value"].min() > 0.97
    noise = [np.random.default_rng(9 + place).normal(size=ring.shape) for place, ring in enumerate(rings)]
    other = subject_consistency(made, noise, ["heading"], what="x", seed=0)
    assert other["value"].max() < 0.3


def test_too_few_classes_to_compare_give_no_consistency():
    made, rings = sessions()
    flat = []
    for one in made:
        side = Recording.from_arrays(
            {"spikes": np.random.default_rng(0).normal(size=(600, 2))},
            {"side": np.array(["left", "right"] * 300)},
            source="x.npz",
        )
        flat.append(Session(one.name, Parts.of(side, Plan(labels=("side",), baselines=()))))
    found = subject_consistency(flat, rings, ["side"], what="x", seed=0)
    assert isinstance(found, pd.DataFrame)
    assert found.empty  # two bins and two dimensions: an affine map fits any
