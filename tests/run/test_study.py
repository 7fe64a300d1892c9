"""A study: runs what is missing, never reads what is stale, and loses nothing."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from haptera.adapters import Adapter, BatchNorm, NoAdaptation
from haptera.data import ArrayData
from haptera.errors import HapteraError, Unfinished
from haptera.files.fingerprint import SCHEMA, fingerprint, of_model
from haptera.models import LeNet, ResNet
from haptera.outputs import Outputs
from haptera.run import results
from haptera.run.cells import about_of, cells_of, open_study
from haptera.run.loop import evaluate
from haptera.run.study import RunSummary, Study
from haptera.shifts import Contrast, GaussianNoise
from haptera.streams import Clean, Continual, Corruptions

COSTS = ["seconds_per_image", "relative_seconds", "peak_bytes", "relative_bytes"]


def values(table: pd.DataFrame) -> pd.DataFrame:
    """Everything but the clock."""
    return table[~table["measure"].isin(COSTS)].reset_index(drop=True)


@pytest.fixture
def data():
    generator = np.random.default_rng(0)
    return ArrayData(generator.integers(0, 256, (24, 16, 16), dtype=np.uint8), generator.integers(0, 10, 24))


@pytest.fixture
def models():
    torch.manual_seed(0)
    return {"resnet": ResNet(width=4, stem=2).eval(), "lenet": LeNet(size=16, width=2).eval()}


@pytest.fixture
def make(data, models, tmp_path):
    def make(**changes):
        corruptions = Corruptions(data, (GaussianNoise, Contrast), (1, 5))
        settings = {
            "models": models,
            "streams": [Clean(data), corruptions, Continual(data, (Contrast,))],
            "adapters": [NoAdaptation, partial(BatchNorm, prior=4)],
            "out": tmp_path / "study",
        }
        return Study(**settings | changes)

    return make


@pytest.mark.long
def test_a_study_runs_every_combination_that_makes_sense(make):
    study = make()
    table = study.run()
    assert study.last == RunSummary(ran=18, kept=0, failed=0)  # 6 parts; resnet with both adapters, lenet with one
    rows = table[table["measure"] == "accuracy"]
    assert len(rows) == 18
    assert set(rows["adapter"]) == {"none", "batchnorm:prior=4"}
    assert set(rows[rows["model"] == "lenet"]["adapter"]) == {"none"}
    assert about_of(open_study(study.out))["left_out"] == [
        "batchnorm:prior=4 is left out for lenet: there is no BatchNorm layer with statistics in the model"
    ]


@pytest.mark.long
def test_a_second_run_runs_nothing_and_gives_the_same_table(make):
    first = make().run()
    again = make()
    pd.testing.assert_frame_equal(again.run(), first)
    assert again.last == RunSummary(ran=0, kept=18, failed=0)


@pytest.mark.long
def test_a_finished_study_is_measured_again_only_where_its_table_is_not_that_of_its_cells(make, monkeypatch):
    streams = [Clean(make().streams[0].data)]
    first = make(streams=streams).run()
    measured = []
    measure_cells = results.measure_cells
    monkeypatch.setattr(results, "measure_cells", lambda *given: measured.append(1) or measure_cells(*given))
    second = make(streams=streams)
    pd.testing.assert_frame_equal(second.run(), first)
    assert (second.last.ran, measured) == (0, [])
    (second.out / results.TABLE).unlink()
    pd.testing.assert_frame_equal(make(streams=streams).run(), first)
    assert measured == [1]


def test_keys_are_fingerprints_of_what_decides_a_cell(make, models):
    study = make()
    for cell in study.cells():
        entry = cell.entry
        prints = fingerprint(of_model(models[entry.model]), ""), cell.stream.fingerprint()
        assert entry.key == fingerprint(SCHEMA, entry.names, *prints, cell.adapter, study.keep)


@pytest.mark.long
def test_values_are_those_of_the_loop_done_by_hand(make, data, models):
    table = make().run()
    part = Corruptions(data, (GaussianNoise, Contrast), (1, 5)).parts()[1]
    expected = evaluate(BatchNorm(models["resnet"], prior=4), part).correct().mean()
    row = table[
        (table["measure"] == "accuracy")
        & (table["shift"] == "gaussian_noise")
        & (table["severity"] == 5)
        & (table["adapter"] == "batchnorm:prior=4")
    ]
    assert row["value"].tolist() == [expected]
    assert row["stream"].tolist() == ["corruptions"]


@pytest.mark.long
def test_two_processes_give_the_table_of_one(make, tmp_path):
    alone = make().run()
    study = make(out=tmp_path / "other")
    together = study.run(jobs=2)
    assert study.last == RunSummary(18, 0, 0)
    one, two = values(alone), values(together)
    pd.testing.assert_frame_equal(one, two)


@pytest.mark.long
def test_without_seeds_streams_keep_their_own(make, data):
    table = make(streams=[Clean(data, seed=5)]).run()
    assert set(table["seed"]) == {5}


def test_a_refused_study_leaves_no_folder(make):
    study = make(models={"bad": LeNet(channels=3, size=16)})
    with pytest.raises(HapteraError):
        study.run()
    assert not study.out.exists()


@pytest.mark.long
def test_seeds_are_cells_of_their_own(make):
    study = make(seeds=[0, 1, 1])
    table = study.run()
    assert study.last.ran == 36
    assert set(table["seed"].dropna()) == {0, 1}


@pytest.mark.long
def test_changed_weights_data_or_settings_are_new_cells_and_the_old_ones_are_not_read(make, models, data):
    make().run()
    with torch.no_grad():
        models["lenet"][1].weight[0, 0, 0, 0] += 1e-4
    study = make()
    study.run()
    assert study.last == RunSummary(ran=6, kept=12, failed=0)
    assert len(cells_of(open_study(study.out))) == 18
    study = make(keep="float16")
    study.run()
    assert study.last == RunSummary(ran=18, kept=0, failed=0)
    other = ArrayData(255 - data.images(np.arange(24)).mul(255).byte().numpy(), data.targets)
    study = make(streams=[Clean(other)])
    table = study.run()
    assert study.last == RunSummary(ran=3, kept=0, failed=0)
    assert len(table[(table["stream"] == "clean") & (table["measure"] == "accuracy")]) == 3


@pytest.mark.long
def test_more_adapters_add_to_the_folder(make):
    make(adapters=[NoAdaptation]).run()
    study = make(adapters=[BatchNorm])
    table = study.run()
    assert study.last == RunSummary(ran=6, kept=0, failed=0)
    assert set(table["adapter"]) == {"none", "batchnorm"}


@pytest.mark.long
def test_a_damaged_cell_is_run_again(make):
    first = make().run()
    cell = next((make().out / "cells").glob("*.npz"))
    cell.write_bytes(cell.read_bytes()[:200])
    study = make()
    pd.testing.assert_frame_equal(values(study.run()), values(first))
    assert study.last == RunSummary(ran=1, kept=17, failed=0)


class FailsOnContrast(Adapter):
    """Fails where the images have little contrast."""

    def step(self, inputs):
        if float(inputs.std()) < 0.1:
            raise RuntimeError("numbers too small\nsecond line")
        return self.predict(inputs)


@pytest.mark.long
def test_a_failing_cell_does_not_stop_the_others(make, models, caplog):
    study = make(adapters=[FailsOnContrast], models={"lenet": models["lenet"]})
    table = study.run()
    assert study.last == RunSummary(ran=4, kept=0, failed=2)
    assert "RuntimeError: numbers too small" in caplog.text
    assert len(table[table["measure"] == "accuracy"]) == 4
    assert study.notes == [
        "2 of 6 cells failed: RuntimeError: numbers too small "
        "(lenet · contrast 5 · FailsOnContrast, lenet · continual · FailsOnContrast)"
    ]


@pytest.mark.long
def test_a_full_disk_stops_the_run_and_keeps_what_is_finished(make, monkeypatch):
    import errno

    save, saved = Outputs.save, []

    def save_until_full(outputs, path):
        if len(saved) == 3:
            from haptera.files.atomic import whole

            with whole(path) as file:
                file.write(b"half")
                raise OSError(errno.ENOSPC, "No space left on device")
        saved.append(path)
        save(outputs, path)

    monkeypatch.setattr(Outputs, "save", save_until_full)
    with pytest.raises(Unfinished, match="No space left on device; 3 finished cells are intact"):
        make().run()
    assert sorted(path for path in (make().out / "cells").iterdir()) == sorted(saved)
    monkeypatch.undo()
    study = make()
    study.run()
    assert study.last == RunSummary(ran=15, kept=3, failed=0)


def test_what_cannot_work_is_said_before_anything_runs(make, data, tmp_path):
    class Pair(nn.Module):
        def forward(self, images):
            return images, images

    with pytest.raises(HapteraError, match="model bad on stream clean: the model returned a tuple"):
        make(models={"bad": Pair()}).run()
    with pytest.raises(HapteraError, match=r"model bad fails on images of shape \(1, 16, 16\): RuntimeError"):
        make(models={"bad": LeNet(channels=3, size=16)}).run()
    wrong = ArrayData(data.images(np.arange(24)), np.r_[np.zeros(23, int), 9])
    with pytest.raises(HapteraError, match="label 9 is out of range: the model has 4 classes"):
        make(models={"few": LeNet(size=16, classes=4)}, streams=[Clean(wrong, batch_size=4)]).run()
    with pytest.raises(HapteraError, match="nothing to run: batchnorm is left out for lenet"):
        make(models={"lenet": LeNet(size=16)}, adapters=[BatchNorm]).run()
    assert not list((tmp_path / "study").glob("cells/*"))


def test_empty_and_doubled_arguments_are_refused(make, data):
    for empty in ({"models": {}}, {"streams": []}, {"adapters": []}, {"seeds": []}):
        with pytest.raises(HapteraError, match=f"a study needs {next(iter(empty))}"):
            make(**empty)
    with pytest.raises(HapteraError, match="two streams have the name 'clean'"):
        make(streams=[Clean(data), Clean(data, batch_size=2)])
    with pytest.raises(HapteraError, match="two adapters are called 'batchnorm'"):
        make(adapters=[BatchNorm, BatchNorm])
    with pytest.raises(HapteraError, match="device is 'gpu9', which cannot be used"):
        make(device="gpu9")
    with pytest.raises(HapteraError, match="jobs is 0"):
        make().run(jobs=0)


@pytest.mark.long
def test_the_callers_models_are_left_as_they_were(make, models):
    models["resnet"].train()
    before = {key: value.clone() for key, value in models["resnet"].state_dict().items()}
    make().run()
    assert models["resnet"].training
    assert all(torch.equal(value, before[key]) for key, value in models["resnet"].state_dict().items())


@pytest.mark.long
def test_provenance_says_where_outputs_come_from(make):
    study = make(adapters={"plain": NoAdaptation}, seeds=[7])
    study.run()
    cell = cells_of(open_study(study.out))[0]
    provenance = Outputs.load(study.out / "cells" / f"{cell.key}.npz").provenance
    assert provenance["model"] == "resnet"
    assert (provenance["adapter"], provenance["seed"], provenance["schema"]) == ("plain", 7, 1)
    assert provenance["versions"]["torch"] == torch.__version__
    assert provenance["threads"] == torch.get_num_threads()
    assert provenance["model_print"] == cell.model_print != ""


@pytest.mark.long
def test_global_generators_do_not_matter(make, tmp_path):
    class Noisy(Adapter):
        def step(self, inputs):
            return self.predict(inputs) + torch.randn(len(inputs), 10)

    torch.manual_seed(1)
    first = values(make(adapters={"noisy": Noisy}).run())
    torch.manual_seed(2)
    second = values(make(adapters={"noisy": Noisy}, out=tmp_path / "other").run())
    pd.testing.assert_frame_equal(first, second)
