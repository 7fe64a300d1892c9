"""`profile`: the file that guards compare with, from the command line."""

import json

import numpy as np
import pytest

from haptera.live.profile import Profile


@pytest.fixture
def enough(folder):
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (120, 12, 12), dtype=np.uint8)
    np.savez(folder / "enough.npz", images=images, labels=random.integers(0, 3, 120))


@pytest.mark.usefixtures("enough")
def test_a_profile_is_written_said_and_read(haptera, folder):
    done = haptera("profile", "--model", "net.py:build", "--data", "enough.npz", "--out", "new/p.safetensors", "--json")
    assert done.returncode == 0, done.stderr
    said, read = json.loads(done.stdout), Profile.read(folder / "new" / "p.safetensors")
    assert said["fingerprint"] == read.fingerprint
    assert said["images"] == read.images
    assert said["accuracy"] == read.accuracy
    assert set(said["signals"]) == set(read.scores)
    assert said["corruptions"] == 0
    assert any("no known corruptions" in remark for remark in said["remarks"])


@pytest.mark.usefixtures("enough")
def test_known_corruptions_are_tried_when_asked_for(haptera, folder):
    given = ("--model", "net.py:build", "--data", "enough.npz", "--out", "p.safetensors")
    done = haptera("profile", *given, "--corruptions", "holdout", "--known-samples", "8", "--quiet")
    assert done.returncode == 0, done.stderr
    known = Profile.read(folder / "p.safetensors").known
    assert set(known.frame["shift"]) == {"speckle_noise", "gaussian_blur", "spatter", "saturate"}
    assert np.isfinite(known.changes).all()


def test_a_mistake_is_one_sentence(haptera, folder):
    given = ("profile", "--model", "net.py:build", "--data", "data.npz")
    for more, sentence in (
        (("--corruptions", "holdot"), "did you mean 'holdout'"),
        (("--samples", "20"), "--samples is 20; a number of images of at least 100"),
        ((), "the reference has 40 images; at least 100 were expected"),
        (("--out", "net.py/p.safetensors"), "net.py"),
    ):
        done = haptera(*given, *more)
        assert done.returncode == 2
        assert sentence in done.stderr
        assert "Traceback" not in done.stderr
    assert not (folder / "profile.safetensors").exists()
