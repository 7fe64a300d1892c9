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


def test_after_an_alarm_accuracy_is_of_the_new_images_and_of_their_labels_alone():
    guard, rows = listening(Told(), warmup=200)

    def ask(steps, scale):
        for step in steps:
            guard(scale * even_images(32, step), ids=range(32 * step, 32 * step + 32))

    ask(range(40), 1.0)
    assert guard.status()["accuracy"]["images"] == 1000
    ask(range(40, 50), 0.5)
    assert events(rows).count("alarm") == 1
    known = guard.status()["accuracy"]
    assert known["images"] <= 32 * 12  # a change is not told to the very batch
    guard.label(range(1000), np.arange(1000) % CLASSES)
    assert guard.status()["accuracy"]["labels"] == 0
    guard.label(range(32 * 45, 32 * 46), np.arange(32) % CLASSES)
    assert guard.status()["accuracy"]["labels"] == 32
    guard.close()
