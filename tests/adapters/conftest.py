"""What several tests of adapters share."""

import pytest
import torch

from haptera.adapters import fused


@pytest.fixture
def loops_of_any_size(monkeypatch):
    """Let compiled loops run on the smallest images: they are for one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.setattr(fused, "LEAST", 1)
    yield
    torch.set_num_threads(threads)
