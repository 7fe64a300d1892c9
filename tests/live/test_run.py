"""The page of a run says what shifted when, what it cost and what the adapter did, and nothing that it cannot know."""

import io

import pytest
from PIL import Image
from tests.large_numbers import check_large_numbers
from tests.live.recorded_rows import BACK, FALL, SHIFT, STEPS, event_row, rows, step_row, time_of, write_log

from haptera.live.history import clock
from haptera.live.page import thinned
from haptera.live.reader import LogReader
from haptera.testing import check_analysis


def run_of(folder, content=None, about=None):
    reader = LogReader(write_log(folder, content, about))
    reader.read_on()
    return reader.run()


def said(run):
    return {finding.word: finding.sentence for finding in run.findings()}


def test_while_it_lasts_the_first_sentence_is_the_operators(tmp_path):
    sentence = said(run_of(tmp_path, rows(FALL)))["now"]
    assert sentence.startswith("shift since 14:02, defocus_blur-like, strongest in layer1.0.bn1, size 0.6")
    assert sentence.endswith("; accuracy predicted 71% (66 to 77), was 91%; no collapse")


def test_afterwards_it_says_from_when_to_when_and_that_the_guard_stepped_in(tmp_path):
    run = run_of(tmp_path)
    told = said(run)
    assert told["shift"].startswith("shift from 14:02 to 16:43, ")
    assert told["shift"].endswith("no shift now")
    assert told["accuracy"] == "predicted 91% (86 to 97), 70% during the shift, 91% before it"
    assert told["adapter"] == "rdumb answered 91% of the batches, 1 reset, fell back once, last at 15:12"
    numbers = run.json()
    assert (numbers["alarms"], numbers["alarm_step"], numbers["fallbacks"]) == (1, 64, 1)
    assert numbers["since"] == time_of(SHIFT)


def test_labels_say_how_accurate_it_is_and_what_adaptation_recovers(tmp_path):
    content = []
    for row in rows(FALL):
        content.append(row)
        if row["kind"] == "step" and row["step"] >= 100 and row["step"] % 2 == 0:
            content.append(event_row(row["step"], "label", "", known=20, right=16, compared=4, gained=1.0))
    run = run_of(tmp_path, content)
    told = said(run)
    assert "80% (76 to 83) of the last 500 labels right" in told["accuracy"]
    assert "rdumb recovers 25 points of it" in told["now"]


def test_a_page_without_shift_reference_or_adapter_claims_none(tmp_path):
    plain = [
        step_row(step, accuracy=None, low=None, high=None, served="unadapted", shift_size=None) for step in range(9)
    ]
    told = said(run_of(tmp_path, plain, {"model": "net", "remarks": ["there is no reference"]}))
    assert told["shift"] == "no shift: 0 alarms in 576 images"
    assert told["accuracy"] == "nobody can tell: there is no reference"
    assert told["adapter"] == "nothing: the model is served as it is"
    assert said(run_of(tmp_path / "empty", [], {}))["steps"] == "nothing yet: the log has no step"


@pytest.mark.long
@pytest.mark.parametrize("steps", [0, STEPS])
def test_the_laws_of_analyses_hold(tmp_path, steps):
    broken = {law: why for law, why in check_analysis(run_of(tmp_path, rows(steps))).items() if why}
    assert broken == {}


def test_a_long_run_is_thinned_and_its_slowest_batch_stays(tmp_path):
    content = [step_row(step) for step in range(9000)]
    content[4567]["latency"] = 0.5
    points, most = thinned(run_of(tmp_path, content))
    lines = points.groupby("line")
    assert lines.size().max() <= 1000
    assert most >= 9
    assert lines.get_group("slowest")["value"].max() == 500
    assert lines.get_group("latency")["value"].max() < 100


def test_alarms_and_their_ends_are_marked_and_the_shift_is_shaded(tmp_path):
    section = run_of(tmp_path).sections()[0]
    frame = section.figures[0].frame
    flags = frame["event"].dropna()
    assert list(flags) == ["alarm: sharpness has changed", "cleared: the stream is back"]
    assert frame["state"].eq("shift").sum() == BACK + 1 - SHIFT


def test_frames_near_alarms_are_shown_only_if_kept_and_only_if_they_are_pictures(tmp_path):
    run = run_of(tmp_path)
    assert run.sections()[-1] is None
    kept = tmp_path / "thumbnails"
    kept.mkdir()
    for number, grey in enumerate((0, 255)):
        Image.new("L", (8, 8), grey).save(kept / f"000000064-{number}.png")
    (kept / "000000065-0.png").write_bytes(b"no picture")
    (kept / "evil<script>.png").write_bytes(b"")
    reader = LogReader(tmp_path)
    reader.read_on()
    (picture,) = reader.run().sections()[-1].pictures
    assert picture.title == f"Step 64, {clock(time_of(64), 1e9)}"
    assert picture.caption == "alarm: sharpness has changed"
    with Image.open(io.BytesIO(picture.png)) as strip:
        assert strip.size == (196, 96)
        assert [strip.getpixel((x, 48)) for x in (10, 150)] == [(0, 0, 0), (255, 255, 255)]


def test_answers_have_their_number_in_large_and_lead_to_what_shows_it(tmp_path):
    large = check_large_numbers(run_of(tmp_path / "during", rows(FALL)))
    assert set(large) == {"shift", "accuracy", "service"}
    assert large["shift"].startswith("size 0.6")
    assert large["accuracy"] == "71% predicted"
    assert set(check_large_numbers(run_of(tmp_path / "after"))) == {"accuracy", "service"}  # it is over
