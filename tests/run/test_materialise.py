"""Corrupted data on disk: read back as it was, gone on with after a stop, and never mixed with something else."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from haptera.data import ArrayData, CorruptedImages, open_data
from haptera.errors import HapteraError
from haptera.run import materialise as module
from haptera.run.materialise import class_folders, materialise
from haptera.shifts import Contrast, GaussianNoise
from haptera.streams import Directory, Shifted
from haptera.testing.streams import example_data

DATA = example_data()
PAIR = (GaussianNoise, Contrast)


def expected(shift, seed=0):
    """By row number, in 8 bits."""
    [batch] = Shifted(DATA, shift, batch_size=100, shuffle=False, seed=seed)
    return batch.inputs


def tree(folder):
    return {
        path.relative_to(folder): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ("plan.json", "journal.jsonl", ".lock")
    }


def test_png_in_the_layout_of_imagenet_c_is_read_back(tmp_path):
    done = materialise(DATA, PAIR, tmp_path, severities=(1, 4), quality="png", seed=3, table="imagenet")
    assert done.written == ["gaussian_noise/1", "gaussian_noise/4", "contrast/1", "contrast/4"]
    back = open_data(tmp_path)
    assert isinstance(back, CorruptedImages)
    by_class = np.argsort(DATA.targets, kind="stable")
    for part in back.parts:
        shift = {"gaussian_noise": GaussianNoise, "contrast": Contrast}[part.shift](part.severity)
        assert np.array_equal(part.data.targets, DATA.targets[by_class])
        images = part.data.images(np.arange(23))
        assert (images - expected(shift, seed=3)[by_class]).abs().max() <= 0.5 / 255 + 1e-6
    assert len(Directory(back).parts()) == 4
    files = sorted(path.name for path in (tmp_path / "contrast" / "4").rglob("*.png"))
    assert files == [f"{row:02d}.png" for row in range(23)]


def test_the_layout_of_cifar_10_c_is_read_back(tmp_path):
    done = materialise(DATA, PAIR, tmp_path, layout="cifar-10-c")
    assert done.written == ["gaussian_noise", "contrast"]
    array = np.load(tmp_path / "contrast.npy")
    assert (array.shape, array.dtype) == ((115, 8, 8, 3), np.uint8)
    back = open_data(tmp_path)
    assert [(part.shift, part.severity) for part in back.parts][:5] == [("contrast", float(s)) for s in range(1, 6)]
    for part in back.parts:
        kind = {"gaussian_noise": GaussianNoise, "contrast": Contrast}[part.shift]
        images = part.data.images(np.arange(23))
        assert (images - expected(kind(part.severity, table="cifar"))).abs().max() <= 0.5 / 255 + 1e-6
        assert np.array_equal(part.data.targets, DATA.targets)


def test_jpeg_is_near_the_images_and_better_with_more_quality(tmp_path):
    smooth = ArrayData(np.tile(np.linspace(0, 255, 16).astype(np.uint8), (4, 16, 1)), [0, 1, 0, 1])
    for quality in (95, 10):
        materialise(smooth, [Contrast], tmp_path / str(quality), severities=[1], quality=quality)
    [good], [bad] = (open_data(tmp_path / name, channels=1).parts for name in ("95", "10"))
    truth = Contrast(1)(smooth.images(np.array([0, 2, 1, 3])))
    errors = [(part.data.images(np.arange(4)) - truth).abs().mean() for part in (good, bad)]
    assert errors[0] < 0.01 < errors[1]
    assert good.data.images(np.arange(1)).shape == (1, 1, 16, 16)


def test_files_keep_the_names_and_classes_of_a_folder(tmp_path):
    for name, file in (("great cat", "a.JPEG"), ("great cat", "b/c.png"), ("dog", "a.png"), ("dog", "a.jpg")):
        path = tmp_path / "source" / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (6, 6), (len(file) * 20, 5, 9)).save(path)
    source = open_data(tmp_path / "source")
    materialise(source, [Contrast], tmp_path / "out", severities=[2])
    found = sorted(str(path.relative_to(tmp_path / "out/contrast/2")) for path in tmp_path.glob("out/**/*.jpeg"))
    assert found == ["dog/a.jpg.jpeg", "dog/a.png.jpeg", "great cat/a.JPEG.jpeg", "great cat/b/c.png.jpeg"]
    [part] = open_data(tmp_path / "out").parts
    assert (part.data.names, part.data.targets.tolist()) == (source.names, source.targets.tolist())


def test_classes_are_read_back_in_their_order(tmp_path):
    labels = np.array([2, 0, 11])
    images = np.random.default_rng(0).integers(0, 256, (3, 4, 4), dtype=np.uint8)
    materialise(ArrayData(images, labels), [Contrast], tmp_path / "numbers", severities=[1], quality="png")
    [part] = open_data(tmp_path / "numbers").parts
    assert part.data.targets.tolist() == [0, 2, 11]
    names = ["zebra"] + [f"n{i}" for i in range(11)]
    assert class_folders(ArrayData(images, labels, classes=names))[:2] == ["00_zebra", "01_n0"]
    assert class_folders(ArrayData(images, [0, 1, 1], classes=["a b", "c"])) == ["a b", "c"]
    assert class_folders(ArrayData(images, [0, 1, 1], classes=["a/b", "c"])) == ["0_a_b", "1_c"]


def test_data_without_labels_is_a_flat_folder(tmp_path):
    data = ArrayData(np.zeros((3, 4, 4), np.uint8))
    materialise(data, [Contrast], tmp_path, severities=[1], quality="png")
    assert sorted(path.name for path in (tmp_path / "contrast" / "1").iterdir()) == ["0.png", "1.png", "2.png"]
    assert open_data(tmp_path).parts[0].data.targets is None


def test_a_finished_part_is_not_written_again_and_a_folder_can_grow(tmp_path):
    materialise(DATA, PAIR[:1], tmp_path, severities=[1, 2])
    before = tree(tmp_path)
    again = materialise(DATA, PAIR, tmp_path, severities=[2, 3])
    assert again.written == ["gaussian_noise/3", "contrast/2", "contrast/3"]
    assert again.kept == ["gaussian_noise/2"]
    assert before.items() <= tree(tmp_path).items()
    plan = json.loads((tmp_path / "plan.json").read_text())
    parts = {piece["title"]: piece["facts"]["images"] for piece in plan["pieces"]}
    assert parts.keys() == {"gaussian_noise/1", "gaussian_noise/2", *again.written}
    assert set(parts.values()) == {23}
    about = plan["about"]
    assert (about["seed"], about["table"], about["prints"]) == (0, "imagenet", {"source": DATA.fingerprint()})
    assert "haptera" in about["versions"]


@pytest.mark.long
@pytest.mark.parametrize("layout", ["imagenet-c", "cifar-10-c"])
@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError(28, "No space left on device"), HapteraError("no")])
def test_stopped_in_the_middle_it_goes_on(tmp_path, monkeypatch, layout, stop):
    whole = materialise(DATA, PAIR, tmp_path / "whole", layout=layout, quality="png")
    place, target = (module, "write_image") if layout == "imagenet-c" else (np.lib.format, "write_array_header_1_0")
    calls, real = [], getattr(place, target)
    limit = 100 if layout == "imagenet-c" else 1

    def failing(*arguments):
        calls.append(arguments)
        if len(calls) > limit:
            raise stop
        real(*arguments)

    monkeypatch.setattr(place, target, failing)
    with pytest.raises((KeyboardInterrupt, HapteraError)) as raised:
        materialise(DATA, PAIR, tmp_path / "out", layout=layout, quality="png")
    if isinstance(stop, OSError):
        done = 4 if layout == "imagenet-c" else 2  # the labels are one
        assert f"No space left on device; {done} finished parts are intact, the same command goes on" in str(
            raised.value
        )
    monkeypatch.undo()
    assert not list((tmp_path / "out").glob(".*.part"))
    finished = tree(tmp_path / "out")
    assert finished
    assert isinstance(open_data(tmp_path / "out"), CorruptedImages)  # what is finished can be read
    again = materialise(DATA, PAIR, tmp_path / "out", layout=layout, quality="png")
    assert again.kept
    assert sorted(again.kept + again.written) == sorted(whole.written)
    assert finished.items() <= tree(tmp_path / "out").items()
    assert {path: content for path, (content, _) in tree(tmp_path / "out").items()} == {
        path: content for path, (content, _) in tree(tmp_path / "whole").items()
    }


def test_what_a_killed_run_left_is_removed_and_what_it_did_not_note_is_written_again(tmp_path):
    materialise(DATA, PAIR, tmp_path, severities=[1])
    before = {path: content for path, (content, _) in tree(tmp_path).items()}
    (tmp_path / ".contrast-2.part" / "0").mkdir(parents=True)
    journal = tmp_path / "journal.jsonl"
    journal.write_text(journal.read_text().splitlines(keepends=True)[0])
    assert materialise(DATA, PAIR, tmp_path, severities=[1]).written == ["contrast/1"]
    assert not (tmp_path / ".contrast-2.part").exists()
    assert {path: content for path, (content, _) in tree(tmp_path).items()} == before
    assert materialise(DATA, PAIR, tmp_path, severities=[1]).written == []


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-1])


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


@pytest.mark.parametrize("spoil", [Path.unlink, cut_short, flip_a_bit])
@pytest.mark.parametrize(
    ("layout", "file", "part"),
    [
        ("imagenet-c", "contrast/2/1/07.png", "contrast/2"),
        ("cifar-10-c", "contrast.npy", "contrast"),
        ("cifar-10-c", "labels.npy", None),
    ],
)
def test_a_part_that_was_damaged_is_named_and_written_again(tmp_path, caplog, layout, file, part, spoil):
    materialise(DATA, PAIR, tmp_path, layout=layout, quality="png")
    before = tree(tmp_path)
    file = next(tmp_path.rglob("contrast/2/*/07.png")) if layout == "imagenet-c" else tmp_path / file
    spoil(file)
    assert materialise(DATA, PAIR, tmp_path, layout=layout, quality="png").written == [part] * (part is not None)
    assert f"{tmp_path / (part if layout == 'imagenet-c' else file.name)} " in caplog.text
    assert "it is made again" in caplog.text
    assert {path: content for path, (content, _) in tree(tmp_path).items()} == {
        path: content for path, (content, _) in before.items()
    }


def test_damage_to_parts_that_were_not_asked_for_is_left_alone(tmp_path, caplog):
    materialise(DATA, PAIR, tmp_path, severities=[1])
    next(tmp_path.rglob("contrast/1/*/07.jpeg")).unlink()
    assert materialise(DATA, [GaussianNoise], tmp_path, severities=[1, 2]).written == ["gaussian_noise/2"]
    assert "made again" not in caplog.text
    assert materialise(DATA, [Contrast], tmp_path, severities=[1]).written == ["contrast/1"]


OTHER = ArrayData(np.zeros((3, 4, 4), np.uint8), [0, 1, 2], "other")


@pytest.mark.parametrize(
    ("data", "settings", "message"),
    [
        (OTHER, {}, r"holds a corrupted data set with another source; use another folder, or delete it"),
        (DATA, {"seed": 1}, r"with another seed; use another folder, or delete it \(seed was 0, is 1\)"),
        (DATA, {"table": "cifar"}, "table was 'imagenet', is 'cifar'"),
        (DATA, {"quality": 50}, "quality was 95, is 50"),
        (DATA, {"layout": "cifar-10-c", "severities": (1, 2, 3, 4, 5)}, "layout was 'imagenet-c', is 'cifar-10-c'"),
    ],
)
def test_other_data_or_settings_are_refused(tmp_path, data, settings, message):
    materialise(DATA, [Contrast], tmp_path, severities=[1])
    before = tree(tmp_path)
    with pytest.raises(HapteraError, match=message):
        materialise(data, [Contrast], tmp_path, **{"severities": [1]} | settings)
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        ((DATA, PAIR), {"layout": "imagnet-c"}, "did you mean 'imagenet-c'"),
        ((DATA, PAIR), {"quality": 101}, "quality is 101; 'png' or a whole number from 1 to 100"),
        ((DATA, PAIR), {"severities": [6]}, r"severities are \[6\]; of the numbers 1 to 5"),
        ((DATA, PAIR), {"severities": [2, 2]}, "each once"),
        ((DATA, PAIR), {"severities": [2], "layout": "cifar-10-c"}, "leave severities out"),
        ((DATA, PAIR), {"table": "imagnet"}, "did you mean 'imagenet'"),
        ((DATA, ()), {}, "at least one shift"),
        ((DATA, (Contrast, Contrast)), {}, "'contrast' is given twice"),
        (("digits", PAIR), {}, "one data set that is not corrupted yet was expected, found str"),
        ((ArrayData(np.zeros((3, 4, 4), np.uint8), name="plain"), PAIR), {"layout": "cifar-10-c"}, "plain has none"),
    ],
)
def test_wrong_settings_are_refused(tmp_path, arguments, settings, message):
    with pytest.raises(HapteraError, match=message):
        materialise(*arguments, tmp_path / "out", **settings)
    assert not (tmp_path / "out").exists()


def test_a_folder_with_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(HapteraError, match=r"is not empty and has no plan\.json"):
        materialise(DATA, PAIR, tmp_path)
    (tmp_path / "plan.json").write_text("{}")
    with pytest.raises(HapteraError, match=r"plan\.json has no 'schema'"):
        materialise(DATA, PAIR, tmp_path)


def test_a_folder_of_the_first_version_is_refused_and_left_as_it_is(tmp_path):
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(HapteraError, match=r"holds a data set of version 0\.1"):
        materialise(DATA, PAIR, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]
