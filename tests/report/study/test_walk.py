"""The walk of a CCC stream: the frames behind its two figures."""

from collections.abc import Iterator

import pandas as pd
import pytest
from tests.report.conftest import Row, measured

from haptera.report.study import walk
from haptera.table import tidy

# Two paths in steps of 10 batches: severities of the two corruptions, and what the calibration promises there.
PATHS = {
    "fog > snow": [(2.0, 0.0, 0.5), (1.0, 0.0, 0.6), (1.0, 1.0, 0.45), (0.0, 1.0, 0.55)],
    "snow > frost": [(1.5, 0.0, 0.5), (1.5, 0.5, 0.4), (0.0, 0.5, 0.6)],
}


def rows(seeds: tuple[int, ...] = (0,)) -> Iterator[Row]:
    for model in ("a", "b"):
        for adapter in ("batchnorm", "none"):
            for seed in seeds:
                names = {"model": model, "stream": "ccc", "adapter": adapter, "seed": seed}
                step = -1
                for shift, stages in PATHS.items():
                    for one, two, expected in stages:
                        step += 10
                        at = names | {"shift": shift, "step": step}
                        told = {"severity_1": one, "severity_2": two, "difficulty": 0.5, "n": 640}
                        yield at | told | {"measure": "expected_accuracy", "value": expected}
                        better = 0.1 * (model == "b") + 0.2 * (adapter != "none")
                        yield at | measured("accuracy_over_steps", expected + better, 640)
                    yield names | {"shift": shift} | measured("accuracy", 0.5 + 0.1 * (model == "b"), 2000)


def figures(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, object]]:
    section = walk.section(table)
    assert section is not None
    severities, reached = section.figures
    return severities.frame, reached.frame, dict(reached.start)


def line(frame: pd.DataFrame, column: str, name: str, value: str) -> list[tuple[float, float]]:
    own = frame[frame[column] == name]
    return list(zip(own["step"].tolist(), own[value].tolist(), strict=True))


def test_severity_is_flat_along_a_step_and_jumps_between_steps() -> None:
    frame, _, _ = figures(tidy(rows()))
    assert line(frame, "corruption", "fog", "severity") == [
        (0, 2), (9, 2), (9, 1), (19, 1), (19, 1), (29, 1), (29, 0), (39, 0),
    ]  # fmt: skip
    grows_then_fades = line(frame, "corruption", "snow", "severity")
    assert grows_then_fades[:8] == [(0, 0), (9, 0), (9, 0), (19, 0), (19, 1), (29, 1), (29, 1), (39, 1)]
    assert grows_then_fades[8:] == [(39, 1.5), (49, 1.5), (49, 1.5), (59, 1.5), (59, 0), (69, 0)]
    assert frame["corruption"].drop_duplicates().tolist() == ["fog", "snow", "frost"]


def test_a_pair_is_one_run_in_the_order_in_which_the_page_reads_it() -> None:
    for frame in figures(tidy(rows()))[:2]:
        shown = frame.sort_values("step", kind="stable")["shift"]
        assert shown[shown != shown.shift()].tolist() == list(PATHS)


def test_target_expectation_and_models_are_lines_of_one_figure() -> None:
    _, frame, start = figures(tidy(rows()))
    assert {value for _, value in line(frame, "line", walk.TARGET, "accuracy")} == {0.5}
    promised = [expected for stages in PATHS.values() for _, _, expected in stages]
    assert line(frame, "line", walk.EXPECTED, "accuracy")[1::2] == list(zip(range(9, 70, 10), promised, strict=True))
    reached = line(frame, "line", "b · none", "accuracy")
    assert [value for _, value in reached] == pytest.approx([value + 0.1 for value in promised])
    both = [walk.TARGET, walk.EXPECTED]
    assert frame["line"].drop_duplicates().tolist()[:2] == both
    assert start == {"line": [*both, "a · none", "a · batchnorm"]}  # whose accuracy is what the calibration promises


def test_without_labels_the_walk_is_still_shown() -> None:
    table = tidy(rows())
    _, frame, start = figures(table[table["measure"] == "expected_accuracy"])
    assert frame["line"].unique().tolist() == [walk.TARGET, walk.EXPECTED] == start["line"]


def test_every_seed_is_a_walk_of_its_own() -> None:
    severities, reached, _ = figures(tidy(rows(seeds=(0, 7))))
    assert severities["stream"].unique().tolist() == ["ccc, seed 0", "ccc, seed 7"]
    assert reached["stream"].unique().tolist() == ["ccc, seed 0", "ccc, seed 7"]


def test_without_a_walk_there_is_no_section(study: pd.DataFrame) -> None:
    assert walk.section(study) is None
    assert walk.section(tidy([])) is None
