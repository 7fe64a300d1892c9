"""Pseudo-labels, ETA, EATA, SAR, SLR: each rule against itself written out."""

import math

import pytest
import torch

from haptera.adapters import EATA, ETA, RPL, SAR, SLR, Collapsed, PeriodicReset, PseudoLabels, RDumb, Tent
from haptera.batch import Batch
from haptera.errors import HapteraError
from haptera.testing.adapters import example_batches, example_models


@pytest.fixture
def model():
    return example_models()["batch"]


def stream():
    return [Batch(inputs, None, torch.arange(len(inputs)), {}) for inputs in example_batches()]


def values(adapter):
    return [parameter.detach().clone() for parameter in adapter.adapted.values()]


def same(one, two):
    return all(map(torch.equal, one, two))


def test_soft_labels_of_the_student_itself_have_half_of_entropys_gradient_structure(model):
    """With a stopped gradient, equal temperatures and the student as teacher, the gradient of soft labels is zero."""
    adapter = PseudoLabels(model, lr=0.5, labels="soft")
    adapter(example_batches()[0])
    assert adapter.record["change"] < 1e-6


def test_a_threshold_keeps_only_sure_samples(model):
    inputs = example_batches()[0]
    sure = PseudoLabels(model, lr=0.0)(inputs).softmax(1).amax(1)
    middle = float(sure.median())
    adapter = PseudoLabels(model, lr=0.1, threshold=middle)
    adapter(inputs)
    assert adapter.record["kept"] == pytest.approx(float((sure >= middle).float().mean()))
    none = PseudoLabels(model, lr=0.1, threshold=1.0)
    none(inputs)
    assert none.record["kept"] == 0
    assert none.record["change"] == 0


def test_a_teacher_that_is_never_updated_keeps_saying_what_the_source_says(model):
    batches = example_batches()
    never, step = RPL(model, lr=0.5, teacher="never"), RPL(model, lr=0.5, teacher="step")
    never(batches[0])
    step(batches[0])
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(values(never), values(step), strict=True))
    source = RPL(model, lr=0.0)(batches[1]).argmax(1)
    said = never.logits(batches[1], model=never.teacher).argmax(1)
    assert torch.equal(said, source)


def test_a_teacher_per_epoch_is_the_student_at_the_beginning_of_the_epoch(model):
    adapter = RPL(model, lr=0.5, teacher="epoch")
    adapter.adapt(stream(), epochs=1)
    student = values(adapter)
    assert not same(list(adapter._taught.values()), student)
    adapter.begin_epoch()
    assert same(list(adapter._taught.values()), student)


def eta_weights(logits, mean, margin, redundancy):
    """Sample by sample."""
    kept = []
    for row in logits.tolist():
        top = max(row)
        p = [math.exp(x - top) for x in row]
        p = [x / sum(p) for x in p]
        h = -sum(x * math.log(x) for x in p)
        limit = margin * math.log(len(p))
        similar = 0.0
        if mean is not None:
            dot = sum(a * b for a, b in zip(p, mean, strict=True))
            similar = abs(dot) / math.sqrt(sum(a * a for a in p) * sum(b * b for b in mean))
        kept.append(math.exp(limit - h) if h < limit and similar < redundancy else 0.0)
    return kept


def test_eta_keeps_what_is_sure_and_unlike_the_mean(model):
    adapter = ETA(model, margin=0.95, redundancy=0.95)
    mean = None
    for seed in range(4):
        logits = torch.randn(9, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 0.4
        expected = eta_weights(logits, mean, 0.95, 0.95)
        assert adapter.weights(logits).tolist() == pytest.approx(expected)
        p = logits.softmax(1)[torch.tensor(expected) > 0]
        assert 0 < len(p) < 9
        new = p.mean(0).tolist()
        mean = new if mean is None else [0.9 * a + 0.1 * b for a, b in zip(mean, new, strict=True)]
        assert adapter.memory["mean"].tolist() == pytest.approx(mean)


def test_the_printed_mean_is_that_of_all_predictions_so_far(model):
    adapter = ETA(model, average="plain")
    batches = [torch.randn(n, 5, generator=torch.Generator().manual_seed(n)) for n in (3, 8, 2)]
    for logits in batches:
        adapter.weights(logits)
    assert torch.allclose(adapter.memory["mean"], torch.cat(batches).softmax(1).mean(0), atol=1e-6)


def test_eta_with_nothing_kept_learns_nothing(model):
    adapter = ETA(model, lr=1.0, margin=1e-3)
    adapter(example_batches()[0])
    assert adapter.record["kept"] == 0
    assert adapter.record["change"] == 0


def test_eta_that_keeps_all_is_weighted_tent(model):
    inputs = example_batches()[0]
    adapter = ETA(model, prior=0, lr=0.1, margin=1.1, redundancy=1.1, momentum=0.0)
    logits = adapter(inputs)
    other = Tent(model, prior=0, lr=0.1, momentum=0.0)
    with torch.enable_grad():
        own = other.logits(inputs)
        h = -(own.softmax(1) * own.log_softmax(1)).sum(1)
        loss = (h * torch.exp(1.1 * math.log(logits.shape[1]) - h.detach())).mean()
    other.learn(loss)
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(values(adapter), values(other), strict=True))


def test_sar_applies_the_gradient_of_the_steepest_place_nearby(model):
    inputs = example_batches()[0]
    adapter = SAR(model, prior=0, lr=0.1, margin=1.1, radius=0.3, floor=0.0, momentum=0.0)
    adapter(inputs)
    by_hand = Tent(model, prior=0, lr=0.1, momentum=0.0)
    parameters = list(by_hand.adapted.values())

    def gradient():
        with torch.enable_grad():
            logits = by_hand.logits(inputs)
            loss = -(logits.softmax(1) * logits.log_softmax(1)).sum(1).mean()
        return torch.autograd.grad(loss, parameters)

    first = gradient()
    norm = torch.cat([g.flatten() for g in first]).norm()
    with torch.no_grad():
        for parameter, g in zip(parameters, first, strict=True):
            parameter.add_(0.3 * g / norm)
    second = gradient()
    for start, g, now in zip(by_hand._source, second, values(adapter), strict=True):
        assert torch.allclose(now, start - 0.1 * g, atol=1e-5)


def test_sar_resets_when_the_running_loss_is_too_low(model):
    adapter = SAR(model, lr=0.1, margin=1.1, floor=100.0)
    fresh = values(adapter)
    adapter(example_batches()[0])
    assert adapter.record["resets"] == 1
    assert same(values(adapter), fresh)
    adapter(example_batches()[1])
    assert adapter.record["resets"] == 2
    calm = SAR(model, lr=0.1, margin=1.1, floor=0.0)
    calm(example_batches()[0])
    assert calm.record["resets"] == 0


def test_sar_takes_one_batch_per_update(model):
    with pytest.raises(HapteraError, match="accumulate is not for SAR"):
        SAR(model, accumulate=2)


def test_slr_keeps_a_running_mean_of_predictions(model):
    adapter = SLR(model, lr=0.0, kappa=0.75)
    mean = None
    for inputs in example_batches():
        own = adapter(inputs).softmax(1).mean(0)
        mean = own if mean is None else 0.75 * mean + 0.25 * own
    assert torch.allclose(adapter.memory["mean"], mean, atol=1e-6)


@pytest.mark.parametrize("delta", [0.025, 2.0])
def test_slrs_delta_weighs_the_ratio_beside_the_diversity(model, delta):
    logits = torch.tensor([[2.0, 1.0, 0.0, -1.0], [0.0, 0.5, 0.0, 3.0]], dtype=torch.float64)
    p = logits.softmax(1)
    ratio = sum(-q * math.log(q / (1 - q) + 1e-5) for row in p.tolist() for q in row) / 2
    diversity = sum(q * math.log(4 * q) for q in p.mean(0).tolist())
    found = SLR(model, delta=delta).loss(logits, logits)
    assert float(found) == pytest.approx(diversity + delta * ratio, abs=1e-9)


def test_slr_uses_adam_unless_told_otherwise(model):
    assert isinstance(SLR(model).optimiser, torch.optim.Adam)
    assert isinstance(SLR(model, optimiser="sgd").optimiser, torch.optim.SGD)


def sure_of(classes):
    """Logits of as many images of every class, of which a model is sure enough to learn."""
    return ((math.log(classes) + 3) * torch.eye(classes)).repeat(max(16 // classes, 1), 1)


@pytest.mark.parametrize("method", [ETA, EATA, RDumb], ids=lambda method: method.__name__)
@pytest.mark.parametrize("classes", [2, 3, 10, 100, 126, 200, 1000])
def test_what_is_kept_by_default_follows_the_number_of_classes(model, classes, method):
    adapter = method(model)
    learner = getattr(adapter, "inner", adapter)
    batch = sure_of(classes)
    assert all(float(learner.weights(batch).sum()) > 0 for _ in range(5))


def test_the_setting_of_imagenet_keeps_nothing_of_ten_classes(model):
    adapter = ETA(model, redundancy=0.05)
    adapter.weights(sure_of(10))
    assert float(adapter.weights(sure_of(10)).sum()) == 0


@pytest.mark.long
@pytest.mark.parametrize("make", [ETA, PeriodicReset(ETA, every=30)], ids=["eta", "eta that resets"])
def test_a_learner_that_keeps_nothing_says_so_once(model, make, caplog):
    adapter, inputs = make(model, margin=1e-9), example_batches()[0]
    for _ in range(49):
        adapter(inputs)
    assert "kept no sample" not in caplog.text
    for _ in range(70):
        adapter(inputs)
    said = [record.message for record in caplog.records if "kept no sample" in record.message]
    assert len(said) == 1
    assert said[0].startswith("ETA kept no sample of the last 50 batches: it does not learn, and predicts as batchnorm")


@pytest.mark.long
def test_a_learner_that_keeps_something_now_and_then_says_nothing(model, caplog):
    adapter, inputs = PseudoLabels(model, lr=0.01, threshold=1.0), example_batches()[0]
    for step in range(120):
        adapter.threshold = 0.0 if step % 40 == 39 else 1.0
        adapter(inputs)
    assert "kept no sample" not in caplog.text


class Two(torch.nn.Module):
    """A sure network of two classes."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm2d(3)

    def forward(self, inputs):
        score = self.norm(inputs).mean((1, 2, 3))
        return torch.stack([score + 1.8, -score - 1.8], 1)


def test_sar_does_not_reset_at_every_step_where_two_classes_leave_little_entropy():
    inputs = torch.randn(16, 3, 6, 6, generator=torch.Generator().manual_seed(0))
    usual, published = SAR(Two()), SAR(Two(), floor=0.2)
    for _ in range(5):
        usual(inputs)
        published(inputs)
    assert (usual.memory["resets"], published.memory["resets"]) == (0, 5)


def test_an_even_prediction_of_two_classes_is_no_collapse():
    seen = {"images": 600, "mean": torch.tensor([0.55, 0.45])}
    assert not Collapsed()(seen)
    assert Collapsed()(seen | {"mean": torch.tensor([0.8, 0.2])})
    assert Collapsed()(seen | {"mean": torch.tensor([0.55, *[0.05] * 9])})
