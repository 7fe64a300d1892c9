"""Zero-shot classifiers: an image-text model of transformers and the names of classes, from images to logits.

Source: Radford et al. 2021: an image is compared with texts such as "a photo of a dog."; where there are several
templates, the features of a class are the mean of those of its texts, each of norm 1, scaled to norm 1 again. A logit
is the cosine times the scale that the model has learnt, plus its bias where it has one, as SigLIP does.
The last layer is linear, one row for each class, so that whatever works with a last layer works here. The text part
stays outside of the module: adapters change the image part only, and a copy of the model shares it.
"""

import copy
import threading
from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import nn
from torch.nn import functional as F

from haptera.errors import HapteraError

PHOTO = "a photo of a {}."
CIFAR = tuple(
    f"a {kind}photo of {article} {size}{{}}."
    for article in ("a", "the")
    for kind, size in (
        ("", ""),
        *((f"{kind} ", "") for kind in ("blurry", "black and white", "low contrast", "high contrast", "bad", "good")),
        *(("", f"{size} ") for size in ("small", "big")),
    )
)
SEVEN = (
    "itap of a {}.",
    "a bad photo of the {}.",
    "a origami {}.",
    "a photo of the large {}.",
    "a {} in a video game.",
    "art of the {}.",
    "a photo of the small {}.",
)
TEMPLATES = {"photo": (PHOTO,), "cifar": CIFAR, "seven": SEVEN}
"""Name -> templates: the usual one, those that CLIP's authors publish for CIFAR, and their seven best for ImageNet."""


class Texts:
    """The text part of an image-text model, with the names of classes; shared by copies, and never changed.

    Args:
        network: an image-text model of transformers.
        tokenizer: its own.
        classes: their names.
    """

    def __init__(self, network: Any, tokenizer: Any, classes: Sequence[str]) -> None:
        self.tokenizer, self.classes = tokenizer, tuple(name.replace("_", " ") for name in classes)
        memo = {id(p): nn.Parameter(p.detach(), requires_grad=False) for p in network.parameters()}
        self.network: Any = copy.deepcopy(part_of(network, "vis"), memo).eval()
        self._length = int(network.config.text_config.max_position_embeddings)
        self._padding = "max_length" if "siglip" in str(network.config.model_type) else True
        self._lock = threading.RLock()

    @torch.no_grad()
    def features(self, templates: Sequence[str]) -> torch.Tensor:
        """The features `(classes, d)` of the classes, of norm 1: the mean over the templates."""
        every = torch.stack([self._encode(self._tokens(template)) for template in templates])
        return F.normalize(every.mean(0), dim=1)

    @torch.no_grad()
    def context(self, template: str) -> torch.Tensor:
        """The vectors `(words, width)` of the words before the name of the class."""
        start, words = self._find_context(template)
        ids = self._tokens(template)["input_ids"]
        return self._embedding()(ids[:1, start : start + words].to(self._embedding().weight.device))[0].clone()

    def encode(self, template: str, context: torch.Tensor) -> torch.Tensor:
        """The features `(classes, d)`, of norm 1, with other vectors in the place of those words; with gradients."""
        start, words = self._find_context(template)

        def replace(_: nn.Module, __: Any, vectors: torch.Tensor) -> torch.Tensor:
            rows = context.to(vectors).expand(len(vectors), -1, -1)
            return torch.cat([vectors[:, :start], rows, vectors[:, start + words :]], 1)

        with self._lock:
            self.network.to(context.device)
            with self._embedding().register_forward_hook(replace):
                return self._encode(self._tokens(template))

    def _encode(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        device = self._embedding().weight.device
        with self._lock:
            given = {name: value.to(device) for name, value in tokens.items()}
            return F.normalize(pooled(self.network.get_text_features(**given)).float(), dim=1)

    def _tokens(self, template: str) -> dict[str, torch.Tensor]:
        texts = [template.format(name) for name in self.classes]
        made = self.tokenizer(
            texts, padding=self._padding, max_length=self._length, truncation=True, return_tensors="pt"
        )
        return {name: made[name] for name in ("input_ids", "attention_mask") if name in made}

    def _find_context(self, template: str) -> tuple[int, int]:
        """Where the words before the name of the class begin among the tokens, and how many tokens they are."""
        before = template.partition("{}")[0].strip()
        words = self.tokenizer(before, add_special_tokens=False)["input_ids"] if before else []
        rows = self._tokens(template)["input_ids"].tolist()
        for start in range(len(rows[0]) - len(words)) if words else ():
            if all(row[start : start + len(words)] == words for row in rows):
                return start, len(words)
        raise HapteraError(f"template is {template!r}; words before {{}} that are tokens of their own were expected")

    def _embedding(self) -> Any:
        return self.network.text_model.get_input_embeddings()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state | {"_lock": threading.RLock()}


class ZeroShot(nn.Module):
    """A classifier of images, normalised as the model wants them, made of an image-text model.

    Args:
        network: such as `CLIPModel` or `SiglipModel` of transformers.
        tokenizer: its own.
        classes: their names, in the order of the data's classes.
        templates: texts with `{}` in the place of the name.

    Attributes:
        texts: the text part, which methods that learn a prompt ask for other features.
        head: from image features of norm 1 to logits.
    """

    scale: torch.Tensor

    def __init__(
        self, network: Any, tokenizer: Any, classes: Sequence[str], templates: Sequence[str] = (PHOTO,)
    ) -> None:
        super().__init__()
        check_words(classes, templates)
        self.texts, self.templates = Texts(network, tokenizer, classes), tuple(templates)
        self.image = part_of(network, "text")
        scale = network.logit_scale.detach().float().exp()
        self.register_buffer("scale", scale.reshape(()).clone())
        features, bias = self.texts.features(self.templates), getattr(network, "logit_bias", None)
        self.head = nn.Linear(features.shape[1], len(features), bias=bias is not None)
        self.head.weight.data = (self.scale * features).to(next(self.image.parameters()).dtype)
        if isinstance(bias, torch.Tensor):
            self.head.bias.data = bias.detach().reshape(()).repeat(len(features)).to(self.head.weight.dtype)
        self.eval()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map `(batch, channels, height, width)` to `(batch, classes)`."""
        return self.head(F.normalize(pooled(self.image.get_image_features(images)), dim=1))  # type: ignore[operator]

    def score(self, seen: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        """Logits of image features `(batch, d)` and other features of the classes `(classes, d)`, all of norm 1."""
        logits = self.scale.to(seen) * seen @ features.to(seen).T
        return logits if self.head.bias is None else logits + self.head.bias.to(seen)


def part_of(network: nn.Module, without: str) -> nn.Module:
    """A model that shares its modules with another, without those whose names begin so, and without scale and bias."""
    part = copy.copy(network)
    part._modules = {name: each for name, each in network._modules.items() if not name.startswith(without)}
    part._parameters = {name: each for name, each in network._parameters.items() if not name.startswith("logit_")}
    return part


def pooled(outputs: Any) -> torch.Tensor:
    """The features among the outputs of transformers, which returned them alone before version 5."""
    return outputs if isinstance(outputs, torch.Tensor) else outputs.pooler_output


def check_words(classes: Sequence[str], templates: Sequence[str]) -> None:
    """Refuse too few classes, names that come twice, and templates without a place for the name."""
    names = list(classes)
    if len(names) < 2 or not all(isinstance(name, str) and name.strip() for name in names):
        raise HapteraError(f"classes is {classes!r:.200}; the names of at least two classes were expected")
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise HapteraError(f"classes names {twice!r} twice; classes with a name of their own were expected")
    if not templates or isinstance(templates, str):
        raise HapteraError(f"templates is {templates!r}; a list of texts such as {PHOTO!r} was expected")
    for template in templates:
        if not isinstance(template, str) or template.count("{}") != 1 or template.replace("{}", "").count("{"):
            raise HapteraError(f"template is {template!r}; a text with one {{}} was expected, such as {PHOTO!r}")
