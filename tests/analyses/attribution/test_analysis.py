"""What an embedding's `result.json` says is read again as it was."""

import json

import numpy as np
import pytest

from haptera.analyses.attribution.analysis import prepared_recording, read_facts
from haptera.errors import HapteraError
from haptera.recordings.reading import Source

PREPARED = {"mode": "time", "held": 0.3, "smoothing": 0.0, "causal": False, "zscore": False}


def test_a_recording_may_be_a_folder(tmp_path):
    plane = tmp_path / "mouse" / "suite2p" / "plane0"
    plane.mkdir(parents=True)
    for name in ("F", "spks"):
        np.save(plane / f"{name}.npy", np.random.default_rng(0).random((4, 100), np.float32))
    np.save(plane / "iscell.npy", np.ones((4, 2), np.float32))
    assert prepared_recording(Source(tmp_path / "mouse"), PREPARED).signal().shape == (100, 4)
    with pytest.raises(HapteraError, match="say where it is by --recording"):
        prepared_recording(Source(tmp_path / "gone"), PREPARED)


def test_columns_of_a_table_keep_their_names(tmp_path):
    rows = np.random.default_rng(0).normal(size=(100, 3))
    np.savetxt(tmp_path / "rat.csv", rows, delimiter=",", header="CA1_3,CA1_8,x", comments="")
    recording = prepared_recording(Source(tmp_path / "rat.csv", labels=["x"]), PREPARED | {"mode": "label"})
    assert recording.channel_names() == ["CA1_3", "CA1_8"]


@pytest.mark.parametrize(
    ("facts", "what"),
    [({"recordings": {}}, "is of several sessions"), ({"adapt_steps": 5}, "is of a model that was adapted")],
)
def test_embeddings_of_another_kind_are_refused_by_what_they_are(tmp_path, facts, what):
    (tmp_path / "result.json").write_text(json.dumps(facts))
    with pytest.raises(HapteraError, match=f"{what}; attribute takes the embedding of one recording"):
        read_facts(tmp_path / "result.json")
