"""Which inputs does a hidden cause reach? A map found from a recording alone, beside the true one.

Run it as `python examples/attribution_map.py [FOLDER]`. Four latents walk in a box; two of them, z1, reach all inputs,
the others, z2, only half. z1 is observed, z2 is not: the encoder finds it from time. It is trained with the Jacobian
term and without; then two methods draw their maps.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from torch import nn

from haptera.analyses.attribution.maps import attribution_map, map_scores
from haptera.analyses.identify.inversion import LatentEncoder
from haptera.analyses.identify.processes import piecewise
from haptera.contrastive.estimator import ContrastiveEmbedding

SETTINGS = {"output_dimension": 4, "num_hidden_units": 64, "distance": "euclidean", "positive_in_denominator": True,
            "learning_rate": 2e-3, "batch_size": 256, "max_iterations": 500, "random_state": 0}  # fmt: skip


def encoder(channels: int, hidden: int, dimensions: int) -> LatentEncoder:
    """Three GELU layers and a scaled tanh, as in chapter 8."""
    return LatentEncoder(channels, [hidden] * 3, dimensions, "tanh", 2.4, nn.GELU())


def main(folder: Path) -> None:
    data = piecewise(samples=6000, seed=0)
    observed = data.latents[:, data.first]
    maps = {}
    for weight in (0.0, 0.1):
        model = ContrastiveEmbedding(encoder, **SETTINGS, hybrid={"behaviour": data.first}, jacobian_weight=weight)
        model.fit(data.signal, observed)
        fit = model.goodness_of_fit(data.signal, observed)
        print(f"jacobian_weight {weight}: goodness of fit {fit:.2f} nats")
        for method in ("inverted_jacobian", "gradient"):
            found = attribution_map(model, data.signal[::5], method)
            scores = map_scores(found, data.map, latents=data.second)
            print(f"  {method:<18} auROC {scores.auroc:.3f}, average precision {scores.average_precision:.3f}")
            maps[f"{method}_{weight}"] = found
    np.savez(folder / "maps.npz", true=data.map, **maps)
    print(f"maps: {folder / 'maps.npz'}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="haptera-")))
