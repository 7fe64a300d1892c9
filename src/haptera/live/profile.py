"""Profile: what a model sees and says on the data it was made for, measured once, for guards to compare with.

    profile = Profile.measure(model, Clean(data, batch_size=64))
    profile.save("profile.safetensors")

Images are kept in random order, and only as numbers: signals, logits, labels and moments of activations. Nothing that
is fitted to the first half, such as the edges of bins, has seen the second half; so tests that count the second half
are exact. With labels, accuracy can be predicted; with known corruptions, with an interval, and a shift has a name.
Cost: a pass over the images, and one over `images` of them for each known corruption and severity. A profile of 2,000
images and ten classes takes about 0.3 MB.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from haptera.adapters.passes import check_outputs, device_of, run
from haptera.adapters.sharing import check_model, model_fingerprint, share
from haptera.analyses.diagnosis import DiagnosisSettings
from haptera.analyses.diagnosis.known_shifts import SEVERITIES, KnownShifts, known_shifts
from haptera.batch import Batch
from haptera.correctness import correct
from haptera.errors import HapteraError, NotApplicable, unknown
from haptera.live.signals import Signals, output_signals
from haptera.measures.label_free import Reference
from haptera.modules import unwrap
from haptera.observe import observe_moments
from haptera.observe.moments import GROUPS
from haptera.statistics.moments import Moments
from haptera.streams import Clean, Truncated

if TYPE_CHECKING:
    from haptera.data import Classes, Data

CHOICES = ("all", "holdout")
"""Known corruptions to try."""
FEWEST = 100
"""Images below which a reference is refused."""
FEW = 1000
"""Images below which the profile says that they are few."""
SPREAD = 1e-3
"""The least deviation of a channel, in units of the median one, that distances are divided by."""


@dataclass(frozen=True)
class Profile:
    """The reference of one model.

    Attributes:
        fingerprint: of the model (`haptera.adapters.sharing.model_fingerprint`).
        scores: signal -> `(images,)`, of all signals, those of the outputs included.
        logits: `(images, classes)` of the model as it is.
        targets: `(images,)`, or None without labels.
        right: `(images,)`, whether each answer is; None without labels.
        moments: of the activations at BatchNorm layers; None for a model without any.
        early: the name of the first layer; "" where none can be seen.
        centre: `(2 x channels,)`, the mean over images of the channel statistics of the first layer.
        spread: `(2 x channels,)`, their standard deviation.
        known: what known corruptions do to this model; empty unless they were asked for.
        name: of the reference data.
    """

    fingerprint: str
    scores: Mapping[str, np.ndarray]
    logits: np.ndarray
    targets: np.ndarray | None = None
    right: np.ndarray | None = None
    moments: Moments | None = None
    early: str = ""
    centre: np.ndarray | None = None
    spread: np.ndarray | None = None
    known: KnownShifts = field(default_factory=KnownShifts)
    name: str = "the reference"

    @classmethod
    def measure(
        cls, model: nn.Module, batches: Iterable[Batch], known: KnownShifts | None = None, name: str = "", seed: int = 0
    ) -> "Profile":
        """Measure a model on reference images.

        Args:
            model: as it will be deployed, before any adaptation; not changed.
            batches: read once; labelled, if accuracy is to be predicted.
            known: what known corruptions do to it; see `try_corruptions`.
            name: of the data.
            seed: of the order in which the images are kept.
        """
        model = unwrap(model)
        check_model(model)
        own = share(model).eval()
        parts = [_look(own, batch) for batch in _check_batches(batches)]
        total = sum(len(part.logits) for part in parts)
        if total < FEWEST:
            raise HapteraError(f"the reference has {total} images; at least {FEWEST} were expected, {FEW:,} are better")
        order = np.random.default_rng(seed).permutation(total)
        logits = np.concatenate([part.logits for part in parts])[order]
        layers = {key: np.concatenate([part.moments[key] for part in parts])[order] for key in _layers(own, parts)}
        return cls(
            model_fingerprint(model),
            {key: np.concatenate([part.scores[key] for part in parts])[order] for key in parts[0].scores},
            logits,
            *_labels([part.targets for part in parts], logits, order, getattr(batches, "classes", None)),
            Moments.of_images(layers, GROUPS) if layers else None,
            known=known or KnownShifts(),
            name=name or str(getattr(batches, "name", "the reference")),
            **_first_layer(parts, order),
        )._with_distances([part.statistics for part in parts], order)

    def try_corruptions(
        self,
        model: nn.Module,
        data: "Data",
        which: str = "all",
        *,
        images: int = 256,
        batch_size: int = 64,
        out: Path | str | None = None,
        progress: bool | None = None,
    ) -> "Profile":
        """Return this profile with what known corruptions do to the model.

        Args:
            model: the same.
            data: the reference data, labelled if accuracy is to be predicted.
            which: `all`, at severities 1, 3 and 5 and hold-out ones at 1 to 5; `holdout`, these alone.
            images: that each is tried on.
            batch_size: images per forward pass.
            out: a folder where every corruption that was tried is kept; the same call goes on from there.
            progress: show a bar; by default on a terminal.
        """
        check_corruptions(which)
        self.check(model)
        if not self.early:
            raise NotApplicable("the layers of the model cannot be seen; corruptions cannot be compared within it")
        layers = () if self.moments is not None else (self.early,)
        settings = DiagnosisSettings(known_samples=images, batch_size=batch_size)
        clean = Truncated(Clean(data, batch_size=batch_size), first=FEW)
        base = self.moments or observe_moments(unwrap(model), clean, layers).moments
        severities = SEVERITIES if which == "all" else ()
        more: dict[str, Any] = {"severities": severities, "labelled": self.labelled, "out": out, "progress": progress}
        return replace(self, known=known_shifts(unwrap(model), data, base, layers, settings=settings, **more))

    @property
    def images(self) -> int:
        """How many images there are."""
        return len(self.logits)

    @property
    def accuracy(self) -> float | None:
        """Accuracy on the reference; None without labels."""
        return None if self.right is None else float(self.right.mean())

    @property
    def labelled(self) -> Reference | None:
        """What the model says about the reference, for estimators of accuracy without labels; None without labels."""
        return None if self.right is None else Reference.of_answers(self.logits, float(self.right.mean()))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What this profile cannot tell, as sentences."""
        found = []
        if self.images < FEW:
            found.append(f"the reference has {self.images} images; small shifts need {FEW:,} or more to be noticed")
        if self.right is None:
            found.append("the reference has no labels: accuracy is not predicted, only mean confidence is shown")
        elif self.known.frame.empty:
            found.append("no known corruptions were tried: predicted accuracy has no interval, and a shift no name")
        if self.moments is None:
            found.append("the model has no BatchNorm layers: the size of a shift, and where it is, are not known")
        return tuple(found)

    def summary(self) -> dict[str, Any]:
        """Return what the profile holds, in a few numbers."""
        return {
            "name": self.name,
            "fingerprint": self.fingerprint,
            "images": self.images,
            "classes": self.logits.shape[1],
            "accuracy": self.accuracy,
            "signals": list(self.scores),
            "layers": 0 if self.moments is None else len(self.moments.names),
            "corruptions": 0 if self.known.frame.empty else int(self.known.frame["shift"].nunique()),
        }

    def check(self, model: nn.Module) -> None:
        """Refuse a model that this is not the profile of."""
        if model_fingerprint(unwrap(model)) != self.fingerprint:
            raise HapteraError(
                f"the profile of {self.name} belongs to another model: weights or buffers differ; "
                "measure it again (haptera profile)"
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a safetensors file, whole."""
        from haptera.live.profile_file import write_profile

        write_profile(self, Path(path))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Profile":
        """Read what `save` wrote."""
        from haptera.live.profile_file import read_profile

        return read_profile(Path(path))

    def _with_distances(self, statistics: list[np.ndarray | None], order: np.ndarray) -> "Profile":
        """Return the profile with the score of the first layer that needs `centre` and `spread`."""
        if self.centre is None or self.spread is None:
            return self
        values = (np.concatenate([each for each in statistics if each is not None])[order] - self.centre) / self.spread
        return replace(self, scores={**self.scores, "early_distance": np.sqrt(np.square(values).mean(1))})


def check_corruptions(which: str) -> None:
    """Refuse a choice of known corruptions that does not exist."""
    if which not in CHOICES:
        raise unknown("choice of corruptions", which, CHOICES)


@dataclass
class _Part:
    """What one batch gave."""

    scores: dict[str, np.ndarray]
    logits: np.ndarray
    targets: np.ndarray | None
    moments: dict[str, np.ndarray]
    statistics: np.ndarray | None
    early: str


def _check_batches(batches: Iterable[Batch]) -> Iterable[Batch]:
    """Return the batches after checking that they are."""
    for batch in batches:
        if not isinstance(batch, Batch):
            raise HapteraError(f"the reference holds a {type(batch).__name__}; a stream of batches was expected")
        if not bool(torch.isfinite(batch.inputs).all()):
            raise HapteraError("the reference has images with values that are not finite; leave these images out")
        yield batch


def _look(own: nn.Module, batch: Batch) -> _Part:
    with Signals(own, sample=len(batch)) as signals, torch.no_grad():
        outputs = check_outputs(run(own, batch.inputs.to(device_of(own))), len(batch))
        logits = outputs.float().cpu().numpy()
        statistics, scores = signals.take_statistics(), signals.take(len(batch))
        targets = None if batch.targets is None else batch.targets.numpy()
        scores.pop("early_distance", None)  # from BatchNorm's statistics; comes again, from the reference's own
        return _Part(
            scores | output_signals(logits), logits, targets, signals.take_moments(), statistics, signals.early
        )


def _layers(own: nn.Module, parts: list[_Part]) -> list[str]:
    """Return the layers that every batch met, in the order of the model."""
    return [name for name, _ in own.named_modules() if all(name in part.moments for part in parts)]


def _labels(
    parts: list[np.ndarray | None], logits: np.ndarray, order: np.ndarray, classes: "Classes | None"
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return targets, and which answers are right; None where a batch has no labels."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None, None
    targets = np.concatenate(known)[order]
    return targets, correct(logits, targets, classes)


def _first_layer(parts: list[_Part], order: np.ndarray) -> dict[str, Any]:
    """Return the name of the first layer, and mean and deviation of its statistics over the first half."""
    known = [part.statistics for part in parts if part.statistics is not None]
    if len(known) < len(parts):
        return {}
    half = np.concatenate(known)[order[: (len(order) + 1) // 2]]
    spread = half.std(0)
    typical = float(np.median(spread[spread > 0])) if (spread > 0).any() else 1.0
    return {
        "early": parts[0].early,
        "centre": half.mean(0),
        "spread": np.maximum(spread, SPREAD * typical),
    }
