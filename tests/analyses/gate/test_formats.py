"""What build servers read: JUnit XML, annotations, the job summary."""

from xml.etree import ElementTree as ET

import numpy as np
import pytest

import haptera
from haptera.analyses.gate.github import add_summary, annotations, markdown
from haptera.analyses.gate.junit import junit
from haptera.errors import WriteError
from recorded_studies import answers, plant, record


@pytest.fixture(scope="module")
def gates(tmp_path_factory):
    """A gate that fails in contrast 2-3, and one that passes."""
    folder, generator = tmp_path_factory.mktemp("gates"), np.random.default_rng(0)
    before = answers(generator, severities=(1, 2, 3))
    record(folder / "released", before)
    record(folder / "worse", plant(generator, before, [("contrast", 2), ("contrast", 3)], 0.2))
    record(folder / "same", before)
    return [haptera.gate(folder / name, folder / "released") for name in ("worse", "same")]


def test_junit_has_a_case_for_each_comparison_and_a_failure_for_each_that_fell(gates):
    suite = ET.fromstring(junit(gates[0])).find("testsuite")
    failed = [case.get("name") for case in suite.findall("testcase") if case.find("failure") is not None]
    assert failed == ["contrast 2 accuracy", "contrast 3 accuracy"]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("6", "2", "0")
    message = suite.find("testcase[@name='contrast 2 accuracy']/failure").get("message")
    assert "paired difference -.20" in message
    assert "FAIL" in suite.find("system-out").text


def test_junit_of_a_gate_that_passes_has_no_failure(gates):
    suite = ET.fromstring(junit(gates[1])).find("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("6", "0")


def test_letters_that_xml_cannot_hold_are_replaced(tmp_path):
    for name in ("one", "other"):
        record(tmp_path / name, {("fo\x00g <&>", 1): np.ones(30, bool)})
    suite = ET.fromstring(junit(haptera.gate(tmp_path / "one", tmp_path / "other"))).find("testsuite")
    assert suite.find("testcase").get("name") == "fo?g <&> 1 accuracy"


def test_an_annotation_is_one_line_for_each_group_that_fell(gates):
    (line,) = annotations(gates[0])
    assert line.startswith("::error title=haptera gate::contrast 2-3: accuracy ")
    (line,) = annotations(gates[1])
    assert line == "::notice title=haptera gate::all 6 comparisons within noise"


def test_a_message_cannot_start_a_command_of_its_own(tmp_path):
    for name, share in (("one", 1.0), ("other", 0.5)):
        record(tmp_path / name, {("x\n::set-env name=A::100%", 1): np.arange(200) < 200 * share})
    lines = annotations(haptera.gate(tmp_path / "other", tmp_path / "one"))
    assert "\n" not in lines[0]
    assert "x%0A::set-env name=A::100%25 1: accuracy" in lines[0]


def test_the_job_summary_is_added_to_what_is_there(tmp_path, gates):
    path = tmp_path / "summary.md"
    path.write_text("before\n")
    assert add_summary(gates[0], {"GITHUB_STEP_SUMMARY": str(path)}) == path
    text = path.read_text(encoding="utf-8")
    assert text.startswith("before\n### ❌ worse fails against released")
    assert text.count("| fell |") == 2
    assert add_summary(gates[0], {}) is None


def test_names_cannot_break_the_table_of_the_summary(tmp_path):
    for name, share in (("one", 1.0), ("other", 0.5)):
        record(tmp_path / name, {("a|b <i>", 1): np.arange(200) < 200 * share})
    row = markdown(haptera.gate(tmp_path / "other", tmp_path / "one")).splitlines()[-1]
    assert row.startswith("| a\\|b \\<i\\> | 1 |")


def test_a_summary_that_cannot_be_written_is_said(tmp_path, gates):
    with pytest.raises(WriteError, match="cannot write the job summary"):
        add_summary(gates[0], {"GITHUB_STEP_SUMMARY": str(tmp_path)})
