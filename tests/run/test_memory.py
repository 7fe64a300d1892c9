"""The high-water mark of a stretch of work: it sees what was given back, and forgets what was before."""

import math
import sys

import pytest
import torch

from haptera.run import loop as memory
from haptera.run.loop import forget_peak, peak

CPU = torch.device("cpu")
LARGE = 200_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="the high-water mark of a process can be set back on Linux only")
def test_memory_that_was_given_back_counts_until_it_is_forgotten():
    forget_peak(CPU)
    before = peak(CPU)
    torch.ones(LARGE // 4)
    assert peak(CPU) - before == pytest.approx(LARGE, rel=0.1)
    forget_peak(CPU)
    assert peak(CPU) - before < 0.5 * LARGE


def test_where_the_system_does_not_say_it_is_not_a_number(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "STATUS", tmp_path / "status")
    monkeypatch.setattr(memory, "CLEAR", tmp_path / "missing" / "clear")
    forget_peak(CPU)
    assert math.isnan(peak(CPU))
