"""The loop keeps what the model said, sample by sample, and refuses what it cannot keep."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

from haptera.adapters import Adapter, BatchNorm, NoAdaptation, Offline, Tent
from haptera.analyses.dependencies.files import LogitsFile
from haptera.data import ArrayData, Classes, open_data
from haptera.errors import HapteraError
from haptera.measures import class_attraction
from haptera.models import ResNet
from haptera.outputs import Outputs
from haptera.run.loop import ahead, evaluate
from haptera.shifts import Contrast, GaussianNoise
from haptera.streams import Clean, Continual, Shifted


@pytest.fixture
def data():
    generator = np.random.default_rng(0)
    return ArrayData(generator.integers(0, 256, (30, 16, 16), dtype=np.uint8), generator.integers(0, 10, 30))


@pytest.fixture
def model():
    torch.manual_seed(0)
    return ResNet(width=4, stem=2).eval()


def test_logits_are_those_of_the_bare_model(data, model):
    outputs = evaluate(NoAdaptation(model), Clean(data, batch_size=8))
    with torch.no_grad():
        bare = model(data.images(np.arange(30))).numpy()
    assert np.allclose(outputs.logits, bare[outputs.ids], atol=1e-5)
    assert (outputs.targets == data.targets[outputs.ids]).all()
    assert outputs.step.tolist() == [i // 8 for i in range(30)]
    assert len(outputs.steps["seconds"]) == 4
    assert (outputs.steps["seconds"] > 0).all()


@pytest.mark.parametrize("key", ["classes", "class_names", "label_names"])
def test_the_class_names_of_a_file_reach_the_cell_and_what_reads_it(data, model, tmp_path, key):
    names = [f"kind {k}" for k in range(10)]
    pixels = (data.images(np.arange(30)).numpy()[:, 0] * 255).astype(np.uint8)
    np.savez(tmp_path / "data.npz", images=pixels, labels=data.targets, **{key: names})
    outputs = evaluate(NoAdaptation(model), Clean(open_data(tmp_path / "data.npz")))
    outputs.provenance |= {"model": "net", "stream": "clean", "adapter": "none", "part": "clean"}
    outputs.save(tmp_path / "cell.npz")
    assert Outputs.load(tmp_path / "cell.npz").classes.tolist() == names
    assert LogitsFile(tmp_path / "cell.npz").names == names
    assert all(row["class_name"] == names[row["class"]] for row in class_attraction(outputs))


def test_a_shifted_stream_is_a_loop_over_shifted_batches(data, model):
    stream = Shifted(data, GaussianNoise(3), batch_size=8, seed=5)
    outputs, adapter = evaluate(BatchNorm(model), stream), BatchNorm(model)
    expected = torch.cat([adapter(batch.inputs) for batch in stream])
    assert np.array_equal(outputs.logits, expected.numpy())
    assert set(outputs.context["shift"]) == {"gaussian_noise"}


def test_contexts_of_a_changing_stream_are_kept_per_sample(data, model):
    outputs = evaluate(NoAdaptation(model), Continual(data, (GaussianNoise, Contrast), 2.0, batch_size=8))
    assert len(outputs) == 60
    assert outputs.context["shift"].tolist() == ["gaussian_noise"] * 30 + ["contrast"] * 30
    assert sorted(outputs.context["sample"][:30]) == list(range(30))


@pytest.mark.parametrize(("keep", "arrays"), [("float16", {"logits"}), ("top3", {"top_values", "top_indices"})])
def test_less_can_be_kept(data, model, keep, arrays):
    full = evaluate(NoAdaptation(model), Clean(data))
    less = evaluate(NoAdaptation(model), Clean(data), keep)
    assert set(less.arrays) == arrays
    assert np.mean(full.predictions() == less.predictions()) > 0.9
    if keep == "top3":
        assert (full.correct(3) == less.correct(3)).all()


@pytest.mark.parametrize("keep", ["float64", "top0", "top", "top-5", ""])
def test_what_cannot_be_kept_is_refused(data, model, keep):
    with pytest.raises(HapteraError, match="keep is"):
        evaluate(NoAdaptation(model), Clean(data), keep)


def test_mapped_classes_restrict_the_columns(data, model):
    data.classes, data.targets = Classes(((1, 4), (7,)), restrict=True), np.arange(30) % 2
    outputs = evaluate(NoAdaptation(model), Clean(data, shuffle=False))
    with torch.no_grad():
        bare = model(data.images(np.arange(30))).numpy()
    best = np.array([1, 4, 7])[bare[:, [1, 4, 7]].argmax(1)]
    assert (outputs.predictions() == best).all()
    assert (outputs.correct() == [b in ((1, 4), (7,))[t] for b, t in zip(best, data.targets, strict=True)]).all()
    data.classes = Classes(((1, 10), (7,)))
    with pytest.raises(HapteraError, match="names the model's class 10; the model has 10"):
        evaluate(NoAdaptation(model), Clean(data))


class Gives(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, inputs):
        return self.function(inputs)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: (x.mean((1, 2, 3)), x), "returned a tuple"),
        (lambda x: x.mean((2, 3)), r"returned shape \(8, 1\)"),
        (lambda x: x, r"returned shape \(8, 1, 16, 16\)"),
        (lambda x: torch.zeros(3, 10), r"returned shape \(3, 10\) for a batch of 8"),
    ],
)
def test_outputs_that_are_no_logits_are_refused(data, function, message):
    with pytest.raises(HapteraError, match=message):
        evaluate(NoAdaptation(Gives(function)), Clean(data, batch_size=8))


def test_labels_out_of_range_are_refused(data):
    with pytest.raises(HapteraError, match="out of range: the model has 3 classes"):
        evaluate(NoAdaptation(Gives(lambda x: torch.zeros(len(x), 3))), Clean(data))


def test_nan_predictions_count_as_wrong_and_are_told(data, caplog):
    outputs = evaluate(NoAdaptation(Gives(lambda x: torch.full((len(x), 10), float("nan")))), Clean(data))
    assert not outputs.correct().any()
    assert outputs.provenance["invalid"] == 30
    assert "30 of 30 predictions" in caplog.text


def test_records_of_an_adapter_are_kept_per_step(data, model):
    class Counting(Adapter):
        count = 0

        def step(self, inputs):
            self.count += 1
            self.record = {"count": self.count} if self.count != 2 else {}
            return self.predict(inputs)

    steps = evaluate(Counting(model), Clean(data, batch_size=10)).steps
    assert np.array_equal(steps["count"], [1, np.nan, 3], equal_nan=True)


def test_unlabelled_data_has_outputs_without_targets(data, model):
    data.targets = None
    assert evaluate(NoAdaptation(model), Clean(data)).targets is None


def test_a_stream_that_breaks_its_promise_is_refused(data, model):
    @dataclass(frozen=True)
    class Liar(Clean):
        promise: int = 29

        @property
        def samples(self):
            return self.promise

    with pytest.raises(HapteraError, match="longer than the 29 samples"):
        evaluate(NoAdaptation(model), Liar(data))
    with pytest.raises(HapteraError, match="ended after 30 of 31"):
        evaluate(NoAdaptation(model), Liar(data, 31))


def test_reading_ahead_keeps_the_order(data):
    stream = Continual(data, (GaussianNoise, Contrast), batch_size=8)
    assert all(torch.equal(one.inputs, two.inputs) for one, two in zip(ahead(stream), stream, strict=True))


@pytest.mark.parametrize("early", [True, False])
def test_an_error_while_reading_reaches_the_caller(data, model, early, monkeypatch):
    if early:
        monkeypatch.setattr("haptera.adapters.Adapter.device", torch.device("meta"))
        monkeypatch.setattr(torch.Tensor, "to", lambda tensor, *_: tensor)

    @dataclass(frozen=True)
    class Failing(Clean):
        def __getitem__(self, index):
            if index == 2:
                raise HapteraError("cannot read b.jpg")
            return super().__getitem__(index)

    with pytest.raises(HapteraError, match=r"b\.jpg"):
        evaluate(NoAdaptation(model), Failing(data, batch_size=8))


def test_offline_predicts_after_each_pass_and_says_which(data, model):
    stream = Clean(data, batch_size=8)
    outputs = evaluate(Offline(model, Tent, epochs=2, lr=0.1), stream)
    assert len(outputs) == 60
    assert outputs.context["epoch"].tolist() == [1] * 30 + [2] * 30
    by_hand = Tent(model, lr=0.1)
    by_hand.adapt(stream, 2)
    learnt = BatchNorm(by_hand.release(source_statistics=True), prior="sized")
    expected = np.concatenate([learnt(batch.inputs).numpy() for batch in stream])
    assert np.array_equal(outputs.logits[30:], expected)
    assert not np.array_equal(outputs.logits[:30], expected)


@pytest.mark.parametrize("batch_size", [8, 29, 30])
def test_offline_at_a_learning_rate_of_zero_is_the_parent_whatever_the_last_batch(data, model, batch_size):
    stream = Clean(data, batch_size=batch_size)
    offline = evaluate(Offline(model, Tent, epochs=2, lr=0.0), stream).logits
    assert np.allclose(offline[:30], evaluate(Tent(model, lr=0.0), stream).logits, atol=1e-5)
    assert np.array_equal(offline[:30], offline[30:])
