"""Plain: values as JSON can hold them."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Numbers of Python instead of NumPy's, None for what is not finite; inside lists and mappings too.

    >>> plain({"a": (np.float32(0.5), float("nan")), 1: "b"})
    {'a': [0.5, None], '1': 'b'}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not np.isfinite(value) else value
