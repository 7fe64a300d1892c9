"""Scores as an analysis: page, JSON, summary and table say the same; cells are kept, and damaged ones run again."""

import json
import re
from dataclasses import replace
from functools import partial
from io import BytesIO

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from tests.large_numbers import check_large_numbers

from haptera.adapters import BatchNorm, NoAdaptation
from haptera.analysis import SavedAnalysis
from haptera.pose import PoseModel, score
from haptera.pose.page import findings
from haptera.pose.skeletons import Frame, contact_sheet, part_colour
from haptera.shifts import Contrast

SHIFTS = (None, Contrast(4))
ADAPTERS = {"none": NoAdaptation, "bn": BatchNorm}


@pytest.fixture(scope="module")
def scores(animals, trained):
    return score({"net": trained}, {"all": animals}, shifts=SHIFTS, adapters=ADAPTERS)


def test_the_page_shows_skeletons_and_scores(scores):
    page = scores.page()
    assert '<img src="data:image/png;base64' in page
    assert re.search(r"lowers the error in \d of 2 cells", page)
    assert "near_front_foot" in page
    assert len(scores.frames) == 2 * 2 * 2
    assert {frame.caption for frame in scores.frames} >= {"all, clean, none", "all, contrast 4, bn"}
    assert "<img " not in replace(scores, frames=()).page()


def test_answers_have_their_number_in_large_and_lead_to_what_shows_it(scores):
    large, rows = check_large_numbers(scores), scores.rows
    own = rows[(rows["part"] == "") & (rows["individual"] == "") & (rows["shift"] == "clean")]
    pck = own[(own["adapter"] == "none") & (own["measure"] == "pck")]["value"].item()
    assert large["parts"] == f"{pck:.1%}"
    assert re.fullmatch(r"lower in [012] of 2 cells", large["adaptation"])
    assert large["confidence"] == f"off by {scores.confidence.before:.3f}"


def test_of_two_sets_the_worse_one_is_in_large_with_its_name(animals, seen, trained):
    sets = {"within": seen, "out": animals.select(np.setdiff1d(animals.rows, seen.rows))}
    both = score({"net": trained}, sets, shifts=(Contrast(1), Contrast(4), None))
    large, rows = check_large_numbers(both), both.rows[(both.rows["part"] == "") & (both.rows["individual"] == "")]
    pck = rows[(rows["measure"] == "pck") & (rows["shift"] == "clean")].set_index("stream")["value"]
    assert large["parts"] == f"{pck.idxmin()}: {pck.min():.1%}"
    error = (
        rows[(rows["measure"] == "normalised_error") & (rows["shift"] == "contrast")].groupby("stream")["value"].mean()
    )
    assert large["corruptions"] == f"{error.idxmax()}: error {error.max():.3f}"


def test_frames_as_they_are_come_before_shifts_and_one_individual_has_no_section(scores):
    rows = scores.rows.replace({"shift": {"contrast": "brightness"}})
    made = {section.title: section for section in replace(scores, rows=rows).sections()}
    assert list(dict.fromkeys(made["Shifts"].figures[0].frame["what"])) == ["clean", "brightness 4"]
    assert "Individuals" in made
    alone = rows[rows["individual"].isin(["", rows["individual"].max()])]
    assert "Individuals" not in {section.title for section in replace(scores, rows=alone).sections()}


NEVER = "it lowers the error in 0 of 2 cells"
HELPS = "most under contrast 4 (out): bn"


@pytest.mark.parametrize(
    ("errors", "said"),
    [
        ((0.4, 0.2, 0.3, 0.3), f"{HELPS} divides the error by 2.0; it lowers the error in 1 of 2 cells"),
        ((0.2, 0.3, 0.4, 0.5), f"{NEVER}; least harm under clean (out): bn multiplies it by 1.25"),
        ((0.2, 0.0, 0.4, 0.5), f"{HELPS} brings the error from 0.200 to 0; it lowers the error in 1 of 2 cells"),
        ((0.0, 0.3, 0.0, 0.5), f"{NEVER}; without it there is none"),
    ],
)  # fmt: skip
def test_adaptation_that_helps_nowhere_is_not_said_to_divide_the_error(errors, said):
    cells = [("contrast", 4.0, "none"), ("contrast", 4.0, "bn"), ("clean", 0.0, "none"), ("clean", 0.0, "bn")]
    record = {"model": "net", "stream": "out", "part": "", "individual": "", "n": 4, "missing": 0, "normalise": "box"}
    record |= {"low": np.nan, "high": np.nan}
    rows = [record | {"shift": shift, "severity": severity, "adapter": adapter, "measure": measure, "value": value}
            for (shift, severity, adapter), value in zip(cells, errors, strict=True)
            for measure in ("normalised_error", "pck")]  # fmt: skip
    [told] = [finding for finding in findings(pd.DataFrame(rows)) if finding.word == "adaptation"]
    assert told.sentence == said


def test_a_sheet_of_frames_names_the_colour_of_every_part():
    parts = [f"part number {number}" for number in range(9)]  # more than a line of one frame has room for
    nowhere = np.full((9, 2), np.nan)
    sheet = contact_sheet([Frame(np.zeros((40, 60, 3), np.uint8), nowhere, nowhere, "bare")], parts, ())
    pixels = np.asarray(Image.open(BytesIO(sheet)))
    seen = set(map(tuple, pixels[40 * 4 :].reshape(-1, 3).tolist()))
    assert {part_colour(number / 9) for number in range(9)} <= seen
    assert not {part_colour(number / 9) for number in range(9)} & set(map(tuple, pixels[:160].reshape(-1, 3).tolist()))


def test_what_it_writes_is_read_again_and_says_the_same(scores, tmp_path):
    scores.save(tmp_path)
    saved = SavedAnalysis(tmp_path)
    pd.testing.assert_frame_equal(saved.table(), scores.table())
    assert [finding.sentence for finding in saved.findings()] == [finding.sentence for finding in scores.findings()]
    assert json.loads((tmp_path / "result.json").read_text()) == json.loads(json.dumps(scores.json()))
    summary = scores.summary()
    assert all(finding.sentence in summary for finding in scores.findings())
    every = scores.table().query("part == '' and individual == ''")
    both = every[every["measure"].isin(["normalised_error", "pck"])]
    bare = every[(every["shift"] == "clean") & (every["adapter"] == "none")]  # the table has the rest
    for value in (*both["value"], *bare["value"]):
        assert f" {value:.3f}" in summary


def test_frames_are_what_the_model_said_about_them(scores, animals, trained):
    own = animals.select((animals.individuals == animals.individuals[0]).nonzero()[0])
    [alone] = score({"net": trained}, {"all": own}).frames
    [frame] = [frame for frame in scores.frames if frame.caption == "all, clean, none"][:1]
    assert (frame.image == alone.image).all()
    assert frame.predicted == pytest.approx(alone.predicted, abs=1e-3)


@pytest.mark.long
def test_finished_cells_are_kept_and_damaged_ones_run_again(scores, animals, trained, tmp_path, caplog, monkeypatch):
    calls, forward = [], PoseModel.forward

    def counted(self, images):
        calls.append(len(images))
        return forward(self, images)

    monkeypatch.setattr(PoseModel, "forward", counted)
    run = partial(score, {"net": trained}, {"all": animals}, shifts=SHIFTS, adapters=ADAPTERS, out=tmp_path)
    assert run().json() == scores.json()
    calls.clear()
    pd.testing.assert_frame_equal(run().table(), scores.table())
    assert calls == []
    damaged = sorted((tmp_path / "cells").iterdir())[0]
    damaged.write_bytes(damaged.read_bytes()[:-1])
    pd.testing.assert_frame_equal(run().table(), scores.table())
    assert sum(size for size in calls if size > 1) == len(animals)  # one image is for the layout of memory
    assert f"{damaged} " in caplog.text
