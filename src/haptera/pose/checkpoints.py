"""Checkpoints of a training: weights, Adam's moments and the history, in two files that take turns.

Whatever happens while one of them is written, the other is whole, so a training that is killed loses what came after
the last checkpoint and nothing else. The files of a finished training are pieces of the same ledger.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save
from torch import nn

from haptera.errors import HapteraError
from haptera.files.safetensors import read_header
from haptera.run.folder import PLAN
from haptera.run.ledger import Ledger, Piece

log = logging.getLogger("haptera")

KIND = "training"
TURNS = tuple(Piece(f"checkpoint-{turn}", f"checkpoint-{turn}.safetensors") for turn in (1, 2))


class Checkpoints:
    """What a training keeps in its folder.

    Args:
        ledger: of the folder, entered.
        about: settings and fingerprints; a folder that was begun with others is refused.
        results: names of the files that are written when the training is finished.
    """

    def __init__(self, ledger: Ledger, about: Mapping[str, Any], results: Sequence[str]) -> None:
        ledger.check_same(about)
        self.ledger, self.results = ledger, [Piece(name, name) for name in results]
        ledger.plan([*TURNS, *self.results], about)
        self.missing = [piece.key for piece in ledger.missing()]
        self.turn = 0

    def restore(self, model: nn.Module, optimiser: torch.optim.Optimizer) -> tuple[int, list[dict[str, float]]]:
        """Put the last checkpoint that is whole in place; return its step and the history until then."""
        whole = [self.ledger.path(piece) for piece in TURNS if piece.key not in self.missing]
        facts = {path: read_header(path, "training", "checkpoint", "haptera pose train") for path in whole}
        if not facts:
            if any(self.ledger.journal.get(piece.key) for piece in TURNS):
                log.warning("no checkpoint in %s is whole; training begins again from the start", self.ledger.folder)
            return 0, []
        path = max(facts, key=lambda each: facts[each]["step"])
        self.turn = 1 if path.name == TURNS[0].path else 0
        tensors = load_file(path)
        state: dict[int, dict[str, Any]] = {}
        for name, tensor in tensors.items():
            if name.startswith("adam."):
                _, number, moment = name.split(".")
                state.setdefault(int(number), {})[moment] = tensor
        try:
            model.load_state_dict({k[6:]: tensor for k, tensor in tensors.items() if k.startswith("model.")})
            optimiser.load_state_dict(optimiser.state_dict() | {"state": state})
        except (RuntimeError, ValueError) as error:
            raise HapteraError(f"the checkpoint {path} does not fit the model: {error}") from error
        log.info("training goes on from step %d", facts[path]["step"])
        return facts[path]["step"], facts[path]["rows"]

    def save(self, model: nn.Module, optimiser: torch.optim.Optimizer, step: int, rows: list[dict[str, float]]) -> None:
        """Write a checkpoint in the place of the older one."""
        tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
        for number, moments in optimiser.state_dict()["state"].items():
            tensors |= {f"adam.{number}.{name}": torch.as_tensor(value) for name, value in moments.items()}
        plain = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
        with self.ledger.writing(TURNS[self.turn]) as file:
            file.write(save(plain, {"training": json.dumps({"step": step, "rows": rows})}))
        self.turn = 1 - self.turn
        self.missing = [piece.key for piece in self.results]

    def finish(self, contents: Mapping[str, bytes]) -> None:
        """Write those files of the results that are not there as they were."""
        for piece in self.results:
            if piece.key in self.missing:
                with self.ledger.writing(piece) as file:
                    file.write(contents[piece.key])


def check_result(path: Path) -> None:
    """Refuse a file of a training that is not what it was when the training was finished; others pass."""
    ledger = Ledger.open(path.parent) if (path.parent / PLAN).is_file() else None
    if ledger is not None and ledger.kind == KIND and path.name in ledger.pieces:
        ledger.checked(ledger.pieces[path.name])
