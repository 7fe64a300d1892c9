"""The page of a `PoseStudy`: frames are predicted again, a few of each set, to draw skeletons on."""

from pathlib import Path

import numpy as np
import pandas as pd
import torch

from haptera.pose.evaluate import PoseStudy, evaluate
from haptera.pose.page import Drawn, write_pose
from haptera.pose.predict import pose_model
from haptera.pose.summary import notes

INDIVIDUALS = 2


def write_page(study: PoseStudy, table: pd.DataFrame, path: Path) -> None:
    """Write the report of the first model of a study.

    Args:
        study: what was run.
        table: what it gave.
        path: the HTML file.
    """
    name, model = next(iter(study.models.items()))
    inner = pose_model(model)
    shifts = [shift.name + f" {shift.severity:g}" if shift else "clean" for shift in study.shifts]
    settings: dict[str, object] = {
        "model": name,
        "shifts": shifts,
        "adapters": list(study.adapters),
        "threshold": float(table["threshold"].max()),
        "normalise": str(table["normalise"].iloc[0]),
        "seed": study.seed,
        "frames": {key: len(data) for key, data in study.data.items()},
    }
    write_pose(
        table,
        path,
        title=f"Poses: {name}",
        frames=drawn_frames(study, model),
        parts=inner.parts,
        skeleton=inner.skeleton,
        settings=settings,
        notes=notes(table, study.normalise is not None),
    )


def drawn_frames(study: PoseStudy, model: torch.nn.Module) -> list[Drawn]:
    """The middle frame of some individuals of each set, under every shift, with every adapter."""
    found = []
    for name, data in study.data.items():
        for individual in np.unique(data.individuals)[:INDIVIDUALS]:
            own = data.select(np.flatnonzero(data.individuals == individual)[: study.batch_size])
            place = np.array([len(own) // 2])
            for shift in study.shifts:
                image = own.images(place)
                if shift is not None:
                    image = shift(image, own.rows[place], study.seed)
                picture = (image[0].permute(1, 2, 0).numpy() * 255).round().astype(np.uint8)
                for adapter, make in study.adapters.items():
                    said = evaluate(model, own, adapter=make, shift=shift, seed=study.seed, batch_size=study.batch_size)
                    assert said.targets is not None
                    what = f"{shift.name} {shift.severity:g}" if shift else "clean"
                    points = said.arrays["keypoints"][place[0]], said.targets[place[0]]
                    found.append(Drawn(picture, *points, f"{name}, {what}, {adapter}"))
    return found
