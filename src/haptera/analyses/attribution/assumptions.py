"""Assumptions: what theorem 2 of chapter 8 needs of the data and of the fit, and how much of it can be seen to hold.

1. The mixing g has a Jacobian of full column rank, and the encoder inverts it. By (8.32) J_f⁺ stands for J_g, so its
   rank is that of J_f(x), looked at sample by sample: singular values above a share of the largest. An embedding on a
   sphere cannot have full rank: one dimension is lost to the length.
2. The conditionals are diverse (definition 5): the mixed second derivative of log p(v|u) − log q(v|u) has full rank for
   all u. Of pairs that are Gaussian around a linear map it is Bᵀ Σ⁻¹, whose rank is the number of canonical
   correlations between references and positives above zero. They are measured in the embedding, for every part of the
   loss by itself, against pairs in a random order. It is an estimate: it sees linear relations alone, and over all u
   together.
3. The strong form (definition 6): that derivative is the same matrix everywhere. Here it is estimated in the two
   halves of the references along their widest axis, and the cosine between the two is reported; 1 is the same.

None of this can prove the theorem's premises; a rank that is missing disproves one.
Cost: a Jacobian at `SAMPLES` samples, and a few small decompositions.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from haptera.analyses.attribution.maps import sample_attributions
from haptera.contrastive.inputs import Inputs

if TYPE_CHECKING:
    from haptera.contrastive.estimator import ContrastiveEmbedding

SAMPLES, RUN, PAIRS, SHUFFLES = 256, 16, 2000, 20
"""Samples whose Jacobians are looked at, in runs of so many; pairs that are drawn; pairs in a random order."""
SPHERE = "on a sphere one is lost to the length; architectures with -mse keep it"
SHARE = 1e-2
"""Of the largest singular value, below which another one counts as zero."""


@dataclass(frozen=True, eq=False)
class Assumptions:
    """What could be seen of the premises of theorem 2.

    Attributes:
        dimensions: of the embedding.
        rank: the median over samples of the rank of the encoder's Jacobian.
        full: the share of samples at which it is full.
        diversity: a row for each part and canonical correlation: `part`, `place`, `correlation`, `null` (the largest of
            pairs in a random order), `above`.
        constancy: cosine between the estimates of the mixed derivative in two halves, for each part.
    """

    dimensions: int
    rank: float
    full: float
    diversity: pd.DataFrame
    constancy: tuple[float, ...]

    def sentence(self) -> str:
        """Return what holds and what does not, in words."""
        full = self.rank >= self.dimensions
        text = (
            f"the rank of the encoder's Jacobian, which stands for the mixing's, is {self.rank:g} of {self.dimensions}"
        )
        text += "" if full else f", and so the mixing is not inverted in all dimensions ({SPHERE})"
        parts = [part for _, part in self.diversity.groupby("part", sort=False)]
        ranks = " and ".join(f"{int(part['above'].sum())} of {len(part)}" for part in parts)
        least = min(float(part["correlation"].min()) for part in parts)
        text += f"; pairs are diverse (definition 5) in {ranks} dimensions, least canonical correlation {least:.2f}"
        same = " and ".join(f"{one:.2f}" for one in self.constancy)
        return text + f"; alike in both halves of the data (definition 6) by a cosine of {same}"

    def numbers(self) -> dict[str, Any]:
        """Return all numbers, by name."""
        by_part = self.diversity.groupby("part", sort=False)
        return {
            "dimensions": self.dimensions,
            "jacobian_rank": self.rank,
            "full_rank_share": self.full,
            "diversity_rank": [int(part["above"].sum()) for _, part in by_part],
            "part_dimensions": [len(part) for _, part in by_part],
            "canonical_correlations": [part["correlation"].tolist() for _, part in by_part],
            "derivative_constancy": list(self.constancy),
        }


def check_assumptions(
    model: "ContrastiveEmbedding", signal: np.ndarray, *labels: np.ndarray, trials: Any = None
) -> Assumptions:
    """Look at the premises of theorem 2 for a fitted estimator of one session.

    Args:
        model: fitted.
        signal: `(samples, channels)`, as it was fitted.
        *labels: as in `fit`.
        trials: as in `fit`.
    """
    starts = np.unique(np.linspace(0, max(len(signal) - RUN, 0), SAMPLES // RUN).astype(int))
    runs = [sample_attributions(model, signal[start : start + RUN], "gradient").values for start in starts]
    found = np.concatenate(runs)
    singular = np.linalg.svd(found.reshape(*found.shape[:2], -1), compute_uv=False)
    ranks = (singular > SHARE * singular[:, :1]).sum(1)
    points = np.asarray(model.transform(signal, trials=trials), float)
    inputs = Inputs.read(model, signal, labels, trials)
    tables, constancy = [], []
    for place, (dimensions, first, second) in enumerate(model.model_.pairs(inputs, model.mode_, PAIRS)):
        axes = slice(None) if dimensions is None else dimensions
        u, v = points[first][:, axes], points[second][:, axes]
        tables.append(_diversity(u, v, place + 1))
        constancy.append(_constancy(u, v))
    return Assumptions(
        found.shape[1],
        float(np.median(ranks)),
        float((ranks == found.shape[1]).mean()),
        pd.concat(tables, ignore_index=True),
        tuple(constancy),
    )


def canonical_correlations(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the canonical correlations of two sets of the same samples, the largest first; 0 for idle directions."""
    bases = []
    for values in (first, second):
        left, size, _ = np.linalg.svd(values - values.mean(0), full_matrices=False)
        bases.append(left[:, size > 1e-6 * max(size[0], 1e-300)])
    found = np.linalg.svd(bases[0].T @ bases[1], compute_uv=False).clip(0, 1)
    return np.pad(found, (0, first.shape[1] - len(found)))


def _diversity(u: np.ndarray, v: np.ndarray, part: int) -> pd.DataFrame:
    generator = np.random.default_rng(part)
    null = max(canonical_correlations(u, v[generator.permutation(len(v))])[0] for _ in range(SHUFFLES))
    found = canonical_correlations(u, v)
    columns = {"part": part, "place": np.arange(1, len(found) + 1), "correlation": found, "null": null}
    return pd.DataFrame(columns | {"above": found > null})


def mixed_derivative(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return Bᵀ Σ⁻¹ of v = B u + noise: the mixed second derivative of a Gaussian log p(v|u)."""
    inputs = np.column_stack([u, np.ones(len(u))])
    weights = np.linalg.lstsq(inputs, v, rcond=None)[0]
    left = v - inputs @ weights
    noise = left.T @ left / len(left)
    ridge = 1e-6 * np.trace(noise) / len(noise) + 1e-12  # outputs on a sphere leave one direction without noise
    return np.asarray(weights[:-1] @ np.linalg.inv(noise + ridge * np.eye(len(noise))))


def _constancy(u: np.ndarray, v: np.ndarray) -> float:
    axis = np.linalg.svd(u - u.mean(0), full_matrices=False)[2][0]
    side = (u - u.mean(0)) @ axis
    low = side < np.median(side)
    one, two = (mixed_derivative(u[half], v[half]).ravel() for half in (low, ~low))
    return float(one @ two / max(np.linalg.norm(one) * np.linalg.norm(two), 1e-300))
