"""The same small network in every form gives the same table, and its configuration says how images are read."""

import logging

import numpy as np
import pytest
from PIL import Image
from tests.models.conftest import CLASSES, Forms

from haptera.errors import HapteraError
from haptera.models import Preprocessing
from haptera.models.preprocessing import default_resize
from haptera.run.parts import from_flags
from haptera.run.settings import make_study

FORMS = {
    "module": "net.py:build",
    "transformers": "hf",
    "onnx": "net.onnx",
    "exported": "net.pt2",
    "torchscript": "net.ts",
    "callable": "callable:net.py:answer",
}


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Class folders of photos that are not squares."""
    folder = tmp_path_factory.mktemp("photos")
    generator = np.random.default_rng(0)
    for label in range(CLASSES):
        (folder / f"class{label}").mkdir()
        for number in range(4):
            small = generator.integers(0, 256, (4, 6, 3), np.uint8)
            Image.fromarray(small).resize((30, 20)).save(folder / f"class{label}" / f"{number}.png")
    return folder


FOA = {"use": "foa", "population": 4, "name": "foa"}


@pytest.fixture(scope="module")
def table(forms: Forms, photos, tmp_path_factory):
    out = tmp_path_factory.mktemp("study")
    study = make_study(
        {
            "data": str(photos),
            "models": [{"name": name, "build": build} for name, build in FORMS.items()],
            "streams": [{"use": "clean"}, {"use": "corruptions", "shifts": ["contrast"], "severities": [3]}],
            "adapters": ["none", "lame", "watch", FOA, "batchnorm", {"use": "tent", "parameters": "all"}],
            "batch_size": 10,
        },
        out,
        forms.folder,
        allow_pickle=True,
    )
    return study.run(progress=False)


COSTS = ("seconds_per_image", "peak_bytes", "relative_seconds", "relative_bytes", "records")
"""Measures of the machine; everything else is of the predictions."""
BETWEEN = ("model_margin", "adapter_margin", "adaptation_gain", "mean_gain", "rank_correlation", "effective_robustness")


def values(table, model, adapter):
    rows = table[(table["model"] == model) & (table["adapter"] == adapter) & ~table["measure"].isin(COSTS + BETWEEN)]
    keys = ["stream", "shift", "severity", "step", "measure"]
    rows = rows.assign(key=[" ".join(map(str, row)) for row in rows[keys].itertuples(index=False)])
    return rows.sort_values(["key", "value"]).set_index("key")["value"]


@pytest.mark.parametrize("form", [name for name in FORMS if name != "module"])
def test_every_form_of_a_network_gives_the_same_table(form, table):
    expected, found = (values(table, name, "none") for name in ("module", form))
    assert len(expected) > 30
    assert list(expected.index) == list(found.index)
    assert np.allclose(expected, found, atol=1e-4, equal_nan=True)


@pytest.mark.parametrize("form", ["onnx", "exported", "torchscript", "callable"])
def test_methods_that_need_outputs_only_work_on_every_form(form, table):
    adapters = {name: values(table, form, name).filter(like="accuracy") for name in ("none", "lame", "watch", "foa")}
    assert {len(each) for each in adapters.values()} == {len(adapters["none"])}
    assert len(adapters["none"]) > 5
    assert np.allclose(adapters["watch"], adapters["none"], atol=1e-4)
    records = table[(table["adapter"] == "watch") & (table["model"] == form)]["measure"]
    assert records.str.contains("confidence").any()


def test_other_methods_are_left_out_with_a_reason(table):
    frame = table
    for form in ("onnx", "exported", "callable"):
        assert not (set(frame[frame["model"] == form]["adapter"]) & {"batchnorm", "tent:parameters=all"})
    assert "tent:parameters=all" in set(frame[frame["model"] == "torchscript"]["adapter"])
    assert {"batchnorm", "tent:parameters=all"} <= set(frame[frame["model"] == "transformers"]["adapter"])


def test_images_are_read_as_the_configuration_says(forms: Forms, photos, tmp_path, caplog):
    models = from_flags([f"{forms.folder}/hf"])
    with caplog.at_level(logging.INFO, "haptera"):
        study = make_study(models | {"data": str(photos), "streams": ["clean"]}, tmp_path)
    assert "model hf: size 16, crop 0.8889, bicubic, mean 0.4 0.5 0.6, std 0.2 0.25 0.3" in caplog.text
    expected = Image.open(photos / "class0" / "0.png").resize((27, 18), Image.Resampling.BICUBIC).crop((6, 1, 22, 17))
    found = study.streams[0].data.images(np.array([0]))[0].permute(1, 2, 0).numpy()
    assert np.allclose(found, np.asarray(expected) / 255, atol=1e-6)
    given = make_study(models | {"data": {"path": str(photos), "size": 12}, "streams": ["clean"]}, tmp_path)
    assert given.streams[0].data.images(np.array([0])).shape == (1, 3, 12, 12)


def test_models_that_disagree_are_refused_unless_somebody_decides():
    models = {"a": Preprocessing(224, 0.875, "bilinear"), "b": Preprocessing(224, 0.9), "c": Preprocessing()}
    with pytest.raises(HapteraError, match=r"model a takes images with crop 0.875 and model b with crop 0.9; .*--crop"):
        default_resize(models)
    decided = default_resize(models, ["crop"])
    assert (decided.size, decided.interpolation) == (224, "bilinear")
    assert default_resize({"c": Preprocessing()}) is None
