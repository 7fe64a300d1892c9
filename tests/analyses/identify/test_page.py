"""The page of tables of `identify`: what it says and draws is what the table has."""

import numpy as np
import pandas as pd
import pytest

from haptera.analyses.identify.findings import table_findings
from haptera.analyses.identify.page import (
    against_concentration,
    as_printed,
    by_seed,
    loss_section,
    marginal_section,
    scores_section,
)
from haptera.analyses.identify.row import families, per_row

NULL = {"rotation_mcc": 0.77, "rotation_high": 0.9}
RUN = {"n": 4096, "dimensions": 4, "steps": 1000, "batch_size": 512, "learning_rate": 0.003, "start": np.nan}


def lines(process, model, seed, r2, mcc, mass=0.0, what="contrastive", promised="nothing", **more):
    names = {"title": f"{process} → {model}", "process": process, "model": model, "what": what, "seed": seed}
    run = {"mass_from_uniform": mass, "promised": promised, "goodness_of_fit": -2.0, "seconds": 10.0}
    run |= {"latents_fit": -2.02}
    scores = {"r2": r2, "mcc": mcc, "mcc_spearman": mcc}
    ends = {measure: {"value": value, "low": value - 0.01, "high": value + 0.01} for measure, value in scores.items()}
    return [names | {"measure": measure} | end | NULL | RUN | run | more for measure, end in ends.items()]


SPHERE, BOX = ("sphere/uniform/vmf=10", "sphere/vmf"), ("box/uniform/laplace=0.05", "box/laplace")
TABLE = pd.DataFrame(
    [
        *lines(*SPHERE, 0, 0.99, 0.7),
        *lines(*SPHERE, 1, 0.97, 0.8),
        *lines(*SPHERE, 0, 0.6, 0.5, what="identity"),
        *lines(*BOX, 0, 0.94, 0.98),
        *lines(*BOX, 1, 0.95, 0.96),
        *lines(*BOX, 0, 1.0, 0.99, what="supervised"),
    ]
)
MARGINALS = pd.DataFrame(
    [
        *lines(*SPHERE, 0, 0.99, 0.7),
        *lines("sphere/vmf=100/vmf=10", "sphere/vmf", 0, 0.4, 0.7, mass=0.98),
        *lines("sphere/vmf=100/vmf=10", "sphere/vmf", 1, 0.6, 0.7, mass=0.98),
        *lines("sphere/vmf=4/vmf=10", "sphere/vmf", 0, 0.96, 0.7, mass=0.4),
        *lines("sphere/normal=1/vmf=10", "sphere/vmf", 0, 0.9, 0.7, mass=np.nan),
        *lines("sphere/vmf=4/vmf=2", "sphere/vmf", 0, 0.5, 0.7, mass=0.4),
        *lines("box/uniform/normal=0.05", "box/normal", 0, 0.99, 0.9),
        *lines("box/normal=0.1/normal=0.05", "box/normal", 0, 0.98, 0.9, mass=0.7),
        *lines("unbounded/normal=1/normal=1", "unbounded/normal", 0, 0.98, 0.6, mass=np.nan),
    ]
)


def findings_of_all(scores):
    """Return the findings after those of each row."""
    return table_findings(scores, [])[scores["title"].nunique() :]


def test_words_say_which_rows_are_found_by_means_over_seeds():
    affine, axes, training = findings_of_all(TABLE)
    assert affine.sentence == (
        "1 of 2 rows have a mean R² above 0.95; not box/uniform/laplace=0.05 → box/laplace (0.94)."
    )
    assert axes.sentence.startswith("1 of 2 rows have a mean MCC above that of 95 % of random rotations: box/uniform")
    assert axes.sentence.endswith("(0.97).")
    assert training.sentence == "2 of 2 rows reach the loss of the latents themselves, or go below it."


def test_rows_that_need_more_steps_are_told_from_rows_that_want_another_embedding():
    changed = TABLE.assign(latents_fit=np.where(TABLE["process"] == BOX[0], -2.6, -1.5))
    *_, training, wanted = findings_of_all(changed)
    assert training.sentence == (
        "1 of 2 rows reach the loss of the latents themselves, or go below it. These do not, and need more steps: "
        "box/uniform/laplace=0.05 → box/laplace (-2.000, latents -2.600)."
    )
    assert "lead away from them: sphere/uniform/vmf=10 → sphere/vmf (-2.000, latents -1.500)" in wanted.sentence
    assert as_printed(changed)["latents"].tolist() == ["-1.500 ± 0.000", "-2.600 ± 0.000"]


def test_many_names_are_cut_short():
    rows = [row for kappa in range(1, 6) for row in lines(f"sphere/uniform/vmf={kappa}", "sphere/vmf", 0, 0.5, 0.5)]
    affine, axes, _ = findings_of_all(pd.DataFrame(rows))
    assert affine.sentence.endswith("vmf=3 → sphere/vmf (0.50) and 2 more.")
    assert axes.sentence == "0 of 5 rows have a mean MCC above that of 95 % of random rotations."


def test_the_figure_has_every_seed_and_the_rotations_beside_the_mcc():
    frame = by_seed(TABLE)
    assert set(frame.loc[frame["score"] == "R²", "what"]) == {"contrastive", "identity", "supervised"}
    null = frame[frame["what"] == "rotations"]
    assert set(null["score"]) == {"MCC"}
    assert (null["value"] == 0.77).all()
    assert (null["high"] == 0.9).all()
    own = frame[(frame["score"] == "R²") & (frame["what"] == "contrastive") & (frame["space"] == "sphere")]
    assert own[["seed", "value"]].to_numpy().tolist() == [[0, 0.99], [1, 0.97]]
    assert list(frame["row"].unique()) == [" → ".join(BOX), " → ".join(SPHERE)]  # upwards


def test_a_page_of_many_rows_opens_with_one_space_so_that_names_can_be_read():
    assert scores_section(TABLE).figures[0].start == {}
    more = [row for kappa in range(1, 30) for row in lines(f"sphere/uniform/vmf={kappa}", "sphere/vmf", 0, 0.5, 0.5)]
    assert scores_section(pd.concat([TABLE, pd.DataFrame(more)])).figures[0].start == {"space": ["sphere"]}


def test_the_table_has_means_and_deviations_over_seeds():
    frame = as_printed(TABLE).set_index("process")
    assert frame.loc[SPHERE[0], "R² contrastive"] == "0.980 ± 0.014"  # .01 √2
    assert frame.loc[SPHERE[0], "R² identity"] == "0.600"
    assert frame.loc[BOX[0], "R² identity"] == ""
    assert frame.loc[BOX[0], "MCC supervised"] == "0.990"
    assert frame.loc[BOX[0], "rotations"] == "0.770 (below 0.900)"
    assert frame.loc[SPHERE[0], ["seeds", "seconds"]].tolist() == [2, 20.0]
    assert "row" not in frame  # it would repeat process and model


def test_titles_are_shown_where_they_are_given_and_empty_columns_are_not():
    named = TABLE[TABLE["what"] == "contrastive"].replace({"title": {" → ".join(BOX): "a box"}})
    frame = as_printed(named)
    assert frame["row"].tolist() == [" → ".join(SPHERE), "a box"]
    assert not {"R² supervised", "MCC identity"} & set(frame.columns)


def test_the_command_line_prints_the_same_means():
    rows = per_row(TABLE).set_index("title")
    assert rows.loc[" → ".join(SPHERE)].tolist() == pytest.approx([0.98, 0.75, 0.77, 0.9])


def test_rows_that_differ_in_the_concentration_of_the_marginal_alone_are_families():
    frame = families(MARGINALS)
    sphere, box = frame["family"].unique()
    assert (sphere, box) == ("sphere, pairs by vmf=10 → sphere/vmf", "box, pairs by normal=0.05 → box/normal")
    own = frame[frame["family"] == sphere]
    assert own["concentration"].tolist() == [0, 4, 100]
    assert own["r2"].tolist() == pytest.approx([0.99, 0.96, 0.5])
    assert own[["low", "high", "seeds", "mass"]].iloc[-1].tolist() == pytest.approx([0.4, 0.6, 2, 0.98])
    assert set(own["pairs"]) == {10}
    assert frame.loc[frame["family"] == box, "concentration"].tolist() == pytest.approx([0, 100])
    assert frame.loc[frame["family"] == box, "pairs"].tolist() == pytest.approx([400, 400])


def test_settings_that_differ_make_families_of_their_own():
    longer = MARGINALS.assign(steps=5000, title=MARGINALS["title"] + " longer")
    names = set(families(pd.concat([MARGINALS, longer]))["family"])
    assert "sphere, pairs by vmf=10 → sphere/vmf, steps 1000" in names
    assert "sphere, pairs by vmf=10 → sphere/vmf, steps 5000" in names
    assert len(names) == 4


def test_figure_6_2_has_the_uniform_marginal_beside_the_others_and_a_line_at_that_of_pairs():
    frame = against_concentration(families(MARGINALS))
    own = frame[frame["family"].str.startswith("sphere")]
    places = own[own["what"] == "R²"].set_index("concentration")["drawn at"]
    assert places.to_dict() == {0: 2, 4: 4, 100: 100}
    assert own.loc[own["what"] == "mass to be moved", "value"].tolist() == pytest.approx([0, 0.4, 0.98])
    line = own[own["what"] == "concentration of pairs"]
    assert line[["drawn at", "value"]].to_numpy().tolist() == [[10, 0], [10, 1]]


def test_the_summary_says_from_which_concentration_on_latents_are_lost():
    sentence = findings_of_all(MARGINALS)[-1].sentence
    assert (
        "sphere, pairs by vmf=10 → sphere/vmf: R² is 0.50 at a concentration of 100, that of pairs being 10" in sentence
    )
    assert "box, pairs by normal=0.05 → box/normal: R² stays above 0.95 up to a concentration of 100" in sentence


def test_the_summary_says_if_latents_are_lost_already_where_the_marginal_is_uniform():
    lost = MARGINALS.assign(value=MARGINALS["value"] - 0.5)
    assert (
        "box, pairs by normal=0.05 → box/normal: R² is 0.49 even if it is uniform" in findings_of_all(lost)[-1].sentence
    )


def test_without_such_rows_there_is_no_such_section():
    assert families(TABLE).empty
    assert marginal_section(TABLE) is None
    assert len(findings_of_all(TABLE)) == 3


def test_losses_are_those_of_the_first_seed():
    rows = [
        {"title": title, "seed": seed, "step": step, "loss": -seed}
        for title in "ab"
        for seed in (3, 4)
        for step in (1, 2)
    ]
    frame = loss_section(pd.DataFrame(rows)).figures[0].frame
    assert frame["row"].tolist() == ["a", "a", "b", "b"]
    assert set(frame["seed"]) == {3}
