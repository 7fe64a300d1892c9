"""GitHub: a gate as annotations of a workflow, and as the Markdown of its job summary.

Source: GitHub's documentation of workflow commands: `::error title=T::message` on a line of its own, with %, line ends
and, in the title, colons and commas as per cent codes; a job summary is Markdown, added to the file that the variable
GITHUB_STEP_SUMMARY names.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from haptera.analyses.gate.decide import FELL, neighbours
from haptera.analyses.gate.findings import bar_place, group_sentences
from haptera.errors import WriteError

if TYPE_CHECKING:
    from haptera.analyses.gate.analysis import Gate

SUMMARY, ACTIONS = "GITHUB_STEP_SUMMARY", "GITHUB_ACTIONS"
MOST = 10
"""Annotations that GitHub shows of one step."""
TITLE = "haptera gate"


def annotations(gate: "Gate") -> list[str]:
    """Return the lines that GitHub shows beside a change: an error for each thing that fell, or a notice."""
    told = group_sentences(gate, neighbours(gate.comparisons, FELL))
    told += [
        f"{bar_place(row)}: {row['measure']} {row['value']:.4g}, bar {row['bar']}" for _, row in gate.missed.iterrows()
    ]
    told += list(gate.failures)
    if not told:
        return [_command("notice", gate.findings()[0].sentence)]
    lines = [_command("error", each) for each in told[:MOST]]
    return [*lines[: MOST - 1], _command("error", f"and {len(told) - MOST + 1} more")] if len(told) > MOST else lines


def _command(kind: str, message: str) -> str:
    text = message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return f"::{kind} title={TITLE}::{text}"


def markdown(gate: "Gate") -> str:
    """Return a gate as Markdown: the verdict, what stands behind it, and the comparisons that were not within noise."""
    findings = gate.findings()
    mark = "✅" if gate.passed else "❌"
    lines = [f"### {mark} {_plain(gate.title)}", "", _plain(findings[0].sentence), ""]
    lines += [f"- **{finding.word or '…'}** {_plain(finding.sentence)}" for finding in findings[1:]]
    lines += [f"- *note* {_plain(note)}" for note in gate.notes]
    rows = gate.comparisons[gate.comparisons["verdict"].isin(["fell", "lower", "better"])]
    if len(rows):
        lines += ["", "| shift | severity | adapter | before | after | difference | interval | images | verdict |"]
        lines += ["|---|---|---|---|---|---|---|---|---|"]
    for row in rows.sort_values("difference").to_dict("records"):
        severity = "" if row["severity"] != row["severity"] else f"{row['severity']:g}"
        means = f"{row['before']:.3f} | {row['after']:.3f}"
        numbers = f"{row['difference']:+.3f} | {row['low']:+.3f} .. {row['high']:+.3f} | {row['images']:,}"
        names = f"{_plain(row['shift'] or row['part'])} | {severity} | {_plain(row['adapter'])}"
        lines.append(f"| {names} | {means} | {numbers} | {row['verdict']} |")
    return "\n".join(lines) + "\n"


def _plain(text: object) -> str:
    """Return text that Markdown and its tables show as it is."""
    return "".join(f"\\{letter}" if letter in "\\|`*_<>[]#" else letter for letter in str(text).replace("\n", " "))


def add_summary(gate: "Gate", environment: Mapping[str, str] = os.environ) -> Path | None:
    """Add the Markdown of a gate to the job summary; return its path, or None where there is none."""
    if not environment.get(SUMMARY):
        return None
    path = Path(environment[SUMMARY])
    try:
        with open(path, "a", encoding="utf-8") as file:  # GitHub's own file, to which every step adds
            file.write(markdown(gate) + "\n")
    except OSError as error:
        raise WriteError(f"cannot write the job summary {path}: {error.strerror}") from error
    return path
