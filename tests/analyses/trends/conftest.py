"""A file for a side of a trend."""

import numpy as np
import pytest


@pytest.fixture
def write(tmp_path):
    """Write an .npz and return its path."""

    def make(name, **arrays):
        np.savez(tmp_path / name, **arrays)
        return str(tmp_path / name)

    return make
