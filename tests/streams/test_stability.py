"""Stability as a stream: what a study finds is what the analysis finds."""

import numpy as np
import pytest
import torch

from haptera import Study
from haptera.data import ArrayData, digits
from haptera.errors import HapteraError
from haptera.measures.relative_stability import relative_stability
from haptera.models import LeNet
from haptera.observe import Probe, respond
from haptera.shifts import Diffeo
from haptera.statistics.stability import stability_indices
from haptera.streams import Stability
from haptera.testing.measures import example_outputs

DATA = digits("test", size=16)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    torch.manual_seed(0)
    nets = {"wide": LeNet(size=16, width=8), "narrow": LeNet(size=16, width=2)}
    study = Study(nets, [Stability(DATA, first=101)], out=tmp_path_factory.mktemp("study"))
    return nets, study.run()


def test_a_study_has_the_indices_of_the_analysis(table):
    nets, rows = table
    stream = Stability(DATA, first=101)
    order = stream.arrange(len(DATA))[:101]
    probe = Probe(DATA.images(order), Diffeo(1, 3), torch.from_numpy(DATA.rows[order]), 0)
    assert stream.radius == pytest.approx(probe.radii["median"], rel=1e-6)
    for name, net in nets.items():
        exact = stability_indices(respond(net, probe).distances["output"]).set_index(["index", "aggregate"])
        for index, measure in {"R": "relative_stability", "D": "diffeo_stability", "G": "noise_stability"}.items():
            (row,) = rows[(rows["model"] == name) & (rows["measure"] == measure)].to_dict("records")
            assert row["value"] == pytest.approx(exact.loc[(index, "median"), "value"], rel=2e-3)
            assert row["low"] < row["value"] < row["high"]
            assert (row["n"], row["shift"], row["severity"]) == (101, "diffeo", 1.0)


def test_labels_are_not_read_so_nothing_else_counts_these_images(table):
    assert not set(table[1]["measure"]) & {"accuracy", "error", "mean_error"}


def test_three_passes_over_the_same_images():
    stream = Stability(DATA, 2.0, 3.0, first=50, batch_size=20)
    assert (len(stream), stream.samples) == (9, 150)
    batches = list(stream)
    assert [batch.context["shift"] for batch in batches] == ["clean"] * 3 + ["diffeo"] * 3 + ["sphere_noise"] * 3
    samples = [np.concatenate([batch.context["sample"] for batch in batches[k : k + 3]]) for k in (0, 3, 6)]
    assert np.array_equal(samples[0], samples[1])
    assert np.array_equal(samples[0], samples[2])
    plain, moved, noisy = (torch.cat([batch.inputs for batch in batches[k : k + 3]]) for k in (0, 3, 6))
    assert torch.equal(moved, Diffeo(2, 3)(plain, torch.from_numpy(samples[0]), 0))
    norms = (noisy - plain).flatten(1).norm(dim=1)
    assert norms.numpy() == pytest.approx(np.full(50, float((moved - plain).flatten(1).norm(dim=1).median())), rel=0.05)
    assert float(noisy.min()) < 0  # noise is not clipped


def test_outputs_of_other_streams_have_no_rows():
    assert relative_stability(example_outputs()) == []


def test_wrong_settings_are_refused():
    with pytest.raises(HapteraError, match="first of the stream 'stability' is 0"):
        Stability(DATA, first=0)
    with pytest.raises(HapteraError, match="cutoff 1 keeps no mode"):
        Stability(DATA, cutoff=1)


def test_images_of_one_colour_have_no_stability():
    grey = ArrayData(np.full((12, 16, 16), 77, np.uint8), None)
    with pytest.raises(HapteraError, match=r"stability is undefined: .* but for rounding"):
        _ = Stability(grey).radius


def test_reading_a_stream_leaves_its_fingerprint():
    stream = Stability(DATA, first=10)
    before = stream.fingerprint()
    _ = stream[len(stream) - 1]
    assert stream.fingerprint() == before
