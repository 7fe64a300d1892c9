"""ONNX files, run by onnxruntime: for whatever needs outputs only.

The input is one tensor of images, channels first or last, of floats or bytes. A batch axis of a fixed length is served
piece by piece; height and width that are fixed are the size at which images are read.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from haptera.errors import HapteraError, first_line
from haptera.files.fingerprint import fingerprint, of_file
from haptera.models.classifier import Classifier
from haptera.models.loaders.finding import import_extra
from haptera.models.opaque import InputShape, OpaqueModel

KINDS = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64}
BYTES = "tensor(uint8)"
WHY = "an ONNX file shows neither gradients nor layers"


class OnnxModel(OpaqueModel):
    """A network in an ONNX file.

    Args:
        path: the file; tensors that it keeps in files beside it are found there.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._session = path, None
        session = _open(path)
        inputs = session.get_inputs()
        if len(inputs) != 1:
            names = ", ".join(each.name for each in inputs) or "none"
            raise HapteraError(f"{path} takes {len(inputs)} inputs ({names}); one, the images, was expected")
        if inputs[0].type not in (*KINDS, BYTES):
            raise HapteraError(f"{path} takes a {inputs[0].type}; images as floats or bytes were expected")
        axes = [axis if isinstance(axis, int) else None for axis in inputs[0].shape]
        if len(axes) != 4:
            shape = ", ".join(map(str, inputs[0].shape))
            raise HapteraError(f"{path} takes inputs of shape ({shape}); (batch, channels, height, width) was expected")
        last = axes[3] in (1, 3) and axes[1] not in (1, 3)
        batch, channels, height, width = (axes[each] for each in ((0, 3, 1, 2) if last else (0, 1, 2, 3)))
        files = sorted(path.parent.glob(f"{path.name}*"))
        prints = [of_file(file) for file in files if file.is_file()]
        super().__init__(str(path), WHY, fingerprint(prints), InputShape(batch or 1, batch, channels, height, width))
        self._path, self._session = path, session
        self.channels_last = last

    def answer(self, images: torch.Tensor) -> Any:
        """Run the file."""
        if self._session is None:
            self._session = _open(self._path)
        given = self._session.get_inputs()[0]
        images = images.permute(0, 2, 3, 1) if self.channels_last else images
        pixels = (images * 255).round() if given.type == BYTES else images
        array = np.ascontiguousarray(pixels.numpy(), KINDS.get(given.type, np.uint8))
        answers = self._session.run(None, {given.name: array})
        names = [each.name for each in self._session.get_outputs()]
        return answers[0] if len(answers) == 1 else dict(zip(names, answers, strict=True))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_session": None}  # another process opens the file anew


def load(text: str) -> Classifier:
    """Return the network of an ONNX file.

    Args:
        text: the file.
    """
    path = Path(text).expanduser()
    if not path.is_file():
        raise HapteraError(f"there is no ONNX file {path}")
    model = OnnxModel(path.absolute())
    return Classifier(model, model.shape.preprocessing)


def _open(path: Path) -> Any:
    runtime = import_extra("onnxruntime", "onnx", f"onnx:{path}")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3  # errors, which are raised as well
    wanted = ["CUDAExecutionProvider"] if torch.cuda.is_available() else []
    providers = [each for each in (*wanted, "CPUExecutionProvider") if each in runtime.get_available_providers()]
    try:
        return runtime.InferenceSession(str(path), options, providers=providers)
    except Exception as error:  # onnxruntime has a class for each kind of damage
        raise HapteraError(f"cannot read the ONNX file {path}: {first_line(error)}") from error
