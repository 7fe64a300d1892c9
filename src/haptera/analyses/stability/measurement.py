"""Measurement: R, D and G of one network under one kind of deformation, kept in a folder once it is finished."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import nn

from haptera.analyses.stability import SETTING, StabilitySettings
from haptera.correctness import check_classes, correct
from haptera.data import Data
from haptera.errors import HapteraError
from haptera.files.fingerprint import fingerprint, of_model
from haptera.observe import Probe, respond
from haptera.run.ledger import Piece
from haptera.run.tasks import JsonTask
from haptera.shifts import Diffeo
from haptera.statistics.intervals import wilson
from haptera.statistics.stability import stability_indices

Model = nn.Module | Callable[[], nn.Module]


@dataclass(frozen=True, eq=False)
class Subject:
    """What networks are measured on.

    Attributes:
        data: of which a random part is taken.
        asked: the settings.
        layers: which to measure beside the output.
        probes: kind of deformation -> images; the last one.
    """

    data: Data
    asked: StabilitySettings
    layers: bool | Sequence[str] = ()
    probes: dict[tuple[Any, ...], Probe] = field(default_factory=dict)

    @cached_property
    def places(self) -> np.ndarray:
        """Rows of the data, in its order."""
        if self.asked.samples < 2:
            raise HapteraError(f"samples is {self.asked.samples}; at least 2 were expected")
        return np.sort(np.random.default_rng(self.asked.seed).permutation(len(self.data))[: self.asked.samples])

    @cached_property
    def images(self) -> torch.Tensor:
        """Return the images themselves."""
        return self.data.images(self.places)

    @cached_property
    def targets(self) -> np.ndarray | None:
        """Return their labels."""
        return None if self.data.targets is None else self.data.targets[self.places]

    @cached_property
    def identity(self) -> str:
        """Return a fingerprint of everything that decides a number, but for the network and the kind of deformation."""
        others = {key: value for key, value in vars(self.asked).items() if key not in SETTING}
        return fingerprint(self.data.fingerprint(), others, self.layers)

    def probe(self, delta: float, cutoff: float, interpolation: str) -> Probe:
        """Return images, deformed images and noisy images; those of the last kind of deformation are kept."""
        key = (delta, cutoff, interpolation)
        if key not in self.probes:
            self.probes.clear()
            asked, ids = self.asked, torch.from_numpy(self.data.rows[self.places])
            shift = Diffeo(delta, cutoff, rule=asked.rule, interpolation=interpolation, resample=asked.resample)
            self.probes[key] = Probe(self.images, shift, ids, asked.seed, asked.sphere, asked.batch_size)
        return self.probes[key]


class Measurement(JsonTask):
    """The indices of one network under one kind of deformation, and its error.

    Args:
        name: of the network.
        model: itself, or what builds it.
        subject: what it is measured on.
        kind: of deformation: `delta`, `cutoff` and `interpolation`.
        out: the folder, if there is one: only then the network has to be told from others.
    """

    def __init__(self, name: str, model: Model, subject: Subject, kind: Mapping[str, Any], out: object) -> None:
        self.name, self.model, self.subject, self.kind = name, model, subject, kind
        prints = () if out is None else (of_model(self._built()), subject.identity)
        key = fingerprint(name, dict(kind), *prints)
        title = f"{name}, delta {kind['delta']:g}, cutoff {kind['cutoff']:g}"
        self.piece = Piece(key, f"measurements/{key}.json", title)

    def _built(self) -> nn.Module:
        return self.model if isinstance(self.model, nn.Module) else self.model()

    def run(self) -> dict[str, Any]:
        """Return `indices`, rows for each layer; `deformation`; `error`, and a `note` where labels give none."""
        subject, probe = self.subject, self.subject.probe(**self.kind)
        try:
            response = respond(self._built(), probe, subject.layers)
        except HapteraError as error:
            raise HapteraError(f"{self.name}: {error}") from error
        rows: list[dict[Any, Any]] = []
        for depth, (layer, distances) in enumerate(response.distances.items()):
            frame = stability_indices(distances, draws=subject.asked.draws, seed=subject.asked.seed)
            rows += frame.assign(layer=layer, depth=depth).to_dict("records")
        answer, note = None, ""
        if subject.targets is not None:
            logits = _logits(response.outputs, subject.targets)
            if logits is None:
                shape = ", ".join(map(str, ("images", *response.outputs.shape[1:])))
                note = f"{self.name} has no error: its outputs, ({shape}), are no decisions for these labels"
            else:
                answer = _error(logits, subject.targets, subject.data)
        return {"indices": rows, "deformation": _described(probe), "error": answer, "note": note}


def _described(probe: Probe) -> dict[str, float]:
    norms = {f"norm_{name}": radius for name, radius in probe.radii.items()}
    heat = probe.shift.heat(*probe.images.shape[-2:])
    return {"delta_used": probe.delta, "temperature": heat, "folded": probe.folded} | norms


def _logits(outputs: np.ndarray, targets: np.ndarray) -> np.ndarray | None:
    """`(images, classes)`, or None where the outputs are none; one logit is that of the second of two classes."""
    if outputs.ndim > 1 and outputs.shape[1] > 1:
        return outputs if outputs.ndim == 2 else None
    one = outputs.reshape(len(outputs), -1)
    return np.concatenate([np.zeros_like(one), one], 1) if one.shape[1] == 1 and targets.max() < 2 else None


def _error(outputs: np.ndarray, targets: np.ndarray, data: Data) -> dict[str, Any]:
    """Share of wrong decisions; with a mapping of classes, of decisions that it does not accept."""
    check_classes(data.classes, outputs.shape[1], data.names)
    wrong = ~correct(outputs, targets, data.classes)
    low, high = wilson(float(wrong.sum()), len(wrong))
    return {"error": float(wrong.mean()), "low": low, "high": high, "n": len(wrong)}
