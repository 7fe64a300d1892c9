"""Any Python function from an array of images to logits: `module:function` or `file.py:function`."""

from functools import partial
from pathlib import Path
from typing import Any

from haptera.errors import HapteraError
from haptera.files.fingerprint import fingerprint, of_file
from haptera.models.classifier import Classifier
from haptera.models.opaque import CallableModel
from haptera.own_code import find_module, find_object


def load(name: str, **settings: Any) -> Classifier:
    """Return a model that asks a function, such as a network of JAX or Keras or a remote service.

    Args:
        name: of the function, which takes images `(batch, channels, height, width)`, float32 in [0, 1].
        **settings: its other arguments.
    """
    function = find_object(name, "callable")
    if not callable(function):
        raise HapteraError(
            f"callable {name} is a {type(function).__name__}; a function from images to logits was expected"
        )
    place, _, own = name.rpartition(":")
    home = Path(place if place.endswith(".py") else find_module(place, "callable").__file__ or "")
    print_ = fingerprint(own, of_file(home) if home.is_file() else "", settings)
    return Classifier(CallableModel(partial(function, **settings) if settings else function, name, print_))
