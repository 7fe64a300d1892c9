"""Building: what happens to every adapter around its `__init__`."""

import inspect
from typing import Any

import torch

from holdfast.adapters.sharing import unwrapped


class Ready(type):
    """Hands over the network inside a wrapped model, and calls `_remember` once an object is wholly built, so that no
    method has to think of either."""

    @property
    def __signature__(cls) -> inspect.Signature:
        """That of `__init__`, `**settings` spelt out: what a class passes on to its base, or to the class named in
        `passes_to`, belongs to its signature."""
        parameters: dict[str, inspect.Parameter] = {}
        further = cls.__dict__.get("passes_to")
        for kind in (cls, *further.__mro__) if further else cls.__mro__:
            if "__init__" not in vars(kind):
                continue
            own = inspect.signature(vars(kind)["__init__"]).parameters
            parameters |= {name: p for name, p in own.items() if name not in parameters and p.kind != p.VAR_KEYWORD}
            if not any(p.kind == p.VAR_KEYWORD for p in own.values()):
                break
        del parameters["self"]
        order = sorted(parameters.values(), key=lambda p: (p.kind, p.default is not p.empty))
        return inspect.Signature(order)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Build an adapter, whole."""
        args = tuple(unwrapped(value) for value in args)
        kwargs = {name: unwrapped(value) for name, value in kwargs.items()}
        with torch.inference_mode(False):  # else its tensors could never have a gradient
            adapter = super().__call__(*args, **kwargs)
            adapter._remember()
        return adapter
