"""Thumbnails: kept near a fall-back or alarm only if asked for, of the batches before it only if that is asked for."""

from functools import partial

import numpy as np
from PIL import Image
from tests.live.guarded_models import Collapsing, Told, even_images

from haptera.live.guard import Guard
from haptera.live.history import Event
from haptera.live.thumbnails import thumbnails

SOON = {"look": 32, "quarantine": 64, "probation": 64, "warmup": 10_000}


def test_thumbnails_are_kept_of_a_fall_back_only_if_asked_for(tmp_path):
    for asked in (0, 2):
        folder = tmp_path / str(asked)
        with Guard(Told(), partial(Collapsing, pace=0.5), log=folder, thumbnails=asked, **SOON) as guard:
            for _ in range(10):
                guard(even_images(16))
        assert len(list(folder.glob("thumbnails/*.png"))) == asked * guard.status()["falls"]


def test_batches_before_a_fall_back_are_kept_if_asked_for(tmp_path):
    settings = {"thumbnails": 2, "thumbnails_before": 3} | SOON | {"quarantine": 10_000, "look": 96}
    with Guard(Told(), partial(Collapsing, pace=0.5), log=tmp_path, **settings) as guard:
        for step in range(1, 21):
            batch = even_images(16)
            batch[:, :, 4:] = step / 32  # the lower half tells the step
            guard(batch)
            if guard.status()["falls"]:
                break
    assert step > 4  # else there is nothing before it to keep
    names = sorted(path.name for path in tmp_path.glob("thumbnails/*.png"))
    assert names == [f"{own:09d}-{number}.png" for own in range(step - 3, step + 1) for number in (0, 1)]
    for own in range(step - 3, step + 1):
        with Image.open(tmp_path / "thumbnails" / f"{own:09d}-0.png") as picture:
            assert abs(np.asarray(picture)[4:].mean() - 255 * own / 32) < 1  # of its own step


def test_a_picture_of_before_says_what_it_came_before(tmp_path):
    for step in (61, 64, 70):
        Image.new("L", (8, 8), 100).save(tmp_path / f"{step:09d}-0.png")
    found = thumbnails(tmp_path, [Event(63, 64, 0.0, "alarm", "it has changed", {})])
    assert [picture.caption for picture in found] == [
        "3 before the alarm of step 64",
        "alarm: it has changed",
        "",
    ]
