"""Exported programs of torch (`torch.export.save`): for whatever needs outputs only.

torch reads such a file with pickle, so it is only read where the user allows it. The bounds that the program was
exported with are kept: larger batches are cut, smaller ones filled up.
"""

import io
import math
from pathlib import Path
from typing import Any

import torch

from haptera.errors import HapteraError, first_line
from haptera.files.fingerprint import of_file
from haptera.models.classifier import Classifier
from haptera.models.opaque import InputShape, OpaqueModel

WHY = "an exported program shows neither the layers of the network nor its gradients"


class ExportedModel(OpaqueModel):
    """A network in a file that `torch.export.save` wrote.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        program = _open(path)
        super().__init__(str(path), WHY, of_file(path), _shape(program, path))
        self._path = path
        self._programs = [program.module()]  # not a module of this one, since it cannot be told to evaluate

    def answer(self, images: torch.Tensor) -> Any:
        """Run the program."""
        if not self._programs:
            self._programs.append(_open(self._path).module())
        return self._programs[0](images)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_programs": []}  # another process opens the file anew


def load(text: str, *, allow_pickle: bool = False) -> Classifier:
    """Return the network of an exported program.

    Args:
        text: the file.
        allow_pickle: read it; torch uses pickle for such files, which can run code.
    """
    path = Path(text).expanduser().absolute()
    if not path.is_file():
        raise HapteraError(f"there is no exported program {path}")
    if not allow_pickle:
        raise HapteraError(
            f"torch reads the exported program {path} with pickle, which can run code; "
            "if you trust it, say so with --allow-pickle (allow_pickle = true)"
        )
    model = ExportedModel(path)
    return Classifier(model, model.shape.preprocessing)


def _open(path: Path) -> Any:
    try:
        return torch.export.load(io.BytesIO(path.read_bytes()))
    except Exception as error:  # nearly anything, for a damaged file
        raise HapteraError(f"cannot read the exported program {path}: {first_line(error)}") from error


def _shape(program: Any, path: Path) -> InputShape:
    """Return what the program says about its one input."""
    names = program.graph_signature.user_inputs
    nodes = [node for node in program.graph.nodes if node.op == "placeholder" and node.name in names]
    if len(nodes) != 1:
        raise HapteraError(f"{path} takes {len(nodes)} inputs; one, the images, was expected")
    shape = nodes[0].meta["val"].shape
    if len(shape) != 4:
        found = ", ".join(map(str, shape))
        raise HapteraError(f"{path} takes inputs of shape ({found}); (batch, channels, height, width) was expected")
    batch, *others = shape
    if isinstance(batch, int):
        return InputShape(batch, batch, *(each if isinstance(each, int) else None for each in others))
    bounds = program.range_constraints.get(batch.node.expr)
    least, most = (1, None) if bounds is None else (max(1, _whole(bounds.lower) or 1), _whole(bounds.upper))
    return InputShape(least, most, *(each if isinstance(each, int) else None for each in others))


def _whole(bound: Any) -> int | None:
    """Return a bound as a number; None where there is none."""
    try:
        value = int(bound)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if value > 2**31 or not math.isfinite(value) else value
