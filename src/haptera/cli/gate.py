"""`gate`: may this candidate replace the model before it? For people, and for the build."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from haptera.analyses.gate import GateSettings

if TYPE_CHECKING:
    from haptera.analyses.gate.analysis import Gate

GitHub = Annotated[
    bool | None,
    typer.Option(
        "--github/--no-github",
        help="Print GitHub annotations and add to its job summary; on GitHub by default.",
        show_default=False,
    ),
]


def gate(
    study: Path,
    /,
    settings: GateSettings,
    baseline: Path | None = None,
    data: str | None = None,
    junit: Path | None = None,
    github: GitHub = None,
    out: Path | None = None,
    progress: bool | None = None,
) -> "Gate":
    """Fail (exit code 1) when a candidate is worse than the model before it by more than noise, or misses a bar.

    Args:
        study: the folder of the candidate's study; for --quick also a study file, or a folder with a study.toml.
        settings: what is asked.
        baseline: the folder of the study of the model before.
        data: digits, a folder or a file of images, to show the worst ones on the page.
        junit: write JUnit XML to this file.
        github: whether to speak to GitHub.
        out: a folder where a quick gate keeps what it has run.
        progress: show a bar.
    """
    from haptera.analyses.gate import github as hub
    from haptera.analyses.gate.junit import write_junit
    from haptera.analyses.gate.opening import open_gate

    images = None
    if data is not None:
        from haptera.data import open_data

        images = open_data(data)
    made = open_gate(study, baseline, settings, images, out, progress)
    if junit is not None:
        write_junit(made, junit)
    if os.environ.get(hub.ACTIONS) == "true" if github is None else github:
        sys.stderr.write("".join(f"{line}\n" for line in hub.annotations(made)))  # stdout may be one JSON object
        hub.add_summary(made)
    return made
