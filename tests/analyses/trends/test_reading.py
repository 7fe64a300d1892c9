"""Every form in which a side can be given, and every way in which it can be wrong."""

import numpy as np
import pytest

from haptera.analyses.trends.reading import read_side
from haptera.analyses.trends.side import Side, join
from haptera.errors import HapteraError
from haptera.run.importing import import_predictions
from haptera.theory.known_models import ProbitModels

NAMES = [f"net-{place}" for place in range(9)]


@pytest.fixture
def sides():
    """Whether nine models are right, on 600 examples and on 400."""
    return ProbitModels(np.linspace(-0.2, 1.6, 9), noise=0.4).correct(600, 400)


def test_correct_predictions_and_packed_bits_say_the_same(write, sides):
    right = sides[0]
    targets = np.random.default_rng(0).integers(0, 10, 600)
    predictions = np.where(right, targets, (targets + 1) % 10)
    n = right.shape[1]
    files = [
        write("bool.npz", models=NAMES, correct=right),
        write("int.npz", models=NAMES, correct=right.astype(np.int64)),
        write("float.npz", models=NAMES, correct=right.astype(np.float32)),
        write("named.npz", models=NAMES, predictions=predictions, targets=targets),
        write("packed.npz", models=NAMES, correct=np.packbits(right, axis=1), n=n),
        write("several.npz", models=NAMES, val=np.packbits(right, axis=1), val_n=n, other=right) + ":val",
        write("plain.npz", models=NAMES, val=right, other=~right) + ":val",
    ]
    for file in files:
        side = read_side(file)
        assert side.models == tuple(NAMES), file
        assert np.array_equal(side.correct, right), file
        assert side.accuracy == pytest.approx(right.mean(1)), file
        assert (side.n == 600).all(), file


def test_ids_of_each_model_put_its_examples_in_one_order(write, sides):
    right = sides[0]
    orders = np.stack([np.random.default_rng(seed).permutation(600) for seed in range(9)])
    moved = np.take_along_axis(right, orders, axis=1)
    side = read_side(write("ids.npz", models=NAMES, correct=moved, ids=orders))
    assert np.array_equal(side.correct, right)
    assert side.ids.tolist() == list(range(600))
    assert "another order" in side.notes[0]


def test_the_same_examples_on_both_sides_are_paired_by_id(write, sides):
    right = sides[0]
    order = np.random.default_rng(0).permutation(600)
    ids = np.array([f"image-{place}" for place in range(600)])
    one = read_side(write("one.npz", models=NAMES, correct=right, ids=ids))
    other = read_side(write("other.npz", models=NAMES, correct=right[:, order], ids=ids[order]))
    found = join(one, other)
    assert found.paired
    assert np.array_equal(found.shifted.correct, right)
    assert "by id" in found.notes[0]
    assert join(one, one).paired
    assert not join(one, one).notes
    assert not join(one, read_side(write("no.npz", models=NAMES, correct=right))).paired


def test_a_csv_has_accuracies_and_perhaps_n(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("model, accuracy, n\na, 0.5, 100\nb, 0.75, 200\n")
    side = read_side(str(path))
    assert side.models == ("a", "b")
    assert side.accuracy.tolist() == [0.5, 0.75]
    assert side.n.tolist() == [100, 200]
    assert side.correct is None
    path.write_text("model,accuracy\na,50\nb,75.5\n")
    percent = read_side(str(path))
    assert percent.accuracy == pytest.approx([0.5, 0.755])
    assert "in percent" in percent.notes[0]
    assert percent.n is None


def test_models_at_several_sizes_are_taken_at_the_largest(tmp_path):
    path = tmp_path / "timm.csv"
    path.write_text("model,img_size,top1\na,224,70\nb,224,60\na,288,72\n")
    side = read_side(str(path))
    assert dict(zip(side.models, side.accuracy, strict=True)) == pytest.approx({"a": 0.72, "b": 0.6})
    assert any("1 rows of models measured at several img_size" in note for note in side.notes)


def test_models_are_joined_by_name_and_the_others_are_named(sides):
    reference, shifted = sides
    left = Side.of_correct("left", [*NAMES[:8], "resnet50"], reference)
    right = Side.of_correct("right", [*NAMES[1:], "resnet-50"][:9], shifted)
    found = join(left, right)
    assert found.reference.models == found.shifted.models == tuple(NAMES[1:8])
    assert np.array_equal(found.reference.correct, reference[1:8])
    assert np.array_equal(found.shifted.correct, shifted[:7])
    assert "2 left out, which only left has: net-0, resnet50" in found.notes[0]
    assert "is resnet50 the" not in found.notes[0]
    near = join(
        Side.of_correct("left", [*NAMES[:8], "resnet50"], reference),
        Side.of_correct("right", [*NAMES[:8], "resnet-50"], shifted),
    )
    assert "(is resnet50 the resnet-50 of right?)" in near.notes[0]


def test_two_streams_of_a_study(tmp_path, sides):
    targets = np.zeros(400, int)
    folder = tmp_path / "study"
    for name, clean, moved in zip(NAMES, *(side[:, :400] for side in sides), strict=True):
        for stream, shift, severity, right in (
            ("clean", "clean", 0, clean),
            ("noise", "fog", 3, moved),
            ("noise", "fog", 5, ~moved),
        ):
            order = np.random.default_rng(len(name) + severity).permutation(400)
            np.savez(tmp_path / "p.npz", labels=(~right).astype(int)[order], targets=targets, ids=np.arange(400)[order])
            import_predictions(tmp_path / "p.npz", folder, model=name, stream=stream, shift=shift, severity=severity)
    clean, fog = read_side(f"{folder}:clean"), read_side(f"{folder}:noise:fog:3")
    assert np.array_equal(clean.correct, sides[0][:, :400])
    assert np.array_equal(fog.correct, sides[1][:, :400])
    assert join(clean, fog).paired
    both = read_side(f"{folder}:noise")
    assert both.correct.shape == (9, 800)
    assert both.ids is None
    for wrong, message in (
        (f"{folder}", "name one of its streams, as in"),
        (f"{folder}:claen", "did you mean 'clean'"),
        (f"{folder}:noise:fogg", "did you mean 'fog'"),
        (f"{folder}:noise:fog:4", "no finished cell"),
        (f"{folder}:noise:fog:4:5", "STREAM:SHIFT:SEVERITY was expected"),
    ):
        with pytest.raises(HapteraError, match=message):
            read_side(wrong)


def test_an_adapter_makes_another_model_and_a_missing_part_is_named(tmp_path, sides):
    folder = tmp_path / "study"
    for name, adapter, right in (
        (NAMES[0], "none", sides[0][0]),
        (NAMES[0], "tent", sides[0][1]),
        (NAMES[1], "none", sides[0][2]),
    ):
        for shift in ("fog", "snow"):
            if (name, shift) != (NAMES[1], "snow"):
                np.savez(tmp_path / "p.npz", labels=(~right).astype(int), targets=np.zeros(600, int))
                import_predictions(
                    tmp_path / "p.npz", folder, model=name, stream="s", adapter=adapter, shift=shift, severity=1
                )
    side = read_side(f"{folder}:s")
    assert side.models == ("net-0", "net-0 · tent")
    assert "1 left out, which have not been run on all of it: net-1" in side.notes[0]


AS_WRITTEN = {
    "percent signs": "model,accuracy\na,50%\nb,75.5 %\n",
    "semicolons": "model;accuracy\na;0.5\nb;0.755\n",
    "decimal commas": "model;accuracy\na;50,0\nb;75,5\n",
    "tabs": "model\taccuracy\na\t0.5\nb\t0.755\n",
    "a byte order mark": "\ufeffModel,Accuracy\na,0.5\nb,0.755\n",
    "an empty line": "model,accuracy\na,0.5\n,\nb,0.755\n",
    "models in the first column": "network,accuracy\na,0.5\nb,0.755\n",
    "quoted names": 'model,accuracy\n"a",0.5\n"b",0.755\n',
}


@pytest.mark.parametrize("kind", AS_WRITTEN)
def test_tables_are_read_as_people_write_them(kind, tmp_path):
    (tmp_path / "a.csv").write_text(AS_WRITTEN[kind], encoding="utf-8")
    side = read_side(str(tmp_path / "a.csv"))
    assert side.models == ("a", "b")
    assert side.accuracy == pytest.approx([0.5, 0.755])


WIDE = "model,imagenet,imagenet_n,v2,sketch\na,70,50000,60.5,0.2\nb,80,50000,,0.3\nc,81,50000,72,n/a\n"


def test_a_wide_table_has_a_column_for_each_test_set(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text(WIDE)
    side = read_side(f"{path}:imagenet")
    assert side.accuracy == pytest.approx([0.7, 0.8, 0.81])
    assert side.n.tolist() == [50_000] * 3
    assert side.source.endswith("wide.csv:imagenet")
    with pytest.raises(HapteraError, match=r"name the test set, as in .*wide.csv:imagenet; .* imagenet, v2, sketch"):
        read_side(str(path))
    with pytest.raises(HapteraError, match="did you mean 'sketch'"):
        read_side(f"{path}:scetch")


def test_an_empty_cell_leaves_out_its_model_with_a_note(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text(WIDE)
    for column, kept, gone in (("v2", ("a", "c"), "b"), ("sketch", ("a", "b"), "c")):
        side = read_side(f"{path}:{column}")
        assert side.models == kept
        assert any(f"1 left out, whose cell in {column} or n is empty: {gone}" in note for note in side.notes)
    path.write_text("model,accuracy,n\na,0.5,10\nb,,10\nc,0.6,\n")
    assert read_side(str(path)).models == ("a",)
    path.write_text("model,accuracy\na,\n")
    with pytest.raises(HapteraError, match="no model with a number for accuracy"):
        read_side(str(path))


def test_examples_taken_for_models_are_refused_before_they_fill_the_memory(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("model,accuracy\n" + "".join(f"m{k},0.5\n" for k in range(200_000)))
    with pytest.raises(HapteraError, match="more than 40,000 rows; one for each model"):
        read_side(str(path))
    with pytest.raises(HapteraError, match="has 10,001 models; at most 10,000"):
        Side("here", tuple(map(str, range(10_001))), np.full(10_001, 0.5))


def test_fewer_than_three_models_in_common_are_too_few(sides):
    one = Side.of_correct("one", NAMES, sides[0])
    other = Side.of_correct("other", ["net-0", "net-1", "net_2"], sides[1][:3])
    with pytest.raises(HapteraError, match=r"2 models in common; at least 3 were expected.*net_2"):
        join(one, other)
