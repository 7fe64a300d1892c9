"""Tables of `identify`: files are read or refused, every row is run once, and what is finished stays finished."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from haptera.analyses.identify import Training
from haptera.analyses.identify import analysis as identify_tables
from haptera.analyses.identify.analysis import identify_rows
from haptera.analyses.identify.inversion import LatentModel, invert
from haptera.analyses.identify.processes import Process
from haptera.analyses.identify.row import POINTS, Row, promise_of, read_rows, run_row
from haptera.errors import HapteraError, Unfinished
from haptera.run.ledger import Ledger

EXAMPLES = Path(__file__).parents[3] / "examples"
SMALL = {"dimensions": 2, "steps": 5, "batch_size": 32}
SPHERE = Row("sphere/vmf=3/vmf=10", "sphere/vmf", supervised=True, **SMALL)
SPACE = Row("unbounded/normal=1/normal=1", "unbounded/normal", "space", **SMALL)
TABLE_1 = [  # process, model, whether the text says that the assumptions of theorem 4 match
    ("sphere/uniform/vmf=1", "sphere/vmf", True),
    ("sphere/uniform/laplace=0.05", "sphere/vmf", False),
    ("sphere/uniform/normal=0.05", "sphere/vmf", False),
    ("box/uniform/normal=0.05", "unbounded/normal", False),
    ("box/uniform/laplace=0.05", "unbounded/normal", False),
    ("box/uniform/laplace=0.05", "unbounded/gennorm=3", False),
    ("box/uniform/normal=0.05", "unbounded/gennorm=3", False),
    ("sphere/normal=1/laplace=0.05", "sphere/vmf", False),
    ("sphere/normal=1/normal=0.05", "sphere/vmf", False),
    ("unbounded/laplace=1/normal=1", "unbounded/normal", False),
    ("unbounded/normal=1/normal=1", "unbounded/normal", False),
]
TABLE_2 = [  # and of theorem 8
    ("box/uniform/laplace=0.05", "box/laplace", True),
    ("box/uniform/gennorm=0.05,3", "box/gennorm=3", True),
    ("box/uniform/normal=0.05", "box/normal", False),
    ("box/uniform/laplace=0.05", "box/normal", False),
    ("box/uniform/gennorm=0.05,3", "box/laplace", False),
    ("box/uniform/laplace=0.05", "unbounded/laplace", False),
    ("box/uniform/gennorm=0.05,3", "unbounded/gennorm=3", False),
    ("box/uniform/normal=0.05", "unbounded/normal", False),
    ("box/uniform/laplace=0.05", "unbounded/normal", False),
    ("box/uniform/normal=0.05", "unbounded/gennorm=3", False),
]


def written(folder, text):
    path = folder / "tables.toml"
    path.write_text(text)
    return path


ROW = '[[rows]]\nprocess = "sphere/uniform/vmf=10"\nmodel = "sphere/vmf"\n'


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Two rows that were really run, and their folder; nothing may change it."""
    out = tmp_path_factory.mktemp("tables")
    return out, identify_rows([SPHERE, SPACE], out=out)


@pytest.fixture
def counted(monkeypatch):
    """`run_row` without the training, and which rows it was asked for."""
    asked = []

    def pretend(row, seed, progress=False):
        asked.append((row.name, seed))
        score = {"r2": 0.5, "mcc": 0.6, "mcc_spearman": 0.7, "rotation_mcc": 0.8, "rotation_high": 0.9, "n": 10}
        score |= {f"{name}_interval": [0.0, 1.0] for name in ("r2", "mcc", "mcc_spearman")}
        settings = {name: getattr(row, name) for name in ("process", "model", *SMALL, "learning_rate", "start")}
        measured = {"promised": "nothing", "mass_from_uniform": np.nan, "goodness_of_fit": -1.0, "seconds": 1.0}
        measured |= {"latents_fit": -2.0, "condition": 1.0, "size": 1.0}
        loss = {"step": [1], "loss": [-1.0]}
        return settings | measured | {"seed": seed, "contrastive": score, "identity": score, "loss": loss}

    monkeypatch.setattr(identify_tables, "run_row", pretend)
    return asked


def test_a_row_has_the_settings_of_the_file_unless_it_has_its_own(tmp_path):
    text = f"steps = 7\nseeds = [3, 4]\nlearning_rate = 1\n{ROW}\n{ROW}steps = 9\ntitle = 'longer'\nsupervised = true\n"
    first, second = read_rows(written(tmp_path, text))
    assert (first.steps, first.seeds, first.learning_rate, first.supervised, first.batch_size) == (
        7, (3, 4), 1, False, 512,
    )  # fmt: skip
    assert first.name == "sphere/uniform/vmf=10 → sphere/vmf"
    assert second == replace(first, steps=9, title="longer", supervised=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"stepz = 5\n{ROW}", "unknown key in .*tables.toml 'stepz'; did you mean 'steps'"),
        (f"{ROW}modell = 'x'\n", "unknown key of row 1 in .*tables.toml 'modell'; did you mean 'model'"),
        (f"{ROW}{ROW}steps = '10'\n", "row 2: steps is '10'; a whole number was expected"),
        (f"{ROW}steps = true\n", "row 1: steps is True; a whole number was expected"),
        (f"supervised = 1\n{ROW}", "tables.toml: supervised is 1; true or false was expected"),
        (f"seeds = [0, 0.5]\n{ROW}", "seeds is .*; a list of whole numbers was expected"),
        (f"seeds = [1, 1]\n{ROW}", "row 1: seeds is .1, 1.; at least one, each once"),
        (f"seeds = []\n{ROW}", "seeds is ..; at least one"),
        (f"{ROW}batch_size = 0\n", "row 1: batch_size is 0; more than 0 was expected"),
        (f"{ROW}dimensions = 1\n", "row 1: dimensions is 1; at least 2"),
        ("steps = 5\n", "tables, .*rows.*, with process and model were expected"),
        ("rows = ['sphere']\n", "tables, .*rows.*, with process and model were expected"),
        ("[[rows]]\nmodel = 'sphere/vmf'\n", "row 1: there is no process"),
        ("[[rows]]\nprocess = 'sphere/uniform/vfm=1'\nmodel = 'sphere/vmf'\n", "row 1: .*did you mean 'vmf'"),
        ("[[rows]]\nprocess = 'box/uniform/vmf=1'\nmodel = 'sphere/vmf'\n", "row 1: .*lives on the sphere"),
        ("[[rows\n", "study file .*tables.toml: "),
    ],
)  # fmt: skip
def test_a_mistake_in_the_file_is_named(text, message, tmp_path):
    with pytest.raises(HapteraError, match=message):
        read_rows(written(tmp_path, text))


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(HapteraError, match=r"there is no study file .*nowhere.toml"):
        read_rows(tmp_path / "nowhere.toml")


@pytest.mark.long
def test_a_row_has_the_scores_of_identify(found):
    table = found[1].scores()
    process = Process.read(SPHERE.process, 2, 0)
    alone = invert(process, LatentModel.read("sphere/vmf"), Training(steps=5, batch_size=32, supervised=True))
    own = table[table["title"] == SPHERE.name].set_index(["what", "measure"])
    for what in ("contrastive", "identity", "supervised"):
        part = getattr(alone, what)
        for measure in ("r2", "mcc", "mcc_spearman"):
            score = getattr(part, measure)
            line = own.loc[(what, measure)]
            assert [line["value"], line["low"], line["high"]] == [score.value, score.low, score.high]
            assert (line["n"], line["rotation_mcc"]) == (part.n, part.rotation_mcc)
    assert own["goodness_of_fit"].iloc[0] == pytest.approx(alone.loss.mean())
    assert own["mass_from_uniform"].iloc[0] == process.mass_from_uniform()
    losses = found[1].losses()
    np.testing.assert_array_equal(losses.loc[losses["title"] == SPHERE.name, "loss"], alone.loss)


def test_unbounded_space_has_no_distance_from_uniform_and_no_supervised_encoder_unless_asked(found):
    table = found[1].scores()
    own = table[table["title"] == "space"]
    assert own["mass_from_uniform"].isna().all()
    assert set(own["what"]) == {"contrastive", "identity"}


def test_a_second_run_runs_nothing_and_finds_the_same(found, monkeypatch, caplog):
    out, first = found
    dates = {path: path.stat().st_mtime_ns for path in (out / "rows").iterdir()}
    monkeypatch.setattr(identify_tables, "run_row", None)  # calling it would be an error
    with caplog.at_level("INFO", "haptera"):
        again = identify_rows([SPHERE, SPACE], out=out)
    assert "0 rows run, 2 found finished, 0 failed" in caplog.text
    pd.testing.assert_frame_equal(again.table(), first.table())
    assert again.json() == first.json()
    assert {path: path.stat().st_mtime_ns for path in (out / "rows").iterdir()} == dates


def test_only_what_changes_the_result_runs_a_row_again(counted, tmp_path):
    rows = [replace(SPHERE, seeds=(0, 1)), SPACE]
    identify_rows(rows, out=tmp_path)
    counted.clear()
    renamed = replace(rows[0], title="other", device="cuda")  # no GPU is asked for where nothing is to be done
    assert [record["title"] for record in identify_rows([renamed, SPACE], out=tmp_path).records] == [
        "other",
        "other",
        "space",
    ]
    assert counted == []
    identify_rows([replace(rows[0], seeds=(0, 1, 2)), replace(SPACE, steps=6)], out=tmp_path)
    assert counted == [(SPHERE.name, 2), ("space", 0)]


def test_an_interrupt_keeps_the_rows_that_were_finished(counted, tmp_path, monkeypatch):
    rows = [replace(SPHERE, seeds=(0, 1)), SPACE]
    pretend = identify_tables.run_row

    def interrupted(row, seed, progress=False):
        if len(counted) == 2:
            raise KeyboardInterrupt
        return pretend(row, seed)

    monkeypatch.setattr(identify_tables, "run_row", interrupted)
    with pytest.raises(KeyboardInterrupt):
        identify_rows(rows, out=tmp_path)
    ledger = Ledger.open(tmp_path, "identification")
    assert (len(ledger.finished), len(ledger.pieces)) == (2, 3)
    monkeypatch.setattr(identify_tables, "run_row", pretend)
    identify_rows(rows, out=tmp_path)
    assert counted[2:] == [("space", 0)]


def test_a_row_that_fails_does_not_stop_the_others(counted, tmp_path, monkeypatch):
    pretend = identify_tables.run_row

    def failing(row, seed, progress=False):
        if row.title == "space":
            raise Unfinished("the loss is nan after 3 steps")
        return pretend(row, seed)

    monkeypatch.setattr(identify_tables, "run_row", failing)
    found = identify_rows([SPACE, SPHERE], out=tmp_path)
    assert [record["title"] for record in found.records] == [SPHERE.name]
    assert found.failures == ["space, seed 0: the loss is nan after 3 steps"]
    with pytest.raises(Unfinished, match="no row could be finished; space, seed 0: the loss is nan"):
        identify_rows([SPACE], out=tmp_path)


def test_rows_that_cannot_be_told_apart_are_refused(counted, tmp_path):
    with pytest.raises(HapteraError, match=r"two rows are called .*; give one of them another title"):
        identify_rows([SPHERE, replace(SPHERE, steps=9)], out=tmp_path)
    assert counted == []


def test_no_rows_at_all_are_refused(tmp_path):
    with pytest.raises(HapteraError, match="rows is empty"):
        identify_rows([], out=tmp_path)


def test_a_device_that_is_not_there_is_an_error_before_anything_runs(counted, tmp_path):
    with pytest.raises(HapteraError, match="device is 'gpu'"):
        identify_rows([SPHERE, replace(SPACE, device="gpu")], out=tmp_path)
    assert counted == []


@pytest.mark.parametrize("spoil", [lambda content: content[:20], lambda content: content.replace(b"0.5", b"0.6", 1)])
def test_a_stored_row_that_is_damaged_is_named_and_run_again(counted, tmp_path, caplog, spoil):
    first = identify_rows([SPACE, SPHERE], out=tmp_path)
    path = tmp_path / "rows" / f"{SPACE.key(0)}.json"
    path.write_bytes(spoil(path.read_bytes()))
    counted.clear()
    again = identify_rows([SPACE, SPHERE], out=tmp_path)
    assert f"{path.name}" in caplog.text
    assert counted == [("space", 0)]
    assert again.json() == first.json()


def test_rows_of_another_file_stay_in_the_folder(counted, tmp_path):
    identify_rows([SPACE], out=tmp_path)
    identify_rows([SPHERE], out=tmp_path)
    counted.clear()
    identify_rows([SPACE], out=tmp_path)
    assert counted == []


@pytest.mark.long
def test_a_long_loss_is_kept_as_means_over_neighbouring_steps():
    record = run_row(replace(SPACE, steps=2 * POINTS, batch_size=4), 0)
    assert record["loss"]["step"] == list(range(2, 2 * POINTS + 1, 2))
    # The goodness of fit is the mean of the last hundred steps.
    assert np.mean(record["loss"]["loss"][-50:]) == pytest.approx(record["goodness_of_fit"])


@pytest.mark.parametrize(("process", "model", "match"), TABLE_1)
def test_theorem_4_promises_an_affine_map_where_table_1_says_that_assumptions_match(process, model, match):
    assert (promise_of(Process.read(process), LatentModel.read(model)) == "affine map") == match


@pytest.mark.parametrize(("process", "model", "match"), TABLE_2)
def test_theorem_8_promises_order_and_sign_where_table_2_says_that_assumptions_match(process, model, match):
    assert (promise_of(Process.read(process), LatentModel.read(model)) == "order and sign") == match


def test_in_a_box_a_normal_law_is_promised_up_to_an_affine_map():
    assert promise_of(Process.read("box/uniform/normal=0.05"), LatentModel.read("box/normal")) == "affine map"


@pytest.mark.parametrize("name", ["identify_small.toml", "identify_full.toml"])
def test_the_examples_have_every_row_of_the_tables(name):
    rows = read_rows(EXAMPLES / name)
    there = {(row.process, row.model) for row in rows}
    assert {(process, model) for process, model, _ in [*TABLE_1, *TABLE_2]} <= there
    assert len(there) == len(rows)
    assert {row.seeds for row in rows} == {(0, 1, 2)}


def test_the_full_example_is_as_the_text_has_it():
    small, full = (read_rows(EXAMPLES / f"identify_{size}.toml") for size in ("small", "full"))
    assert [(row.process, row.model, row.supervised) for row in small] == [
        (row.process, row.model, row.supervised) for row in full
    ]
    assert {(row.dimensions, row.steps, row.batch_size, row.learning_rate, row.device) for row in full} == {
        (10, 300_000, 6144, 1e-4, "cuda")
    }
    assert {(row.dimensions, row.device) for row in small} == {(4, "cpu")}
    assert {row.steps for row in small} == {1000, 2000, 5000}
