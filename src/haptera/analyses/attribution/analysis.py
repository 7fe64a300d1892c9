"""Attribution: which channels of an embedded recording carry what it was embedded by, as a map and with a test.

    haptera.attribute("hd")              # the folder of an embedding

The recording is read again and fitted anew. Map and test come from the same fits: with the settings of the model in
the folder, the Jacobian term, and decoys beside the channels. Only where time shapes the embedding beside labels is the
map of fits without decoys, see `carriers`: of the model in the folder, if it had the same Jacobian term.
Fits are kept in a folder as they end, and a call that was stopped goes on.
Cost: `fits` fits as long as that of the embedding, with decoys beside the channels.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import clone

from haptera.analyses.attribution import DecoyTest
from haptera.analyses.attribution.carriers import Carriers, carriers
from haptera.analyses.attribution.maps import MapScores, map_scores
from haptera.analyses.attribution.page import DEFINITIONS, findings, sections
from haptera.analyses.embedding.fits import inputs_of
from haptera.analyses.embedding.plan import Parts, Plan, without_constant_labels
from haptera.analysis import Analysis, numbers_table
from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.contrastive.parts import hybrid_dimensions
from haptera.errors import HapteraError, first_line, unknown
from haptera.files.json import read_json
from haptera.files.schema import FLAG, TEXT, check, number, read_as
from haptera.recordings.reading import Source
from haptera.recordings.recording import Recording
from haptera.report.section import Finding, Section

PREPARED = {"mode": TEXT, "held": number(0, 1), "smoothing": number(0), "causal": FLAG, "zscore": FLAG}
WEIGHT, TIME = 0.1, "time"
"""Of the Jacobian term where the embedding has none, as in the text."""
MODEL, RESULT, OUT = "model.safetensors", "result.json", "attribution"


@dataclass(frozen=True, eq=False)
class Attribution(Analysis):
    """Which channels of an embedded recording carry what it was embedded by.

    Attributes:
        embedded: the folder of the embedding.
        what: the labels that it was embedded by, or `structure in time`.
        noun: `units` or `channels`.
        names: of the channels: ids of units where the recording has them, else places from 0.
        test: how channels were compared with decoys.
        jacobian_weight: λ of the fits.
        tied: whether labels have dimensions of their own, and so a block of the map.
        carriers: the test's result.
        folder: where fits are kept.
        truth: which channels carry it, where that is known, such as in synthetic data.
    """

    kind: ClassVar[str] = "attribute"
    definitions: ClassVar[Mapping[str, str]] = DEFINITIONS
    embedded: Path
    what: str
    noun: str
    names: list[str]
    test: DecoyTest
    jacobian_weight: float
    tied: bool
    carriers: Carriers
    folder: Path
    truth: np.ndarray | None = None

    @property
    def title(self) -> str:
        """Return the name of the embedding's folder."""
        return f"Attribution of {self.embedded.resolve().name}"

    @property
    def settings(self) -> dict[str, Any]:
        """Return what was asked."""
        return {"folder": str(self.embedded), "jacobian_weight": self.jacobian_weight} | asdict(self.test)

    def headline(self) -> str:
        """Return how many channels there are."""
        return f"{len(self.names)} {self.noun}, embedded by {self.what}"

    def findings(self) -> list[Finding]:
        """Return which channels carry it, and what theory promises about the map."""
        return findings(self)

    def sections(self) -> list[Section]:
        """Return the channels beside their decoys, and the map."""
        return sections(self)

    @property
    def map(self) -> np.ndarray:
        """Return the map `(axes, channels)`, in units of each channel's deviation; the largest of each axis is 1."""
        return self.carriers.map / np.maximum(self.carriers.map.max(1, keepdims=True), 1e-300)

    @property
    def scores(self) -> MapScores | None:
        """Return how well entries of the map tell channels that carry it from others, as in tables 8.1 and 8.2."""
        if self.truth is None:
            return None
        return map_scores(self.carriers.map, np.broadcast_to(self.truth, self.carriers.map.shape))

    @property
    def axes(self) -> list[str]:
        """Return the names of the rows of the map."""
        return [f"axis {place + 1}" for place in range(len(self.carriers.map))]

    def table(self) -> pd.DataFrame:
        """Return a row for each channel, and after them the other numbers of the findings."""
        found = [replace(one, numbers={**one.numbers, "channels": None}) for one in self.findings()]
        channels = self.channels()
        if self.carriers.fits:  # may be missing, in the rows of the others
            channels = channels.astype({"carries": "boolean"})
        return pd.concat([channels, numbers_table(found)], ignore_index=True)

    def channels(self) -> pd.DataFrame:
        """Return a row for each channel: name, test, and the map."""
        test = self.carriers.table.assign(channel=self.names)
        return pd.concat([test, pd.DataFrame(self.map.T, columns=self.axes)], axis=1)


def attribute_embedding(
    folder: Path | str,
    recording: Path | str | None,
    test: DecoyTest,
    *,
    jacobian_weight: float | None = None,
    part: str | None = None,
    truth: Path | str | None = None,
    out: Path | str | None = None,
    progress: bool | None = None,
) -> Attribution:
    """Attribute what is in the folder of an embedding; the arguments are those of `attribute`."""
    folder = Path(folder)
    for name in (MODEL, RESULT):
        if not (folder / name).is_file():
            raise HapteraError(f"there is no {folder / name}; a folder that `haptera embed --out` wrote was expected")
    source, prepared = read_facts(folder / RESULT)
    model = ContrastiveEmbedding.load(folder / MODEL)
    whole = prepared_recording(source, prepared, None if recording is None else Path(recording))
    parts = _parts(prepared, part)
    labels = [name for name in parts if name != TIME] or (list(whole.labels) if prepared["mode"] != "time" else [])
    signal, targets, blocks = inputs_of(whole, labels, apart=bool(parts))
    weight = (model.jacobian_weight or WEIGHT) if jacobian_weight is None else jacobian_weight
    if signal.shape[1] != model.n_features_in_:
        raise HapteraError(f"the recording has {signal.shape[1]} channels; the model knows {model.n_features_in_}")
    tied = prepared["mode"] == "hybrid" and model.hybrid is not True
    labels = [part or labels[0]] if parts else labels
    place = list(parts).index(labels[0]) if parts else 0
    where = folder / OUT if out is None else Path(out)
    true = None if truth is None else read_truth(Path(truth), signal.shape[1])
    same = (model.jacobian_weight or 0.0) == weight
    if not (same or test.fits):
        own = model.jacobian_weight or 0.0
        raise HapteraError(
            f"--fits 0 maps the model in {folder}, whose Jacobian term has a weight of {own:g}, and {weight:g} was "
            f"expected; embed with --jacobian-weight {weight:g}, or say --jacobian-weight {own:g} here"
        )
    found = carriers(
        clone(model).set_params(jacobian_weight=weight),
        signal,
        *targets,
        trials=blocks,
        dimensions=hybrid_dimensions(model.hybrid, model.output_dimension)[place] if tied else None,
        test=test,
        fitted=model if same else None,
        out=where,
        progress=progress,
    )
    what = " and ".join(labels) or "structure in time"
    names, noun = whole.channel_names(), whole.channel_noun()
    return Attribution(folder, what, noun, names, test, weight, tied, found, where, true)


def read_truth(path: Path, channels: int) -> np.ndarray:
    """Return which channels carry the label, from a `.npy` file or a text with 1 or 0 for each of them."""
    if not path.is_file():
        raise HapteraError(f"there is no file {path}, which --truth names")
    try:
        values = np.load(path, allow_pickle=False) if path.suffix == ".npy" else np.loadtxt(path, delimiter=",")
    except (ValueError, OSError, EOFError) as error:
        raise HapteraError(f"{path} is not a .npy file or a text of numbers: {first_line(error)}") from error
    values = np.ravel(values)
    if values.shape != (channels,) or not np.isin(values, (0, 1)).all():
        expected = "1 for each channel that carries the label and 0 for each that does not"
        raise HapteraError(f"{path} has {len(values)} values; {channels} were expected, {expected}")
    if len(np.unique(values)) < 2:
        raise HapteraError(f"{path} says the same of all {channels} channels; there is nothing to tell apart")
    return values.astype(bool)


def _parts(prepared: Mapping[str, Any], part: str | None) -> dict[str, Any]:
    """Return the parts of an embedding, name -> dimensions, after checking that the one that is asked for is there."""
    parts = dict(prepared.get("parts") or {})
    labels = [name for name in parts if name != TIME]
    if part is not None and part not in labels:
        raise unknown("part of the embedding", part, labels or ["(none: it has no parts)"])
    return parts


def read_facts(path: Path) -> tuple[Source, dict[str, Any]]:
    """Return what the `result.json` of an embedding says about how the recording was read, and how it was prepared."""
    facts = check(read_json(path), {}, str(path))
    what = "of several sessions" if "recordings" in facts else "of a model that was adapted"
    if "recordings" in facts or "adapt_steps" in facts:
        raise HapteraError(f"{path} is {what}; attribute takes the embedding of one recording, fitted by itself")
    if not {"read", "prepared"} <= set(facts):
        raise HapteraError(f"{path} does not say how to read the recording; embed it again")
    source = read_as(Source, facts["read"], f"{path}: read", f"key of read in {path}")
    return source, check(facts["prepared"], PREPARED, f"{path}: prepared")


def prepared_recording(source: Source, prepared: Mapping[str, Any], path: Path | None = None) -> Recording:
    """Return the recording as `embed` prepared it, from another path if it is no longer where it was."""
    if path is None and not Path(source.path).exists():
        raise HapteraError(f"the recording {source.path} is not there; say where it is by --recording")
    source = source if path is None else replace(source, path=path)
    recording = source.read()
    try:
        plan = Plan(labels=tuple(recording.labels), baselines=(), **{name: prepared[name] for name in PREPARED})
        recording, plan = without_constant_labels(recording, plan)
        whole = Parts.of(recording, plan).whole
        return replace(whole, labels={name: whole.labels[name] for name in plan.labels})
    except HapteraError as error:
        raise HapteraError(f"{source.path}: {error}") from error
