"""Folders of studies whose answers a test chooses, without a model."""

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from haptera.files.fingerprint import SCHEMA, fingerprint
from haptera.outputs import Outputs
from haptera.run.cells import CellEntry, list_cells, study_ledger

TARGET, WRONG = 0, 1


def record(folder: Path, correct, *, model="net", ids=None, adapter="none", seed=0, stream="corruptions", finish=True):
    """Write a study: (shift, severity) -> whether each image is right; `finish=False` plans without outputs."""
    cells = []
    with study_ledger(folder) as ledger:
        for (shift, severity), right in correct.items():
            right = np.asarray(right, bool)
            part = stream if shift == "clean" else f"{shift} {severity:g}"
            cell = CellEntry("", model, stream, part, adapter, seed)
            cell = replace(cell, key=fingerprint(cell, right, ids))
            outputs = Outputs(
                {"labels": np.where(right, TARGET, WRONG)},
                np.arange(len(right)) if ids is None else np.asarray(ids),
                np.full(len(right), TARGET),
                np.arange(len(right), dtype=np.int32) // 64,
                context={"shift": np.full(len(right), shift), "severity": np.full(len(right), float(severity))},
                steps={"seconds": np.full(-(-len(right) // 64), 0.064)},
                provenance=asdict(cell) | {"schema": SCHEMA, "versions": {}},
            )
            cells.append(cell)
            if finish:
                outputs.save(ledger.path(cell.piece))
                ledger.done(cell.piece)
        list_cells(ledger, cells)
    return folder


def answers(generator, shifts=("fog", "contrast"), severities=(1, 2, 3, 4, 5), images=400):
    """Whether each image is right: harder images are wrong from a lower severity on, with some noise."""
    easy = generator.normal(size=images)
    return {
        (shift, severity): easy + 0.6 * generator.normal(size=images) > 0.35 * severity - 1.5
        for shift in shifts
        for severity in severities
    }


def change(generator, correct, share=0.04):
    """The answers of a network that is as good: this share of all answers is flipped, right ones as often as wrong."""
    changed = {}
    for place, right in correct.items():
        flips = np.zeros(len(right), bool)
        for side in (right, ~right):
            many = min(int(share * len(right) / 2), int(right.sum()), int((~right).sum()))
            flips[generator.choice(np.flatnonzero(side), many, replace=False)] = True
        changed[place] = right ^ flips
    return changed


def plant(generator, correct, places, drop):
    """The same with some right answers made wrong: a drop of accuracy in these places."""
    dropped = {place: right.copy() for place, right in correct.items()}
    for place in places:
        right = np.flatnonzero(dropped[place])
        dropped[place][generator.choice(right, round(drop * len(dropped[place])), replace=False)] = False
    return dropped
