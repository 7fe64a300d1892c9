"""Does the Jacobian term do its work at other temperatures, learnt ones, and with cosines?

    python experiments/attribution_temperature.py [FOLDER] [--sets N] [--steps N]

Data of chapter 8 with known maps (`piecewise`, two latents observed of four), the encoder of the chapter, hybrid
training; the area under the ROC curve of the inverted Jacobian for the latents that are not observed, with the term
(λ = .1) and without it, the temperature in the end, and R² of a linear map to the observed ones. Some seconds for each
fit. It writes `attribution_temperature.txt` into FOLDER, by default `docs/evidence/results`.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from sklearn.linear_model import LinearRegression
from torch import nn

from haptera.analyses.attribution.maps import map_scores, sample_attributions
from haptera.analyses.identify.inversion import LatentEncoder
from haptera.analyses.identify.processes import Piecewise, piecewise
from haptera.contrastive.estimator import ContrastiveEmbedding

EUCLIDEAN = {"distance": "euclidean", "positive_in_denominator": True}
CASES = {
    "euclidean, 1": EUCLIDEAN,
    "euclidean, 0.2": EUCLIDEAN | {"temperature": 0.2},
    "euclidean, learnt": EUCLIDEAN | {"temperature_mode": "auto", "min_temperature": 0.01},
    "cosine, 1": {"distance": "cosine"},
    "cosine, 0.2": {"distance": "cosine", "temperature": 0.2},
    "cosine, learnt": {"distance": "cosine", "temperature_mode": "auto", "min_temperature": 0.01},
}


def encoder(channels: int, hidden: int, dimensions: int) -> LatentEncoder:
    return LatentEncoder(channels, [hidden] * 3, dimensions, "tanh", 2.4, nn.GELU())


def scores(data: Piecewise, settings: dict[str, object], weight: float, steps: int) -> tuple[float, float, float]:
    common = {"output_dimension": 4, "hybrid": {"behaviour": [0, 1]}, "num_hidden_units": 64, "learning_rate": 2e-3}
    common |= {"batch_size": 256, "max_iterations": steps, "random_state": 0}
    observed = data.latents[:, data.first]
    model = ContrastiveEmbedding(encoder, jacobian_weight=weight, **common, **settings).fit(data.signal, observed)
    found = sample_attributions(model, data.signal[::20])
    points = model.transform(data.signal)
    r2 = LinearRegression().fit(points, observed).score(points, observed)
    last = model.temperature_history_[-1] if len(model.temperature_history_) else settings.get("temperature", 1.0)
    return map_scores(found.map(), data.map, latents=data.second).auroc, r2, float(last)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parents[1] / "docs/evidence/results")
    parser.add_argument("--sets", type=int, default=2)
    parser.add_argument("--steps", type=int, default=500)
    given = parser.parse_args()
    torch.set_num_threads(1)
    lines = [
        f"auROC for z2, {given.sets} data sets, {given.steps} steps; in brackets R² of z1 and temperature in the end"
    ]
    lines += ["", f"{'similarity, temperature':<26}{'none':>24}{'regularised':>24}"]
    sets = [piecewise(6_000, seed=seed) for seed in range(given.sets)]
    for name, settings in CASES.items():
        line = f"{name:<26}"
        for weight in (0.0, 0.1):
            auroc, r2, last = np.mean([scores(data, settings, weight, given.steps) for data in sets], 0)
            line += f"{auroc:10.3f} ({r2:.2f}, {last:5.3f})"
        lines.append(line)
        print(line, flush=True)
    given.folder.mkdir(parents=True, exist_ok=True)
    (given.folder / "attribution_temperature.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
