"""TorchScript files: networks that were scripted or traced and saved.

torch sees their parameters and not the kinds of their layers: methods that learn all parameters work, those that look
for BatchNorm layers say that there are none.
"""

import warnings
from pathlib import Path

import torch

from haptera.errors import HapteraError, first_line
from haptera.models.classifier import Classifier


def load(text: str) -> Classifier:
    """Return the network of a TorchScript file.

    Args:
        text: the file.
    """
    path = Path(text).expanduser()
    if not path.is_file():
        raise HapteraError(f"there is no TorchScript file {path}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of torch itself: people have such files
            return Classifier(torch.jit.load(str(path), map_location="cpu"))
    except Exception as error:
        raise HapteraError(f"cannot read the TorchScript file {path}: {first_line(error)}") from error
