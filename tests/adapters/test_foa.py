"""FOA against a straight version on a small ViT, on models without gradients, and what it refuses."""

import logging
from math import log

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from haptera.adapters import FOA
from haptera.adapters.evolution import begin_search, draw, learn, place, usual_population
from haptera.adapters.prompts import ImagePrompt, TokenPrompt, find_blocks
from haptera.errors import HapteraError, NotApplicable
from haptera.models import LeNet, ViT, from_callable
from haptera.testing.adapters import example_batches, example_models


class Block(nn.Module):
    """A block as timm's: norm1, attention, norm2, mlp."""

    def __init__(self, width):
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(width), nn.MultiheadAttention(width, 2, batch_first=True)
        self.norm2, self.mlp = nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attn(y, y, y, need_weights=False)[0]
        return x + F.gelu(self.mlp(self.norm2(x)))


class ClassTokenViT(nn.Module):
    """A ViT with a class token."""

    def __init__(self, width=8, depth=3, classes=4):
        super().__init__()
        self.patches, self.cls_token = nn.Conv2d(1, width, 4, 4), nn.Parameter(torch.randn(1, 1, width))
        self.blocks = nn.Sequential(*(Block(width) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def embed(self, images):
        rows = self.patches(images).flatten(2).transpose(1, 2)
        return torch.cat([self.cls_token.expand(len(rows), -1, -1), rows], 1)

    def forward(self, images):
        return self.head(self.norm(self.blocks(self.embed(images))[:, 0]))


def vit():
    torch.manual_seed(0)
    return ClassTokenViT().eval()


class Straight:
    """The paper's algorithm for this ViT: prompts behind the class token, its features layer by layer."""

    def __init__(self, net, source, weight, tokens, population):
        self.net, self.weight, self.tokens, self.population = net, weight, tokens, population
        whole = self.layers(source, torch.zeros(0, 8))
        self.mean, self.std = whole.mean(0), whole.std(0)
        self.search = begin_search(torch.zeros(tokens * 8), 1.0)
        self.best, self.history, self.random = torch.zeros(tokens * 8).double(), None, None

    def layers(self, images, prompts):
        x = self.net.embed(images)
        x = torch.cat([x[:, :1], prompts.expand(len(x), -1, -1), x[:, 1:]], 1)
        found = []
        for i, block in enumerate(self.net.blocks):
            x = block(x)
            norm = self.net.blocks[i + 1].norm1 if i + 1 < len(self.net.blocks) else self.net.norm
            found.append(norm(x[:, 0]))
        return torch.cat(found, 1)

    @torch.no_grad()
    def __call__(self, images, random):
        drawn = draw(self.search, self.population, random)
        tried = [*place(self.search, drawn), self.best]
        shift = 0 if self.history is None else self.mean[-8:] - self.history
        values, answers, means = [], [], []
        for vector in tried:
            found = self.layers(images, vector.float().view(self.tokens, 8))
            p = self.net.head(found[:, -8:]).softmax(1)
            value = sum(-(row * row.log()).sum() for row in p)
            for k in range(found.shape[1]):
                off = (found[:, k].mean() - self.mean[k]) ** 2 + (found[:, k].std() - self.std[k]) ** 2
                value = value + self.weight * off * len(images) / 64 * 9216 / 24
            values.append(float(value))
            answers.append(self.net.head(found[:, -8:] + shift))
            means.append(found[:, -8:].mean(0))
        first = int(np.argmin(values))
        self.best = tried[first]
        self.search = learn(self.search, drawn, values[:-1])
        mean = torch.stack(means).mean(0)
        self.history = mean if self.history is None else 0.9 * self.history + 0.1 * mean
        return answers[first]


def test_every_step_equals_the_straight_version():
    source = torch.rand(9, 1, 16, 16, generator=torch.Generator().manual_seed(7))
    adapter = FOA(vit(), source=[source[:5], source[5:]], tokens=2, population=6, weight=0.02, seed=4)
    with torch.no_grad():
        straight = Straight(vit(), source, 0.02, 2, 6)
    random = FOA(vit(), seed=4).random
    for inputs in example_batches():
        assert torch.allclose(adapter(inputs), straight(inputs, random), atol=1e-4)
    assert torch.allclose(adapter.memory["best"], straight.best)
    adapter.frozen = True
    assert torch.isfinite(adapter(example_batches()[0])).all()


def test_without_a_source_the_fitness_is_information_maximisation():
    inputs = example_batches()[0]
    adapter = FOA(vit(), population=4)
    adapter(inputs)
    with torch.no_grad(), TokenPrompt(find_blocks(vit()), 8, 3).put(net := vit(), adapter.memory["best"].float()):
        p = net(inputs).softmax(1)
    mean = p.mean(0)
    expected = -(p * p.log()).sum() + len(p) * (mean * mean.log()).sum()
    assert adapter.record["loss"] == pytest.approx(float(expected), abs=1e-4)


@pytest.mark.parametrize("build", [vit, lambda: ViT(size=16, width=16, depth=2).eval()])
def test_tokens_stand_anywhere_and_are_gone_after_the_last_block(build):
    net, inputs = build(), example_batches()[0]
    prompt = TokenPrompt.fit(net, inputs, 3)
    assert prompt is not None
    with torch.no_grad():
        plain = net(inputs)
        with prompt.put(net, torch.randn(prompt.size)):
            moved = net(inputs)
        assert torch.equal(net(inputs), plain)
    assert moved.shape == plain.shape
    assert not torch.allclose(moved, plain, atol=1e-3)


def vit_of_transformers():
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=8, image_size=16, patch_size=8,
        num_channels=1, num_labels=4,
    )  # fmt: skip
    torch.manual_seed(0)
    return ViTForImageClassification(config).eval()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:torch.quantize_per_tensor")  # torch's own
@pytest.mark.parametrize("quantised", [False, True])
def test_a_vit_of_transformers_gets_tokens_also_when_it_is_quantised(quantised):
    net = vit_of_transformers()
    if quantised:
        net = torch.ao.quantization.quantize_dynamic(net, {nn.Linear}, dtype=torch.qint8)
    adapter = FOA(net, prompt="tokens", population=4, source=example_batches())
    outputs = [adapter(inputs) for inputs in example_batches()[:2]]
    assert outputs[0].shape == (6, 4)
    assert adapter._head == "classifier"
    with torch.no_grad(), adapter._prompt.put(adapter.model, adapter.memory["best"].float()):
        unmoved = adapter.model(example_batches()[1]).logits
    assert not torch.allclose(outputs[1], unmoved, atol=1e-4)  # features are moved back to the source
    assert isinstance(adapter._prompt, TokenPrompt)
    assert adapter._class_token
    assert len(adapter._norms) == 1


def test_the_first_prompt_of_images_changes_nothing_and_gain_and_pattern_do_what_they_say():
    images = torch.rand(4, 3, 16, 16)
    prompt = ImagePrompt.fit(images)
    assert torch.allclose(prompt.apply(images, torch.zeros(prompt.size)), images, atol=1e-6)
    gain = torch.zeros(prompt.size)
    gain[:3] = -log(2)
    assert torch.allclose(prompt.apply(images, gain).std((2, 3)), images.std((2, 3)) / 2, atol=1e-5)
    pattern = torch.zeros(prompt.size)
    pattern[3:12] = 0.1  # the first channel
    moved = prompt.apply(images * 0.5, pattern) - images * 0.5
    assert torch.allclose(moved[:, 0], torch.full_like(moved[:, 0], 0.1), atol=1e-6)
    assert moved[:, 1:].abs().max() < 1e-6


def stripes(n, seed=0):
    """Images of horizontal and vertical stripes, and their classes."""
    generator = torch.Generator().manual_seed(seed)
    wave = torch.sin(torch.arange(16) * 1.6) / 2
    classes = torch.arange(n) % 2
    images = torch.stack([wave.expand(16, 16) if c else wave.expand(16, 16).T for c in classes]).unsqueeze(1)
    return (0.5 + 0.6 * images + 0.05 * torch.randn(images.shape, generator=generator)).clamp(0, 1), classes


def answer(images):
    """An opaque classifier of stripes that is wrong about dark images of low contrast."""
    across, down = np.abs(np.diff(images, axis=3)).mean((1, 2, 3)), np.abs(np.diff(images, axis=2)).mean((1, 2, 3))
    unlit = np.maximum(0.35 - images.mean((1, 2, 3)), 0)
    return np.stack([30 * down + 40 * unlit, 30 * across - 40 * unlit], 1).astype(np.float32)


@pytest.mark.parametrize("source", [None, [stripes(32)[0]]], ids=["alone", "with images of the source"])
def test_a_function_without_layers_or_gradients_is_adapted(source):
    model = from_callable(answer)
    images, classes = stripes(32)
    dark = 0.15 * images
    right = lambda logits: float((logits.argmax(1) == classes).float().mean())  # noqa: E731
    assert right(model(images)) == 1
    assert right(model(dark)) == 0.5
    adapter = FOA(model, source=source)
    scores = [right(adapter(dark)) for _ in range(25)]
    assert scores[-1] > 0.95
    assert isinstance(adapter._prompt, ImagePrompt)


def test_where_it_acts_is_said_once(caplog):
    with caplog.at_level(logging.INFO, "haptera"):
        adapter = FOA(example_models()["layer"], population=4)
        adapter(example_batches()[0])
        adapter(example_batches()[1])
    assert [record.message for record in caplog.records if "foa" in record.message] == [
        "foa: a prompt of 48 numbers in the tokens; activations are those of 0 blocks and the features"
    ]


def test_what_cannot_be_is_refused():
    with pytest.raises(HapteraError, match="unknown prompt 'token'"):
        FOA(vit(), prompt="token")
    with pytest.raises(NotApplicable, match="no blocks of attention"):
        FOA(LeNet(size=16, width=2), prompt="tokens")(example_batches()[0])
    with pytest.raises(HapteraError, match="source holds 1 images"):
        FOA(vit(), source=[example_batches()[0][:1]])
    with pytest.raises(HapteraError, match="source holds a str"):
        FOA(vit(), source=["images"])
    with pytest.raises(NotApplicable, match="is for images"):
        FOA(nn.Linear(4, 3))(torch.randn(5, 4))
    assert usual_population(30) == 14
