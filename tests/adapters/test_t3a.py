"""T3A against a straight version of it, its filter against a loop, and what it refuses."""

from math import exp, log

import numpy as np
import pytest
import torch
from torch import nn

from haptera.adapters import T3A
from haptera.adapters.t3a import surest
from haptera.errors import HapteraError, NotApplicable
from haptera.testing.adapters import example_batches, example_models


def entropy_by_hand(scores):
    weights = [exp(score - max(scores)) for score in scores]
    return -sum(w / sum(weights) * log(w / sum(weights)) for w in weights if w)


class Straight:
    """The paper's algorithm, image by image, on features and a linear layer."""

    def __init__(self, weight, bias, most):
        self.weight, self.bias, self.most = weight, bias, most
        self.supports = [[(entropy_by_hand(weight @ row + bias), row)] for row in weight]

    def __call__(self, rows):
        for row in rows:
            scores = self.weight @ row + self.bias
            self.supports[int(np.argmax(scores))].append((entropy_by_hand(scores), row))
        answers = []
        for row in rows:
            prototypes = []
            for own in self.supports:
                if self.most:
                    own.sort(key=lambda pair: pair[0])
                    del own[self.most :]
                mean = np.mean([each / np.linalg.norm(each) for _, each in own], axis=0)
                prototypes.append(mean / np.linalg.norm(mean))
            answers.append([row @ prototype for prototype in prototypes])
        return np.array(answers)


@pytest.mark.parametrize("most", [1, 3, 0])
@pytest.mark.parametrize("norm", ["batch", "group", "layer"])
def test_every_step_equals_the_straight_version(norm, most):
    model = example_models()[norm]
    layer = [each for each in model.modules() if isinstance(each, nn.Linear)][-1]
    seen = []
    layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].double().numpy()))
    straight = Straight(layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy(), most)
    adapter = T3A(model, supports=most)
    for inputs in example_batches():
        with torch.no_grad():
            model(inputs)
        assert np.allclose(adapter(inputs), straight(seen[-1]), atol=1e-4)
    assert len(adapter.memory["labels"]) == sum(map(len, straight.supports))


def test_the_filter_keeps_the_lowest_entropies_of_each_label():
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 5, (40,), generator=generator)
    entropies = torch.rand(40, generator=generator)
    expected = set()
    for label in range(5):
        own = sorted((i for i in range(40) if labels[i] == label), key=lambda i: float(entropies[i]))
        expected |= set(own[:3])
    assert set(surest(labels, entropies, 3).tolist()) == expected


def test_prototypes_move_to_where_the_features_of_a_class_are():
    net = nn.Linear(2, 2, bias=False)
    net.weight.data = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    cloud = torch.tensor([[3.0, 2.5], [3.0, 2.6], [3.0, 2.7]])  # class 0, turned towards class 1
    doubtful = torch.tensor([[1.0, 1.05]])
    adapter = T3A(net, supports=3)
    assert adapter.predict(doubtful).argmax() == 1
    for _ in range(3):
        adapter(cloud)
    assert adapter.predict(doubtful).argmax() == 0


def test_memory_is_bounded_and_the_record_says_what_joined():
    adapter = T3A(example_models()["none"], supports=2)
    for inputs in example_batches() * 3:
        adapter(inputs)
        assert 0 <= adapter.record["kept"] <= 1
    assert len(adapter.memory["labels"]) <= 2 * 10


def test_a_model_whose_logits_are_not_those_of_its_last_layer_is_refused():
    class Squared(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, inputs):
            return self.layer(inputs) ** 2

    with pytest.raises(NotApplicable, match=r"logits are not what Linear.* gives"):
        T3A(Squared())(torch.randn(5, 4))
    with pytest.raises(NotApplicable, match="no linear or convolutional layer"):
        T3A(nn.Sequential(nn.Flatten(), nn.BatchNorm1d(4)))
    with pytest.raises(NotApplicable, match="the last that is seen is Conv2d"):
        T3A(nn.Sequential(nn.Conv2d(1, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten()))
    with pytest.raises(HapteraError, match="supports is -1"):
        T3A(nn.Linear(2, 2), supports=-1)
