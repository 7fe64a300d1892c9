"""Image-text models of transformers (CLIP, SigLIP and others like them) as zero-shot classifiers.

Size, crop, interpolation and normalisation are those of the image processor, as for `hf:`.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from haptera.errors import HapteraError, first_line, unknown
from haptera.models.classifier import Classifier
from haptera.models.loaders.finding import import_extra
from haptera.models.loaders.hf import find_place, find_processor, load_network, read_processor
from haptera.models.preprocessing import choose_normalisation
from haptera.models.zeroshot import TEMPLATES, ZeroShot

ENDINGS = (".txt", ".json")


def load(
    name: str,
    *,
    classes: str | Sequence[str] | None = None,
    templates: str | Sequence[str] = "photo",
    normalise: str | None = None,
    allow_pickle: bool = False,
    revision: str | None = None,
    local_files_only: bool = False,
) -> Classifier:
    """Return a zero-shot classifier.

    Args:
        name: a folder, or ORG/NAME on the hub.
        classes: their names in the order of the data's classes, or a file with them: a line each, or a JSON list.
        templates: `photo`, `cifar` or `seven`, or a file with texts that hold `{}` for the name, in the same forms.
        normalise: another normalisation than that of the image processor.
        allow_pickle: read weights that are no safetensors.
        revision: of the hub's repository.
        local_files_only: download nothing.
    """
    what = f"zeroshot:{name}"
    if classes is None:
        raise HapteraError(f"model {what} needs the names of the classes: {what}:classes=FILE or classes=cat,dog,horse")
    names = read_texts("classes", classes)
    texts = TEMPLATES[templates] if isinstance(templates, str) and templates in TEMPLATES else None
    if texts is None:
        if isinstance(templates, str) and not templates.endswith(ENDINGS):
            raise unknown("templates", templates, TEMPLATES)
        texts = tuple(read_texts("templates", templates))
    transformers = import_extra("transformers", "transformers", what)
    place, where = find_place(name, what, revision, local_files_only)
    network = load_network("AutoModelForZeroShotImageClassification", place, what, allow_pickle, where)
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(place, **where)
    except Exception as error:
        raise HapteraError(f"model {what}: its tokenizer could not be loaded: {first_line(error)}") from error
    needed = ("get_text_features", "get_image_features", "logit_scale")
    if missing := next((each for each in needed if not hasattr(network, each)), ""):
        raise HapteraError(
            f"model {what} is a {type(network).__name__} without {missing}; one that compares features of images with "
            "those of texts, such as CLIPModel or SiglipModel, was expected"
        )
    processor = find_processor(transformers, place, where)
    preprocessing = choose_normalisation(read_processor(processor, what), normalise, what)
    return Classifier(ZeroShot(network, tokenizer, names, texts), preprocessing)


def read_texts(what: str, given: Any) -> list[str]:
    """Return texts that were given as a list, or as a file with a line for each or a JSON list."""
    if not isinstance(given, str):
        return [str(each) for each in given]
    path = Path(given).expanduser()
    if path.suffix.lower() not in ENDINGS:
        raise HapteraError(f"{what} is {given!r}; a .txt or .json file, or several texts, were expected")
    try:
        text = path.read_text("utf-8")
        texts = json.loads(text) if path.suffix.lower() == ".json" else [line for line in text.splitlines() if line]
    except (OSError, ValueError) as error:
        raise HapteraError(f"{what}: cannot read {path}: {error}") from error
    if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
        raise HapteraError(f"{what}: {path} was expected to hold a list of texts")
    return [each.strip() for each in texts]
