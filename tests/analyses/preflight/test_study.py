"""The preflight of a study: before the first cell, kept in the folder, shown in the report."""

import json

import numpy as np
import pytest
from safetensors.torch import save_file

from haptera.analyses.preflight.study import images_of
from haptera.data import ArrayData
from haptera.data.base import CorruptedImages, CorruptedPart
from haptera.streams import Clean, Directory, Repeated

NET = """
from torch import nn
from haptera.models import ResNet

def build():
    net = ResNet(3, 10, width=8, stem=2)
    net[0] = nn.Identity()
    return net
"""
RUN = ("run", "--model", "toned.py:build", "--weights", "toned.safetensors", "--stream", "clean", "--out", "out")


@pytest.fixture
def study(folder, batch_net, arrays):
    """Options that run a study of the trained network on its images, or on others with the same labels."""
    images, labels = arrays
    (folder / "toned.py").write_text(NET)
    save_file(batch_net.body.state_dict(), folder / "toned.safetensors")
    np.savez(folder / "right.npz", images=images[:200], labels=labels[:200])
    np.savez(folder / "permuted.npz", images=images[:200], labels=(labels[:200] + 3) % 10)
    return lambda data, normalise, *others: (*RUN, "--data", f"{data}.npz", "--normalise", normalise, *others)


@pytest.mark.long
def test_it_is_made_once_kept_and_shown_in_the_report(haptera, folder, study):
    assert haptera(*study("right", "imagenet")).returncode == 0
    kept = folder / "out" / "preflight" / "toned" / "result.json"
    stamp = kept.stat().st_mtime_ns
    assert json.loads(kept.read_text())["scale"]["verdict"] == "fine"
    assert haptera(*study("right", "imagenet", "--adapter", "batchnorm")).returncode == 0
    assert kept.stat().st_mtime_ns == stamp
    assert haptera("report", "out").returncode == 0
    page = (folder / "out" / "report.html").read_text()
    assert "Protocol" in page
    assert "shuffled with seed 0" in page
    assert "other ways to hand over the images" in page


def test_what_it_finds_is_said_before_the_first_cell(haptera, study):
    assert "--normalise imagenet" in haptera(*study("right", "none", "--seed", 1)).stderr


@pytest.mark.long
def test_labels_in_another_order_end_the_study_unless_nothing_is_checked(haptera, folder, study):
    refused = haptera(*study("permuted", "imagenet"))
    assert refused.returncode == 2
    assert "in another order" in refused.stderr
    assert "--no-check" in refused.stderr
    assert not list((folder / "out" / "cells").glob("*.npz"))
    assert haptera(*study("permuted", "imagenet", "--no-check")).returncode == 0


@pytest.mark.long
def test_the_command_ends_with_1_where_results_would_mean_nothing(haptera, folder, study):
    words = ("check-model", "--model", "toned.py:build", "--weights", "toned.safetensors", "--normalise", "imagenet")
    assert haptera(*words, "--data", "right.npz").returncode == 0
    found = haptera(*words, "--data", "permuted.npz", "--out", "found", "--json")
    assert found.returncode == 1
    assert json.loads(found.stdout)["labels"]["verdict"] == "error"
    assert haptera(*words, "--data", "permuted.npz", "--mapping", "found/mapping.csv").returncode == 0
    assert haptera(*words, "--data", "missing.npz").returncode == 2


@pytest.mark.long
def test_two_studies_are_compared_image_by_image(haptera, folder, study):
    assert haptera(*study("right", "imagenet", "--seed", 0)).returncode == 0
    other = [word if word != "out" else "other" for word in study("right", "none", "--seed", 0, "--batch-size", 32)]
    assert haptera(*other, "--no-check").returncode == 0
    found = json.loads(haptera("compare", "out", "other", "--json").stdout)
    sentence = found["findings"][0]["sentence"]
    assert "batch size of stream clean, seed 0 (64, 32)" in sentence
    assert found["paired_images"] == 200
    assert found["accuracy_change"]["mean_difference"] < -0.2
    assert found["accuracy_change"]["clear"] == 1
    assert haptera("compare", "out", "nowhere").returncode == 2


def test_corrupted_data_is_looked_at_where_it_is_mildest(arrays):
    parts = [CorruptedPart("fog", severity, ArrayData(*arrays, f"fog {severity}")) for severity in (3.0, 1.0)]
    data, note = images_of([Repeated(Directory(CorruptedImages("set-c", parts)), times=2)])
    assert data.name == "fog 1.0"
    assert "not clean" in note
    assert images_of([Clean(parts[0].data)]) == (parts[0].data, "")
