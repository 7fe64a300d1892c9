"""What a comparison says first is what tells a reader most."""

import pandas as pd

from haptera.analyses.comparison.analysis import Comparison
from haptera.analyses.comparison.protocols import protocol_differences, subjects_of_one

PROTOCOL = pd.DataFrame(
    [
        ("the run", "date", "Monday", "Tuesday"),
        ("stream clean, seed 0", "kind", "clean", ""),
        ("stream clean, seed 0", "images", "901", ""),
        ("stream fog, seed 0", "batch size", "64", "8"),
    ],
    columns=["about", "setting", "one", "other"],
)
CELL = {"model": "net", "stream": "fog", "seed": 0, "images": 10, "only_one": 0, "only_other": 0, "other_labels": 0}
CELLS = pd.DataFrame([
    CELL | {"part": "fog 1", "adapter": adapter, "measure": "accuracy", "one": 0.5, "other": 0.5 + step,
            "difference": step, "low": step - 0.01, "high": step + 0.01}
    for adapter, step in (("batchnorm", 0.1), ("none", 0.0))
])  # fmt: skip
COMPARISON = Comparison("old", "new", PROTOCOL, 10, CELLS, 0, alone={"stream clean, seed 0": "old"})


def test_what_only_one_study_has_is_one_difference_and_the_date_comes_last() -> None:
    sentence = COMPARISON.findings()[0].sentence
    assert sentence.startswith("4 of 10 settings differ: stream clean, seed 0 in old only, batch size of stream fog")
    assert sentence.endswith("date of the run (Monday, Tuesday)")


def test_a_setting_that_one_study_does_not_say_is_no_sign_that_it_has_nothing_of_the_kind() -> None:
    both = {("model net", "fingerprint"): "a", ("stream fog, seed 0", "images"): 10}
    checked = both | {("model net", "preflight, labels"): "fine", ("images of snow", "fingerprint"): "b"}
    protocol, compared = protocol_differences(both, checked)
    alone = subjects_of_one(("old", "new"), (both, checked))
    [finding, *_] = Comparison("old", "new", protocol, compared, CELLS, 0, alone=alone).findings()
    assert "preflight, labels of model net (unsaid, fine)" in finding.sentence
    assert "images of snow in new only" in finding.sentence
    assert "model net in" not in finding.sentence


def test_findings_have_a_number_and_a_figure_and_none_keeps_the_first_colour() -> None:
    findings = {finding.word: finding for finding in COMPARISON.findings()}
    assert findings["accuracy"].number == "+5.00 points"
    figure = COMPARISON.sections()[1].figures[0]
    assert findings["accuracy"].figure == figure.title
    assert figure.palette == ("none", "batchnorm")
    assert "new minus old" in figure.caption
