"""CCC: generated while it is read, and as hard as it says."""

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.commands import call
from tests.streams.conftest import SHIFTS
from torch.utils.data import DataLoader

from haptera.adapters import NoAdaptation
from haptera.data import ArrayData
from haptera.errors import HapteraError
from haptera.measures import accuracy, expected_accuracy
from haptera.run.calibrate import load_calibration
from haptera.run.loop import evaluate
from haptera.streams import CCC, Clean
from haptera.streams.calibration import Calibration
from haptera.streams.walk import flip_and_crop, grey_levels
from haptera.streams.wrap import Interleaved
from haptera.testing.streams import STREAM_LAWS

SPEED = 40


@pytest.fixture
def stream(data, calibrated):
    return CCC(data, load_calibration(calibrated), difficulty=0.7, speed=SPEED, length=1000, batch_size=64)


@pytest.mark.parametrize("law", STREAM_LAWS, ids=lambda law: law.__name__)
def test_law_holds(law, stream, data):
    law(stream, data)


def test_a_calibration_of_other_data_is_refused(calibrated):
    other = ArrayData(np.zeros((5, 16, 16), np.uint8), np.zeros(5, int))
    with pytest.raises(HapteraError, match="made on other data than array; calibrate on this data"):
        CCC(other, load_calibration(calibrated))


def test_walk_moves_by_one_step_and_hands_over_to_the_next_pair(stream):
    walk = stream.walk()
    assert len(walk) == 25
    for _, one, two in zip(range(len(walk)), walk.itertuples(), walk.iloc[1:].itertuples(), strict=False):
        if (one.first, one.second) == (two.first, two.second):
            assert (one.severity_1 - two.severity_1, two.severity_2 - one.severity_2) in {(1, 0), (0, 1)}
        else:
            assert one.severity_1 == 0
            assert two.first == one.second
            assert two.severity_2 == 0


def by_hand(stream, position, image):
    """One image of a stream without flips and crops: both shifts as the walk says, grey levels between them."""
    by_name, stage = {shift.name: shift for shift in SHIFTS}, stream.walk().iloc[position // stream.speed]
    if stage["severity_1"]:
        image = by_name[stage["first"]](stage["severity_1"])(image, [position], stream.seed)
        image = torch.tensor(np.round(image.numpy() * 255), dtype=torch.float32) / 255
    return by_name[stage["second"]](stage["severity_2"])(image, [position], stream.seed)


def test_a_batch_is_made_as_the_walk_says(stream, data):
    batch, walk = stream[10], stream.walk()
    for row in (0, 30, 63):
        position, image = int(batch.ids[row]), data.images(np.flatnonzero(data.rows == batch.context["sample"][row]))
        stage = walk.iloc[position // SPEED]
        assert torch.equal(batch.inputs[row : row + 1], by_hand(stream, position, image))
        assert batch.context["shift"][row] == f"{stage['first']} > {stage['second']}"
        told = [batch.context[key][row] for key in ("severity_1", "severity_2", "expected")]
        assert told == [stage["severity_1"], stage["severity_2"], stage["expected"]]
        assert batch.context["difficulty"] == 0.7


def test_data_in_bytes_is_shown_in_bytes_within_a_grey_level_of_the_definition():
    pixels = np.random.default_rng(0).integers(0, 256, (50, 16, 16, 3), dtype=np.uint8)
    counts = np.round(760 * (1 - np.add.outer(np.arange(21), np.arange(21)) / 40) ** 2).astype(np.int64)
    pairs = {("contrast", "gaussian_blur"): counts, ("gaussian_blur", "contrast"): counts}
    calibration = Calibration(pairs, 1000, 0.25, 760, 10, flip=False, crop=0.0)
    stream = CCC(ArrayData(pixels), calibration, speed=8, length=160, batch_size=16)
    shown = torch.cat([batch.inputs for batch in stream])
    assert torch.equal((shown * 255).round() / 255, shown)
    floats = CCC(ArrayData(pixels.astype(np.float32) / 255), calibration, speed=8, length=160, batch_size=16)
    apart = (shown - torch.cat([batch.inputs for batch in floats])).abs().max()
    assert apart <= 2.01 / 255  # one of each shift, and what the second makes of the first's is no more


@pytest.mark.long
def test_images_do_not_depend_on_batches_pieces_or_workers(stream, monkeypatch):
    turned = replace(stream, calibration=replace(stream.calibration, flip=True, crop=0.25))

    def read(batches):
        return torch.cat([batch.inputs for batch in batches])

    def by_workers(count):
        return DataLoader(turned, batch_size=None, num_workers=count, multiprocessing_context="fork")

    whole = read(turned)
    assert torch.equal(read(replace(turned, batch_size=7)), whole)
    assert torch.equal(read(by_workers(1)), whole)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # more workers than cores
        assert torch.equal(read(by_workers(4)), whole)
    monkeypatch.setattr("haptera.streams.walk.PIECE", 3 * 4 * 16 * 16)  # three images at a time
    assert torch.equal(read(turned), whole)


def test_a_position_far_away_is_read_without_those_before_it(data, calibrated, monkeypatch):
    stream = CCC(data, load_calibration(calibrated), difficulty=0.7, length=7_500_000, speed=1000)
    read = []
    images = type(data).images
    monkeypatch.setattr(type(data), "images", lambda self, places: read.append(len(places)) or images(self, places))
    batch = stream[len(stream) - 1]
    assert int(batch.ids[-1]) == 7_499_999
    assert sorted(read) == [1, len(batch)]  # one for its size


def test_accuracy_stays_near_what_the_walk_expects(stream, model):
    long = replace(stream, length=8000, speed=100, rule="steady")
    outputs, walk = evaluate(NoAdaptation(model), long), long.walk()
    right = outputs.correct().reshape(-1, 1000).mean(1)
    expected = walk["expected"].to_numpy().reshape(-1, 10).mean(1)
    assert np.abs(right - expected).max() < 0.08  # 3 standard errors of 1,000 images and of the calibration's 400


def test_the_table_has_the_walk_and_no_other_measure_is_cut_by_it(stream, model):
    outputs, walk = evaluate(NoAdaptation(model), stream), stream.walk()
    rows, pairs = expected_accuracy(outputs), walk["first"] + " > " + walk["second"]
    assert [row["value"] for row in rows] == walk["expected"].tolist()
    assert [row["severity_1"] for row in rows] == walk["severity_1"].tolist()
    assert [row["severity_2"] for row in rows] == walk["severity_2"].tolist()
    assert [row["shift"] for row in rows] == pairs.tolist()
    assert [row["step"] for row in rows] == [(start + SPEED - 1) // 64 for start in walk["start"]]
    assert {(row["n"], row["difficulty"]) for row in rows} == {(SPEED, 0.7)}
    assert sorted(row["shift"] for row in accuracy(outputs)) == sorted(pairs.unique())


def test_clean_images_in_between_are_no_step_of_the_walk(stream, model, data):
    mixed = Interleaved(stream, Clean(data, batch_size=64), every=2)
    rows = expected_accuracy(evaluate(NoAdaptation(model), mixed))
    assert [row["value"] for row in rows] == stream.walk()["expected"].tolist()
    assert sum(row["n"] for row in rows) == stream.samples


def test_a_stream_that_is_no_walk_expects_nothing(model, data):
    assert expected_accuracy(evaluate(NoAdaptation(model), Clean(data))) == []


def test_wrong_settings_are_named(data, calibrated):
    calibration = load_calibration(calibrated)
    for settings, message in (
        ({"difficulty": "midium"}, "unknown difficulty 'midium'; did you mean 'medium'"),
        ({"difficulty": 1.5}, "difficulty is 1.5"),
        ({"rule": "txt"}, "unknown rule 'txt'; did you mean 'text'"),
        ({"speed": 0}, "speed is 0"),
        ({"length": 2.5}, "length is 2.5"),
    ):
        with pytest.raises(HapteraError, match=message):
            CCC(data, calibration, **settings)


def test_flips_and_crops_depend_on_the_id_alone():
    images = torch.rand(6, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    ids = torch.arange(6)
    together = flip_and_crop(images, ids, 3, flip=True, crop=0.25)
    assert torch.equal(together[4:5], flip_and_crop(images[4:5], ids[4:5], 3, flip=True, crop=0.25))
    assert not torch.equal(together, images)
    assert torch.equal(flip_and_crop(images, ids, 3, flip=False, crop=0.0), images)


def test_an_image_is_the_original_or_its_mirror_image_moved_by_at_most_half_the_crop():
    images, ids = torch.rand(40, 1, 16, 16, generator=torch.Generator().manual_seed(0)), torch.arange(40)
    padded = torch.nn.functional.pad(images, (2, 2, 2, 2), mode="replicate")
    found = []
    for number, image in enumerate(flip_and_crop(images, ids, 5, flip=True, crop=0.25)):
        views = {
            (mirrored, down, right): (padded[number].flip(-1) if mirrored else padded[number])[
                :, down : down + 16, right : right + 16
            ]
            for mirrored in (False, True)
            for down in range(5)
            for right in range(5)
        }
        found += [where for where, view in views.items() if torch.equal(view, image)]
    assert len(found) == 40
    assert {mirrored for mirrored, _, _ in found} == {False, True}
    assert {down for _, down, _ in found} == {right for _, _, right in found} == set(range(5))


def test_grey_levels_are_what_a_file_of_eight_bits_holds():
    images = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    stored = np.round(images.numpy() * 255).astype(np.uint8)
    assert torch.equal(grey_levels(images), torch.from_numpy(stored) / 255)


CALIBRATE = ["--shift", "contrast", "--shift", "gaussian_noise", "--samples", "60", "--step", "2.5", "--quiet"]
RUN = ["run", "--model", "lenet", "--data", "digits", "--out", "out", "--quiet"]


@pytest.mark.long
def test_from_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert call(*RUN, "--stream", "ccc:medium") == 2
    assert "there is no calibration in haptera-calibration; make one with: haptera calib" in capsys.readouterr().err
    assert call("calibrate", "--model", "lenet", "--data", "digits", *CALIBRATE) == 0
    assert "use it with: haptera run --stream ccc:medium ..." in capsys.readouterr().out
    assert call(*RUN, "--stream", "ccc:0.2,speed=50,length=500") == 0
    assert call("report", "out") == 0
    assert "Severities along the walk" in Path("out/report.html").read_text()
    assert call(*RUN, "--stream", "ccc:calibration=cal") == 2
    assert "there is no calibration in cal;" in capsys.readouterr().err
    assert call(*RUN, "--stream", "ccc:hardest") == 2
    assert "unknown difficulty 'hardest'" in capsys.readouterr().err
