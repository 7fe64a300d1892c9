"""pytest: a test that fails when a candidate's robustness fell.

    def test_robust(haptera_study):
        assert haptera_study.accuracy("contrast", 4) > 0.6

    $ pytest --haptera-study candidate --haptera-baseline released

A test that takes the fixture `haptera_study` fails when the gate does, after its own assertions. The mark
`@pytest.mark.haptera(study=..., baseline=..., bar=..., tolerance=...)` has settings of `haptera.gate`, which go before
those of the command line; `check=False` leaves the verdict to the test. Without a study the test is skipped. pytest
finds this module by its entry point; nothing but pytest is imported before a test asks for the fixture.
"""

from collections.abc import Generator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import pandas as pd

    from haptera.analyses.gate.analysis import Gate

MARK, FIXTURE = "haptera", "haptera_study"
OPTIONS = {
    "study": "The folder of the candidate's study, for the fixture haptera_study.",
    "baseline": "The folder of the study of the model before.",
    "bar": "What must be reached, such as accuracy=0.8; several with commas.",
    "tolerance": "A drop that is accepted even if it is certain.",
}
ABOUT = (
    "haptera(study, baseline, bar, tolerance, check=True, ...): settings of haptera.gate for the fixture haptera_study"
)


class CandidateStudy:
    """The study of a candidate, beside that of the model before.

    Args:
        folder: of the study.
        baseline: the folder of the model before; None where there are bars alone.
        settings: of `haptera.gate`.
        check: whether the test fails when the gate does.
    """

    def __init__(self, folder: Path, baseline: Path | None, settings: Mapping[str, Any], check: bool = True) -> None:
        self.folder, self.baseline, self.settings, self.checks = folder, baseline, dict(settings), check

    @cached_property
    def gate(self) -> "Gate":
        """The gate of the candidate; made when it is first asked for."""
        import haptera

        return haptera.gate(self.folder, self.baseline, **self.settings)

    @cached_property
    def table(self) -> "pd.DataFrame":
        """Every value that was measured."""
        from haptera.run.results import table_of

        return table_of(self.folder)

    def value(self, measure: str, shift: str | None = None, severity: float | None = None, **names: Any) -> float:
        """Return the mean of a measure over the rows of the table that are asked for.

        Args:
            measure: such as `accuracy`.
            shift: of all by default.
            severity: of all by default.
            **names: further columns, such as `adapter="none"`.
        """
        from haptera.errors import HapteraError

        wanted = {"measure": measure, "shift": shift, "severity": severity, **names}
        rows = self.table[self.table["step"].isna()]
        for column, value in wanted.items():
            if column not in rows:
                raise HapteraError(
                    f"the table of {self.folder} has no column {column!r}; it has {', '.join(map(str, rows))}"
                )
            rows = rows if value is None else rows[rows[column] == value]
        if rows.empty:
            asked = ", ".join(f"{column} {value}" for column, value in wanted.items() if value is not None)
            raise HapteraError(f"{self.folder} has no value of {asked}")
        return float(rows["value"].mean())

    def accuracy(self, shift: str | None = None, severity: float | None = None, **names: Any) -> float:
        """Return the mean accuracy over the rows of the table that are asked for; see `value`."""
        return self.value("accuracy", shift, severity, **names)

    def check(self) -> None:
        """Fail the test that calls it when the gate does; what it says is the verdict."""
        from haptera.errors import HapteraError

        if self.baseline is None and not self.settings.get("bar"):
            return
        try:
            passed, told = self.gate.passed, self.gate.summary()
        except HapteraError as error:
            passed, told = False, str(error)
        if not passed:
            pytest.fail(told, pytrace=False)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the gate."""
    group = parser.getgroup(MARK, "robustness of a model (haptera)")
    for name, text in OPTIONS.items():
        group.addoption(f"--haptera-{name}", default=None, help=text, metavar=name.upper())


def pytest_configure(config: pytest.Config) -> None:
    """Say what the mark means, so that strict markers know it."""
    config.addinivalue_line("markers", ABOUT)


@pytest.fixture
def haptera_study(request: pytest.FixtureRequest) -> CandidateStudy:
    """The study of the candidate; the test fails when it fell behind the baseline by more than noise."""
    settings = {name: request.config.getoption(f"--haptera-{name}") for name in OPTIONS}
    settings = {name: value for name, value in settings.items() if value is not None}
    mark = request.node.get_closest_marker(MARK)
    if mark is not None and mark.args:
        pytest.fail(
            f"the mark haptera takes keywords alone, such as study='candidate'; found {mark.args!r}", pytrace=False
        )
    settings |= {} if mark is None else mark.kwargs
    check, folder, baseline = (settings.pop(name, None) for name in ("check", "study", "baseline"))
    if folder is None:
        pytest.skip("there is no study to look at: give --haptera-study, or study in the mark haptera")
    if isinstance(settings.get("bar"), str):
        settings["bar"] = [text for text in settings["bar"].split(",") if text]
    if isinstance(settings.get("tolerance"), str):
        with suppress(ValueError):  # the gate says what it expected
            settings["tolerance"] = float(settings["tolerance"])
    root = request.config.invocation_params.dir
    places = [None if each is None else root / each for each in (folder, baseline)]
    return CandidateStudy(places[0] or root, places[1], settings, check is not False)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Check the gate after a test that took the fixture has passed."""
    result = yield
    study = pyfuncitem.funcargs.get(FIXTURE)
    if isinstance(study, CandidateStudy) and study.checks:
        study.check()
    return result
