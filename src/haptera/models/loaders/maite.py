"""Models of MAITE by name: `maite:module:object` or `maite:file.py:object`, an object or what makes one."""

import inspect
from typing import Any

from haptera.errors import HapteraError
from haptera.models.classifier import Classifier
from haptera.models.maite import from_maite
from haptera.own_code import find_object


def load(name: str, **settings: Any) -> Classifier:
    """Return a model that asks one of MAITE.

    Args:
        name: of the model, or of a class or function that returns it.
        **settings: arguments of that class or function.
    """
    model = find_object(name, "model of MAITE")
    if isinstance(model, type) or inspect.isfunction(model):
        try:
            model = model(**settings)
        except Exception as error:
            raise HapteraError(f"model maite:{name}: building it failed: {type(error).__name__}: {error}") from error
    elif settings:
        raise HapteraError(f"model maite:{name} is an object already, and takes no {', '.join(settings)}")
    return from_maite(model)
