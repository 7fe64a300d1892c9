"""The laws of analyses: page, JSON and summary say the same numbers, and whoever reads the folder again reads them too.

An analysis is checked as it is, or as a function without further arguments that makes it. A function with a parameter
`out` keeps a ledger there, and must end the same when it is started again, and when a finished piece was damaged.
"""

import inspect
import json
import re
from collections.abc import Callable, Sequence
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from haptera.analysis import Analysis, SavedAnalysis, numbers_table
from haptera.errors import HapteraError
from haptera.files.json import plain, read_json
from haptera.run.ledger import PLAN, Ledger
from haptera.testing.law import demand, run_laws

NUMERAL = re.compile(r"(?<![\w.^-])[+−-]?(\d[\d,]*(?:\.\d+)?(?:e[+-]\d+)?)( ?%)?")
Make = Callable[..., Analysis]


def page_json_and_summary_say_the_same(analysis: Analysis) -> None:
    """Every sentence and note is in the summary, in the JSON object, and on the page."""
    page, summary, content = unescape(analysis.page()), analysis.summary(), analysis.json()
    json.dumps(content, allow_nan=False)
    told = [each["sentence"] for each in content["findings"]]
    demand(told == [finding.sentence for finding in analysis.findings()], "JSON has other sentences than the findings")
    demand(content["notes"] == list(analysis.notes), "JSON has other notes than the analysis")
    for sentence in [*told, *analysis.notes, *filter(None, [analysis.headline()])]:
        demand(sentence in summary, f"the summary does not say {sentence!r}")
        demand(sentence in page, f"the page does not say {sentence!r}")
    for finding in analysis.findings():
        for name, value in finding.numbers.items():
            demand(content[name] == plain(value), f"{name} is {content[name]} in JSON and {value} in the finding")


def names_of_numbers_are_unique(analysis: Analysis) -> None:
    """No two numbers have the same name, in one finding or in two, and the first finding has a word."""
    names = [name for finding in analysis.findings() for name in finding.numbers]
    twice = {name for name in names if names.count(name) > 1}
    demand(not twice, f"two findings have a number called {', '.join(sorted(twice))}")
    demand(bool(analysis.findings()), "it has no finding")
    demand(bool(analysis.findings()[0].word), "the first finding goes on where none has ended: it has no word")


def every_number_is_in_the_table(analysis: Analysis) -> None:
    """Every number of the findings is a number of the table, exactly."""
    known = set(_numbers(analysis.table()).tolist())
    own = numbers_table(analysis.findings())
    missing = own[~own["value"].isin(known)]
    demand(missing.empty, f"{'' if missing.empty else missing['measure'].iloc[0]} is not in the table")


def every_sentence_has_its_number_in_the_table(analysis: Analysis) -> None:
    """A sentence with numerals says at least one number of the table, rounded or in per cent."""
    known = np.abs(_numbers(analysis.table()))
    for finding in analysis.findings():
        numerals = NUMERAL.findall(finding.sentence)
        if numerals:
            demand(
                any(_is_among(text, bool(percent), known) for text, percent in numerals),
                f"no number of {finding.sentence!r} is in the table",
            )


def asked_again_it_says_the_same(analysis: Analysis) -> None:
    """Summary, JSON and page are the same when they are asked for again."""
    for name in ("summary", "json", "page"):
        demand(getattr(analysis, name)() == getattr(analysis, name)(), f"{name}() says something else the second time")


def saved_and_read_again_it_says_the_same(analysis: Analysis) -> None:
    """What `save` wrote is read by `SavedAnalysis` with the same words and numbers."""
    with TemporaryDirectory() as folder:
        paths = analysis.save(folder)
        again = SavedAnalysis(folder)
        missing = [name for name, path in paths.items() if not path.is_file()]
        demand(not missing, f"{', '.join(missing)} was not written")
        demand(again.summary() == analysis.summary(), "the summary is another one when it is read again")
        demand(read_json(paths["result"]) == analysis.json(), "result.json is not what json() returns")
        demand(again.json() == analysis.json(), "the JSON object is another one when it is read again")
        for one, two in zip(analysis.findings(), again.findings(), strict=True):
            demand(plain(one.numbers) == two.numbers, f"{one.word}: other numbers when they are read again")
        pd.testing.assert_frame_equal(analysis.table(), again.table(), check_dtype=False, check_column_type=False)


def started_again_it_ends_the_same(make: Make) -> None:
    """In the folder of a run that ended, the same call ends the same, and so it does after a piece was damaged."""
    with TemporaryDirectory() as folder:
        first = make(out=Path(folder)).json()
        demand(make(out=Path(folder)).json() == first, "the second run in a folder says something else")
        content = read_json(Path(folder) / PLAN)
        ledger = Ledger(folder, content["kind"], noun=content["noun"])
        for path in map(ledger.path, ledger.finished[:1]):
            file = next(each for each in (path, *sorted(path.rglob("*"))) if each.is_file())
            file.write_bytes(file.read_bytes()[:-1])
        demand(make(out=Path(folder)).json() == first, "after a piece was damaged it says something else")


ANALYSIS_LAWS = (
    page_json_and_summary_say_the_same,
    names_of_numbers_are_unique,
    every_number_is_in_the_table,
    every_sentence_has_its_number_in_the_table,
    asked_again_it_says_the_same,
    saved_and_read_again_it_says_the_same,
)


def check_analysis(thing: Analysis | Make) -> dict[str, str]:
    """Return law -> why it is broken, or an empty text, for an analysis or for what makes one without arguments."""
    if isinstance(thing, Analysis):
        return run_laws(ANALYSIS_LAWS, [(thing,)])
    parameters = inspect.signature(thing).parameters
    if missing := [each.name for each in parameters.values() if _is_required(each)]:
        name = getattr(thing, "__name__", "this function")
        raise HapteraError(f"{name} needs {missing[0]}; check functools.partial({name}, {missing[0]}=...)")
    verdicts = run_laws(ANALYSIS_LAWS, [(thing(),)])
    return verdicts | (run_laws([started_again_it_ends_the_same], [(thing,)]) if "out" in parameters else {})


def makes_an_analysis(thing: Any) -> bool:
    """Say whether something is an analysis, a class of them, or a function that is annotated to return one."""
    if isinstance(thing, Analysis) or (isinstance(thing, type) and issubclass(thing, Analysis)):
        return True
    try:
        hint = inspect.signature(thing, eval_str=True).return_annotation
    except (NameError, TypeError, ValueError):  # a name that only type checkers know
        return False
    return isinstance(hint, type) and issubclass(hint, Analysis)


def _is_required(parameter: inspect.Parameter) -> bool:
    several = parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    return parameter.default is parameter.empty and not several


def _numbers(table: pd.DataFrame) -> np.ndarray:
    """Return every number of a table."""
    columns: Sequence[np.ndarray] = [
        table[name].to_numpy(float, na_value=np.nan) for name in table if pd.api.types.is_numeric_dtype(table[name])
    ]
    values = np.concatenate([*columns, np.empty(0)])
    return values[np.isfinite(values)]


def _is_among(text: str, percent: bool, known: np.ndarray) -> bool:
    """Say whether a numeral is one of some numbers, to the digits that are written."""
    digits, _, power = text.replace(",", "").partition("e")
    half = 0.5 * 10.0 ** (int(power or 0) - len(digits.partition(".")[2])) * (1 + 1e-9)
    values = 100 * known if percent else known
    return bool((np.abs(values - float(text.replace(",", ""))) <= half).any())
