"""`dependencies`: which classes a network derives from others, from its saved logits."""

from pathlib import Path
from typing import Annotated

import typer

from haptera.cli.say import logging_to_stderr, say, say_json
from haptera.errors import HapteraError

WIDTH = 12


def dependencies(
    logits: Annotated[
        Path,
        typer.Argument(
            help="An .npz with logits (and targets and classes if known), or a cell of a study.", show_default=False
        ),
    ],
    onto: Annotated[
        Path | None, typer.Option(help="Derive the logits of this network from those of the first.")
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="λ/2 of the lasso; 0.25 if nothing is said.")] = None,
    per_class: Annotated[int | None, typer.Option(help="Instead: keep so many dependencies for each class.")] = None,
    fit_on: Annotated[
        str, typer.Option(help="half: fit on one half of the examples, evaluate on the other; all: both on all.")
    ] = "half",
    report: Annotated[Path | None, typer.Option(help="Write a page with all figures to this file.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No remarks.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Find for every class the few others from which its logit can be derived."""
    if alpha is not None and per_class is not None:
        raise HapteraError(
            "--alpha and --per-class are two ways to say how many dependencies to keep; give one of them"
        )
    from haptera.analyses.dependencies import analyse
    from haptera.analyses.dependencies.summary import as_json as content_of
    from haptera.analyses.dependencies.summary import notes, sentences, size

    with logging_to_stderr(quiet):
        analysis = analyse(logits, onto, alpha=0.25 if alpha is None else alpha, per_class=per_class, fit_on=fit_on)
        if report is not None:
            from haptera.analyses.dependencies.page import write_dependencies

            write_dependencies(analysis, report)
    if as_json:
        say_json(content_of(analysis) | ({"report": str(report)} if report else {}))
        return
    say(size(analysis))
    for note in () if quiet else notes(analysis):
        say(f"{'note':<{WIDTH}}{note}")
    for word, texts in sentences(analysis).items():
        for place, text in enumerate(texts):
            say(f"{'' if place else word:<{WIDTH}}{text}")
    if report is not None:
        say(str(report))
