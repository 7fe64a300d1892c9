"""The attribution of a recording that was embedded: its folder read again, fitted anew, a map and a test.

Map and test come from the same fits: with the settings of the model in the folder, the Jacobian term, which that model
did not have, and decoys beside the channels.
Cost: `fits` fits as long as that of the embedding, with decoys beside the channels.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from haptera.analyses.attribution.attribution import METHODS
from haptera.analyses.attribution.carriers import Carriers, carriers
from haptera.analyses.embedding.plan import Parts, Plan
from haptera.contrastive.building import hybrid_dimensions
from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.errors import HapteraError, unknown
from haptera.files.json import read_json
from haptera.files.schema import FLAG, TABLE, TEXT, check, list_of, number, optional, table_of
from haptera.recordings.label import stacked
from haptera.recordings.reading import read_recording
from haptera.recordings.recording import Recording

READ = {
    "path": TEXT,
    "signal": optional(TEXT),
    "labels": list_of(TEXT),
    "trials": optional(TEXT),
    "bin": optional(number()),
    "epoch": optional(TEXT),
    "units": table_of(TEXT),
}
PREPARED = {"mode": TEXT, "held": number(0, 1), "smoothing": number(0), "causal": FLAG, "zscore": FLAG}
FILES = ("model.safetensors", "result.json")


@dataclass(frozen=True, eq=False)
class Recorded:
    """What was found about an embedded recording.

    Attributes:
        folder: of the embedding.
        what: the labels that it was embedded by, or `structure in time`.
        noun: `units` or `channels`.
        names: of the channels: ids of units where the recording has them, else places from 0.
        method: of attribution.
        jacobian_weight: λ of the fits.
        tied: whether labels have dimensions of their own, and so a block of the map.
        map: `(latents, channels)`, in units of each channel's deviation; the largest of each latent is 1.
        latents: names of the rows of the map.
        carriers: the test.
    """

    folder: Path
    what: str
    noun: str
    names: list[str]
    method: str
    jacobian_weight: float
    tied: bool
    map: np.ndarray
    latents: list[str]
    carriers: Carriers

    @property
    def promise(self) -> str:
        """What theorem 2 of chapter 8 says of the map, and what it does not."""
        if self.method != "inverted_jacobian":
            return f"No theorem covers a map by {self.method.replace('_', ' ')}; theorem 2 is about inverted Jacobians."
        if self.jacobian_weight == 0:
            return "No theorem covers this map: theorem 2 needs the Jacobian term in training, and its weight is 0."
        block = f"the dimensions of {self.what}" if self.tied else "all dimensions together"
        return (
            "Theorem 2 of chapter 8 covers which entries of the map are zero, block by block; here a block is "
            f"{block}, so that columns mean something and single rows do not. It holds at the minimum of the "
            "loss, with endlessly many negatives, for signals that are an invertible function of the latents without "
            "noise. It does not cover the size of entries, nor the test, which is a permutation test of its own."
        )

    def table(self) -> pd.DataFrame:
        """A row for each channel: name, test, and the map."""
        table = self.carriers.table.copy()
        table["channel"] = self.names
        for name, row in zip(self.latents, self.map, strict=True):
            table[name] = row
        return table


def attribute_recording(
    folder: Path,
    recording: Path | None = None,
    *,
    method: str = "inverted_jacobian",
    jacobian_weight: float = 0.1,
    fits: int = 3,
    copies: int = 8,
    level: float = 0.05,
    seed: int = 0,
    progress: bool | None = False,
) -> Recorded:
    """Attribute what `haptera embed` wrote into a folder.

    Args:
        folder: with the model and `result.json`.
        recording: the file, if it is no longer where it was.
        method: of `attribute`.
        jacobian_weight: λ in the fits.
        fits: by which map and test are made.
        copies: decoys of each channel in a fit.
        level: rate of false discoveries.
        seed: of decoys and fits.
        progress: show a bar; None does on a terminal.
    """
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    for name in FILES:
        if not (folder / name).is_file():
            raise HapteraError(f"there is no {folder / name}; a folder that `haptera embed --out` wrote was expected")
    facts = read_facts(folder / "result.json")
    model = ContrastiveEmbedding.load(folder / "model.safetensors")
    whole, mode = _recording(facts, recording)
    labels = list(whole.labels)
    by = labels if mode != "time" else []
    targets = stacked([whole.label(name) for name in by])
    blocks = whole.blocks if whole.blocks.max() else None
    signal = whole.signal()
    if signal.shape[1] != model.n_features_in_:
        raise HapteraError(f"the recording has {signal.shape[1]} channels; the model knows {model.n_features_in_}")
    dimensions = None
    if mode == "hybrid" and model.hybrid is not True:
        dimensions = hybrid_dimensions(model.hybrid, model.output_dimension)[0]
    settings = model.set_params(jacobian_weight=jacobian_weight)
    found = carriers(
        settings, signal, *targets, trials=blocks, dimensions=dimensions, method=method, fits=fits, copies=copies,
        level=level, seed=seed, progress=progress,
    )  # fmt: skip
    return Recorded(
        folder,
        " and ".join(by) or "structure in time",
        whole.channel_noun(),
        whole.channel_names(),
        method,
        jacobian_weight,
        dimensions is not None,
        found.map / np.maximum(found.map.max(1, keepdims=True), 1e-300),
        [f"axis {place + 1}" for place in range(len(found.map))],
        found,
    )


def read_facts(path: Path) -> dict[str, Any]:
    """Return what the `result.json` of an embedding says about how the recording was read and prepared."""
    facts = check(read_json(path), {}, str(path))
    if not {"read", "prepared"} <= set(facts):
        raise HapteraError(f"{path} does not say how to read the recording; embed it again")
    check(facts, {"read": TABLE, "prepared": TABLE}, str(path))
    check(facts["read"], READ, f"{path}: read")
    check(facts["prepared"], PREPARED, f"{path}: prepared")
    return facts


def _recording(facts: dict[str, Any], path: Path | None) -> tuple[Recording, str]:
    """The recording as `embed` prepared it, and the mode."""
    read, prepared = facts["read"], facts["prepared"]
    where = path or Path(read["path"])
    if path is None and not where.is_file():
        raise HapteraError(f"the recording {where} is not there; say where it is by --recording")
    recording = read_recording(
        where, read["signal"], read["labels"], trials=read["trials"], bin=read["bin"], epoch=read["epoch"]
    )
    if read["units"]:
        recording = recording.only_channels(next(iter(recording.signals)), **read["units"])
    try:
        plan = Plan(
            labels=tuple(recording.labels),
            mode=prepared["mode"],
            held=prepared["held"],
            smoothing=prepared["smoothing"],
            causal=prepared["causal"],
            zscore=prepared["zscore"],
            baselines=(),
        )
        return Parts.of(recording, plan).whole, prepared["mode"]
    except HapteraError as error:
        raise HapteraError(f"{where}: {error}") from error
