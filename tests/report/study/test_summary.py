"""Summary sentences, on tables small enough to check by hand."""

import pandas as pd
import pytest

from haptera.report.study import complete
from haptera.report.study.cells import cells
from haptera.report.study.findings import breaks, gains, holding
from haptera.report.study.summary import summarise
from haptera.table import tidy

HALF = 0.02


def rows(model: str, adapter: str, values: dict[tuple[str, float], float], **more: object) -> list[dict[str, object]]:
    """Accuracies by shift and severity, each ± 0.02 on 100 images."""
    return [
        {"model": model, "adapter": adapter, "stream": "clean" if shift == "clean" else "corruptions", "shift": shift}
        | {"severity": severity, "measure": "accuracy", "value": value, "low": value - HALF, "high": value + HALF}
        | {"n": 100, "seed": 0}
        | more
        for (shift, severity), value in values.items()
    ]


PLAIN_A = {("clean", 0): 0.90, ("fog", 1): 0.85, ("fog", 2): 0.70, ("noise", 1): 0.80, ("noise", 2): 0.60}
PLAIN_B = {("clean", 0): 0.95, ("fog", 1): 0.60, ("fog", 2): 0.50, ("noise", 1): 0.70, ("noise", 2): 0.40}
ADAPTED_A = {("clean", 0): 0.80, ("fog", 1): 0.87, ("fog", 2): 0.80, ("noise", 1): 0.84, ("noise", 2): 0.75}
ADAPTED_B = {("fog", 1): 0.80, ("fog", 2): 0.70, ("noise", 1): 0.45}


@pytest.fixture
def table() -> pd.DataFrame:
    plain = rows("a", "none", PLAIN_A) + rows("b", "none", PLAIN_B)
    return tidy(plain + rows("a", "bn", ADAPTED_A) + rows("b", "bn", ADAPTED_B))


def sentences(table: pd.DataFrame) -> list[str]:
    return [answer.sentence for answer in summarise(table)]


def test_three_sentences_say_what_the_numbers_say(table: pd.DataFrame) -> None:
    # a: fog (.85 + .70) / 2 = .775, noise .70, mean .7375; b: .55 and .55
    # bn − none on 7 cells: .02 .10 .04 .15 .20 .20 −.25, mean .0657, from .6786 to .7443
    # each interval is ± .02 and so that of a gain ± √(.02² + .02²) = .028; the mean of ends is .037 to .094
    # lost under fog (.05 + .20 + .35 + .45) / 4 = .2625, won there .13: 50 %
    assert sentences(table) == [
        "a holds up best of 2 models: 0.74 (0.72 to 0.76) on average over 2 shifts, 0.90 clean; next comes b (0.55).",
        "a breaks under noise at severity 2 and fog at severity 2.",
        "Yes: bn raises accuracy by 0.07 (0.04 to 0.09) on average, from 0.68 to 0.74 on the same 7 cells, and "
        "recovers 50 % of the accuracy lost under fog; it hurts on clean data (−0.10).",
    ]


def test_the_interval_of_a_gain_is_among_the_numbers(table: pd.DataFrame) -> None:
    ends = summarise(table)[2].numbers["gains"]["bn"]["change_interval"]
    assert ends == pytest.approx([0.46 / 7 - 0.02 * 2**0.5, 0.46 / 7 + 0.02 * 2**0.5])


@pytest.mark.long
def test_summary_does_not_depend_on_the_order_of_rows(table: pd.DataFrame) -> None:
    assert sentences(table.sample(frac=1, random_state=1)) == sentences(table)


def test_models_are_ranked_on_the_cells_that_all_have() -> None:
    full = {("fog", 1): 0.9, ("fog", 2): 0.3}
    easy = {("fog", 1): 0.8}  # the cell that would pull it down failed
    table = complete(tidy(rows("full", "none", full) + rows("easy", "none", easy)))
    best = holding(table, cells(table))
    assert best is not None
    assert best.common
    assert (best.who, best.rival) == ("full", "easy")
    assert (best.value, best.rival_value) == pytest.approx((0.9, 0.8))


def test_models_without_a_common_cell_are_ranked_with_a_warning() -> None:
    table = tidy(rows("a", "none", {("fog", 1): 0.9}) + rows("b", "none", {("noise", 1): 0.8}))
    assert "unlike cells" in sentences(table)[0]


def test_every_shift_counts_the_same_however_many_severities_it_has() -> None:
    values = {("fog", 1): 0.9, ("fog", 2): 0.9, ("fog", 3): 0.9, ("noise", 1): 0.5}
    table = complete(tidy(rows("a", "none", values)))
    best = holding(table, cells(table))
    assert best is not None
    assert best.value == pytest.approx(0.7)


@pytest.mark.long
def test_a_rival_within_the_interval_is_level() -> None:
    # √(.02² + .02²) = .028
    near = tidy(rows("a", "none", {("fog", 1): 0.90}) + rows("b", "none", {("fog", 1): 0.88}))
    far = tidy(rows("a", "none", {("fog", 1): 0.90}) + rows("b", "none", {("fog", 1): 0.87}))
    assert "b is level with it (0.88, within the interval)" in sentences(near)[0]
    assert "next comes b (0.87)" in sentences(far)[0]


@pytest.mark.parametrize(
    ("values", "severity", "onward"),
    [
        ([0.85, 0.79, 0.70], 2, True),
        ([0.79, 0.85, 0.70], 1, False),
        ([0.85, 0.85, 0.70], 3, False),
    ],
)
def test_breaking_point_is_the_smallest_severity_below(values: list[float], severity: int, onward: bool) -> None:
    table = tidy(rows("a", "none", {("fog", level): value for level, value in enumerate(values, 1)}))
    (found,) = breaks(cells(table), "a", clean=0.90)
    assert (found.severity, found.onward) == (severity, onward)
    assert found.borderline == (values[severity - 1] == 0.79)


def test_exactly_the_threshold_is_not_a_break() -> None:
    values = {("clean", 0): 0.9, ("fog", 1): 0.8}
    assert sentences(tidy(rows("a", "none", values)))[1] == (
        "a stays within 0.10 of its clean accuracy under every shift measured."
    )


def test_many_breaks_are_counted_and_the_rest_holds() -> None:
    values = {("clean", 0): 0.9, ("fine", 5): 0.9} | {(f"shift-{i}", 5): 0.1 * i for i in range(5)}
    sentence = sentences(tidy(rows("a", "none", values)))[1]
    assert sentence == (
        "a breaks under shift-0 at severity 5, shift-1 at severity 5, shift-2 at severity 5 and 2 more; "
        "it holds under fine."
    )


def test_a_change_within_the_interval_is_said_to_be() -> None:
    table = tidy(rows("a", "none", {("fog", 1): 0.80}) + rows("a", "bn", {("fog", 1): 0.81}))
    assert sentences(table)[2] == (
        "Not clearly: bn changes accuracy by +0.01 (−0.02 to +0.04) on average, from 0.80 to 0.81 on the one cell with "
        "both, which is within the interval."
    )


@pytest.mark.long
def test_adapters_that_harm_are_named() -> None:
    plain = {("fog", 1): 0.50, ("noise", 1): 0.90}
    good = {("fog", 1): 0.80, ("noise", 1): 0.80}
    bad = {("fog", 1): 0.30, ("noise", 1): 0.70}
    table = tidy(rows("a", "none", plain) + rows("a", "good", good) + rows("a", "bad", bad))
    assert sentences(table)[2] == (
        "Yes: good, the best of 2 adapters, raises accuracy by 0.10 (0.07 to 0.13) on average, from 0.70 to 0.80 on "
        "the same 2 cells; it hurts under noise (−0.10); bad (−0.20) does harm."
    )
    only_bad = tidy(rows("a", "none", plain) + rows("a", "bad", bad))
    assert sentences(only_bad)[2].startswith(
        "No: bad lowers accuracy by 0.20 (0.17 to 0.23) on average, from 0.70 to 0.50"
    )


def test_of_many_adapters_that_harm_the_worst_are_named_and_the_others_counted() -> None:
    harmful = [row for place in range(1, 6) for row in rows("a", f"bad-{place}", {("fog", 1): 0.5 - 0.05 * place})]
    table = tidy(rows("a", "none", {("fog", 1): 0.5}) + rows("a", "good", {("fog", 1): 0.6}) + harmful)
    assert sentences(table)[2].endswith("; bad-5 (−0.25), bad-4 (−0.20), bad-3 (−0.15) and 2 more do harm.")


def test_adapters_are_compared_seed_by_seed() -> None:
    plain = rows("a", "none", {("fog", 1): 0.5}) + rows("a", "none", {("fog", 1): 0.9}, seed=1)
    table = tidy(plain + rows("a", "bn", {("fog", 1): 0.6}))  # its second seed failed
    (gain,) = gains(complete(table))
    assert gain.cells == 1
    assert gain.change == pytest.approx(0.1)


def test_an_adapter_that_collapses_in_one_stream_is_reported() -> None:
    plain = rows("a", "none", {("fog", 1): 0.5})
    table = tidy(
        plain
        + rows("a", "tent", {("fog", 1): 0.9})
        + rows("a", "none", {("fog", 1): 0.5}, stream="continual")
        + rows("a", "tent", {("fog", 1): 0.3}, stream="continual")
    )
    assert "it hurts in the stream continual (−0.20)" in sentences(table)[2]


def test_without_unadapted_models_the_adapted_are_ranked() -> None:
    table = tidy(rows("a", "bn", {("fog", 1): 0.9}) + rows("a", "tent", {("fog", 1): 0.5}))
    found = sentences(table)
    assert found[0].startswith("a with bn holds up best of 2 models: 0.90 (0.88 to 0.92) under fog")
    assert found[1] == (
        "There is no accuracy on clean data to compare with; the lowest of all is 0.50, a with tent under fog at "
        "severity 1."
    )
    assert len(found) == 2


def test_only_clean_data() -> None:
    table = tidy(rows("a", "none", {("clean", 0): 0.9}) + rows("b", "none", {("clean", 0): 0.8}))
    assert sentences(table) == [
        "a has the highest accuracy of 2 models on clean data, 0.90 (0.88 to 0.92); no shift was measured."
    ]


def test_on_clean_data_one_row_is_not_the_highest_and_equal_ones_tie() -> None:
    one = tidy(rows("a", "none", {("clean", 0): 0.9}))
    assert sentences(one) == ["a has an accuracy of 0.90 (0.88 to 0.92) on clean data; no shift was measured."]
    equal = tidy(rows("a", "none", {("clean", 0): 0.9}) + rows("b", "none", {("clean", 0): 0.9}))
    assert "; b ties with it; no shift" in sentences(equal)[0]


def test_the_lowest_of_all_names_the_adapter_that_is_to_blame() -> None:
    found = sentences(tidy(rows("a", "none", {("fog", 1): 0.5}) + rows("a", "tent", {("fog", 1): 0.1})))
    assert "the lowest of all is 0.10, a with tent under fog at severity 1" in found[1]


def test_a_loss_with_a_shift_that_gains_says_but() -> None:
    plain = {("clean", 0): 0.90, ("fog", 1): 0.40, ("noise", 1): 0.90}
    found = sentences(tidy(rows("a", "none", plain) + rows("a", "bn", {("fog", 1): 0.50, ("noise", 1): 0.50})))
    # noise .90 → .50, fog .40 → .50: mean .65 → .50; lost under fog .50, won .10: 20 %
    assert found[2].startswith("No: bn lowers accuracy by 0.15 (0.12 to 0.18) on average, from 0.65 to 0.50")
    assert ", but recovers 20 % of the accuracy lost under fog; it hurts under noise (−0.40)" in found[2]


def test_no_accuracy_and_no_rows() -> None:
    unlabelled = tidy([{"model": "a", "measure": "entropy", "value": 1.0}])
    assert sentences(unlabelled) == ["No accuracy was measured, so no model is ranked; there is: entropy."]
    assert sentences(tidy([])) == ["The table is empty: nothing was measured."]


def test_no_intervals_no_severities_no_names() -> None:
    table = tidy([{"model": m, "stream": "v2", "measure": "accuracy", "value": v} for m, v in (("a", 0.7), ("b", 0.6))])
    assert sentences(table)[0] == "a holds up best of 2 models: 0.70 under v2; next comes b (0.60)."
    assert "b under v2" in sentences(table)[1]
