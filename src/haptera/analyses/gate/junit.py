"""JUnit: a gate as a file that build servers read, a test case for each comparison and each value of a bar.

Source: there is no one schema; what Jenkins, GitLab and GitHub's readers share is `testsuites/testsuite/testcase` with
`failure`, `error` and `skipped`.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from haptera.analyses.gate.bars import MISSED
from haptera.analyses.gate.decide import FELL, UNSEEN
from haptera.analyses.gate.findings import bar_place, group_name, group_sentences
from haptera.files.atomic import write_text

if TYPE_CHECKING:
    from haptera.analyses.gate.analysis import Gate

INVALID = re.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")
"""What XML cannot hold."""


def junit(gate: "Gate") -> str:
    """Return a gate as JUnit XML."""
    suite = ET.Element("testsuite", name="haptera gate")
    for place in range(len(gate.comparisons)):
        row = gate.comparisons.iloc[[place]]
        name = group_name(row, gate.comparisons)
        case = _case(suite, f"gate.{row['stream'].iloc[0]}", f"{name} {gate.measure}")
        if row["verdict"].iloc[0] == FELL:
            _add(case, "failure", group_sentences(gate, [row])[0])
        elif row["verdict"].iloc[0] == UNSEEN:
            _add(case, "skipped", "a quick gate did not look at it")
    for _, own in gate.bars.iterrows():
        case = _case(suite, "gate.bars", f"{bar_place(own)} {own['bar']}")
        if own["verdict"] == MISSED:
            _add(case, "failure", f"{own['measure']} is {own['value']:.4g}, bar {own['bar']}")
        elif own["verdict"] == UNSEEN:
            _add(case, "skipped", "a quick gate did not look at it")
    for place, failure in enumerate(gate.failures, 1):
        _add(_case(suite, "gate.incomplete", f"cells that could not be compared {place}"), "error", failure)
    _add(suite, "system-out", "", gate.summary())
    counts = {kind: str(len(suite.findall(f"testcase/{tag}"))) for kind, tag in _TAGS.items()}
    suite.attrib |= {"tests": str(len(suite.findall("testcase"))), **counts}
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def write_junit(gate: "Gate", path: Path) -> None:
    """Write a gate as JUnit XML, whole."""
    write_text(path, junit(gate))


_TAGS = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def _case(suite: ET.Element, group: str, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=INVALID.sub("?", group), name=INVALID.sub("?", name), time="0")


def _add(parent: ET.Element, tag: str, message: str, text: str = "") -> None:
    own = ET.SubElement(parent, tag, {"message": INVALID.sub("?", message)} if message else {})
    own.text = INVALID.sub("?", text or message)
