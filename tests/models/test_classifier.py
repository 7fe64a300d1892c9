"""A network with what goes before it and what is taken from behind it."""

from collections import namedtuple
from dataclasses import dataclass

import pytest
import torch
from torch import nn

from haptera.errors import HapteraError
from haptera.models import Classifier, ModelSource, Preprocessing
from haptera.models.classifier import classifier
from haptera.testing.networks import Returns, as_it_is, plain

IMAGES = torch.rand(4, 3, 8, 8, generator=torch.Generator().manual_seed(0))


class Passes(nn.Module):
    """Gives its inputs back, flat."""

    def forward(self, images):
        return images.flatten(1)


def test_images_are_normalised_channel_by_channel():
    mean, std = (0.1, 0.2, 0.3), (0.5, 0.6, 0.7)
    found = Classifier(Passes(), Preprocessing(mean=mean, std=std))(IMAGES).view_as(IMAGES)
    for channel in range(3):
        assert torch.allclose(found[:, channel], (IMAGES[:, channel] - mean[channel]) / std[channel])


def test_images_of_another_number_of_channels_are_refused_and_not_spread():
    model = Classifier(Passes(), Preprocessing(mean=(0.1,) * 3, std=(0.5,) * 3))
    with pytest.raises(HapteraError, match=r"normalises 3 channels and the images have 1; .*--channels 3"):
        model(IMAGES[:, :1])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_a_network_of_another_precision_takes_images_as_they_are(dtype):
    images = torch.rand(4, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    logits = classifier(plain().to(dtype))(images)
    assert logits.dtype == (torch.float64 if dtype is torch.float64 else torch.float32)
    assert torch.allclose(logits.float(), plain()(images), atol=0.02)


@dataclass
class Answer:
    """What some libraries return."""

    loss: torch.Tensor | None
    scores: torch.Tensor


Pair = namedtuple("Pair", "features logits")
WIDE = torch.zeros(4, 64)


@pytest.mark.parametrize(
    ("wrap", "key"),
    [
        (lambda logits: (logits, torch.zeros(4, 2, 7, 7)), None),
        (lambda logits: [None, logits], None),
        (lambda logits: {"logits": logits, "features": WIDE}, None),
        (lambda logits: {"head": {"logits": logits}, "features": WIDE}, None),
        (lambda logits: Pair(WIDE, logits), None),
        (lambda logits: Answer(None, logits), None),
        (lambda logits: (WIDE, logits), "1"),
        (lambda logits: {"pooled": WIDE, "out": logits}, "out"),
        (lambda logits: {"logits": WIDE, "heads": [WIDE, logits]}, "heads.1"),
        (lambda logits: Answer(WIDE, logits), "scores"),
    ],
)
def test_logits_are_found_or_named(wrap, key):
    images = torch.rand(4, 1, 16, 16)
    assert torch.equal(Classifier(Returns(plain(), wrap), logits=key)(images), plain()(images))


def test_a_key_that_is_not_there_is_named_with_the_nearest_that_is():
    model = Classifier(Returns(plain(), lambda logits: {"logit": logits, "pooled": WIDE}), logits="logits")
    with pytest.raises(HapteraError, match=r"a dict with logit \(4, 10\), pooled \(4, 64\); did you mean 'logit'\?"):
        model(torch.rand(4, 1, 16, 16))


def test_a_plain_network_stays_as_it_is():
    network = plain()
    assert classifier(network) is network
    assert classifier(nn.DataParallel(network)) is network
    with as_it_is():
        assert classifier(torch.compile(network)) is network


def test_a_source_takes_a_normalisation_and_a_key(tmp_path):
    (tmp_path / "net.py").write_text(
        "from haptera.testing.networks import Returns, plain\n"
        "def build():\n    return Returns(plain(), lambda logits: (logits * 2, logits))\n"
    )
    images = torch.rand(4, 1, 16, 16)
    model = ModelSource(f"{tmp_path}/net.py:build", normalise="half", logits="1")()
    assert torch.allclose(model(images), plain()((images - 0.5) / 0.5), atol=1e-6)
    with pytest.raises(HapteraError, match="normalise is 'hal'"):
        ModelSource("lenet", normalise="hal")
