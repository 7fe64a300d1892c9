"""The page of an analysis of trends: lines, robustness, similarity, closeness, guarantees, each with its table."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from haptera import __version__
from haptera.analyses.trends import Trends
from haptera.analyses.trends.page_events import AXES, closeness_section, guarantee_section, similarity_section
from haptera.analyses.trends.summary import sentences, size
from haptera.report.figure import Figure
from haptera.report.page import render, write_page
from haptera.report.section import Answer, Listing, Section

POINTS = 101
OTHERS = ("linear", "probit", "logit", "two_piece", "chebyshev")
DEFINITIONS = {
    "line": "accuracy on shifted data as a function of accuracy on the reference; R² and residuals are in accuracy, "
    "whatever the scale of the fit",
    "off": "root mean square error for models that the line has not seen, each left out in turn",
    "dominance": "the share of examples on which a worse model is right and a better one is wrong",
    "event": "of three models, exactly these are right and the others wrong; six for each triplet",
    "wedge (δ1, δ2, ν1, ν2)": "Q of an event lies between (1 - δ1) P - ν1 and (1 + δ2) P + ν2, P and Q its shares "
    "on the reference and on shifted data",
    "by more than chance": "further outside than 1.96 standard errors",
    "effective robustness": "accuracy on shifted data above the line of all other models",
    "relative robustness": "accuracy on shifted data above that of the baseline, or else of the best other model on "
    "the reference",
    "ordered": "a better model is right wherever a worse one is",
}
WITHOUT_N = "There is no interval, for n, the number of examples, is not known on both sides."
QUESTIONS = {
    "line": "Is there a line?",
    "similar": "Are the models similar?",
    "close": "Are the two sets close?",
    "guarantee": "Must there be a line?",
    "robust": "Who is off it?",
    "look at": "What should be checked?",
}


def write_trends(trends: Trends, path: Path) -> None:
    """Write the page, whole."""
    makers = (line_section, robustness_section, similarity_section, closeness_section, guarantee_section)
    sections = [section for make in makers if (section := make(trends)) is not None]
    reference, shifted = trends.sides.reference.source, trends.sides.shifted.source
    page = render(
        sections,
        _answers(trends),
        title=f"Trends: {Path(reference).name} and {Path(shifted).name}",
        settings=_settings(trends),
        notes=trends.notes,
        definitions=DEFINITIONS,
    )
    write_page(page, path)


def _answers(trends: Trends) -> list[Answer]:
    """The sentences of the summary, those that belong together in one."""
    joined: dict[str, list[str]] = {"line": [size(trends)]}
    last = ""
    for word, sentence in sentences(trends):
        last = word or last
        joined.setdefault(last, []).append(sentence)
    answers = {word: "; ".join(parts) + "." for word, parts in joined.items()}
    for word in ("similar", "guarantee"):  # the others begin with a name or a number
        if word in answers:
            answers[word] = answers[word][0].upper() + answers[word][1:]
    return [Answer(QUESTIONS[word], sentence) for word, sentence in answers.items()]


def _settings(trends: Trends) -> dict[str, Any]:
    names = ("fit", "switch", "joined", "share", "baseline", "draws", "seed")
    sides = {"reference": trends.sides.reference.source, "shifted": trends.sides.shifted.source}
    wedge = {"wedge": "the narrowest" if trends.wedge is None else str(trends.wedge)}
    return {"haptera": __version__} | sides | {name: getattr(trends, name) for name in names} | wedge


def line_section(trends: Trends) -> Section:
    """Models on both sides with the fitted lines, on plain and on probit axes, and the fits as a table."""
    frame = models_and_lines(trends)
    caption = (
        f"A point is a model; point at it for its name. The area around the {trends.kind} line is its 95 % interval "
        f"over {_over(trends)}; in that of new models, 95 % of these should be. On the dashed line nothing is lost."
    )
    others = [f"{kind} line" for kind in OTHERS if kind not in ("linear", trends.kind)]
    shown = [layer for layer in frame["layer"].unique() if layer not in others]
    settings: dict[str, Any] = {
        "frame": frame, "kind": "layers", "x": "reference", "y": "shifted", "low": "low", "high": "high",
        "color": ("layer",), "dash": "dash", "mark": "mark", "choose": "layer", "start": {"layer": shown},
        "labels": AXES,
    }  # fmt: skip
    figures = [Figure("Accuracy on both sides", caption, **settings)]
    if "probit" in trends.lines:
        figures.append(Figure("The same on probit axes", "A probit line is straight here.", scale="probit", **settings))
    fits = Listing(
        "Fits",
        "The one that predicts left-out models best comes first. Slope and intercept are on the scale of the fit, of "
        "two pieces those of the first; intervals are at 95 %, over examples and over models.",
        trends.fits,
        {"r2": "R²", "max_residual": "largest residual", "worst": "of", "left_out": "off", "left_out_max": "at most"}
        | {f"slope_{end}_{over}": f"slope, {end} ({over})" for end in ("low", "high") for over in trends.over},
    )
    return Section(
        "Line", "How accuracy on shifted data follows from accuracy on the reference.", tuple(figures), (fits,)
    )


def models_and_lines(trends: Trends) -> pd.DataFrame:
    """Points, lines and bands over accuracy on the reference."""
    x, y = trends.accuracies
    effective = trends.robustness.set_index("model")["effective"].loc[list(trends.models)]
    points = pd.DataFrame({"mark": "point", "layer": "models", "model": trends.models, "reference": x, "shifted": y})
    points["effective"] = effective.to_numpy()
    at = np.linspace(x.min(), x.max(), POINTS)
    line = trends.prediction(at, _over(trends))
    chosen = {"reference": at, "layer": f"{trends.kind} line"}
    parts = [
        pd.DataFrame(chosen | {"mark": "band", "low": line["new_low"], "high": line["new_high"]}).assign(
            layer="new models"
        ),
        pd.DataFrame(chosen | {"mark": "band", "low": line["low"], "high": line["high"]}),
        pd.DataFrame(chosen | {"mark": "line", "shifted": line["line"]}),
    ]
    others = [kind for kind in OTHERS if kind != trends.kind and kind in trends.lines]
    parts += [
        pd.DataFrame({"mark": "line", "layer": f"{kind} line", "reference": at, "shifted": trends.lines[kind].line(at)})
        for kind in others
    ]
    equal = at[[0, -1]]
    parts.append(pd.DataFrame({"mark": "line", "layer": "nothing lost", "reference": equal, "shifted": equal}))
    frame = pd.concat([points, *parts], ignore_index=True)
    frame["dash"] = np.where(frame["layer"] == "nothing lost", "reference", "fitted")
    order = ["mark", "layer", "model", "reference", "shifted", "low", "high", "effective", "dash"]
    return frame[order]


def _over(trends: Trends) -> str:
    """Over what the interval of the line is drawn."""
    return "models" if trends.sampled is None else "examples"


def robustness_section(trends: Trends) -> Section:
    """Effective robustness of every model, and the models that were placed."""
    rows = trends.robustness
    points = rows[["model", "reference", "effective", "effective_low", "effective_high"]].assign(
        mark="point", layer="models"
    )
    ends = [rows["reference"].min(), rows["reference"].max()]
    zero = pd.DataFrame({"mark": "line", "layer": "the line of the others", "reference": ends, "effective": 0.0})
    known = trends.sampled is not None
    bars = "Bars, drawn for at most 80 models, are 95 % intervals over examples." if known else WITHOUT_N
    figure = Figure(
        "Effective robustness",
        f"Accuracy on shifted data above the {trends.kind} line of all others. {bars}",
        pd.concat([points, zero], ignore_index=True),
        kind="layers",
        x="reference",
        y="effective",
        low="effective_low",
        high="effective_high",
        color=("layer",),
        mark="mark",
        labels=AXES | {"effective": "effective robustness"},
    )
    tables = [Listing("Robustness of every model", "Intervals are over examples." if known else WITHOUT_N, rows)]
    if len(trends.places):
        tables.append(
            Listing(
                "Models among all others",
                "Whether the others are similar to it, and whether its events stay within their narrowest wedge.",
                trends.places,
                {
                    "low": "effective, low",
                    "high": "effective, high",
                    "slope": "slope of the others",
                    "zeta": "ζ of the others",
                },
            )
        )
    return Section("Robustness", "Who keeps more than the line of the others predicts.", (figure,), tuple(tables))
