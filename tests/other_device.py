"""A device that is not the CPU, for machines without one: tensors that say they are elsewhere, and hold values.

As on an accelerator, operations refuse tensors of two devices (numbers, and the places of an index, may come from the
CPU), random numbers need a generator of the device, and NumPy sees nothing. Arithmetic is the CPU's. To use it gives
torch a device for as long as the process lives, which `DataParallel` then finds, so tests do it in a process of their
own.
"""

from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter, tree_map_only
from torch.utils.backend_registration import _DummyBackendModule, _setup_privateuseone_for_python_backend


class _Backend(_DummyBackendModule):
    """What torch asks of a device."""

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        """Return the kinds of mixed precision."""
        return [torch.bfloat16]


NAME = "elsewhere"
ACROSS = ("aten::copy_", "aten::_to_copy", "aten::index", "aten::index_put", "aten::index_put_")
"""Operations that take tensors of two devices."""


class There(torch.Tensor):
    """A tensor of the other device, and its values."""

    values: torch.Tensor
    __slots__ = ("values",)

    @staticmethod
    def __new__(cls, values: torch.Tensor) -> "There":
        """Look like the values, but for the device."""
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            values.shape,
            strides=values.stride(),
            storage_offset=values.storage_offset(),
            dtype=values.dtype,
            layout=values.layout,
            device=torch.device(NAME, 0),
        )
        made.values = values
        return made

    def untyped_storage(self) -> torch.UntypedStorage:
        """Return the memory of the values."""
        return self.values.untyped_storage()

    def data_ptr(self) -> int:
        """Return where the values are."""
        return self.values.data_ptr()

    def tolist(self) -> Any:
        """Return the values as numbers."""
        return self.values.tolist()

    def __deepcopy__(self, memo: Any) -> "There":
        """Copy the values."""
        return There(self.values.clone()).requires_grad_(self.requires_grad)

    def __repr__(self, **_: Any) -> str:
        """Show the values."""
        return f"There({self.values!r})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        """Run on the CPU."""
        return _run(func, args, kwargs or {})


class _Device(TorchDispatchMode):
    """Makes what is asked for on the device a tensor of it."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


def _run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    name, given = func._schema.name, list(tree_iter((args, kwargs)))
    tensors = [value for value in given if isinstance(value, torch.Tensor)]
    there = [value for value in tensors if isinstance(value, There)]
    asked = kwargs.get("device")
    to_there = torch.device(asked).type == NAME if asked is not None else bool(there)
    if name == "aten::copy_":
        to_there = isinstance(args[0], There)
    if there and name not in ACROSS and any(not isinstance(value, There) and value.ndim for value in tensors):
        shapes = [(type(value).__name__, tuple(value.shape)) for value in tensors]
        raise RuntimeError(f"Expected all tensors to be on the same device, but found at least two, {name}: {shapes}")
    if to_there and any(isinstance(value, torch.Generator) for value in given):
        raise RuntimeError(f"{name}: Expected an 'elsewhere' device type for generator but found 'cpu'")
    if asked is not None:
        kwargs = kwargs | {"device": torch.device("cpu")}
    plain, named = tree_map_only(There, lambda tensor: tensor.values, (args, kwargs))
    with torch.no_grad():
        found = func(*plain, **named)
    if func._schema.is_mutable and not name.startswith("aten::_native_batch_norm"):
        written = [value for value in tensors if isinstance(value, There)]
        if isinstance(found, torch.Tensor):
            match = [value for value in written if value.values is found]
            if match:
                return match[0]
    return tree_map_only(torch.Tensor, There, found) if to_there else found


@contextmanager
def other_device():
    """Run with the device, which torch gets when it is first used."""
    if torch._C._get_privateuse1_backend_name() != NAME:
        _setup_privateuseone_for_python_backend(NAME, _Backend())
    with _Device():
        yield torch.device(NAME, 0)
