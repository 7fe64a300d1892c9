"""CoTTA against a straightforward version with whole copies of the model, and its parts by hand."""

import copy

import pytest
import torch
from torch import nn

from haptera.adapters import Augment, BatchNorm, CoTTA, NoAdaptation
from haptera.adapters.cotta import scatter
from haptera.adapters.generator import generator_of
from haptera.errors import HapteraError
from haptera.testing.adapters import example_batches, example_models


def on_batch_statistics(model):
    """A whole copy that normalises by the batch."""
    net = copy.deepcopy(model).train()
    for layer in net.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.track_running_stats, layer.running_mean, layer.running_var = False, None, None
    return net


def straightforward(model, batches, lr, decay, views):
    """What CoTTA says when no weight is restored and the source is always unsure."""
    student, teacher = on_batch_statistics(model), on_batch_statistics(model)
    optimiser = torch.optim.SGD(student.parameters(), lr, momentum=0.9)
    said = []
    for step, inputs in enumerate(batches):
        with torch.no_grad():
            target = torch.stack([teacher(view) for view in views(inputs, step)]).mean(0)
        said.append(target)
        loss = -(target.softmax(1) * student(inputs).log_softmax(1)).sum(1).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        with torch.no_grad():
            for old, new in zip(teacher.parameters(), student.parameters(), strict=True):
                old.copy_(decay * old + (1 - decay) * new)
    return said


def confidence(model, inputs):
    with torch.no_grad():
        return float(on_batch_statistics(model)(inputs).softmax(1).amax(1).mean())


@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_views_student_and_teacher_go_as_in_a_straightforward_version(norm):
    model, batches = example_models()[norm], example_batches()

    generator = generator_of(3)

    def views(inputs, step):
        return [Augment()(inputs, generator) for _ in range(4)]

    adapter = CoTTA(model, prior=0, lr=0.5, augmentations=4, threshold=1.0, restore=0.0, decay=0.7, seed=3)
    expected = straightforward(model, batches, 0.5, 0.7, views)
    for inputs, answer in zip(batches, expected, strict=True):
        assert torch.allclose(adapter(inputs), answer, atol=1e-4)
        assert adapter.record["augmented"] == 1
    assert adapter.record["change"] > 0.1


def test_without_views_student_and_teacher_agree_and_nothing_is_learnt():
    model = example_models()["batch"]
    adapter, parent = CoTTA(model, prior=0, lr=1.0, augmentations=0), BatchNorm(model, prior=0)
    for inputs in example_batches():
        assert torch.allclose(adapter(inputs), parent(inputs), atol=1e-4)
    assert adapter.record["change"] < 1e-4


@pytest.mark.parametrize(
    ("classes", "confident", "augmented"), [(10, 0.9, 1), (10, 0.95, 0), (100, 0.7, 1), (101, 0.2, 0)]
)
def test_the_published_thresholds_are_the_default(classes, confident, augmented):
    net = nn.Sequential(nn.Flatten(), nn.Linear(4, classes))
    net[1].weight.data.zero_()
    net[1].bias.data.zero_()[0] = torch.tensor(confident * (classes - 1) / (1 - confident)).log()
    adapter = CoTTA(net, augmentations=1)
    adapter(torch.rand(3, 1, 2, 2))
    assert adapter.record["augmented"] == augmented


def test_views_depend_on_the_confidence_of_the_source_not_of_the_student():
    model, batches = example_models()["batch"], example_batches()
    sure = [confidence(model, inputs) for inputs in batches]
    between = (min(sure) + max(sure)) / 2
    adapter = CoTTA(model, prior=0, lr=5.0, augmentations=1, threshold=between)
    augmented = []
    for inputs in batches:
        adapter(inputs)
        augmented.append(adapter.record["augmented"])
    assert augmented == [float(value < between) for value in sure]
    assert 0 < sum(augmented) < len(batches)


@pytest.mark.parametrize("settings", [{"augmentations": 0}, {"threshold": 0.0}])
def test_without_views_the_source_is_not_asked(settings):
    adapter, passes = CoTTA(example_models()["batch"], **settings), []
    for net in (adapter.model, adapter.teacher):
        net.register_forward_pre_hook(lambda *_: passes.append(1))
    adapter._channels_last = False  # no trial pass
    adapter(example_batches()[0])
    assert len(passes) == 2


@pytest.mark.parametrize("share", [0.0, 0.03, 0.4, 1.0])
def test_that_share_of_the_weights_returns_to_the_source(share):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 200), nn.Linear(200, 10))
    net[1].weight.data = net[1].weight.data.T.contiguous().T  # also where memory has another order
    adapter = CoTTA(net, lr=10.0, augmentations=1, threshold=1.0, restore=share, decay=0.0)
    adapter(torch.rand(8, 1, 8, 8))  # the averaged teacher is now the student before weights returned
    pairs = list(zip(adapter.model.parameters(), net.parameters(), adapter.teacher.parameters(), strict=True))
    moved = torch.cat([(teacher != source).flatten() for _, source, teacher in pairs])
    back = torch.cat([(student == source).flatten() for student, source, _ in pairs])[moved]
    assert len(back) > 12_000
    assert float(back.float().mean()) == pytest.approx(share, abs=5 * (share * (1 - share) / len(back)) ** 0.5)
    for student, source, teacher in pairs:
        assert bool(((student == source) | (student == teacher)).all())


@pytest.mark.parametrize("rate", [0.02, 0.3, 0.9])
def test_every_place_is_chosen_on_its_own(rate):
    size, rounds, generator = 12, 4000, torch.Generator().manual_seed(0)
    chosen = torch.zeros(rounds, size)
    for row in chosen:
        row[scatter(size, rate, generator)] = 1
    near = 5 * (rate * (1 - rate) / rounds) ** 0.5
    assert bool(((chosen.mean(0) - rate).abs() < near).all())
    together = chosen.T @ chosen / rounds
    together[range(size), range(size)] = rate**2
    assert bool(((together - rate**2).abs() < 5 * (rate**2 * (1 - rate**2) / rounds) ** 0.5).all())


def test_places_are_in_order_without_repetition():
    found = scatter(1_000_000, 0.01, torch.Generator().manual_seed(1))
    assert bool((found.diff() > 0).all())
    assert 0 <= found[0] <= found[-1] < 1_000_000
    assert len(found) == pytest.approx(10_000, abs=500)


def test_weights_are_held_twice_and_no_more():
    model = example_models()["batch"]
    adapter = CoTTA(model)
    held = [*adapter.parameters(), *adapter.buffers(), *adapter._source, *adapter._first.values()]
    callers = {tensor.untyped_storage().data_ptr() for tensor in (*model.parameters(), *model.buffers())}
    own = {t.untyped_storage().data_ptr(): t.numel() for t in held if isinstance(t, torch.Tensor)}
    extra = sum(size for place, size in own.items() if place not in callers)
    channels = sum(layer.num_features for layer in model.modules() if isinstance(layer, nn.BatchNorm2d))
    assert extra <= 2 * sum(p.numel() for p in model.parameters()) + 3 * 2 * (6 * channels + 20)


def test_release_gives_the_teacher():
    model, batches = example_models()["batch"], example_batches()
    adapter = CoTTA(model, lr=0.1, augmentations=1, threshold=1.0, decay=0.5)
    for inputs in batches:
        adapter(inputs)
    released = adapter.release()
    assert [type(layer) for layer in released.modules()] == [type(layer) for layer in model.modules()]
    adapter.frozen = True
    assert torch.allclose(released.eval()(batches[0]), adapter(batches[0]), atol=1e-5)


def test_the_seed_decides_what_is_random():
    def run(seed):
        adapter = CoTTA(example_models()["batch"], augmentations=1, threshold=1.0, seed=seed)
        return adapter(example_batches()[0])

    assert torch.equal(run(0), run(0))
    assert not torch.equal(run(0), run(1))


def test_the_parent_without_views_is_batchnorm_or_the_model_as_it_is():
    models = example_models()
    assert isinstance(CoTTA(models["batch"], augmentations=0).parent(models["batch"]), BatchNorm)
    assert isinstance(CoTTA(models["layer"], augmentations=0).parent(models["layer"]), NoAdaptation)
    assert CoTTA(models["batch"]).parent_label == "cotta:lr=0"


@pytest.mark.parametrize(
    "settings",
    [{"augmentations": -1}, {"augmentations": 1.5}, {"threshold": 2}, {"restore": -0.1}, {"decay": 1.1}, {"seed": -1}],
)
def test_wrong_settings_are_refused(settings):
    with pytest.raises(HapteraError, match=f"^{next(iter(settings))} is"):
        CoTTA(example_models()["none"], **settings)
