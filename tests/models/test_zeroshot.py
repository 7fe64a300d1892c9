"""Zero-shot classifiers against transformers' own comparison of images with texts, and methods that tune a prompt."""

import copy
import json
import pickle

import pytest
import torch
from tests.models.conftest import SIZE
from tests.models.imagetext import CLASSES, network, save, tokenizer

from haptera.adapters import FOA, LAME, SHOT, T3A, TPT, VTE, Tent
from haptera.adapters.published import AugMix
from haptera.errors import HapteraError
from haptera.models import ModelSource, ZeroShot
from haptera.models.zeroshot import PHOTO, TEMPLATES

KINDS = ["clip", "siglip"]
SEVERAL = ("a photo of a {}.", "a bad photo of the {}.", "the small {}.")


def images(n=4, seed=0):
    return torch.rand(n, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(seed))


def model(kind="clip", templates=(PHOTO,)):
    return ZeroShot(network(kind), tokenizer(kind == "clip"), CLASSES, templates)


def ask(kind, texts, pixels=None):
    """What transformers itself says: its outputs for images and texts."""
    padding = True if kind == "clip" else "max_length"
    tokens = tokenizer(kind == "clip")(texts, padding=padding, max_length=16, truncation=True, return_tensors="pt")
    given = {name: tokens[name] for name in tokenizer(kind == "clip").model_input_names}
    with torch.no_grad():
        return network(kind)(pixel_values=images() if pixels is None else pixels, **given)


def texts_of(template):
    return [template.format(name.replace("_", " ")) for name in CLASSES]


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_logits_are_those_of_transformers(kind):
    with torch.no_grad():
        assert torch.allclose(model(kind)(images()), ask(kind, texts_of(PHOTO)).logits_per_image, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_several_templates_are_the_mean_of_their_features(kind):
    said = [ask(kind, texts_of(template)) for template in SEVERAL]
    mean = sum(each.text_embeds for each in said) / 3
    mean = mean / mean.norm(dim=1, keepdim=True)
    net = network(kind)
    expected = net.logit_scale.exp() * said[0].image_embeds @ mean.T
    expected = expected + net.logit_bias if kind == "siglip" else expected
    with torch.no_grad():
        assert torch.allclose(model(kind, SEVERAL)(images()), expected, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_words_of_a_prompt_are_put_back_where_they_were_taken(kind):
    texts = model(kind).texts
    words = texts.context(PHOTO)
    table = network(kind).text_model.get_input_embeddings()
    ids = tokenizer()("a photo of a", add_special_tokens=False, return_tensors="pt")["input_ids"]
    assert torch.equal(words, table(ids)[0].detach())
    assert torch.allclose(texts.encode(PHOTO, words), ask(kind, texts_of(PHOTO)).text_embeds, atol=1e-5)
    words.requires_grad_(True)
    (gradient,) = torch.autograd.grad(texts.encode(PHOTO, words)[0, 0], words)
    step = torch.zeros_like(words)
    step[2, 5] = 1e-2
    with torch.no_grad():
        up, down = (texts.encode(PHOTO, words + way * step)[0, 0] for way in (1, -1))
    assert float(gradient[2, 5]) == pytest.approx(float((up - down) / 2e-2), rel=0.05, abs=1e-4)
    assert all(not p.requires_grad and p.grad is None for p in texts.network.parameters())


def test_a_copy_shares_the_text_part_and_a_pickle_does_not():
    made = model()
    assert copy.deepcopy(made).texts is made.texts
    again = pickle.loads(pickle.dumps(made))
    with torch.no_grad():
        assert torch.equal(again(images()), made(images()))
    assert torch.equal(again.texts.features([PHOTO]), made.texts.features([PHOTO]))


def test_adapters_reach_the_image_part_only():
    made = model()
    names = [name for name, _ in made.named_parameters()]
    assert not any("text" in name or "logit" in name for name in names)
    assert names[-1] == "head.weight"
    for adapter in (Tent(made, lr=0.01), SHOT(made, lr=0.01), T3A(made), LAME(made), FOA(made, population=4)):
        assert adapter(images()).shape == (4, 5)
        assert torch.isfinite(adapter(images(seed=1))).all()
    assert FOA(made, population=4, prompt="tokens")(images()).shape == (4, 5)


def test_half_precision_gives_the_same_classes():
    half = ZeroShot(network().half(), tokenizer(), CLASSES)
    with torch.no_grad():
        expected = model()(images())
        assert torch.allclose(half(images().half()).float(), expected, atol=0.05)
    assert TPT(half, views=2)(images().half()).shape == (4, 5)


def straight_tpt(kind, image, views, lr, keep, steps):
    """Test-time prompt tuning of one image, written out on transformers' parts."""
    net, ids = network(kind), tokenizer(kind == "clip")
    padding = True if kind == "clip" else "max_length"
    tokens = ids(texts_of(PHOTO), padding=padding, max_length=16, truncation=True, return_tensors="pt")
    given = {name: tokens[name] for name in ids.model_input_names}
    table = net.text_model.get_input_embeddings()
    first = 1 if kind == "clip" else 0
    vectors = table(tokens["input_ids"]).detach()
    words = torch.nn.Parameter(vectors[0, first : first + 4].clone())
    optimiser = torch.optim.AdamW([words], lr=lr, weight_decay=0.01)
    with torch.no_grad():
        seen = net.get_image_features(torch.cat([image, views]))
        seen = getattr(seen, "pooler_output", seen)
        seen = seen / seen.norm(dim=1, keepdim=True)

    def logits(rows):
        whole = torch.stack([torch.cat([row[:first], words, row[first + 4 :]]) for row in vectors])
        with table.register_forward_hook(lambda *_: whole):
            features = net.get_text_features(**given)
        features = getattr(features, "pooler_output", features)
        features = features / features.norm(dim=1, keepdim=True)
        return net.logit_scale.exp() * rows @ features.T

    chosen = None
    for _ in range(steps):
        p = logits(seen).softmax(1)
        if chosen is None:
            chosen = torch.tensor([-(row * row.log()).sum() for row in p.detach()]).argsort()[:keep]
        mean = p[chosen].mean(0)
        loss = -(mean * mean.log()).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return logits(seen[:1]).detach()


@pytest.mark.parametrize(("kind", "steps"), [("clip", 1), ("clip", 3), ("siglip", 1)])
def test_tuning_a_prompt_equals_a_straight_version(kind, steps):
    adapter = TPT(model(kind), lr=0.02, views=8, share=0.4, steps=steps, seed=2)
    random = TPT(model(kind), seed=2).random
    outputs = adapter(images(2))
    bias = float(network(kind).logit_bias.detach()) if kind == "siglip" else 0.0
    for image, ours in zip(images(2).split(1), outputs, strict=True):
        views = AugMix(operations=())(image.expand(7, -1, -1, -1), random)
        straight = straight_tpt(kind, image, views, 0.02, 3, steps)
        assert torch.allclose(ours, straight[0] + bias, atol=1e-3)
    with torch.no_grad():
        assert not torch.allclose(outputs, model(kind)(images(2)), atol=1e-2)


def test_tuning_starts_anew_for_every_image_and_lowers_its_loss():
    both, second = TPT(model(), views=1, lr=0.02), TPT(model(), views=1, lr=0.02)
    assert torch.allclose(both(images(2))[1:], second(images(2)[1:]), atol=1e-5)
    losses = []
    for steps in (1, 8):
        adapter = TPT(model(), views=1, lr=0.02, steps=steps)
        adapter(images())
        losses.append(adapter.record["loss"])
    assert losses[1] < losses[0] - 0.01


def test_a_prompt_of_another_template_than_the_models_has_a_parent_of_its_own():
    assert TPT(model(), views=1).parent_label == "none"
    other = TPT(model(templates=SEVERAL), views=1, lr=0.0)
    assert other.parent_label == "tpt:lr=0"
    with torch.no_grad():
        assert torch.allclose(other(images()), model()(images()), atol=1e-5)


def test_the_ensemble_is_the_mean_of_the_surest_views_under_all_templates():
    adapter, random = VTE(model(templates=SEVERAL), views=10, share=0.35, seed=3), VTE(model(), seed=3).random
    outputs = adapter(images(2))
    made = model(templates=SEVERAL)
    for image, ours in zip(images(2).split(1), outputs, strict=True):
        views = torch.cat([image, AugMix(operations=())(image.expand(9, -1, -1, -1), random)])
        with torch.no_grad():
            seen = ask("clip", texts_of(PHOTO), views).image_embeds
            p = made(views).softmax(1)
            surest = sorted(range(10), key=lambda i: -float((p[i] * p[i].log()).sum()))[:3]
            expected = made.scale * (sum(seen[i] for i in surest) / 3) @ made.texts.features(SEVERAL).T
        assert torch.allclose(ours, expected, atol=1e-4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("imagetext")
    (folder / "names.txt").write_text("\n".join(CLASSES) + "\n")
    (folder / "names.json").write_text(json.dumps(CLASSES))
    (folder / "templates.txt").write_text("\n".join(SEVERAL))
    for kind in KINDS:
        save(folder / kind, kind)
    return folder


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("names", ["names.txt", "names.json", None])
def test_a_folder_with_names_and_templates_is_loaded(kind, names, folder):
    given = {"classes": CLASSES if names is None else str(folder / names), "templates": str(folder / "templates.txt")}
    made = ModelSource(f"zeroshot:{folder / kind}", arguments=given)()
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in ((0.4, 0.5, 0.6), (0.2, 0.25, 0.3)))
    with torch.no_grad():
        assert torch.allclose(made(images()), model(kind, SEVERAL)((images() - mean) / std), atol=1e-4)
    assert made.preprocessing.size == SIZE


def test_the_templates_of_the_authors_are_all_there():
    assert {name: len(each) for name, each in TEMPLATES.items()} == {"photo": 1, "cifar": 18, "seven": 7}
    assert len(set(TEMPLATES["cifar"])) == 18
    assert "a black and white photo of the {}." in TEMPLATES["cifar"]
    assert "a photo of the big {}." in TEMPLATES["cifar"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "needs the names of the classes"),
        ({"classes": ["cat"]}, "at least two classes"),
        ({"classes": "cat"}, r"a \.txt or \.json file"),
        ({"classes": "none.txt"}, "cannot read none.txt"),
        ({"classes": ["cat", "cat"]}, "names 'cat' twice"),
        ({"classes": CLASSES, "templates": "sevn"}, "did you mean 'seven'"),
        ({"classes": CLASSES, "templates": ["a photo"]}, r"a text with one \{\} was expected"),
        ({"classes": CLASSES, "template": "photo"}, "unknown setting"),
    ],
)
def test_bad_settings_are_refused(given, why, folder):
    with pytest.raises(HapteraError, match=why):
        ModelSource(f"zeroshot:{folder / 'clip'}", arguments=given)()


def test_models_of_other_kinds_are_refused(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "resnet"}')
    with pytest.raises(HapteraError, match="transformers could not load it"):
        ModelSource(f"zeroshot:{tmp_path}", arguments={"classes": CLASSES})()
    with pytest.raises(HapteraError, match=r"no part that reads texts.*zeroshot:"):
        TPT(torch.nn.Linear(2, 2))
    with pytest.raises(HapteraError, match=r"words before \{\}"):
        TPT(model(), template="{} in a photo.")
