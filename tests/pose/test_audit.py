"""The audit of a network on a project that a test writes, and whose answers are known."""

from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from PIL import Image
from tests.large_numbers import check_large_numbers
from torch import nn

from haptera.adapters import BatchNorm, NoAdaptation
from haptera.errors import HapteraError
from haptera.files.deeplabcut import KeypointTable
from haptera.files.video import write_video
from haptera.pose import as_network
from haptera.pose.audit import AuditSettings, audit
from haptera.pose.audit_page import DEFINITIONS, findings
from haptera.pose.project import choose_sets, open_project
from haptera.shifts import Brightness, Contrast
from haptera.testing import check_analysis

pytest.importorskip("av")
PARTS = ("red", "green", "blue")
HEIGHT, WIDTH = 32, 48


def scene(number, seed, dim=1.0):
    """Frames with a square of each colour on grey, and the middles of the squares."""
    random = np.random.default_rng(seed)
    images = np.full((number, HEIGHT, WIDTH, 3), int(60 * dim), np.uint8)
    points = np.stack([random.integers(4, WIDTH - 4, (number, 3)), random.integers(4, HEIGHT - 4, (number, 3))], 2)
    for row in range(number):
        for part, (x, y) in enumerate(points[row]):
            images[row, y - 3 : y + 4, x - 3 : x + 4, part] = int(250 * dim)
    return images, points.astype(float)


class Brightest(nn.Module):
    """Finds the brightest 7 x 7 square of each colour: exact on these scenes, and as sure as the square is bright."""

    def __init__(self, norm):
        super().__init__()
        self.norm = nn.BatchNorm2d(3) if norm else nn.Identity()

    def forward(self, images):
        seen = self.norm(images) - images.mean((1,), keepdim=True)
        return nn.functional.avg_pool2d(seen, 7, 1, 3) * 2


@pytest.fixture
def project(tmp_path):
    """Two labelled videos, one of which has a frame without labels, and two videos, one of them much darker."""
    for video, seed in (("ina", 0), ("rex", 1)):
        images, points = scene(6, seed, dim=0.8)
        files = np.array([f"labeled-data/{video}/img{k}.png" for k in range(6)])
        for file, image in zip(files, images, strict=True):
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(tmp_path / file)
        if video == "rex":
            points[2] = np.nan
        KeypointTable(points, PARTS, files, "me").write(tmp_path / f"labeled-data/{video}/CollectedData_me.csv")
    (tmp_path / "videos").mkdir()
    write_video(tmp_path / "videos" / "bright.mp4", scene(30, 2)[0], Fraction(10))
    write_video(tmp_path / "videos" / "dark.mp4", scene(30, 3, dim=0.3)[0], Fraction(10))
    config = {"Task": "squares", "scorer": "me", "bodyparts": list(PARTS), "skeleton": [["red", "blue"]]}
    config |= {"pcutoff": 0.4, "multianimalproject": False, "video_sets": {"C:/gone/bright.mp4": {"crop": "0, 1"}}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    return tmp_path


@pytest.fixture
def network():
    return as_network(Brightest(False), PARTS, stride=1, first=0, scores="probabilities").eval()


def test_a_project_is_read_with_its_labelled_frames_alone(project):
    opened = open_project(project / "config.yaml")
    assert (opened.name, opened.cutoff, opened.data.skeleton) == ("squares", 0.4, (("red", "blue"),))
    assert len(opened.data) == 11
    assert "labeled-data/rex/img2.png" not in opened.data.files
    assert [video.name for video in opened.videos] == ["bright.mp4", "dark.mp4"]
    assert len(open_project(project).data) == 11


def test_sets_are_known_and_new_and_never_frames_of_training(project):
    data = open_project(project).data
    sets = choose_sets(data, ("rex",))
    assert (len(sets["known"]), len(sets["new"])) == (6, 5)
    split = np.array(["train", "within"] * 3 + ["out"] * 5)
    sets = choose_sets(data, split=split)
    assert sets["known"].files.tolist() == data.files[[1, 3, 5]].tolist()
    assert len(choose_sets(data, most=4)["known"]) == 4
    with pytest.raises(HapteraError, match=r"there is no individual 'rax' in .*; there are ina, rex"):
        choose_sets(data, ("rax",))
    with pytest.raises(HapteraError, match="all were learnt from"):
        choose_sets(data, split=np.full(11, "train"))


def run(project, network, out=None, **more):
    settings = AuditSettings(sample=20, label=4, batch_size=8, normalise="pixels", threshold=2.0, far=0.8)
    opened = open_project(project)
    return audit(network, opened, new=["rex"], settings=settings, out=out, progress=False, **more)


def test_videos_of_one_name_in_two_folders_are_two_videos_and_one_file_is_one(project, network):
    (project / "more").mkdir()
    write_video(project / "more" / "bright.mp4", scene(30, 4, dim=0.3)[0], Fraction(10))
    opened = open_project(project)
    opened = replace(opened, videos=(*opened.videos, project / "more" / "bright.mp4", opened.videos[0]))
    found = audit(network, opened, settings=AuditSettings(sample=8, batch_size=8), progress=False)
    assert sorted(found.videos["video"]) == ["dark", "more/bright", "videos/bright"]


class Wide(nn.Module):
    """Is as sure as an image is wide."""

    def forward(self, images):
        sure = torch.full((len(images), len(PARTS)), images.shape[-1] / 100)
        return torch.zeros(len(images), len(PARTS), 2), sure


@pytest.mark.parametrize("size", [None, (16, 24)])
def test_videos_are_brought_to_the_size_to_which_labelled_frames_were_brought(project, size):
    opened = open_project(project, size=size)
    settings = AuditSettings(sample=8, batch_size=8)
    found = audit(as_network(Wide(), PARTS), opened, settings=settings, progress=False)
    width = WIDTH if size is None else size[1]
    assert found.videos["confidence"].tolist() == pytest.approx([width / 100] * 2)
    assert found.videos["distance"].tolist() == [0.5, 0.5]


def test_a_video_larger_than_the_labelled_frames_is_told_of(project, network):
    def notes(opened):
        settings = AuditSettings(sample=4, batch_size=4)
        return [note for note in audit(network, opened, settings=settings, progress=False).notes if "pixels" in note]

    assert notes(open_project(project)) == []
    write_video(project / "videos" / "large.mp4", [np.zeros((64, 96, 3), np.uint8)] * 4, Fraction(10))
    for size in (None, (16, 24)):
        (note,) = notes(open_project(project, size=size))
        assert "labelled frames are 48 x 32 pixels (width x height), and large is 96 x 64:" in note


def test_the_five_answers_are_those_of_the_scene(project, network):
    found = run(project, network, shifts=[Brightness(1), Contrast(5)])
    told = {finding.word: finding for finding in found.findings() if finding.word}
    assert list(told) == ["known", "new", "corruptions", "domain", "label"]
    assert told["known"].numbers["known_pck"] >= 0.9
    assert told["domain"].numbers["out_of_domain"] == 1
    assert "dark (distance 1.00)" in told["domain"].sentence
    assert found.videos["video"].tolist() == ["dark", "bright"]
    assert found.label["video"].tolist()[:2] == ["dark", "dark"]
    assert found.label["confidence"].is_monotonic_increasing
    assert any("--split" in note for note in found.notes)
    assert (found.settings["breaks"], found.settings["far"]) == (2.0, 0.8)


@pytest.mark.parametrize(("breaks", "broken"), [(1.2, 2), (2.0, 1), (4.0, 0)])
def test_what_breaks_a_network_is_a_setting(breaks, broken):
    errors = {"clean": 1.0, "fog": 1.5, "contrast": 3.0}
    rows = [
        {"part": "", "individual": "", "measure": "normalised_error", "stream": "known", "adapter": "none"}
        | {"shift": shift, "severity": 3.0 * (shift != "clean"), "value": value, "n": 9, "threshold": 0.3}
        | {"normalise": "box"}
        for shift, value in errors.items()
    ]
    rows += [rows[0] | {"measure": "pck"}, rows[0] | {"measure": "pixel_error", "value": 7.0}]
    told = findings(pd.DataFrame(rows), pd.DataFrame(), pd.DataFrame(), "", breaks)
    known, corruptions = told[0], next(each for each in told if each.word == "corruptions")
    assert known.sentence.endswith("mean error 1.000 box sizes (7.0 pixels)")
    assert (corruptions.numbers["broken"], corruptions.numbers["breaks_from"]) == (broken, breaks)
    assert corruptions.sentence.startswith(f"{broken} of 2 corruptions break it (at least {breaks:g} times the error)")
    assert "a choice; nothing was fitted" in DEFINITIONS["breaks"]


def cells(errors):
    """Scores of labelled frames: (shift, adapter) -> error."""
    rows = [
        {"part": "", "individual": "", "measure": measure, "stream": "known", "adapter": adapter, "shift": shift}
        | {"severity": 3.0 * (shift != "clean"), "value": value, "n": 9, "threshold": 0.3, "normalise": "box"}
        for (shift, adapter), value in errors.items()
        for measure in ("normalised_error", "pck", "pixel_error")
    ]
    return {each.word: each for each in findings(pd.DataFrame(rows), pd.DataFrame(), pd.DataFrame(), "")}


def test_a_network_without_error_on_clean_frames_has_no_ratio_that_is_not_a_number():
    told = cells({("clean", "none"): 0.0, ("fog", "none"): 0.0, ("snow", "none"): 0.4, ("frost", "none"): 0.7})
    broken = told["corruptions"]
    assert "2 of 3 corruptions break it" in broken.sentence
    assert "frost (from no error to 0.700), snow (from no error to 0.400)" in broken.sentence
    assert broken.numbers["times"] == {"fog": 1.0}
    assert broken.numbers["from_no_error_to"] == {"frost": 0.7, "snow": 0.4}
    assert not any(word in broken.sentence for word in ("inf", "nan"))


@pytest.mark.parametrize(
    ("clean", "fog", "sentence"),
    [
        ((0.0, 0.1), (0.5, 0.25), "in 1 of 2 cells, most under fog (divided by 2.00); on the frames as they are the "
         "error is 0 before and 0.100 after"),
        ((0.0, 0.0), (0.5, 0.0), "in 1 of 2 cells, most under fog (0.500 before and 0 after); on the frames as they "
         "are the error is the same"),
        ((0.1, 0.2), (0.5, 0.6), "in 0 of 2 cells; on the frames as they are the error is multiplied by 2.00"),
    ],
)  # fmt: skip
def test_adaptation_of_a_network_without_error_is_told_without_a_ratio(clean, fog, sentence):
    errors = {(shift, adapter): value for shift, pair in (("clean", clean), ("fog", fog))
              for adapter, value in zip(("none", "batchnorm"), pair, strict=True)}  # fmt: skip
    told = cells(errors)["adaptation"]
    assert told.sentence == f"batchnorm lowers the error {sentence}"
    assert np.isfinite(list(told.numbers.values())).all()


@pytest.mark.parametrize("given", [{"breaks": 1.0}, {"far": 0.4}, {"far": 1.1}])
def test_limits_that_mean_nothing_are_refused(given):
    with pytest.raises(HapteraError, match=next(iter(given))):
        AuditSettings(**given)


@pytest.mark.long
def test_an_audit_keeps_the_laws_of_analyses(project, network):
    broken = check_analysis(run(project, network, shifts=[Contrast(5)]))
    assert not {law: why for law, why in broken.items() if why}


@pytest.mark.long
def test_adaptation_is_tried_where_there_is_something_to_adapt(project, network):
    adapters = {"batchnorm": partial(BatchNorm, prior=0)}
    refused = run(project, network, adapters=adapters)
    told = next(finding for finding in refused.findings() if finding.word == "adaptation")
    assert told.sentence == "batchnorm cannot be tried: there is no BatchNorm layer with statistics in the model"
    normed = as_network(Brightest(True), PARTS, stride=1, first=0, scores="probabilities").eval()
    tried = run(project, normed, adapters=adapters, shifts=[Contrast(5)])
    told = next(finding for finding in tried.findings() if finding.word == "adaptation")
    errors = tried.scores.rows.query("part == '' and individual == '' and measure == 'normalised_error'")
    wide = errors.pivot_table(index=["stream", "shift"], columns="adapter", values="value")
    assert told.numbers["batchnorm: cells_with_lower_error"] == (wide["batchnorm"] < wide["none"]).sum()
    assert not {law: why for law, why in check_analysis(tried).items() if why}


@pytest.mark.long
def test_an_audit_started_again_ends_the_same_and_runs_nothing(project, network, tmp_path, monkeypatch):
    once = run(project, network, tmp_path / "out", shifts=[Contrast(5)])
    monkeypatch.setattr(Brightest, "forward", lambda self, images: pytest.fail("it ran again"))
    again = run(project, network, tmp_path / "out", shifts=[Contrast(5)])
    pd.testing.assert_frame_equal(once.table(), again.table())
    pd.testing.assert_frame_equal(once.label, again.label)
    files = once.save(tmp_path / "out")
    assert pd.read_csv(tmp_path / "out" / "label_next.csv")["frame"].tolist() == once.label["frame"].tolist()
    assert {"report.html", "calibration.json"} <= {path.name for path in files.values()}


def test_a_video_of_the_project_that_cannot_be_read_is_left_out_and_named(project, network):
    (project / "videos" / "cut.mp4").write_bytes(b"not a video")
    (project / "videos" / "empty.mp4").write_bytes(b"")
    found = run(project, network)
    assert set(found.videos["video"]) == {"bright", "dark"}
    assert [sentence.partition(":")[0] for sentence in found.failures] == ["cut.mp4", "empty.mp4"]
    assert all("cannot read the video" in sentence for sentence in found.failures)
    assert found.json()["failures"] == list(found.failures)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"multianimalproject": True}, "several animals in a frame"),
        ({"scorer": "you"}, "unknown scorer in .* 'you'"),
        ({"bodyparts": ["nose"]}, r"names the parts \['nose'\], the labels have \['red'"),
        ({"pcutoff": 3}, "pcutoff is 3; a number from 0 to 1"),
    ],
)
def test_a_project_that_cannot_be_read_says_why(project, change, message):
    config = yaml.safe_load((project / "config.yaml").read_text())
    (project / "config.yaml").write_text(yaml.safe_dump(config | change))
    with pytest.raises(HapteraError, match=message):
        open_project(project)


def test_a_network_with_other_parts_is_refused(project):
    other = as_network(Brightest(False), ("red", "green", "tail"), stride=1).eval()
    with pytest.raises(HapteraError, match="the model has the parts"):
        run(project, other)


def test_answers_have_their_number_in_large_and_lead_to_what_shows_it(project, network):
    found = run(project, network, shifts=[Brightness(5)], adapters={"again": NoAdaptation})
    large, numbers = check_large_numbers(found), {each.word: each.numbers for each in found.findings()}
    assert set(large) == {"known", "new", "corruptions", "adaptation", "domain", "label"}
    assert large["new"] == f"{numbers['new']['new_pck']:.1%}"
    assert large["corruptions"] == f"{numbers['corruptions']['broken']} of 1 corruption"
    assert large["domain"] == f"{numbers['domain']['out_of_domain']} of 2 videos"
    assert large["label"] == "4 frames"
