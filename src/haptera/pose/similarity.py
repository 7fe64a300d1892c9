"""Similarity of two pose networks, layer by layer: linear CKA of what they give for the same frames.

Source: thesis chapter 5, "Similarity analysis"; `haptera.observe.layer_similarity` computes it over minibatches.
Cost: a forward pass of each network, and batch² times features for each pair of layers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from haptera.analysis import Analysis, numbers_table
from haptera.observe import layer_similarity
from haptera.pose.data import PoseData
from haptera.pose.network import PoseNetwork
from haptera.report.figure import Figure
from haptera.report.section import Finding, Section, answer
from haptera.streams import Clean

DEFINITIONS = {
    "CKA": "linear centred kernel alignment: 1 where two layers hold the same up to rotation and scale, 0 where "
    "nothing that one holds is in the other; the unbiased form over minibatches, which can be a little below 0",
}


@dataclass(frozen=True, eq=False)
class PoseSimilarity(Analysis):
    """How alike two networks are.

    Attributes:
        title: heading of the page.
        settings: what was asked.
        pairs: `first`, `second`, `value`, `n`: CKA of each pair of layers.
    """

    kind: ClassVar[str] = "pose similarity"
    definitions: ClassVar[Mapping[str, str]] = DEFINITIONS
    title: str
    settings: Mapping[str, Any]
    pairs: pd.DataFrame

    def headline(self) -> str:
        """Return how many layers and frames there are."""
        first, second = self.pairs["first"].nunique(), self.pairs["second"].nunique()
        return f"{first} x {second} layers, {self.settings['frames']} frames"

    def findings(self) -> list[Finding]:
        """Return how alike layers of the same name are, and which of them differ most."""
        same = self.pairs[self.pairs["first"] == self.pairs["second"]]
        if same.empty:
            best = self.pairs.sort_values("value").iloc[-1]
            sentence = f"most alike are {best['first']} and {best['second']}: CKA {best['value']:.3f}"
            return answer("layers", "Which layers are alike?", sentence, largest=float(best["value"]))
        least = same.sort_values("value").iloc[0]
        mean = float(same["value"].mean())
        sentence = f"layers of the same name have a CKA of {mean:.3f} on average; least alike is {least['first']}: "
        sentence += f"{least['value']:.3f}"
        return answer("layers", "Which layers are alike?", sentence, mean=mean, least=float(least["value"]))

    def table(self) -> pd.DataFrame:
        """Return the findings' numbers, and CKA of each pair of layers as `first`, `second`, `value`."""
        return pd.concat([numbers_table(self.findings()), self.pairs], ignore_index=True)

    def sections(self) -> list[Section]:
        """Return all pairs of layers."""
        figure = Figure(
            "CKA of each pair of layers", "Layers in the order of each network.", self.pairs, kind="heatmap",
            x="second", y="first", value=("value",), limits=(0.0, 1.0), labels={"value": "CKA", "n": "batches"},
        )  # fmt: skip
        return [Section("Layers", "What the networks hold about the same frames.", (figure,))]


def compare_networks(
    first: PoseNetwork,
    second: PoseNetwork,
    data: PoseData,
    *,
    layers: Sequence[str] = (),
    batch_size: int = 64,
    names: tuple[str, str] = ("first", "second"),
) -> PoseSimilarity:
    """Return how alike the layers of two networks are.

    Args:
        first: a network; not changed.
        second: another one.
        data: the frames that both see.
        layers: names of modules, or patterns of names; all BatchNorm layers if left out.
        batch_size: frames in a pass; more give less noise.
        names: of the networks.
    """
    pairs = layer_similarity(first, second, Clean(data, batch_size=batch_size, shuffle=True), layers)
    settings = {"first": names[0], "second": names[1], "frames": len(data), "layers": list(layers)}
    return PoseSimilarity(f"Similarity of {names[0]} and {names[1]}", settings, pairs)
