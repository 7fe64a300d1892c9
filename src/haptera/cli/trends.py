"""`trends`: why accuracies on two sets of data fall on a line, and which model leaves it."""

from pathlib import Path
from typing import Annotated

import typer

from haptera.cli.say import logging_to_stderr, say, say_json

WIDTH = 12


def trends(
    reference: Annotated[
        str,
        typer.Argument(
            help="An .npz (FILE.npz or FILE.npz:ARRAY), a .csv (or FILE.csv:COLUMN), or FOLDER:STREAM of a study.",
            show_default=False,
        ),
    ],
    shifted: Annotated[str, typer.Argument(help="The same models on shifted data, likewise.", show_default=False)],
    fit: Annotated[
        str, typer.Option(help="Line to measure from: linear, probit, logit, two_piece, robust, robust_probit or best.")
    ] = "best",
    switch: Annotated[
        int | None, typer.Option(help="Two pieces meet at the model of this rank; else at the best.")
    ] = None,
    joined: Annotated[bool, typer.Option(help="Whether two pieces meet at all.")] = True,
    wedge: Annotated[
        tuple[float, float, float, float] | None, typer.Option(help="δ1 δ2 ν1 ν2 to test; else the narrowest.")
    ] = None,
    share: Annotated[float, typer.Option(help="Of the events, for which a narrowest wedge is sought too.")] = 0.95,
    model: Annotated[list[str] | None, typer.Option(help="A model to place among the others; repeatable.")] = None,
    baseline: Annotated[
        str | None, typer.Option(help="What relative robustness compares with; else the best other model.")
    ] = None,
    n: Annotated[
        tuple[int, int] | None,
        typer.Option(help="Examples of the reference and of shifted data, where files of accuracies do not say."),
    ] = None,
    draws: Annotated[int, typer.Option(help="Of examples, and of models, for the intervals.")] = 1000,
    seed: Annotated[int, typer.Option(help="Of the draws.")] = 0,
    report: Annotated[Path | None, typer.Option(help="Write a page with all figures to this file.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No remarks.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Fit lines to the accuracies of models on two sets of data, and say why, how sure, and who is off them."""
    from haptera.analyses.trends import Trends, join, read_side
    from haptera.analyses.trends.summary import as_json as content_of
    from haptera.analyses.trends.summary import sentences, size
    from haptera.analyses.trends.wedge import as_wedge

    with logging_to_stderr(quiet):
        sides = [read_side(source) for source in (reference, shifted)]
        if n is not None:
            sides = [side.with_n(each) for side, each in zip(sides, n, strict=True)]
        analysis = Trends(
            join(*sides),
            fit=fit,
            switch=switch,
            joined=joined,
            wedge=as_wedge(wedge) if wedge else None,
            share=share,
            placed=model or [],
            baseline=baseline,
            draws=draws,
            seed=seed,
        )
        content = content_of(analysis) if as_json else {}
        lines = [] if as_json else sentences(analysis)
        if report is not None:
            from haptera.analyses.trends.page import write_trends

            write_trends(analysis, report)
    if as_json:
        say_json(content | ({"report": str(report)} if report else {}))
        return
    say(size(analysis))
    for note in () if quiet else analysis.notes:
        say(f"{'note':<{WIDTH}}{note}")
    for word, sentence in lines:
        say(f"{word:<{WIDTH}}{sentence}")
    if report is not None:
        say(str(report))
