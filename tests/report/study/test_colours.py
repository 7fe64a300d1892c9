"""A colour means the same thing in every figure of a study's page."""

import pandas as pd
import pytest
from tests.report.conftest import make_study

from haptera.report.figure import Figure
from haptera.run.report import StudyReport


def figures(table: pd.DataFrame) -> list[Figure]:
    made = [figure for section in StudyReport(table).sections() for figure in section.figures]
    return [figure for figure in made if figure.color in (("adapter",), ("model",))]


@pytest.mark.long
def test_no_model_has_the_colour_of_an_adapter_and_no_adapter_two() -> None:
    meaning: dict[int, set[str]] = {}
    found = figures(make_study(("resnet-18", "vit-small", "vgg-16-bn")))
    assert {figure.color for figure in found} == {("adapter",), ("model",)}
    for figure in found:
        for name in figure.frame[figure.color[0]].unique():
            meaning.setdefault(figure.palette.index(name), set()).add(name)
    assert {slot: len(names) for slot, names in meaning.items()} == dict.fromkeys(range(5), 1)


@pytest.mark.long
def test_lines_of_one_model_are_coloured_by_adapter() -> None:
    assert {figure.color for figure in figures(make_study(("resnet-18",)))} == {("adapter",)}
