"""Pictures of a study: the right images under the right shifts, kept with the cells and gone when these are."""

import base64
import io

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from haptera.adapters import NoAdaptation
from haptera.data import ArrayData
from haptera.run.cells import open_study
from haptera.run.importing import import_predictions
from haptera.run.results import results_of
from haptera.run.samples import FILE, SAMPLES, picture, read_samples
from haptera.run.spots import confidence
from haptera.run.study import Study
from haptera.shifts import Contrast
from haptera.streams import Clean, Corruptions

NAMES = ("dark", "bright")


class Brightness(nn.Module):
    """Calls an image bright the more certainly the brighter it is."""

    preprocessing = None

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        level = 8 * (images.mean((1, 2, 3)) - 0.5)
        return torch.stack([-level, level], 1)


@pytest.fixture(scope="module")
def data() -> ArrayData:
    """Forty images, each brighter than the one before; the brightest has the wrong label."""
    levels = np.linspace(20, 235, 40).round()
    images = (levels[:, None, None] + np.linspace(-20, 20, 64).reshape(8, 8)).round().astype(np.uint8)
    targets = (levels > 127).astype(np.int64)
    targets[-1] = 0
    return ArrayData(images, targets, classes=NAMES)


def make(data: ArrayData, out, **changes) -> Study:
    streams = [Clean(data, batch_size=16), Corruptions(data, (Contrast,), (1, 3, 5), batch_size=16)]
    return Study({"eye": Brightness()}, streams, [NoAdaptation], out=out, **changes)


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("samples") / "study"
    make(data, out).run(progress=False)
    return out


def pixels(uri: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))))


def test_the_same_images_are_shown_clean_and_at_the_ends_of_each_shift(folder, data):
    samples = [each for each in read_samples(open_study(folder)) if each.kind == "sample"]
    assert [each.condition for each in samples] == ["clean"] * 3 + ["contrast 1"] * 3 + ["contrast 5"] * 3
    every = data.images(np.arange(40))
    for clean, hard in zip(samples[:3], samples[6:], strict=True):
        row = int(np.argmin([abs(pixels(clean.image) - 255 * image[0].numpy()).max() for image in every]))
        expected = Contrast(5)(data.images(np.array([row])), torch.tensor([row]), 0)[0, 0]
        np.testing.assert_allclose(pixels(hard.image), 255 * expected.numpy(), atol=0.51)
        assert clean.label == hard.label == NAMES[data.targets[row]]


def test_the_surest_mistake_comes_first_with_label_prediction_and_confidence(folder, data):
    first = next(each for each in read_samples(open_study(folder)) if each.kind == "error")
    level = float(data.images(np.array([39])).mean())
    assert (first.label, first.predicted, first.shift) == ("dark", "bright", "clean")
    assert first.confidence == pytest.approx(1 / (1 + np.exp(-16 * (level - 0.5))), rel=1e-4)
    assert (pixels(first.image) == (255 * data.images(np.array([39]))[0, 0].numpy()).round()).all()


def test_a_second_run_reads_no_image_again(folder, data):
    path = folder / SAMPLES / FILE
    before = path.stat().st_mtime_ns
    make(data, folder).run(progress=False)
    assert path.stat().st_mtime_ns == before


@pytest.mark.long
def test_the_page_shows_them_unless_it_is_told_not_to(folder):
    assert results_of(folder).report().page().count("data:image/png;base64,") >= 10
    assert "data:image/png;base64," not in results_of(folder).report(images=False).page()


@pytest.mark.long
def test_a_study_without_images_keeps_none(data, tmp_path):
    make(data, tmp_path / "study", images=False).run(progress=False)
    assert not (tmp_path / "study" / SAMPLES).exists()


def test_pictures_of_cells_that_the_study_no_longer_has_are_not_shown(folder):
    ledger = open_study(folder)
    ledger.pieces = dict(list(ledger.pieces.items())[1:])
    assert read_samples(ledger) == []


@pytest.mark.long
def test_a_damaged_file_of_pictures_is_left_out_with_a_sentence(data, tmp_path, caplog):
    make(data, tmp_path / "study").run(progress=False)
    path = tmp_path / "study" / SAMPLES / FILE
    path.write_bytes(path.read_bytes()[:-9])
    assert read_samples(open_study(tmp_path / "study")) == []
    assert "the images of the study are left out" in caplog.text
    make(data, tmp_path / "study").run(progress=False)  # and the same command makes them again
    assert read_samples(open_study(tmp_path / "study"))


@pytest.mark.long
def test_predictions_made_elsewhere_have_no_pictures(tmp_path):
    np.savez(tmp_path / "said.npz", logits=np.eye(4, dtype=np.float32), targets=np.arange(4))
    import_predictions(tmp_path / "said.npz", tmp_path / "study", model="net", stream="clean")
    assert read_samples(open_study(tmp_path / "study")) == []
    assert "Images" not in [section.title for section in results_of(tmp_path / "study").report().sections()]


def test_large_pictures_become_small_and_bytes_are_taken_as_they_are():
    assert max(pixels(picture(np.zeros((3, 300, 200), np.float32))).shape) == 96
    assert (pixels(picture(np.full((1, 8, 8), 77, np.uint8))) == 77).all()


def test_confidence_is_the_largest_probability():
    logits = np.random.default_rng(0).normal(size=(5, 7)) * 30
    expected = torch.softmax(torch.from_numpy(logits), 1).max(1).values
    np.testing.assert_allclose(confidence(logits), expected, rtol=1e-12)
