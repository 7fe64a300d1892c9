"""Compiled loops where the compiler is off, or may not keep what it made."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from haptera.contrastive import convolution, gelu
from haptera.extras import compile_loop, compiles
from haptera.shifts import Fog

numba = pytest.importorskip("numba")

LAYER = """
import torch
from haptera.contrastive import convolution
torch.set_num_threads(1)
sequence, out = torch.ones(700, 32), torch.empty(698, 32)
convolution.fill_layer(sequence, torch.ones(32, 96), torch.zeros(32), None, torch.empty_like(out), out)
print(float(out[0, 0]))
"""


def test_a_folder_that_cannot_be_written_into_costs_compiling_and_nothing_else(monkeypatch, caplog):
    def refuse(locator):
        raise OSError("read-only")

    monkeypatch.setattr("numba.core.caching._CacheLocator.ensure_cache_path", refuse)
    with caplog.at_level("INFO", "haptera"):
        loop = compile_loop(lambda values: values.sum() + 1)
    assert "NUMBA_CACHE_DIR" in caplog.text
    assert loop(np.ones(3)) == 4
    assert loop.signatures


def test_without_the_compiler_there_are_no_loops(monkeypatch):
    images = np.full((2, 8, 8, 3), 100, np.uint8)
    compiled = Fog(3)(images)
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    for known in (gelu._kernels, convolution._tiles):
        known.cache_clear()
    try:
        assert not compiles()
        assert gelu.loops_for(torch.zeros(gelu.LEAST)) is None
        assert convolution._tiles() is None
        assert np.abs(Fog(3)(images).astype(int) - compiled).max() <= 1
    finally:
        for known in (gelu._kernels, convolution._tiles):
            known.cache_clear()


@pytest.mark.long
def test_a_layer_is_filled_in_a_process_whose_compiler_is_off():
    answer = subprocess.run(
        [sys.executable, "-c", LAYER],
        env={"PATH": "", "PYTHONPATH": ":".join(sys.path), "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.stdout == "96.0\n", answer.stderr
