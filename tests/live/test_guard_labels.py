"""Labels that arrive late: a guard counts them, and sends an adapter away that does worse on them."""

from functools import partial

import numpy as np
import pytest
from tests.live.guarded_models import CLASSES, Collapsing, Told, even_images, events, listening

from haptera.errors import HapteraError


def test_labels_that_arrive_late_send_a_worse_adapter_away():
    model = Told()
    guard, rows = listening(model, partial(Collapsing, pace=0.3), largest=1.0, lost=9.0, shadow=True, warmup=10_000)
    for step in range(8):
        guard(even_images(16), ids=range(16 * step, 16 * step + 16))
    assert guard.label(range(128), np.arange(128) % CLASSES) == 128
    assert guard.label([5, 4000], [0, 0]) == 0  # one was told before, one never asked
    assert "fallback" in events(rows)
    assert events(rows).count("label") == 2
    with pytest.raises(HapteraError, match="ids has 3 entries"):
        guard.label([1, 2, 3], [0, 0])
